//! How two numbers compare, and which comparison ends a loop.

use std::fmt;

use slabfence_emu_ptx::Modifier;

use crate::op::{Inst, Op, Slot, Verdict, VerdictTarget};

/// Most instructions between a comparison and the loop's next turn.
const NEAR: usize = 64;

/// What a number is to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same.
    Equal,
    /// Another.
    Different,
    /// Less.
    Less,
    /// Less or the same.
    AtMost,
    /// More.
    More,
    /// More or the same.
    AtLeast,
}

impl Relation {
    /// What a comparison of integers asks.
    pub(crate) fn of(comparison: Modifier) -> Option<Self> {
        Some(match comparison {
            Modifier::Eq => Self::Equal,
            Modifier::Ne => Self::Different,
            Modifier::Lt | Modifier::Lo => Self::Less,
            Modifier::Le | Modifier::Ls => Self::AtMost,
            Modifier::Gt | Modifier::Hi => Self::More,
            Modifier::Ge | Modifier::Hs => Self::AtLeast,
            _ => return None,
        })
    }

    /// What holds where this does not.
    fn otherwise(self) -> Self {
        match self {
            Self::Equal => Self::Different,
            Self::Different => Self::Equal,
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::More,
            Self::More => Self::AtMost,
            Self::AtLeast => Self::Less,
        }
    }

    /// What the second number is to the first.
    fn turned(self) -> Self {
        match self {
            Self::Less => Self::More,
            Self::AtMost => Self::AtLeast,
            Self::More => Self::Less,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }
}

impl fmt::Display for Relation {
    /// As it stands before the other number: `at least`; nothing where the two are the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "",
            Self::Different => "anything but ",
            Self::Less => "less than ",
            Self::AtMost => "at most ",
            Self::More => "more than ",
            Self::AtLeast => "at least ",
        })
    }
}

/// What a loaded value must be to the one that instruction `at` compares it with, so that the loop around the load ends:
/// where the branch on the result leads back to the load sooner than what is behind it, the reverse of what is asked.
/// `turned`: the loaded value is the second one. `None` where the result goes elsewhere than to a branch soon behind.
pub(crate) fn awaited(
    insts: &[Inst],
    load: usize,
    at: usize,
    verdict: &Verdict,
    turned: bool,
) -> Option<Relation> {
    let (asked, None) = (verdict.relation?, verdict.combine) else {
        return None;
    };
    let VerdictTarget::Flags(holds, fails) = verdict.target else {
        return None;
    };
    let (branch, target, when) = branch(insts, at + 1, [holds, fails])?;
    let taken = distance(insts, target, load).unwrap_or(usize::MAX);
    let passed = distance(insts, branch + 1, load).unwrap_or(usize::MAX);
    // Whether it is the result itself, and not its reverse, that keeps the loop going.
    let loops = match taken.cmp(&passed) {
        std::cmp::Ordering::Less => when,
        std::cmp::Ordering::Greater => !when,
        std::cmp::Ordering::Equal => return None,
    };
    let relation = if loops { asked.otherwise() } else { asked };
    Some(if turned { relation.turned() } else { relation })
}

/// The first branch on one of these predicates, where it leads, and whether it is taken where the comparison holds. What
/// else happens to the predicates is not followed.
fn branch(
    insts: &[Inst],
    from: usize,
    [holds, fails]: [Option<Slot>; 2],
) -> Option<(usize, usize, bool)> {
    for (at, inst) in insts.iter().enumerate().skip(from).take(NEAR) {
        let flag = inst.guard.map(|flag| (Some(flag.slot), !flag.negated));
        let when = match flag {
            Some((slot, plain)) if slot == holds => Some(plain),
            Some((slot, plain)) if slot == fails => Some(!plain),
            _ => None,
        };
        match (&inst.op, when) {
            (Op::Branch(target), Some(when)) => return Some((at, *target as usize, when)),
            (Op::Branch(_) | Op::Exit | Op::Memory(_), None) => return None,
            _ if writes(&inst.op, [holds, fails]) => return None,
            _ => {}
        }
    }
    None
}

/// Whether an instruction gives one of these predicates another value.
fn writes(op: &Op, flags: [Option<Slot>; 2]) -> bool {
    let verdict = match op {
        Op::CompareNarrow(.., verdict) | Op::CompareWide(.., verdict) => verdict,
        Op::Compare(compare) => &compare.2,
        Op::Logic(_, target, _) => return flags.contains(&Some(*target)),
        _ => return false,
    };
    match verdict.target {
        VerdictTarget::Flags(one, other) => [one, other]
            .iter()
            .any(|slot| slot.is_some() && flags.contains(slot)),
        VerdictTarget::Value(..) => false,
    }
}

/// How many instructions there are from one to another on the shortest way, if they are few.
fn distance(insts: &[Inst], from: usize, to: usize) -> Option<usize> {
    let mut seen = vec![from];
    let mut now = vec![from];
    for steps in 0..NEAR {
        if now.contains(&to) {
            return Some(steps);
        }
        let mut next = Vec::new();
        for inst in now.iter().filter_map(|&at| Some((at, insts.get(at)?))) {
            let (at, inst) = inst;
            let target = match inst.op {
                Op::Branch(target) => Some(target as usize),
                _ => None,
            };
            let ends = matches!(inst.op, Op::Branch(_) | Op::Exit | Op::Trap);
            let behind = (!ends || inst.guard.is_some()).then_some(at + 1);
            for place in target.into_iter().chain(behind) {
                if !seen.contains(&place) {
                    seen.push(place);
                    next.push(place);
                }
            }
        }
        now = next;
    }
    None
}
