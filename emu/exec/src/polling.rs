//! What lanes poll, and for which value, as far as the code tells.

use crate::{
    Cta, Space,
    op::{MemoryOp, Op, Place, Where},
    registers::{Registers, lanes_of},
    warp::{Fragment, Warp},
    window,
};

/// Instructions behind a load in which its value is compared.
const NEAR: usize = 32;

/// A word that a lane polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// The lane.
    pub lane: u32,
    /// Index of the access in the entry's body.
    pub pc: u32,
    /// The space of the word.
    pub space: Space,
    /// Its address there.
    pub address: u64,
    /// Its bytes.
    pub size: u32,
    /// What was there at the last look, zero-extended.
    pub seen: u64,
    /// What the code compares that with: where it waits for one value, this value. `None` if it is no comparison of two
    /// registers, or of a register and a number, soon behind the access.
    pub compared: Option<u64>,
}

impl Cta {
    /// What these lanes of a warp poll, who are all at one place. Of other lanes than the first it is told as long as
    /// their registers tell.
    pub fn polled(&self, warp: usize, lanes: u32) -> Vec<Polled> {
        let found = self.warp(warp).and_then(|warp| {
            let at = |fragment: &&Fragment| fragment.lanes == lanes && fragment.poll.is_some();
            Some((warp, warp.fragments.iter().find(at)?))
        });
        found.map_or_else(Vec::new, |(warp, fragment)| self.of(warp, fragment))
    }

    fn of(&self, warp: &Warp, fragment: &Fragment) -> Vec<Polled> {
        let insts = &self.launch().kernel.code().insts;
        let at = fragment.poll.and_then(|poll| {
            let Op::Memory(op) = &insts.get(poll.pc as usize)?.op else {
                return None;
            };
            Some((poll, op))
        });
        let Some((poll, op)) = at else {
            return Vec::new();
        };
        let registers = &warp.registers;
        let behind = insts.iter().skip(poll.pc as usize + 1).take(NEAR);
        let behind = behind.map(|inst| &inst.op);
        let compared = match op.atomic {
            Some(atomic) if atomic.expected != Place::Nowhere => Some((0, atomic.expected)),
            _ => compared(op, behind),
        };
        let element = compared.map_or(0, |(element, _)| element);
        let first = fragment.lanes.trailing_zeros() as usize % 32;
        let addresses = op.addresses(registers).map(|address| match op.place {
            Where::Generic => window::resolve(address),
            Where::In(space) => (space, address),
        });
        let loaded = |element: usize, lane| value(op, registers, element, lane);
        let kept = addresses[first].1 == poll.addr && loaded(0, first) == Some(poll.seen);
        let lanes = match kept {
            true => fragment.lanes,
            false => 1 << first,
        };
        let polled = lanes_of(lanes).map(|lane| {
            let (space, address) = addresses[lane];
            let within = element as u64 * u64::from(op.size);
            Polled {
                lane: lane as u32,
                pc: poll.pc,
                space,
                address: if kept { address + within } else { poll.addr },
                size: op.size,
                seen: loaded(element, lane).filter(|_| kept).unwrap_or(poll.seen),
                compared: compared.map(|(_, with)| registers.get(with, lane)),
            }
        });
        polled.collect()
    }
}

/// An element that an access put into registers; `None` for those that are wider than one.
fn value(op: &MemoryOp, registers: &Registers, element: usize, lane: usize) -> Option<u64> {
    let place = *op.registers.get(element).filter(|_| op.size <= 8)?;
    Some(registers.get(place, lane))
}

/// Which element of a load is compared first, and with what.
fn compared<'a>(op: &MemoryOp, behind: impl Iterator<Item = &'a Op>) -> Option<(usize, Place)> {
    let same = |a: Place, b: Place| match (a, b) {
        (Place::Narrow(a, _), Place::Narrow(b, _)) | (Place::Wide(a), Place::Wide(b)) => a == b,
        _ => false,
    };
    for next in behind.take_while(|next| !matches!(next, Op::Memory(_) | Op::Exit)) {
        let sides = match next {
            Op::CompareNarrow(_, sides, _) => sides.map(|slot| Place::Narrow(slot, u32::MAX)),
            Op::CompareWide(_, sides, _) => sides.map(Place::Wide),
            Op::Compare(compare) => compare.1,
            _ => continue,
        };
        for (mine, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            let element = op.registers.iter().position(|&loaded| same(loaded, mine));
            if let Some(element) = element {
                return Some((element, other));
            }
        }
    }
    None
}
