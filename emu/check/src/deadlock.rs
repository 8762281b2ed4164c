//! Deadlocks and faults, in words.

use slabfence_emu_exec::{Fault, FaultKind, MemoryFault, WaitReason, WarpState};

use crate::{Checker, Finding, Op, Party, Rule, Thread, Waiter, Writers, findings::Where};

impl Checker {
    /// Says who waits for what when nobody can go on.
    pub fn deadlock(&mut self, waiters: &[Waiter]) -> Finding {
        let words = |waiter: &Waiter| match waiter {
            Waiter::Warp {
                op,
                ctaid,
                state,
                current,
            } => {
                let who = self.who(*op, *ctaid, state);
                format!("{who} {}", self.reason(*op, state, *current))
            }
            Waiter::NotResident { op, blocks } => format!(
                "operation {op}{}: {blocks} blocks wait for room on the device",
                self.whose(*op)
            ),
            Waiter::NotBegun { op, device, after } => {
                let after: Vec<_> = after.iter().map(Op::to_string).collect();
                format!(
                    "operation {op} of device {device} waits for the end of {}",
                    after.join(", ")
                )
            }
        };
        Finding {
            rule: Rule::Deadlock,
            earlier: None,
            later: None,
            place: None,
            detail: format!("{} wait", waiters.len()),
            waits: waiters.iter().map(words).collect(),
            count: 1,
        }
    }

    /// Says what ended a grid: `stale-address` or `out-of-bounds` where memory was not there; `None` for faults of other
    /// kinds, which say all themselves. `was` says what was at an address before the run.
    pub fn fault(
        &self,
        op: Op,
        fault: &Fault,
        was: impl FnOnce(u64) -> Option<String>,
    ) -> Option<Finding> {
        let FaultKind::IllegalAddress {
            addr, size, reason, ..
        } = fault.kind
        else {
            return None;
        };
        let region = self.map.region_at(addr);
        let gone = match (self.map.gone_at(addr), region) {
            (Some(gone), _) => Some(gone.name.clone()),
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
                    format!("the device {right} `{}`", region.name),
                )
            }
            (Some(gone), None) => (Rule::StaleAddress, format!("`{gone}` was there")),
            _ => match self.map.below(addr) {
                Some(below) => {
                    let past = addr.saturating_sub(below.end());
                    let words = format!("{past} bytes past the end of `{}`", below.name);
                    (Rule::OutOfBounds, words)
                }
                None => (Rule::OutOfBounds, String::new()),
            },
        };
        let at = match self.map.region_at(addr) {
            Some(region) => Where::Region(region, addr),
            None => Where::Nowhere(addr),
        };
        let operation = self.operations.get(&op);
        Some(Finding {
            rule,
            earlier: None,
            later: Some(Party {
                op,
                device: operation.map_or(0, |operation| operation.device),
                rank: operation.and_then(|operation| operation.rank()),
                access: format!("access of {size} bytes that faulted"),
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
            waits: Vec::new(),
            count: 1,
        })
    }

    fn whose(&self, op: Op) -> String {
        let Some(operation) = self.operations.get(&op) else {
            return String::new();
        };
        match operation.rank() {
            Some(rank) => format!(" of rank {rank}"),
            None => format!(" of device {}", operation.device),
        }
    }

    fn who(&self, op: Op, ctaid: [u32; 3], state: &WarpState) -> String {
        let bound = self.operations.get(&op).and_then(|o| o.bound.as_ref());
        let kernel = bound.map_or("?", |bound| bound.launch.kernel.name());
        let [x, y, z] = ctaid;
        let mut words = format!(
            "operation {op}{}, `{kernel}` block {x},{y},{z} warp {} lanes {:#x}, PTX line {}",
            self.whose(op),
            state.warp,
            state.lanes,
            state.line
        );
        if let Some(source) = &state.source {
            words += &format!(" ({source})");
        }
        words
    }

    fn reason(&self, op: Op, state: &WarpState, current: Option<u64>) -> String {
        match state.reason {
            WaitReason::Running => "can run".to_owned(),
            WaitReason::Exited => "has ended".to_owned(),
            WaitReason::Lanes { mask } => format!("waits for the lanes {mask:#x} of its warp"),
            WaitReason::Barrier { id, count: 0 } => format!("waits at barrier {id} for its block"),
            WaitReason::Barrier { id, count } => {
                format!("waits at barrier {id} for {count} threads")
            }
            WaitReason::Polling { addr, seen } => self.polling(op, addr, seen, current),
        }
    }

    fn polling(&self, op: Op, address: u64, seen: u64, current: Option<u64>) -> String {
        let Some(region) = self.map.region_at(address) else {
            return format!("polls {address:#x}, where it saw {seen:#x}");
        };
        let offset = address - region.base;
        let mut words = format!(
            "polls {address:#x} (`{}` + {offset:#x}, {}): saw {seen:#x}",
            region.name,
            region.kind.name()
        );
        if let Some(current) = current.filter(|current| *current != seen) {
            words += &format!(", now it holds {current:#x}");
        }
        let number = self.operations.get(&op).and_then(|o| o.number());
        if let Some(number) = number.filter(|_| region.kind.is_awaited()) {
            words += &format!(", its operation is {number:#x}");
        }
        words += &match (region.writer(address), region.writers) {
            (Some(rank), _) => format!("; rank {rank} may write it"),
            (None, Writers::Anyone) => "; anyone may write it".to_owned(),
            (None, _) => String::new(),
        };
        words += &match self.map.last_writer(address) {
            Some(stamp) => format!("; last written: {}", self.registry.party(stamp)),
            None => "; nobody has written it with a strong store".to_owned(),
        };
        words
    }
}
