//! Instructions of litmus tests in PTX.

use std::collections::BTreeMap;

use slabfence_emu_model::litmus::{Arithmetic, Comparison, Instruction, Operand};
use slabfence_emu_model::{Order, Scope};

use super::{Body, REGISTERS, location};

impl Body<'_> {
    /// Adds an instruction. `counted` has the barriers that need a count.
    pub(super) fn instruction(
        &mut self,
        column: usize,
        code: &Instruction,
        counted: &BTreeMap<i64, usize>,
    ) {
        let operand = |operand: &Operand| match *operand {
            Operand::Number(number) => number.to_string(),
            Operand::Register(number) => name(column, number),
        };
        let place = |number: usize| format!("[%base+{}]", location(number));
        let line = match code {
            Instruction::Move { to, value } => {
                format!("mov.b64 {}, {}", name(column, *to), operand(value))
            }
            Instruction::Compute { what, to, a, b } => {
                let (to, a, b) = (name(column, *to), operand(a), operand(b));
                match computed(*what) {
                    Some(word) => format!("{word} {to}, {a}, {b}"),
                    None => format!("mov.b64 {to}, {b}"),
                }
            }
            Instruction::Branch { on, a, b, target } => {
                let word = compared(*on);
                let (a, b) = (operand(a), operand(b));
                self.line(&format!("setp.{word}.s64 %p, {a}, {b}"));
                format!("@%p bra C{column}_{target}")
            }
            Instruction::Jump { target } => format!("bra C{column}_{target}"),
            Instruction::Load {
                order,
                scope,
                to,
                location,
            } => format!(
                "ld{}.global.u64 {}, {}",
                strength(*order, *scope),
                name(column, *to),
                place(*location)
            ),
            Instruction::Store {
                order,
                scope,
                location,
                value,
            } => format!(
                "st{}.global.u64 {}, {}",
                strength(*order, *scope),
                place(*location),
                operand(value)
            ),
            Instruction::Update {
                order,
                scope,
                to,
                location,
                compare,
                what,
                value,
            } => {
                let how = strength(*order, Some(*scope));
                let (word, value) = match compare {
                    Some(compare) => (
                        "cas.b64",
                        format!("{}, {}", operand(compare), operand(value)),
                    ),
                    None => (updated(*what).expect("the test is fit"), operand(value)),
                };
                let place = place(*location);
                match to {
                    Some(to) => {
                        format!(
                            "atom{how}.global.{word} {}, {place}, {value}",
                            name(column, *to)
                        )
                    }
                    None => format!("red{how}.global.{word} {place}, {value}"),
                }
            }
            Instruction::Fence { order, sc, scope } => {
                let order = match (sc, order) {
                    (true, _) => "sc",
                    (_, Order::Acquire) => "acquire",
                    (_, Order::Release) => "release",
                    _ => "acq_rel",
                };
                format!("fence.{order}.{scope}")
            }
            Instruction::Barrier { waits, id, count } => {
                let number = |operand: &Operand| match operand {
                    Operand::Number(number) => *number,
                    Operand::Register(_) => unreachable!("such a test is unfit"),
                };
                let id = number(id);
                let count = match count {
                    Some(count) => Some(number(count) as usize),
                    None => counted.get(&id).copied(),
                };
                let word = if *waits { "sync" } else { "arrive" };
                match count {
                    // A warp counts as all its threads.
                    Some(count) => format!("bar.{word} {id}, {}", 32 * count),
                    None => format!("bar.{word} {id}"),
                }
            }
            Instruction::Kernel | Instruction::Signal { .. } | Instruction::Wait { .. } => {
                unreachable!("{code:?} ends a stretch or is unfit")
            }
        };
        self.line(&line);
    }
}

/// A register of a column.
pub(super) fn name(column: usize, register: usize) -> String {
    format!("%r{}", column as u64 * REGISTERS + register as u64)
}

fn strength(order: Order, scope: Option<Scope>) -> String {
    let scope = || scope.map_or_else(String::new, |scope| format!(".{scope}"));
    match order {
        Order::Weak => String::new(),
        Order::Volatile => ".volatile".to_owned(),
        Order::Relaxed => format!(".relaxed{}", scope()),
        Order::Acquire => format!(".acquire{}", scope()),
        Order::Release => format!(".release{}", scope()),
        Order::AcqRel => format!(".acq_rel{}", scope()),
    }
}

fn computed(what: Arithmetic) -> Option<&'static str> {
    Some(match what {
        Arithmetic::Add => "add.s64",
        Arithmetic::Sub => "sub.s64",
        Arithmetic::Mul => "mul.lo.s64",
        Arithmetic::And => "and.b64",
        Arithmetic::Or => "or.b64",
        Arithmetic::Xor => "xor.b64",
        Arithmetic::Min => "min.s64",
        Arithmetic::Max => "max.s64",
        Arithmetic::Exch => return None,
    })
}

/// The read-modify-write, where PTX has one.
pub(super) fn updated(what: Arithmetic) -> Option<&'static str> {
    Some(match what {
        Arithmetic::Add => "add.u64",
        Arithmetic::And => "and.b64",
        Arithmetic::Or => "or.b64",
        Arithmetic::Xor => "xor.b64",
        Arithmetic::Min => "min.s64",
        Arithmetic::Max => "max.s64",
        Arithmetic::Exch => "exch.b64",
        Arithmetic::Sub | Arithmetic::Mul => return None,
    })
}

fn compared(on: Comparison) -> &'static str {
    match on {
        Comparison::Equal => "eq",
        Comparison::NotEqual => "ne",
        Comparison::Less => "lt",
        Comparison::LessOrEqual => "le",
        Comparison::Greater => "gt",
        Comparison::GreaterOrEqual => "ge",
    }
}
