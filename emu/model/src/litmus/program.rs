//! A litmus test as it is explored.

use std::collections::BTreeSet;

use super::condition::{Comparison, Condition, Quantifier};
use crate::order::Order;
use crate::race::{Race, RaceKind, Site};
use crate::scope::{Place, Scope};

/// A number or a register, by its number in its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Number(i64),
    /// A register.
    Register(usize),
}

/// What is computed from two numbers; all wrap at 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the PTX word of the same name")]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Min,
    Max,
    Exch,
}

impl Arithmetic {
    /// The result.
    pub fn apply(self, a: i64, b: i64) -> i64 {
        match self {
            Self::Add => a.wrapping_add(b),
            Self::Sub => a.wrapping_sub(b),
            Self::Mul => a.wrapping_mul(b),
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::Exch => b,
        }
    }
}

/// An instruction. Locations, registers and edges are numbers into the lists of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "fields are operands, in the order in which they are written"
)]
pub enum Instruction {
    /// `ld r, a` without order: a register.
    Move { to: usize, value: Operand },
    /// `add` and its like.
    Compute {
        what: Arithmetic,
        to: usize,
        a: Operand,
        b: Operand,
    },
    /// `beq` and its like.
    Branch {
        on: Comparison,
        a: Operand,
        b: Operand,
        target: usize,
    },
    /// `goto`
    Jump { target: usize },
    /// `ld`
    Load {
        order: Order,
        scope: Option<Scope>,
        to: usize,
        location: usize,
    },
    /// `st`
    Store {
        order: Order,
        scope: Option<Scope>,
        location: usize,
        value: Operand,
    },
    /// `atom`, and `red` if there is no register; with `compare`, `cas`.
    Update {
        order: Order,
        scope: Scope,
        to: Option<usize>,
        location: usize,
        compare: Option<Operand>,
        what: Arithmetic,
        value: Operand,
    },
    /// `fence`, `membar`
    Fence {
        order: Order,
        sc: bool,
        scope: Scope,
    },
    /// `bar.cta.sync`, and `bar.cta.arrive` if it does not wait.
    Barrier {
        waits: bool,
        id: Operand,
        count: Option<Operand>,
    },
    /// `kernel`: the end of a kernel and the start of the next one of the stream.
    Kernel,
    /// `api.signal`
    Signal { edge: usize },
    /// `api.wait`
    Wait { edge: usize },
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number, `0` of `P0`.
    pub number: u32,
    /// Where it runs.
    pub place: Place,
    /// Its instructions, each with its line.
    pub code: Vec<(Instruction, u32)>,
    /// Names of its registers.
    pub registers: Vec<String>,
    /// What they hold at the start.
    pub initial: Vec<i64>,
}

/// A litmus test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Litmus {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub threads: Vec<Thread>,
    /// Names of its locations.
    pub locations: Vec<String>,
    /// What they hold at the start.
    pub initial: Vec<i64>,
    /// Locations on which every write must come after all earlier accesses.
    pub ordered: BTreeSet<usize>,
    /// How the condition is meant.
    pub quantifier: Quantifier,
    /// The condition.
    pub condition: Condition,
}

impl Litmus {
    /// A race, in the names and lines of the test.
    pub fn describe(&self, race: &Race) -> String {
        let site = |site: Site| {
            let thread = &self.threads[site.seat as usize];
            format!(
                "P{} line {}",
                thread.number, thread.code[site.pc as usize].1
            )
        };
        let what = match race.kind {
            RaceKind::Race => "race",
            RaceKind::Unordered => "not ordered",
        };
        let location = &self.locations[race.location];
        format!(
            "{location}: {what}: {}, then {}",
            site(race.earlier),
            site(race.later)
        )
    }
}
