//! Faults, in words.

use slabfence_emu_exec::{AccessKind, Fault, FaultKind, MemoryFault};

use crate::{Checker, Finding, Op, Party, Rule, Thread, findings::Where};

impl Checker {
    /// Says what ended a grid: `stale-address` or `out-of-bounds` where memory was not there; `None` for faults of other
    /// kinds, which say all themselves. `was` says what was at an address before the run.
    pub fn fault(
        &self,
        op: Op,
        fault: &Fault,
        was: impl FnOnce(u64) -> Option<String>,
    ) -> Option<Finding> {
        let FaultKind::IllegalAddress {
            addr,
            size,
            access,
            reason,
            ..
        } = fault.kind
        else {
            return None;
        };
        let region = self.map.region_at(addr);
        let gone = match (self.map.gone_at(addr), region) {
            (Some(gone), _) => Some(gone.title()),
            (None, None) => was(addr),
            (None, Some(_)) => None,
        };
        let (rule, detail) = match (gone, region) {
            (None, Some(region)) => {
                let right = match reason {
                    MemoryFault::ReadOnly => "may only read",
                    _ => "has no right to",
                };
                (
                    Rule::WrongRegion,
                    format!("the device {right} {}", region.title()),
                )
            }
            (Some(gone), None) => (Rule::StaleAddress, format!("`{gone}` was there")),
            _ => match self.map.below(addr) {
                Some(below) => {
                    let past = addr.saturating_sub(below.end());
                    let words = format!("{past} bytes past the end of {}", below.title());
                    (Rule::OutOfBounds, words)
                }
                None => (Rule::OutOfBounds, format!("nothing is at {addr:#x}")),
            },
        };
        let at = match self.map.region_at(addr) {
            Some(region) => Where::Region(region, addr),
            None => Where::Nowhere(addr),
        };
        let operation = self.operations.get(&op);
        let verb = match access {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::ReadModifyWrite => "read-modify-write",
        };
        Some(Finding {
            rule,
            earlier: None,
            later: Some(Party {
                op,
                device: operation.map_or(0, |operation| operation.device),
                rank: operation.and_then(|operation| operation.rank()),
                access: format!("{verb} of {size} bytes that faulted"),
                thread: Some(Thread {
                    kernel: fault.kernel.clone(),
                    ctaid: fault.ctaid,
                    warp: fault.warp,
                    lane: fault.lane,
                    pc: fault.pc,
                    line: fault.line,
                    source: fault.source.clone(),
                }),
                synchronised: "unknown".to_owned(),
            }),
            place: Some(at.place()),
            detail,
            repair: rule.repair(),
            count: 1,
        })
    }
}
