//! The words of instructions.

use super::lexer::Place;
use super::program::Arithmetic;
use super::{Comparison, Error};
use crate::order::Order;
use crate::scope::Scope;

/// What an instruction's word says, before its operands are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Opcode {
    Move,
    Compute(Arithmetic),
    Branch(Comparison),
    Jump,
    Load(Order, Option<Scope>),
    Store(Order, Option<Scope>),
    Update {
        order: Order,
        scope: Scope,
        returns: bool,
        what: Rmw,
    },
    Fence {
        order: Order,
        sc: bool,
        scope: Scope,
    },
    Barrier {
        waits: bool,
    },
    Kernel,
    Signal,
    Wait,
}

/// What a read-modify-write does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rmw {
    Swap,
    Compute(Arithmetic),
}

fn scope(word: &str) -> Option<Scope> {
    match word {
        "cta" => Some(Scope::Cta),
        "gpu" | "gl" => Some(Scope::Gpu),
        "sys" => Some(Scope::Sys),
        _ => None,
    }
}

fn arithmetic(word: &str) -> Option<Arithmetic> {
    Some(match word {
        "add" => Arithmetic::Add,
        "sub" => Arithmetic::Sub,
        "mul" => Arithmetic::Mul,
        "and" => Arithmetic::And,
        "or" => Arithmetic::Or,
        "xor" => Arithmetic::Xor,
        "min" => Arithmetic::Min,
        "max" => Arithmetic::Max,
        _ => return None,
    })
}

fn comparison(word: &str) -> Option<Comparison> {
    Some(match word {
        "beq" => Comparison::Equal,
        "bne" => Comparison::NotEqual,
        "blt" => Comparison::Less,
        "ble" => Comparison::LessOrEqual,
        "bgt" => Comparison::Greater,
        "bge" => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The order and scope of a load or store.
fn access(words: &[&str], own: (&str, Order)) -> Option<(Order, Option<Scope>)> {
    match *words {
        ["weak"] => Some((Order::Weak, None)),
        ["volatile"] => Some((Order::Volatile, Some(Scope::Sys))),
        ["relaxed", s] => Some((Order::Relaxed, Some(scope(s)?))),
        [order, s] if order == own.0 => Some((own.1, Some(scope(s)?))),
        _ => None,
    }
}

fn update(words: &[&str], returns: bool) -> Option<Opcode> {
    let [order, s, what] = *words else {
        return None;
    };
    let order = match order {
        "relaxed" => Order::Relaxed,
        "acquire" => Order::Acquire,
        "release" => Order::Release,
        "acq_rel" => Order::AcqRel,
        _ => return None,
    };
    let what = match what {
        "cas" if returns => Rmw::Swap,
        "exch" if returns => Rmw::Compute(Arithmetic::Exch),
        other => Rmw::Compute(arithmetic(other)?),
    };
    Some(Opcode::Update {
        order,
        scope: scope(s)?,
        returns,
        what,
    })
}

fn fence(words: &[&str]) -> Option<Opcode> {
    let [order, s] = *words else { return None };
    let (order, sc) = match order {
        "sc" => (Order::AcqRel, true),
        "acq_rel" => (Order::AcqRel, false),
        "acquire" => (Order::Acquire, false),
        "release" => (Order::Release, false),
        _ => return None,
    };
    Some(Opcode::Fence {
        order,
        sc,
        scope: scope(s)?,
    })
}

fn parse(word: &str) -> Option<Opcode> {
    let words: Vec<&str> = word.split('.').collect();
    Some(match (words[0], &words[1..]) {
        ("ld" | "mov", []) => Opcode::Move,
        ("goto" | "bra", []) => Opcode::Jump,
        ("kernel", []) => Opcode::Kernel,
        ("api", ["signal"]) => Opcode::Signal,
        ("api", ["wait"]) => Opcode::Wait,
        ("ld", rest) => {
            let (order, scope) = access(rest, ("acquire", Order::Acquire))?;
            Opcode::Load(order, scope)
        }
        ("st", rest) => {
            let (order, scope) = access(rest, ("release", Order::Release))?;
            Opcode::Store(order, scope)
        }
        ("atom", rest) => update(rest, true)?,
        ("red", rest) => update(rest, false)?,
        ("fence", rest) => fence(rest)?,
        ("membar", [s]) => Opcode::Fence {
            order: Order::AcqRel,
            sc: true,
            scope: scope(s)?,
        },
        ("bar" | "barrier", ["cta", "sync"] | ["sync"]) => Opcode::Barrier { waits: true },
        ("bar" | "barrier", ["cta", "arrive"] | ["arrive"]) => Opcode::Barrier { waits: false },
        (other, []) => match (arithmetic(other), comparison(other)) {
            (Some(what), _) => Opcode::Compute(what),
            (_, Some(on)) => Opcode::Branch(on),
            _ => return None,
        },
        _ => return None,
    })
}

/// Reads an instruction's word.
pub(super) fn opcode(word: &str, at: Place) -> Result<Opcode, Error> {
    if let Some(opcode) = parse(word) {
        return Ok(opcode);
    }
    let has = |wanted: &[&str]| word.split('.').skip(1).any(|part| wanted.contains(&part));
    let what = if has(&["cluster"]) {
        "clusters are not modelled"
    } else if has(&["const", "tex", "sur", "surf", "generic", "proxy", "nc"]) {
        "proxies are not modelled"
    } else {
        return Err(at.error(format!("`{word}` is not an instruction of litmus tests")));
    };
    Err(at.unsupported(format!("`{word}`: {what}")))
}
