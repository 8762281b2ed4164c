//! What the callers do, and what goes wrong.

use crate::operation::{Operation, RANKS};

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub operation: u8,
    pub number: u8,
    /// Place in its capture, for rules that freeze something there.
    pub ordinal: u8,
}

/// Calls of a stream in order: which of the scenario's operations, and the number of the call. Calls of two ranks that
/// the callers mean to meet have one number.
pub type List = Vec<(u8, u8)>;

/// What the ranks call.
#[derive(Debug, Clone)]
pub enum Calls {
    /// `[rank][stream]`.
    Listed(Vec<Vec<List>>),
    /// Any operations, the same on all ranks: every sequence of this length, or without end.
    Any {
        /// Calls of a rank; `None`: no end, epochs and call numbers are counted modulo [`Scenario::lap`].
        length: Option<u8>,
    },
}

/// Whether the callers keep what the protocol assumes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// They do: no call may get wrong rows, and no report may come unless a wait gave up.
    Keeps,
    /// They do not, and a call with wrong rows must have been reported on its rank before it ends.
    BreaksAtOnce,
    /// They do not, and a report may come after the call with wrong rows has ended, but come it must.
    BreaksInTheEnd,
}

/// What the host does between two lists of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seam {
    /// `Pool::reset`.
    Reset,
    /// The ranges are given back and become another channel's.
    Reuse,
}

/// How much is one step. The larger ones leave out interleavings, for systems that are too large without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// One access.
    Access,
    /// What a warp reads at its start, the words of its entry lines, the last CTA's stores, a report's poison words, and
    /// the end of a warp with its last access.
    Warp,
    /// The same, and both warps of a CTA start in one step.
    Cta,
}

/// The epoch moves ahead while all ranks rest, as resets and skipped calls do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// How often.
    pub times: u8,
    /// By up to so many, in steps of two.
    pub farthest: u8,
}

/// A system to explore.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Ranks, 2 or 3.
    pub world: usize,
    /// The operations that calls choose from.
    pub operations: Vec<Operation>,
    /// Who calls what.
    pub calls: Calls,
    /// Do the callers keep the assumptions?
    pub caller: Caller,
    /// It does not matter which of a rank's calls meets which of another's, as with two replays of one graph; but each
    /// must get the rows of one call, and no two those of the same.
    pub interchangeable: bool,
    /// A seam, and what is called behind it (as in [`Calls::Listed`], one stream a rank).
    pub seam: Option<(Seam, Vec<List>)>,
    /// Calls of the graph that a list replays, 0: it is one graph; for rules that freeze something in a graph's nodes.
    pub capture: u8,
    /// Jumps of the epoch.
    pub jump: Jump,
    /// Waits that give up at any time.
    pub give_ups: u8,
    /// Fail thresholds are on: waits give up when nothing else can move.
    pub bounded: bool,
    /// Accesses are performed late.
    pub delayed: bool,
    /// First epoch.
    pub epoch: u8,
    /// Bits of a stamp.
    pub stamp_bits: u32,
    /// Epochs between two scrubs of a slot; 0: no scrubs.
    pub scrub_period: u8,
    /// Packets that a range holds.
    pub capacity: u8,
    /// What epochs are counted modulo in endless runs; a multiple of all that wraps.
    pub lap: u16,
    /// Steps that touch only the rank's own counters run at once, on ranks of one stream. Sound while the rules about
    /// those counters hold: such a step commutes with all others and nothing disables it.
    pub reduced: bool,
    /// How much is one step.
    pub grain: Grain,
}

impl Scenario {
    /// Two ranks, calls that keep all assumptions, nothing goes wrong.
    pub fn new(operations: Vec<Operation>, calls: Calls) -> Self {
        Self {
            world: 2,
            operations,
            calls,
            caller: Caller::Keeps,
            interchangeable: false,
            seam: None,
            capture: 0,
            jump: Jump {
                times: 0,
                farthest: 0,
            },
            give_ups: 0,
            bounded: false,
            delayed: false,
            epoch: 2,
            stamp_bits: 8,
            scrub_period: 0,
            capacity: 1,
            lap: 256,
            reduced: true,
            grain: Grain::Access,
        }
    }

    /// Every sequence of `length` of the operations.
    pub fn any(operations: Vec<Operation>, length: u8) -> Self {
        let length = Some(length);
        Self::new(operations, Calls::Any { length })
    }

    /// One stream on each of `world` ranks, all calling this list.
    pub fn list(operations: Vec<Operation>, world: usize, list: &[u8]) -> Self {
        let numbered: Vec<_> = list.iter().copied().zip(0..).collect();
        let calls = Calls::Listed(vec![vec![numbered]; world]);
        Self {
            world,
            ..Self::new(operations, calls)
        }
    }

    /// Streams of calls, `[rank][stream]`, by callers who break an assumption.
    pub fn broken(operations: Vec<Operation>, caller: Caller, lists: Vec<Vec<List>>) -> Self {
        Self {
            world: lists.len(),
            caller,
            ..Self::new(operations, Calls::Listed(lists))
        }
    }

    /// Every interleaving, none taken for granted.
    pub fn unreduced(self) -> Self {
        Self {
            reduced: false,
            ..self
        }
    }

    /// The same in larger steps.
    pub fn coarse(self, grain: Grain) -> Self {
        Self { grain, ..self }
    }

    /// How many streams a rank has.
    pub(crate) fn streams(&self, rank: usize) -> usize {
        match &self.calls {
            Calls::Listed(lists) => lists[rank].len(),
            Calls::Any { .. } => 1,
        }
    }

    pub(crate) fn endless(&self) -> bool {
        matches!(self.calls, Calls::Any { length: None })
    }

    /// May a report come although every rule holds?
    pub(crate) fn faults_expected(&self) -> bool {
        self.caller != Caller::Keeps || self.give_ups > 0
    }

    pub(crate) fn check(&self) {
        assert!((2..=RANKS).contains(&self.world));
        assert!(!self.operations.is_empty() && self.operations.len() < 255);
        if self.endless() {
            assert!(self.lap.is_multiple_of(1 << self.stamp_bits) && self.lap <= 256);
        }
    }
}
