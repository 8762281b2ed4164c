//! Living through something again and again, each time with another failure.

mod apart;
mod captured;
mod lives;
mod round;
mod seats;
mod together;

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use slabfence::Result;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::Stream;
use slabfence::group::Bootstrap;
use slabfence::layout::Transport;

use crate::adversary::{self, Damage};
use crate::injection::{EXCHANGE, Ledger, Point, When};
use crate::ranks::{Gather, Member};

pub use apart::{Place, SHARES, every_call_apart};
pub use captured::Captured;
pub use round::{abandon, close, close_after_a_graph, create, create_and_close};
pub use together::{Second, every_call, every_damage, pairs_of_calls};

/// How often ranks try what has failed.
const TRIES: usize = 8;
/// Longer than any round may take.
const BOUND: Duration = Duration::from_secs(30);
/// The last exchange of a close, `close: free`.
const FREE: u32 = 3;

/// The ranks that live through something, and what they fail.
#[derive(Debug, Clone, Copy)]
pub struct World {
    /// How many they are.
    pub ranks: u32,
    /// How their pools reach one another.
    pub transport: Transport,
    /// Of the driver's calls each so many-th point is tried; of the exchanges every one.
    pub stride: usize,
    /// Whether a round keeps something for good, the same each time.
    pub keeps: bool,
}

impl World {
    /// Ranks that push, and fail everything.
    pub fn pushing(ranks: u32) -> Self {
        Self {
            ranks,
            transport: Transport::Push,
            stride: 1,
            keeps: false,
        }
    }

    /// Ranks that pull, and fail everything.
    pub fn pulling(ranks: u32) -> Self {
        let transport = Transport::Pull;
        Self {
            transport,
            ..Self::pushing(ranks)
        }
    }

    /// A small contract, whose waits end soon.
    fn contract(self) -> Contract {
        Contract {
            fail: Duration::from_millis(500),
            max_channels: 2,
            max_grid: 4,
            transport: self.transport,
            ..Contract::new(2 * self.ranks, 16, 16, 2)
        }
    }
}

/// One rank of the world that fails again and again.
pub struct Seat<'a> {
    /// The rank.
    pub member: &'a Member,
    /// Its contract.
    pub contract: Contract,
    /// Whether a round keeps something for good, the same each time.
    pub keeps: bool,
    meeting: Arc<dyn Bootstrap>,
    ledger: &'static Ledger,
    /// How many calls fail in the round.
    faults: AtomicUsize,
    /// What its exchanges are garbled by.
    damage: Arc<Mutex<(Damage, u64)>>,
}

impl fmt::Debug for Seat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seat").field(self.member).finish()
    }
}

/// How many points were tried.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Injected {
    /// Of the driver's calls.
    pub calls: usize,
    /// Of exchanges.
    pub exchanges: usize,
}

/// Says a line, also of a test that passes: not by the macros, whose output the test harness keeps.
///
/// # Panics
///
/// When nobody listens.
pub fn say(line: &str) {
    let said = format!("injected: {line}\n");
    io::stderr().write_all(said.as_bytes()).expect("stderr");
}

impl Injected {
    fn of(points: &[Point]) -> Self {
        let exchanges = points.iter().filter(|point| point.entry == EXCHANGE);
        let exchanges = exchanges.count();
        Self {
            calls: points.len() - exchanges,
            exchanges,
        }
    }

    /// Says how many there were.
    ///
    /// # Panics
    ///
    /// When they are fewer than they were when the test was written, of calls and of exchanges.
    pub fn tell(self, what: &str, world: World, calls: usize, exchanges: usize) {
        let World {
            ranks, transport, ..
        } = world;
        let said = format!(
            "{what}, {ranks} ranks, {transport:?}: {} calls, {} exchanges",
            self.calls, self.exchanges
        );
        say(&said);
        assert!(
            self.calls >= calls && self.exchanges >= exchanges,
            "{said}, and not {calls} and {exchanges}"
        );
    }
}

impl Seat<'_> {
    /// Does `body` as a step of this name, in which calls are counted and may fail.
    ///
    /// # Panics
    ///
    /// When one exchange fails in it and this rank does not tell of that, or tells of one that was only late.
    pub fn step<T>(&self, name: &'static str, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let given = self.ledger.step(name, body);
        // With a second fault a rank may tell of that one.
        if let (Some(point), 1) = (
            self.ledger.struck(name, EXCHANGE),
            self.faults.load(Ordering::Relaxed),
        ) {
            self.judge(point, &given);
        }
        given
    }

    /// Waits for all ranks, and gives what each says.
    ///
    /// # Panics
    ///
    /// When a rank does not come.
    pub fn meet(&self, say: &str) -> Vec<String> {
        let deadline = Instant::now() + BOUND;
        let parts = self.meeting.all_gather(say.as_bytes(), deadline);
        let parts = parts.expect("every rank comes in time").into_iter();
        parts
            .map(|part| String::from_utf8_lossy(&part).into_owned())
            .collect()
    }

    /// Looks at what a step gave on a rank whose exchange `point` was struck: a late one is no failure, of any other this rank
    /// tells, and of nothing else.
    fn judge<T>(&self, point: Point, given: &Result<T>) {
        // Once its own memory is freed, what the others say makes no difference to a rank.
        let deaf = (point.step, point.nth) == ("close", FREE);
        let error = match given {
            Ok(_) => {
                assert!(deaf || point.when == When::Late, "nobody saw {point}");
                return;
            }
            Err(error) => error.to_string(),
        };
        assert!(!deaf && point.when != When::Late, "{point}: {error}");
        let (me, world) = (self.member.group.me().index(), self.member.group.world());
        let (damage, _) = *self.damage.lock().expect("the damage");
        let told = adversary::told(point.when, damage, me, world as usize);
        assert!(error.contains(&told), "{point}, {damage:?}: {error}");
    }

    /// Ends a step whose call gave `result`. A driver call that failed has the same result on all ranks. An exchange that
    /// failed has failed for all of them, each in words of its own, unless it was their last: who loses only that fails
    /// alone. Ranks may still wait for one another in it: they do no more afterwards. Who tells of one failed call tells its
    /// code, and a late exchange is none. Whether all succeeded.
    ///
    /// # Panics
    ///
    /// When ranks differ where they must not.
    pub fn settle<T>(&self, point: Option<Point>, result: &Result<T>) -> bool {
        let exchange = point.is_some_and(|point| point.entry == EXCHANGE);
        if exchange {
            let group = &self.member.group;
            let tries = (0..TRIES).find(|_| group.verdict("settled", &Ok(())).is_ok());
            assert!(tries.is_some(), "the ranks do not meet any more");
        }
        let own = match result {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let said = self.meet(&own);
        // With a second fault a rank may have more to say: what only it has left.
        let faults = self.faults.load(Ordering::Relaxed);
        let alike = said.iter().all(|words| match faults {
            0 | 1 => *words == own,
            _ => words.is_empty() == own.is_empty(),
        });
        assert!(exchange || alike, "{said:?}");
        let late = point.is_some_and(|point| point.when == When::Late);
        assert!(
            !late || faults > 1 || said.iter().all(String::is_empty),
            "{point:?}: {said:?}"
        );
        if let (Some(point), 1, false, false) = (point, faults, exchange, own.is_empty()) {
            let code = format!("({})", point.code().0);
            assert!(own.contains(&code), "{own} tells nothing of {point}");
        }
        if let (true, Some(Point { step, nth, .. })) = (own.is_empty() && !alike, point) {
            // Behind the verdict on a close's unmapping ranks free what is theirs, and need nobody for it.
            let alone = if step == "close" { 2 } else { 1 };
            let exchanges = self.ledger.count_of(step, EXCHANGE);
            assert!(
                exchanges <= nth + alone,
                "{point:?} was not the last: {said:?}"
            );
        }
        said.iter().all(String::is_empty)
    }

    /// Closes a pool on all ranks, however often that has to be tried.
    ///
    /// # Panics
    ///
    /// When that does not succeed.
    pub fn close(&self, point: Option<Point>, pool: &Pool) {
        let closed = (0..TRIES).find(|_| self.settle(point, &pool.close()));
        assert!(closed.is_some(), "the pool cannot be closed");
    }

    /// Runs an operation on the channel, and finds it right.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn operate(&self, pool: &Pool, channel: &str) {
        let member = self.member;
        let channel = pool.channel(channel).expect("a channel");
        let stream = Stream::new(&member.device).expect("a stream");
        let gather = Gather::new(member, &self.contract, 1).expect("buffers");
        gather.fill(member.rank(), 1).expect("an upload");
        self.meet("");
        gather.enqueue(&channel, &stream).expect("enqueued");
        stream.synchronize().expect("done");
        assert!(gather.output().expect("an output") == gather.expected(1));
    }
}
