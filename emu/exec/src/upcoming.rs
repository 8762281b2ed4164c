//! What a warp is about to do, for schedulers that choose at the operations that other warps can notice.

use crate::{
    AccessKind, Cta, Operation, Space,
    op::{Op, Where},
    value::LANES,
    warp::{Standing, Warp},
    window,
};

/// A strong access, read-modify-write or `fence.sc` that a warp executes next. All `fence.sc` come in one order, which
/// is noticed: each is told as a read-modify-write of no bytes at the last address.
#[derive(Clone, Debug, PartialEq)]
pub struct Upcoming {
    /// Index of the instruction in the entry's body.
    pub pc: u32,
    /// The lanes that will execute it.
    pub lanes: u32,
    /// Read, write or both.
    pub kind: AccessKind,
    /// For read-modify-writes: which.
    pub operation: Option<Operation>,
    /// For read-modify-writes: whether it returns the old value.
    pub returns: bool,
    /// The space that the first lane's address is in.
    pub space: Space,
    /// Bytes of a lane's access.
    pub bytes: u32,
    /// Address of each lane, in its space.
    pub addresses: [u64; LANES],
}

impl Cta {
    /// The strong access or `fence.sc`, if it is one, that a warp executes next.
    pub fn upcoming(&self, warp: usize) -> Option<Upcoming> {
        let warp = self.warp(warp)?;
        let (pc, active) = warp.next_place()?;
        let inst = self.launch().kernel.code().insts.get(pc as usize)?;
        let lanes = match inst.guard {
            None => active,
            Some(guard) => active & warp.registers.flag(guard),
        };
        let op = match &inst.op {
            _ if lanes == 0 => return None,
            Op::Memory(op) if op.is_strong() => op,
            Op::Fence(fence) if fence.sc => {
                return Some(Upcoming {
                    pc,
                    lanes,
                    kind: AccessKind::ReadModifyWrite,
                    operation: None,
                    returns: false,
                    space: Space::Global,
                    bytes: 0,
                    addresses: [u64::MAX; LANES],
                });
            }
            _ => return None,
        };
        let mut addresses = op.addresses(&warp.registers);
        let first = lanes.trailing_zeros() as usize % LANES;
        let space = match op.place {
            Where::In(space) => space,
            Where::Generic => {
                let (space, _) = window::resolve(addresses[first]);
                addresses = addresses.map(|address| window::resolve(address).1);
                space
            }
        };
        Some(Upcoming {
            pc,
            lanes,
            kind: op.kind,
            operation: op.atomic.map(|atomic| atomic.operation),
            returns: op.atomic.is_some_and(|atomic| atomic.returns),
            space,
            bytes: op.size * op.elements,
            addresses,
        })
    }
}

impl Warp {
    /// Where the fragment that runs next is, and its lanes.
    fn next_place(&self) -> Option<(u32, u32)> {
        let at = |standing| {
            let standing = self
                .fragments
                .iter()
                .filter(move |fragment| fragment.standing == standing);
            standing.map(|fragment| fragment.pc).min()
        };
        let pc = at(Standing::Ready).or_else(|| at(Standing::Yielded))?;
        let joins = self.fragments.iter().filter(|fragment| {
            fragment.pc == pc && !matches!(fragment.standing, Standing::AtBarrier { .. })
        });
        Some((pc, joins.fold(0, |lanes, fragment| lanes | fragment.lanes)))
    }
}
