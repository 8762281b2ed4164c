//! Litmus tests: reading, exploring, judging.
//!
//! The format is that of the PTX tests of Dat3M (herd's, with `P0@cta 0,gpu 0` as heads of the columns), and four things more,
//! for what a protocol between GPUs needs: `P0@host`, `ordered` in the initial block, `kernel`, `api.signal` and `api.wait`.
//! `docs/memory-model.md` describes it.

mod condition;
mod error;
mod explore;
mod gates;
mod instruction;
mod known;
mod lexer;
mod machine;
mod parser;
mod program;
mod reach;
mod settle;
mod suite;

pub use condition::{Comparison, Condition, Quantifier, Term};
pub use error::{Error, ErrorKind};
pub use explore::{Bounds, Outcomes, explore};
pub use known::{KNOWN, Reason, known_reason};
pub use program::{Arithmetic, Instruction, Litmus, Operand, Thread};
pub use suite::{Expectation, Judged, Judgement, Suite, SuiteError, judge};
