//! Branches, barriers, fences, and operations of several lanes.

use super::{Decoded, Decoder, memory::scope};
use crate::{
    Fence, Order, Scope,
    op::{BarrierKind, BarrierOp, LaneKind, LaneOp, Op, Slot},
};
use slabfence_emu_ptx::{Instruction, Modifier, Opcode, Operand, Type};

impl Decoder<'_> {
    pub(super) fn control(&mut self, instruction: &Instruction) -> Decoded<Op> {
        Ok(match instruction.opcode {
            Opcode::Bra => match self.operand(instruction, 0)? {
                Operand::Label(target) => Op::Branch(*target),
                _ => return self.refuse("a label is needed"),
            },
            Opcode::Ret | Opcode::Exit => Op::Exit,
            Opcode::Trap => Op::Trap,
            Opcode::Nanosleep => Op::Sleep,
            Opcode::Fence | Opcode::Membar => Op::Fence(fence(instruction)),
            Opcode::Bar | Opcode::Barrier if instruction.has(Modifier::Warp) => {
                let members = self.narrow(instruction, 0, Type::U32)?;
                Op::Lanes(Box::new(LaneOp {
                    members,
                    kind: LaneKind::Meet,
                }))
            }
            Opcode::Bar | Opcode::Barrier => self.barrier(instruction)?,
            _ => Op::Nothing,
        })
    }

    fn barrier(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let reduces = instruction.has(Modifier::Red);
        let first = usize::from(reduces);
        let operands = instruction.operands.len() - 2 * first;
        let id = self.narrow(instruction, first, Type::U32)?;
        let count = match operands {
            2 => Some(self.narrow(instruction, first + 1, Type::U32)?),
            _ => None,
        };
        let kind = if instruction.has(Modifier::Arrive) {
            BarrierKind::Arrive
        } else if !reduces {
            BarrierKind::Sync
        } else {
            let flag = self.flag(instruction, instruction.operands.len() - 1)?;
            if instruction.has(Modifier::Popc) {
                BarrierKind::Popc(flag, self.narrow_target(instruction, Type::U32)?)
            } else {
                let Some(target) = self.flag_target(self.operand(instruction, 0)?)? else {
                    return self.refuse("the reduction needs a destination");
                };
                if instruction.has(Modifier::And) {
                    BarrierKind::And(flag, target)
                } else {
                    BarrierKind::Or(flag, target)
                }
            }
        };
        Ok(Op::Barrier(Box::new(BarrierOp { id, count, kind })))
    }

    pub(super) fn lanes(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let last = instruction.operands.len() - 1;
        if instruction.opcode == Opcode::Activemask {
            let target = self.narrow_target(instruction, Type::B32)?;
            // Nobody is waited for: the mask is that of the active lanes, whatever the operand.
            return Ok(Op::Lanes(Box::new(LaneOp {
                members: target,
                kind: LaneKind::Active { target },
            })));
        }
        let members = self.narrow(instruction, last, Type::B32)?;
        let kind = match instruction.opcode {
            Opcode::Shfl => self.shuffle(instruction)?,
            Opcode::Vote if instruction.has(Modifier::Ballot) => LaneKind::Ballot {
                target: self.narrow_target(instruction, Type::B32)?,
                flag: self.flag(instruction, 1)?,
            },
            Opcode::Vote => {
                let mode = [Modifier::All, Modifier::Any, Modifier::Uni];
                let mode = mode
                    .into_iter()
                    .find(|&mode| instruction.has(mode))
                    .unwrap_or(Modifier::Uni);
                let Some(target) = self.flag_target(self.operand(instruction, 0)?)? else {
                    return self.refuse("the vote needs a destination");
                };
                LaneKind::Vote {
                    mode,
                    target,
                    flag: self.flag(instruction, 1)?,
                }
            }
            Opcode::Match => {
                let value = self.source(instruction, 1, instruction.types[0])?;
                let (target, same) = self.pair(instruction)?;
                let target = target.unwrap_or(self.registers.image.scratch_narrow());
                match instruction.has(Modifier::Any) {
                    true => LaneKind::MatchAny { target, value },
                    false => LaneKind::MatchAll {
                        target,
                        same,
                        value,
                    },
                }
            }
            Opcode::Elect => {
                let (target, leads) = self.pair(instruction)?;
                let Some(leads) = leads else {
                    return self.refuse("`elect` needs a predicate destination");
                };
                LaneKind::Elect { target, leads }
            }
            _ => LaneKind::Reduce {
                function: reduction(instruction),
                target: self.narrow_target(instruction, instruction.types[0])?,
                value: self.narrow(instruction, 1, instruction.types[0])?,
            },
        };
        Ok(Op::Lanes(Box::new(LaneOp { members, kind })))
    }

    fn shuffle(&mut self, instruction: &Instruction) -> Decoded<LaneKind> {
        let (target, valid) = self.pair(instruction)?;
        let modes = [Modifier::Up, Modifier::Down, Modifier::Bfly, Modifier::Idx];
        Ok(LaneKind::Shuffle {
            mode: modes
                .into_iter()
                .find(|&mode| instruction.has(mode))
                .unwrap_or(Modifier::Idx),
            target: target.unwrap_or(self.registers.image.scratch_narrow()),
            valid,
            value: self.narrow(instruction, 1, Type::B32)?,
            lane: self.narrow(instruction, 2, Type::U32)?,
            clamp: self.narrow(instruction, 3, Type::U32)?,
        })
    }

    /// A destination `d` or `d|p`.
    fn pair(&mut self, instruction: &Instruction) -> Decoded<(Option<Slot>, Option<Slot>)> {
        let (value, flag) = match self.operand(instruction, 0)? {
            Operand::Pair(value, flag) => (&**value, self.flag_target(flag)?),
            single => (single, None),
        };
        match self.registers.target(value, Type::B32, false, self.line)? {
            crate::op::Place::Narrow(slot, _) => Ok((Some(slot), flag)),
            _ => Ok((None, flag)),
        }
    }
}

fn reduction(instruction: &Instruction) -> fn(u32, u32) -> u32 {
    let signed = instruction.types[0].is_signed();
    let choice = instruction
        .modifiers
        .iter()
        .copied()
        .find(|&modifier| modifier != Modifier::Sync);
    match choice {
        Some(Modifier::Add) => u32::wrapping_add,
        Some(Modifier::Min) if signed => |a, b| (a as i32).min(b as i32) as u32,
        Some(Modifier::Min) => |a, b| a.min(b),
        Some(Modifier::Max) if signed => |a, b| (a as i32).max(b as i32) as u32,
        Some(Modifier::Max) => |a, b| a.max(b),
        Some(Modifier::And) => |a, b| a & b,
        Some(Modifier::Or) => |a, b| a | b,
        _ => |a, b| a ^ b,
    }
}

/// `membar` is `fence.sc`; a fence without an order is `.acq_rel`.
fn fence(instruction: &Instruction) -> Fence {
    let order = if instruction.has(Modifier::Acq) {
        Order::Acquire
    } else if instruction.has(Modifier::Release) {
        Order::Release
    } else {
        Order::AcqRel
    };
    let sc = instruction.opcode == Opcode::Membar || instruction.has(Modifier::Sc);
    Fence {
        order,
        sc,
        scope: scope(instruction).unwrap_or(Scope::Sys),
    }
}
