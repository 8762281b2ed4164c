//! What a held run itself sees of its warps: the trace, who wrote what last, and whether anything changed.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use slabfence_emu_exec::{
    Access, AccessKind, CtaBarrier, Fence, Hook, Order, Site, Space, lanes_of,
};

use super::changed::Changed;
use super::detector::Detector;
use super::name::{Name, mix};
use super::places::Places;
use super::seen::{Meeting, Strong, Writer, changes};

/// In place of a word: the one order of all `fence.sc`. No memory is there.
const FENCES: u64 = u64::MAX;
/// Pieces of memory, of so many bytes, of which each remembers where it was found.
const HINTS: usize = 64;
const PIECE: u64 = 64 << 10;

/// The hook of held runs. It hands everything on, at home addresses.
#[derive(Debug)]
pub(super) struct Watch {
    /// The detector.
    pub(super) detector: Detector,
    places: Arc<Places>,
    changed: Arc<Changed>,
    /// The warp that runs.
    pub(super) name: Name,
    /// A number for its block, the same in every run with the same choices.
    pub(super) block: u64,
    /// Digest of all strong accesses and barriers so far.
    pub(super) trace: u64,
    /// How many there were.
    pub(super) visible: u64,
    /// Strong stores, read-modify-writes that changed something and tasks so far: what may end a wait.
    pub(super) writes: u64,
    /// All that may have changed memory so far, but for memory that is a thread's own.
    pub(super) stores: u64,
    /// Writers of words by home address.
    pub(super) writers: FxHashMap<u64, Writer>,
    /// Strong accesses since this was last emptied, if wanted.
    pub(super) strong: Option<Vec<Strong>>,
    /// Barriers since this was last emptied.
    pub(super) meetings: Vec<Meeting>,
    /// Whether a barrier was completed, which lets others of its block go on.
    pub(super) released: bool,
    /// Whether steps end before strong accesses.
    pub(super) pause: bool,
    /// Where addresses were found last, by the piece of memory that they lie in.
    hints: [usize; HINTS],
    /// Room for the words of one access.
    room: Vec<u64>,
}

fn hint(hints: &mut [usize; HINTS], address: u64) -> &mut usize {
    &mut hints[(address / PIECE) as usize % HINTS]
}

impl Watch {
    /// Watches for a detector; `explored` says whether accesses and barriers are kept for the explorer.
    pub(super) fn new(
        detector: Detector,
        places: Arc<Places>,
        changed: Arc<Changed>,
        explored: bool,
    ) -> Watch {
        Watch {
            detector,
            places,
            changed,
            name: Name {
                device: 0,
                op: 0,
                block: 0,
                warp: 0,
            },
            block: 0,
            trace: 0,
            visible: 0,
            writes: 0,
            stores: 0,
            writers: FxHashMap::default(),
            strong: explored.then(Vec::new),
            meetings: Vec::new(),
            released: false,
            pause: false,
            hints: [0; HINTS],
            room: Default::default(),
        }
    }

    /// Adds what happened to the trace.
    pub(super) fn note(&mut self, words: &[u64]) {
        let trace = self.begin_note();
        self.trace = words.iter().fold(trace, |h, &w| mix(h, w));
    }

    /// The trace behind the name of the running warp, for who adds to it what happened.
    fn begin_note(&mut self) -> u64 {
        self.visible += 1;
        mix(self.trace, self.name.digest())
    }

    /// One number for an address of a space that no other place shares.
    pub(super) fn word(&mut self, space: Space, address: u64) -> u64 {
        match space {
            Space::Global | Space::Const => {
                self.places.home(address, hint(&mut self.hints, address)) / 8
            }
            _ => 1 << 63 | self.block << 24 | (address / 8) & 0xff_ffff,
        }
    }

    /// Where addresses lie.
    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// Start and bytes of the range that holds an address; nothing where there is none.
    pub(super) fn range(&mut self, address: u64) -> (u64, u64) {
        let place = self.places.find(address, hint(&mut self.hints, address));
        place.map_or((address, 0), |place| (place.base, place.len))
    }

    /// The one address of the byte at `address`.
    pub(super) fn home(&mut self, address: u64) -> u64 {
        self.places.home(address, hint(&mut self.hints, address))
    }

    /// The range that an address lies in, as one home address and an offset.
    pub(super) fn place(&mut self, address: u64) -> (u64, u64) {
        let place = self.places.find(address, hint(&mut self.hints, address));
        place.map_or((address, 0), |place| (place.home, address - place.base))
    }

    /// A range of addresses is written to, whatever lies there.
    pub(super) fn writes_to(&mut self, address: u64, len: u64) {
        let end = address.saturating_add(len);
        let mut at = address;
        while at < end {
            let Some(place) = self.places.find(at, hint(&mut self.hints, at)) else {
                return self.changed.mark_all();
            };
            let stop = end.min(place.base + place.len);
            (place.page(at)..=place.page(stop - 1)).for_each(|page| self.changed.mark(page));
            at = stop;
        }
    }

    /// The lanes of an access write.
    fn writes_of(&mut self, access: &Access<'_>) {
        let mut marked = usize::MAX;
        for lane in lanes_of(access.lanes) {
            let address = access.addresses[lane];
            let Some(place) = self.places.find(address, hint(&mut self.hints, address)) else {
                return self.changed.mark_all();
            };
            // All of a lane's bytes: they are aligned to their number, a power of two, and memory begins at a page.
            let page = place.page(address);
            if page != marked {
                self.changed.mark(page);
                marked = page;
            }
        }
    }

    /// A step broke off: what it did is not known.
    pub(super) fn broke_off(&mut self) {
        self.changed.mark_all();
    }

    fn seen(&mut self, at: &Site<'_>, access: &Access<'_>) {
        let write = access.kind != AccessKind::Load;
        let changes = changes(access);
        if changes {
            self.writes += 1;
        }
        let global = access.space == Space::Global;
        let start = self.begin_note();
        let mut trace = mix(mix(start, at.pc.into()), access.lanes.into());
        for lane in lanes_of(access.lanes) {
            if global {
                trace = mix(trace, self.place(access.addresses[lane]).1);
            }
            let rows = access.loaded.iter().chain(access.stored);
            trace = rows.fold(trace, |h, row| mix(h, row[lane]));
        }
        self.trace = trace;
        if changes && global || self.strong.is_some() {
            self.touched(at, access, write, changes);
        }
    }

    /// Which words a strong access touches, for those who ask of words.
    fn touched(&mut self, at: &Site<'_>, access: &Access<'_>, write: bool, changes: bool) {
        let mut words = std::mem::take(&mut self.room);
        words.clear();
        let bytes = u64::from(access.size * access.elements);
        for lane in lanes_of(access.lanes) {
            for part in (0..bytes).step_by(8) {
                let word = self.word(access.space, access.addresses[lane] + part);
                // Mostly all lanes access the same.
                if words.last() != Some(&word) {
                    words.push(word);
                }
            }
        }
        words.sort_unstable();
        words.dedup();
        if changes && access.space == Space::Global {
            let (name, pc) = (self.name, at.pc);
            for &word in &words {
                let kernel = Arc::clone(&at.launch.kernel);
                self.writers.insert(word, Writer { name, kernel, pc });
            }
        }
        if let Some(strong) = &mut self.strong {
            let commutes = access.operation.filter(|_| !access.returns);
            let loaded = |lane| access.loaded.iter().map(move |row: &[u64; 32]| row[lane]);
            let found = lanes_of(access.lanes).flat_map(loaded);
            strong.push(Strong {
                words: words.clone(),
                found: found.fold(0, mix),
                write,
                commutes,
            });
        }
        self.room = words;
    }
}

impl Hook for Watch {
    const CHECKING: bool = true;

    fn access(&mut self, at: &Site<'_>, access: &Access<'_>) {
        if access.order != Order::Weak || access.operation.is_some() {
            self.seen(at, access);
        }
        let global = matches!(access.space, Space::Global | Space::Const);
        if access.kind != AccessKind::Load {
            self.stores += u64::from(access.space != Space::Local && changes(access));
            if global {
                self.writes_of(access);
            }
        }
        if self.detector.0.is_none() {
            return;
        }
        let mut addresses = *access.addresses;
        if access.space == Space::Global {
            // Mostly all lie in one range.
            let (mut base, mut len, mut home) = (0, 0, 0);
            for lane in lanes_of(access.lanes) {
                let address = &mut addresses[lane];
                if address.wrapping_sub(base) >= len {
                    let hint = hint(&mut self.hints, *address);
                    let Some(place) = self.places.find(*address, hint) else {
                        continue;
                    };
                    (base, len, home) = (place.base, place.len, place.home);
                }
                *address = *address - base + home;
            }
        }
        let addresses = &addresses;
        self.detector.access(
            at,
            &Access {
                addresses,
                ..*access
            },
        );
    }

    fn fence(&mut self, at: &Site<'_>, lanes: u32, fence: Fence) {
        if let Some(strong) = self.strong.as_mut().filter(|_| fence.sc) {
            strong.push(Strong {
                words: vec![FENCES],
                found: 0,
                write: true,
                commutes: None,
            });
        }
        self.detector.fence(at, lanes, fence);
    }

    fn cta_barrier(&mut self, at: &Site<'_>, event: CtaBarrier<'_>) {
        self.released |= matches!(event, CtaBarrier::Completed { .. });
        match event {
            CtaBarrier::Arrived { id, .. } => {
                self.note(&[u64::from(at.pc), u64::from(id)]);
                if self.strong.is_some() {
                    self.meetings.push(Meeting::Arrived { id });
                }
            }
            CtaBarrier::Completed { id, waited, .. } if self.strong.is_some() => {
                let waited = waited.iter().zip(0..).filter(|&(&lanes, _)| lanes != 0);
                let waited = waited.map(|(_, warp)| warp).collect();
                self.meetings.push(Meeting::Completed { id, waited });
            }
            CtaBarrier::Completed { .. } => {}
        }
        self.detector.cta_barrier(at, event);
    }

    fn warp_barrier(&mut self, at: &Site<'_>, lanes: u32) {
        self.detector.warp_barrier(at, lanes);
    }

    fn exit(&mut self, at: &Site<'_>, lanes: u32) {
        self.detector.exit(at, lanes);
    }

    fn pauses(&self) -> bool {
        self.pause
    }
}
