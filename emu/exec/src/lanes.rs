//! Operations of several lanes of a warp: shuffles, votes, reductions, `bar.warp.sync`.

use crate::{
    FaultKind,
    access::Trouble,
    op::{LaneKind, LaneOp},
    registers::lanes_of,
    warp::{Standing, Warp},
};
use slabfence_emu_ptx::Modifier;

/// How far an operation came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// Lanes that wait for others of their mask.
    pub(crate) waiting: u32,
    /// The mask of those.
    pub(crate) mask: u32,
    /// Lanes that met in `bar.warp.sync`, those who had waited elsewhere for it included.
    pub(crate) met: u32,
}

/// Performs an operation for those of `lanes` whose companions are all there.
///
/// Lanes with equal member masks form a group (tiles of a warp each have a mask of their own). A group waits until all
/// its members that have not ended are in the same instruction; for `bar.warp.sync`, in any with the same mask.
pub(crate) fn perform(warp: &mut Warp, op: &LaneOp, pc: u32, lanes: u32) -> Result<Done, Trouble> {
    let mut done = Done::default();
    if let LaneKind::Active { target } = op.kind {
        for lane in lanes_of(lanes) {
            warp.registers.narrow[usize::from(target)][lane] = lanes;
        }
        return Ok(done);
    }
    let members = *warp.registers.n(op.members);
    let mut remaining = lanes;
    while remaining != 0 {
        let first = remaining.trailing_zeros() as usize;
        let mask = members[first];
        let group = lanes_of(remaining)
            .filter(|&lane| members[lane] == mask)
            .fold(0, |group, lane| group | 1 << lane);
        remaining &= !group;
        if let Some(lane) = lanes_of(group & !mask).next() {
            return Err((lane, FaultKind::NotInMemberMask { mask }));
        }
        let elsewhere = match op.kind {
            LaneKind::Meet => waiting_elsewhere(warp, mask, pc),
            _ => 0,
        };
        if mask & warp.live & !(group | elsewhere) != 0 {
            done.waiting |= group;
            done.mask = mask;
            continue;
        }
        match op.kind {
            LaneKind::Meet => {
                release(warp, mask, pc);
                done.met |= group | elsewhere;
            }
            _ => compute(warp, &op.kind, group),
        }
    }
    Ok(done)
}

/// Whether a fragment waits with this mask at another `bar.warp.sync`. (At `pc` itself it would have been absorbed.)
fn waits(fragment: &crate::warp::Fragment, mask: u32, pc: u32) -> bool {
    fragment.standing == Standing::Meeting { mask } && fragment.pc != pc
}

fn waiting_elsewhere(warp: &Warp, mask: u32, pc: u32) -> u32 {
    let waiting = warp
        .fragments
        .iter()
        .filter(|fragment| waits(fragment, mask, pc));
    waiting.fold(0, |lanes, fragment| lanes | fragment.lanes)
}

fn release(warp: &mut Warp, mask: u32, pc: u32) {
    for fragment in &mut warp.fragments {
        if waits(fragment, mask, pc) {
            fragment.standing = Standing::Ready;
            fragment.pc += 1;
        }
    }
}

fn compute(warp: &mut Warp, kind: &LaneKind, group: u32) {
    let registers = &mut warp.registers;
    let spread = |yes: bool| if yes { group } else { 0 };
    match *kind {
        LaneKind::Shuffle {
            mode,
            target,
            valid,
            value,
            lane,
            clamp,
        } => {
            let (values, lanes, clamps) =
                (*registers.n(value), *registers.n(lane), *registers.n(clamp));
            let mut valid_lanes = 0;
            for at in lanes_of(group) {
                let (from, is_valid) = source(mode, at as u32, lanes[at], clamps[at]);
                // A lane that takes no part has no defined value; it gives what is in its register.
                registers.narrow[usize::from(target)][at] = values[from as usize];
                valid_lanes |= u32::from(is_valid) << at;
            }
            if let Some(flag) = valid {
                registers.put_flag(flag, group, valid_lanes);
            }
        }
        LaneKind::Vote { mode, target, flag } => {
            let votes = registers.flag(flag) & group;
            let result = match mode {
                Modifier::All => votes == group,
                Modifier::Any => votes != 0,
                _ => votes == group || votes == 0,
            };
            registers.put_flag(target, group, spread(result));
        }
        LaneKind::Ballot { target, flag } => {
            let votes = registers.flag(flag) & group;
            for at in lanes_of(group) {
                registers.narrow[usize::from(target)][at] = votes;
            }
        }
        LaneKind::MatchAny { target, value } => {
            // The target may be the register that is compared.
            let values: [u64; 32] = std::array::from_fn(|at| registers.get(value, at));
            for at in lanes_of(group) {
                let same = lanes_of(group).filter(|&other| values[other] == values[at]);
                registers.narrow[usize::from(target)][at] =
                    same.fold(0, |mask, other| mask | (1 << other));
            }
        }
        LaneKind::MatchAll {
            target,
            same,
            value,
        } => {
            let first = registers.get(value, group.trailing_zeros() as usize % 32);
            let all = lanes_of(group).all(|at| registers.get(value, at) == first);
            for at in lanes_of(group) {
                registers.narrow[usize::from(target)][at] = spread(all);
            }
            if let Some(flag) = same {
                registers.put_flag(flag, group, spread(all));
            }
        }
        LaneKind::Reduce {
            function,
            target,
            value,
        } => {
            let values = *registers.n(value);
            let Some(total) = lanes_of(group).map(|at| values[at]).reduce(function) else {
                return;
            };
            for at in lanes_of(group) {
                registers.narrow[usize::from(target)][at] = total;
            }
        }
        LaneKind::Elect { target, leads } => {
            let leader = group.trailing_zeros() % 32;
            if let Some(target) = target {
                for at in lanes_of(group) {
                    registers.narrow[usize::from(target)][at] = leader;
                }
            }
            registers.put_flag(leads, group, 1 << leader);
        }
        // Handled before.
        LaneKind::Meet | LaneKind::Active { .. } => {}
    }
}

/// The lane that a shuffle reads from, and whether it lies in the segment. Bits 0 to 4 of `clamp` bound the source,
/// bits 8 to 12 say which bits of a lane's number name its segment.
fn source(mode: Modifier, lane: u32, by: u32, clamp: u32) -> (u32, bool) {
    let by = by & 31;
    let segment = clamp >> 8 & 31;
    let highest = (lane & segment) | (clamp & 31 & !segment);
    let (from, valid) = match mode {
        Modifier::Up => (
            lane.wrapping_sub(by),
            lane as i32 - by as i32 >= highest as i32,
        ),
        Modifier::Down => (lane + by, lane + by <= highest),
        Modifier::Bfly => (lane ^ by, lane ^ by <= highest),
        _ => {
            let from = (lane & segment) | (by & !segment);
            (from, from <= highest)
        }
    };
    if valid {
        (from & 31, true)
    } else {
        (lane, false)
    }
}
