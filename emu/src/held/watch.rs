//! What a held run itself sees of its warps: the trace, who wrote what last, and whether anything changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use slabfence_emu_exec::{
    Access, AccessKind, CtaBarrier, Fence, Hook, Operation, Order, Site, Space,
};

use super::detector::Detector;
use super::name::{Name, mix};
use super::places::Places;

/// A strong access as the explorer of all schedules sees it.
#[derive(Clone, Debug)]
pub(super) struct Strong {
    /// Words of 8 bytes that it touches.
    pub(super) words: Vec<u64>,
    /// Whether it writes.
    pub(super) write: bool,
    /// The operation, if it writes without looking: two of one kind in either order leave the same.
    pub(super) commutes: Option<Operation>,
}

/// What happened at a barrier of the running warp's block.
#[derive(Clone, Debug)]
pub(super) enum Meeting {
    /// The running warp arrived.
    Arrived {
        /// The barrier.
        id: u32,
    },
    /// These warps go on.
    Completed {
        /// The barrier.
        id: u32,
        /// The warps.
        waited: Vec<u32>,
    },
}

/// Who stored to a word last, by a strong access.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    /// The warp.
    pub(super) name: Name,
    /// Its kernel.
    pub(super) kernel: Arc<str>,
    /// Line of the PTX text.
    pub(super) line: u32,
}

/// The hook of held runs. It hands everything on, at home addresses.
#[derive(Debug)]
pub(super) struct Watch {
    /// The detector.
    pub(super) detector: Detector,
    places: Arc<Places>,
    /// The warp that runs.
    pub(super) name: Name,
    /// A number for its block, the same in every run with the same choices.
    pub(super) block: u64,
    /// Digest of all strong accesses and barriers so far.
    pub(super) trace: u64,
    /// How many there were.
    pub(super) visible: u64,
    /// Strong stores, read-modify-writes and tasks so far: what may end a wait.
    pub(super) writes: u64,
    /// Writers of words by home address.
    pub(super) writers: BTreeMap<u64, Writer>,
    /// Strong accesses since this was last emptied, if wanted.
    pub(super) strong: Option<Vec<Strong>>,
    /// Barriers since this was last emptied.
    pub(super) meetings: Vec<Meeting>,
    /// Whether steps end before strong accesses.
    pub(super) pause: bool,
    hint: usize,
}

impl Watch {
    /// Watches for a detector; `explored` says whether accesses and barriers are kept for the explorer.
    pub(super) fn new(detector: Detector, places: Arc<Places>, explored: bool) -> Watch {
        Watch {
            detector,
            places,
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
            writers: BTreeMap::new(),
            strong: explored.then(Vec::new),
            meetings: Vec::new(),
            pause: false,
            hint: 0,
        }
    }

    /// Adds what happened to the trace.
    pub(super) fn note(&mut self, words: &[u64]) {
        self.visible += 1;
        let name = self.name.digest();
        self.trace = words.iter().fold(mix(self.trace, name), |h, &w| mix(h, w));
    }

    /// One number for an address of a space that no other place shares.
    pub(super) fn word(&mut self, space: Space, address: u64) -> u64 {
        match space {
            Space::Global | Space::Const => self.places.home(address, &mut self.hint) / 8,
            _ => 1 << 63 | self.block << 24 | (address / 8) & 0xff_ffff,
        }
    }

    /// Where addresses lie.
    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// Start and bytes of the range that holds an address; nothing where there is none.
    pub(super) fn range(&mut self, address: u64) -> (u64, u64) {
        let place = self.places.find(address, &mut self.hint);
        place.map_or((address, 0), |place| (place.base, place.len))
    }

    /// The one address of the byte at `address`.
    pub(super) fn home(&mut self, address: u64) -> u64 {
        self.places.home(address, &mut self.hint)
    }

    /// The range that an address lies in, as one home address and an offset.
    pub(super) fn place(&mut self, address: u64) -> (u64, u64) {
        let place = self.places.find(address, &mut self.hint);
        place.map_or((address, 0), |place| (place.home, address - place.base))
    }

    fn seen(&mut self, at: &Site<'_>, access: &Access<'_>) {
        let lanes = (0..32).filter(|lane| access.lanes >> lane & 1 == 1);
        let write = access.kind != AccessKind::Load;
        if write {
            self.writes += 1;
        }
        let mut digest = vec![u64::from(at.pc), u64::from(access.lanes)];
        let mut words = Vec::new();
        for lane in lanes {
            let address = access.addresses[lane];
            if access.space == Space::Global {
                digest.push(self.place(address).1);
            }
            for row in access.loaded.iter().chain(access.stored) {
                digest.push(row[lane]);
            }
            let bytes = u64::from(access.size * access.elements);
            for part in (0..bytes).step_by(8) {
                words.push(self.word(access.space, address + part));
            }
        }
        words.sort_unstable();
        words.dedup();
        self.note(&digest);
        if write && access.space == Space::Global {
            let kernel: Arc<str> = at.launch.kernel.name().into();
            let line = at.launch.kernel.ptx_line(at.pc);
            let name = self.name;
            for &word in &words {
                let kernel = kernel.clone();
                self.writers.insert(word, Writer { name, kernel, line });
            }
        }
        if let Some(strong) = &mut self.strong {
            let commutes = access.operation.filter(|_| !access.returns);
            strong.push(Strong {
                words,
                write,
                commutes,
            });
        }
    }
}

impl Hook for Watch {
    const CHECKING: bool = true;

    fn access(&mut self, at: &Site<'_>, access: &Access<'_>) {
        if access.order != Order::Weak || access.operation.is_some() {
            self.seen(at, access);
        }
        if self.detector.0.is_none() {
            return;
        }
        let mut addresses = *access.addresses;
        if access.space == Space::Global {
            for (lane, address) in addresses.iter_mut().enumerate() {
                if access.lanes >> lane & 1 == 1 {
                    *address = self.places.home(*address, &mut self.hint);
                }
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
        self.detector.fence(at, lanes, fence);
    }

    fn cta_barrier(&mut self, at: &Site<'_>, event: CtaBarrier<'_>) {
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
