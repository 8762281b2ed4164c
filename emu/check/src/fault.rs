//! Faults, in words.

use slabfence_emu_exec::{AccessKind, Fault, FaultKind, MemoryFault, Space};

use crate::{Checker, Finding, Op, Party, Rule, Thread, findings::Where};

impl Checker {
    /// Says what ended a grid: `stale-address`, `out-of-bounds` or `wrong-region` where memory was not there, or not for this
    /// access, and `misaligned`; `None` for faults of other kinds, which say all themselves. `home` is the address by which
    /// the checker knows the fault's memory, where that is global; `was` says what was there before the run.
    pub fn fault(
        &self,
        op: Op,
        fault: &Fault,
        home: Option<u64>,
        was: impl FnOnce() -> Option<String>,
    ) -> Option<Finding> {
        let at = |space, address| match (space, self.map.region_at(address)) {
            (Space::Shared, _) => Where::Shared(address),
            (Space::Global | Space::Const, Some(region)) => Where::Region(region, address),
            _ => Where::Nowhere(address),
        };
        let (at, rule, access, detail) = match fault.kind {
            FaultKind::IllegalAddress {
                addr,
                size,
                access,
                space,
                reason,
            } => {
                let address = home.unwrap_or(addr);
                let (rule, detail) = self.not_there(address, u64::from(size), reason, was);
                let verb = match access {
                    AccessKind::Load => "load",
                    AccessKind::Store => "store",
                    AccessKind::ReadModifyWrite => "read-modify-write",
                };
                let access = format!("{verb} of {size} bytes that faulted");
                (at(space, address), rule, access, detail)
            }
            FaultKind::Misaligned { addr, align, space } => {
                let at = at(space, home.unwrap_or(addr));
                let detail = match at {
                    Where::Nowhere(address) => match self.map.nearby(address) {
                        Some(near) => format!("the address ({near}) is no multiple of {align}"),
                        None => format!("{address:#x} is no multiple of {align}"),
                    },
                    _ => format!("the address is no multiple of {align}"),
                };
                let access = format!("access of {align} bytes that faulted");
                (at, Rule::Misaligned, access, detail)
            }
            FaultKind::Trap | FaultKind::Barrier(_) | FaultKind::NotInMemberMask { .. } => {
                return None;
            }
        };
        let operation = self.operations.get(&op);
        Some(Finding {
            rule,
            earlier: None,
            later: Some(Party {
                op,
                device: operation.map_or(0, |operation| operation.device),
                rank: operation.and_then(|operation| operation.rank()),
                access,
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

    /// What is, or was, where an access found no memory for it.
    fn not_there(
        &self,
        address: u64,
        size: u64,
        reason: MemoryFault,
        was: impl FnOnce() -> Option<String>,
    ) -> (Rule, String) {
        let region = self.map.region_at(address);
        let gone = match (self.map.gone_at(address), region) {
            (Some(gone), _) => Some(gone.title()),
            (None, None) => was(),
            (None, Some(_)) => None,
        };
        match (gone, region) {
            // It begins where the device may go, and there is not all of it.
            (None, Some(region))
                if reason == MemoryFault::Unmapped && region.end() - address < size =>
            {
                let left = region.end() - address;
                (Rule::OutOfBounds, format!("{left} bytes of it are left"))
            }
            (None, Some(region)) => {
                let right = match reason {
                    MemoryFault::ReadOnly => "may only read",
                    _ => "has no right to",
                };
                let words = format!("the device {right} {}", region.title());
                (Rule::WrongRegion, words)
            }
            (Some(gone), None) => (Rule::StaleAddress, format!("`{gone}` was there")),
            _ => (Rule::OutOfBounds, self.map.nowhere(address)),
        }
    }
}
