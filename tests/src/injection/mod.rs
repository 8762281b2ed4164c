//! Failing any one driver call of a rank: before its effect, or after it as if it had none.

mod effect;

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use slabfence::sys::{Api, CUresult, SYMBOLS};

pub use effect::{EXCHANGE, Effect, When};

/// Ranks of one process whose calls are watched at the same time: those of three worlds of two, of three and again of two.
pub const SEATS: usize = 21;

/// One call of one rank that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Whose call.
    pub rank: u32,
    /// In which step of the rank's life.
    pub step: &'static str,
    /// The driver's entry.
    pub entry: &'static str,
    /// Which of the step's calls of that entry, from zero.
    pub nth: u32,
    /// When it fails.
    pub when: When,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank,
            step,
            entry,
            nth,
            when,
        } = self;
        write!(f, "rank {rank}, {step}, {entry} {nth}, {when:?}")?;
        match *entry {
            EXCHANGE => Ok(()),
            _ => write!(f, ", {:?}", self.code()),
        }
    }
}

impl Point {
    /// What a call of the driver fails with: one code after another as the calls go, and ranks and moments apart.
    pub fn code(&self) -> CUresult {
        let after = u32::from(self.when == When::After);
        effect::code(self.entry, self.nth + self.rank + 2 * after)
    }

    /// The point for another process, where the step is one of these.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn write(&self, steps: &[&'static str]) -> String {
        let step = steps.iter().position(|step| *step == self.step);
        let when = When::ALL.iter().position(|when| *when == self.when);
        let (step, when) = (step.expect("a step"), when.expect("a moment"));
        format!("{} {step} {} {} {when}", self.rank, self.entry, self.nth)
    }

    /// Whether the call is one of those that go before others on the same thread.
    pub fn prepares_a_thread(&self) -> bool {
        let prepares = [
            "cuCtxGetCurrent",
            "cuCtxPushCurrent",
            "cuThreadExchangeStreamCaptureMode",
        ];
        prepares.contains(&self.entry)
    }

    /// Whether the call belongs to a drain, in front of all that a step of a pool does.
    pub fn is_of_the_drain(&self) -> bool {
        self.entry == "cuCtxSynchronize"
            || self.nth == 0 && ["cuCtxGetCurrent", "cuCtxPushCurrent"].contains(&self.entry)
    }

    /// Whether a graph or an executable stays that nobody can destroy.
    pub fn strays(&self) -> bool {
        match self.entry {
            "cuGraphDestroy" | "cuGraphExecDestroy" => self.when == When::Before,
            "cuStreamEndCapture" => self.when == When::After,
            _ => false,
        }
    }

    /// What [`write`](Self::write) has written.
    pub fn read(words: &str, steps: &[&'static str]) -> Option<Self> {
        let words: Vec<&str> = words.split(' ').collect();
        let &[rank, step, entry, nth, when] = &words[..] else {
            return None;
        };
        let mut entries = SYMBOLS.iter().map(|symbol| symbol.entry);
        Some(Self {
            rank: rank.parse().ok()?,
            step: steps.get(step.parse::<usize>().ok()?)?,
            entry: match entry == EXCHANGE {
                true => EXCHANGE,
                false => entries.find(|known| *known == entry)?,
            },
            nth: nth.parse().ok()?,
            when: *When::ALL.get(when.parse::<usize>().ok()?)?,
        })
    }
}

/// What is known of a seat's calls.
#[derive(Debug, Default)]
struct State {
    /// Calls outside of a step are not counted and do not fail.
    step: Option<&'static str>,
    calls: BTreeMap<(&'static str, &'static str), u32>,
    points: Vec<Point>,
    hits: usize,
}

/// The calls of a seat, and which of them fails.
#[derive(Debug)]
pub struct Ledger(Mutex<State>);

static LEDGERS: [Ledger; SEATS] = [const {
    Ledger(Mutex::new(State {
        step: None,
        calls: BTreeMap::new(),
        points: Vec::new(),
        hits: 0,
    }))
}; SEATS];

impl Ledger {
    /// That of a seat.
    pub fn of(seat: usize) -> &'static Self {
        &LEDGERS[seat]
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `body` as a step of this name.
    pub fn step<T>(&self, name: &'static str, body: impl FnOnce() -> T) -> T {
        self.state().step = Some(name);
        let done = body();
        self.state().step = None;
        done
    }

    /// Begins anew, with calls to fail.
    pub fn arm(&self, points: &[Point]) {
        *self.state() = State {
            points: points.to_vec(),
            ..State::default()
        };
    }

    /// How many calls of an entry there were.
    pub fn count(&self, entry: &str) -> u32 {
        let state = self.state();
        let calls = state.calls.iter().filter(|((_, of), _)| *of == entry);
        calls.map(|(_, count)| count).sum()
    }

    /// How many calls of an entry there were in the steps of a name.
    pub fn count_of(&self, step: &'static str, entry: &'static str) -> u32 {
        let state = self.state();
        state.calls.get(&(step, entry)).copied().unwrap_or(0)
    }

    /// The first point of this step and entry, if it was come to: where only one is armed.
    pub fn struck(&self, step: &str, entry: &str) -> Option<Point> {
        let state = self.state();
        let here = |point: &&Point| (point.step, point.entry) == (step, entry);
        let point = state.points.iter().find(here)?;
        (state.hits > 0).then_some(*point)
    }

    /// How many calls have failed.
    pub fn hits(&self) -> usize {
        self.state().hits
    }

    /// Every point at which `rank`, whose calls these are, can fail.
    pub fn points(&self, rank: u32) -> Vec<Point> {
        let mut points = Vec::new();
        for (&(step, entry), &count) in &self.state().calls {
            for nth in 0..count {
                points.extend(Effect::of(entry).moments().iter().map(|&when| Point {
                    rank,
                    step,
                    entry,
                    nth,
                    when,
                }));
            }
        }
        points
    }

    /// Counts a call, and tells at which point it fails, if it does.
    pub fn enter(&self, entry: &'static str) -> Option<Point> {
        let mut state = self.state();
        let step = state.step?;
        let count = state.calls.entry((step, entry)).or_default();
        let nth = *count;
        *count += 1;
        let here = |point: &&Point| (point.step, point.entry, point.nth) == (step, entry, nth);
        let point = *state.points.iter().find(here)?;
        state.hits += 1;
        Some(point)
    }
}

/// The entries behind a seat's table.
static ORIGINALS: [[AtomicPtr<()>; SYMBOLS.len()]; SEATS] =
    [const { [const { AtomicPtr::new(ptr::null_mut()) }; SYMBOLS.len()] }; SEATS];

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The place of an entry in the table.
const fn place(entry: &str) -> usize {
    let mut at = 0;
    while !same(SYMBOLS[at].entry.as_bytes(), entry.as_bytes()) {
        at += 1;
    }
    at
}

/// A function of the table.
trait Entry: Copy {
    /// The function of seat `SEAT` that stands before this one, the table's entry `N`.
    fn watched<const SEAT: usize, const N: usize>(self) -> Self;
}

macro_rules! entry {
    ($($arg:ident: $type:ident),*) => {
        impl<$($type),*> Entry for unsafe extern "C" fn($($type),*) -> CUresult {
            fn watched<const SEAT: usize, const N: usize>(self) -> Self {
                unsafe extern "C" fn before<const SEAT: usize, const N: usize, $($type),*>($($arg: $type),*) -> CUresult {
                    let fails = LEDGERS[SEAT].enter(SYMBOLS[N].entry);
                    if let Some(point) = fails
                        && point.when == When::Before
                    {
                        return point.code();
                    }
                    let original = ORIGINALS[SEAT][N].load(Ordering::Acquire);
                    // SAFETY: set below, from a function of this type: every entry has one type.
                    let original = unsafe {
                        mem::transmute::<*mut (), unsafe extern "C" fn($($type),*) -> CUresult>(original)
                    };
                    // SAFETY: the caller's arguments, handed on as they are.
                    let code = unsafe { original($($arg),*) };
                    fails.map_or(code, |point| point.code())
                }
                ORIGINALS[SEAT][N].store(self as *mut (), Ordering::Release);
                before::<SEAT, N, $($type),*>
            }
        }
    };
}

entry!();
entry!(a: A);
entry!(a: A, b: B);
entry!(a: A, b: B, c: C);
entry!(a: A, b: B, c: C, d: D);
entry!(a: A, b: B, c: C, d: D, e: E);
entry!(a: A, b: B, c: C, d: D, e: E, f: F);
entry!(a: A, b: B, c: C, d: D, e: E, f: F, g: G);
entry!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J, k: K);

macro_rules! watch {
    (
        required { $( $req:ident @ $req_version:literal => $req_type:ty; )* }
        optional { $( $opt:ident $(as $symbol:ident)? @ $opt_version:literal => $opt_type:ty; )* }
    ) => {
        /// Puts a function of seat `SEAT` before every entry of the table.
        fn watch<const SEAT: usize>(api: &mut Api) {
            $( api.$req = api.$req.watched::<SEAT, { place(stringify!($req)) }>(); )*
            $( api.$opt = api.$opt.map(|entry| entry.watched::<SEAT, { place(stringify!($opt)) }>()); )*
        }
    };
}

slabfence::sys::driver_entries! {
    watch {
        // `slabfenceEmuVersion` is no call that can fail.
        slabfenceEmuAnnounceRange @ 0 => EmuAnnounceRange;
    }
}

/// What [`watched`] does for each seat.
const WATCH: [fn(&mut Api); SEATS] = [
    watch::<0>,
    watch::<1>,
    watch::<2>,
    watch::<3>,
    watch::<4>,
    watch::<5>,
    watch::<6>,
    watch::<7>,
    watch::<8>,
    watch::<9>,
    watch::<10>,
    watch::<11>,
    watch::<12>,
    watch::<13>,
    watch::<14>,
    watch::<15>,
    watch::<16>,
    watch::<17>,
    watch::<18>,
    watch::<19>,
    watch::<20>,
];

/// A table whose calls are those of a seat. One driver at a time has it.
///
/// # Panics
///
/// For a seat that there is not.
pub fn watched(mut api: Api, seat: usize) -> Api {
    WATCH[seat](&mut api);
    api
}
