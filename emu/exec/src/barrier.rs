//! The sixteen barriers of a block.
//!
//! Warps arrive as a whole: a warp has arrived when all its lanes that have not ended have, and counts for 32 threads.

use crate::{BarrierMisuse, op::BarrierKind};

/// How many barriers a block has.
pub(crate) const BARRIERS: usize = 16;

/// One barrier.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    /// What the first arrival said; `None` while nobody has arrived.
    use_: Option<Use>,
    /// Per warp: lanes that arrived without waiting.
    pub(crate) arrived: Vec<u32>,
    /// Per warp: lanes that wait.
    pub(crate) waited: Vec<u32>,
    /// Per warp: lanes that brought a true predicate.
    votes: Vec<u32>,
}

/// What a barrier is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    /// Threads awaited; 0 for the whole block.
    count: u32,
    /// The reduction, if the waiting ones perform one.
    reduction: Option<Option<Reduction>>,
}

/// Which reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    And,
    Or,
    Popc,
}

/// One warp's arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) id: u32,
    pub(crate) count: u32,
    pub(crate) kind: BarrierKind,
    pub(crate) warp: usize,
    pub(crate) lanes: u32,
    /// Those of the lanes whose predicate is true.
    pub(crate) votes: u32,
}

/// What a completed barrier tells those who wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) and: bool,
    pub(crate) or: bool,
    pub(crate) popc: u32,
}

impl Barrier {
    pub(crate) fn new(warps: usize) -> Self {
        Self {
            use_: None,
            arrived: vec![0; warps],
            waited: vec![0; warps],
            votes: vec![0; warps],
        }
    }

    /// Records an arrival.
    pub(crate) fn arrive(&mut self, arrival: &Arrival) -> Result<(), BarrierMisuse> {
        let reduction = match arrival.kind {
            BarrierKind::Arrive => None,
            BarrierKind::Sync => Some(None),
            BarrierKind::And(..) => Some(Some(Reduction::And)),
            BarrierKind::Or(..) => Some(Some(Reduction::Or)),
            BarrierKind::Popc(..) => Some(Some(Reduction::Popc)),
        };
        let now = Use {
            count: arrival.count,
            reduction,
        };
        let first = self.use_.get_or_insert(now);
        if first.count != now.count {
            return Err(BarrierMisuse::CountsDiffer {
                id: arrival.id,
                first: first.count,
                now: now.count,
            });
        }
        match (first.reduction, now.reduction) {
            (Some(a), Some(b)) if a != b => {
                return Err(BarrierMisuse::OperationsDiffer(arrival.id));
            }
            (None, Some(_)) => first.reduction = now.reduction,
            _ => {}
        }
        let (arrived, waited) = (
            &mut self.arrived[arrival.warp],
            &mut self.waited[arrival.warp],
        );
        if (*arrived | *waited) & arrival.lanes != 0 {
            return Err(BarrierMisuse::ArrivedTwice(arrival.id));
        }
        match arrival.kind {
            BarrierKind::Arrive => *arrived |= arrival.lanes,
            _ => *waited |= arrival.lanes,
        }
        self.votes[arrival.warp] |= arrival.votes & arrival.lanes;
        Ok(())
    }

    /// Whether all awaited threads have arrived, given each warp's lanes that have not ended.
    pub(crate) fn complete(&self, live: impl Iterator<Item = u32>) -> bool {
        let Some(use_) = self.use_ else { return false };
        let mut there = 0;
        for ((live, arrived), waited) in live.zip(&self.arrived).zip(&self.waited) {
            let lanes = arrived | waited;
            let whole = live & !lanes == 0;
            if use_.count == 0 && !whole {
                return false;
            }
            if whole && lanes != 0 {
                there += 32;
            }
        }
        use_.count == 0 || there >= use_.count
    }

    /// The reductions over those who wait.
    pub(crate) fn verdict(&self) -> Verdict {
        let mut verdict = Verdict {
            and: true,
            or: false,
            popc: 0,
        };
        for (votes, waited) in self.votes.iter().zip(&self.waited) {
            verdict.and &= waited & !votes == 0;
            verdict.or |= votes & waited != 0;
            verdict.popc += (votes & waited).count_ones();
        }
        verdict
    }

    /// Makes it ready for its next use.
    pub(crate) fn reset(&mut self) {
        self.use_ = None;
        for lanes in [&mut self.arrived, &mut self.waited, &mut self.votes] {
            lanes.fill(0);
        }
    }

    /// Whether somebody has arrived.
    pub(crate) fn in_use(&self) -> bool {
        self.use_.is_some()
    }
}
