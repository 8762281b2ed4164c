//! What lanes poll, and for which value, as far as the code tells.

use crate::{
    Cta, Relation, Space,
    op::{Inst, MemoryOp, Op, Place, Verdict, Where},
    registers::{Registers, lanes_of},
    relation::awaited,
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
    /// What the word must be to that value, for the lane to go on. `None` where the code does not tell.
    pub awaited: Option<Relation>,
}

/// The comparison of what an access gave.
struct Compared {
    /// The element.
    element: usize,
    /// What it is compared with.
    with: Place,
    awaited: Option<Relation>,
    /// Whether it asks for the same or another, and nothing of order.
    equality: bool,
}

impl Compared {
    /// What a lane that saw this awaits. Where the branch does not tell, one that saw another value and polls on waits for
    /// this one: of what it saw it would have had enough.
    fn awaits(&self, seen: u64, with: u64) -> Option<Relation> {
        let other = self.equality && seen != with;
        self.awaited.or(other.then_some(Relation::Equal))
    }
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
        let expected = op.atomic.map(|atomic| atomic.expected);
        let taken = expected.filter(|&with| with != Place::Nowhere);
        let compared = compared(op, poll.pc as usize, insts).or(taken.map(|with| Compared {
            element: 0,
            with,
            awaited: Some(Relation::Equal),
            equality: true,
        }));
        let element = compared.as_ref().map_or(0, |compared| compared.element);
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
            let seen = loaded(element, lane).filter(|_| kept).unwrap_or(poll.seen);
            let with = compared.as_ref().map(|by| registers.get(by.with, lane));
            Polled {
                lane: lane as u32,
                pc: poll.pc,
                space,
                address: if kept { address + within } else { poll.addr },
                size: op.size,
                seen,
                compared: with,
                awaited: with.and_then(|with| compared.as_ref()?.awaits(seen, with)),
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

/// How what an access gives is compared first.
fn compared(op: &MemoryOp, access: usize, insts: &[Inst]) -> Option<Compared> {
    let behind = insts.iter().enumerate().skip(access + 1).take(NEAR);
    let behind = behind.take_while(|(_, inst)| !matches!(inst.op, Op::Memory(_) | Op::Exit));
    let mut all = behind.filter_map(|(at, inst)| Some((at, comparison(op, inst)?)));
    let (at, (element, with, verdict, turned)) = all.next()?;
    // One of several answers may be enough: `x = 5 or x = 6`.
    let alone = all.all(|(_, (other, ..))| other != element);
    let asks = verdict.relation;
    Some(Compared {
        element,
        with,
        awaited: alone
            .then(|| awaited(insts, access, at, verdict, turned))
            .flatten(),
        equality: alone && matches!(asks, Some(Relation::Equal | Relation::Different)),
    })
}

/// Which element of an access an instruction compares, with what, the verdict, and whether it is the second of the two.
fn comparison<'a>(op: &MemoryOp, inst: &'a Inst) -> Option<(usize, Place, &'a Verdict, bool)> {
    let (sides, verdict): (_, &Verdict) = match &inst.op {
        Op::CompareNarrow(_, sides, verdict) => {
            (sides.map(|slot| Place::Narrow(slot, u32::MAX)), verdict)
        }
        Op::CompareWide(_, sides, verdict) => (sides.map(Place::Wide), verdict),
        Op::Compare(compare) => (compare.1, &compare.2),
        _ => return None,
    };
    let same = |a: Place, b: Place| match (a, b) {
        (Place::Narrow(a, _), Place::Narrow(b, _)) | (Place::Wide(a), Place::Wide(b)) => a == b,
        _ => false,
    };
    [(0, 1), (1, 0)].into_iter().find_map(|(mine, with)| {
        let loaded = |&loaded: &Place| same(loaded, sides[mine]);
        let element = op.registers.iter().position(loaded)?;
        Some((element, sides[with], verdict, mine == 1))
    })
}
