//! Final conditions.

use std::fmt;

/// How a condition is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Some execution fulfils it.
    Exists,
    /// No execution fulfils it.
    NotExists,
    /// Every execution fulfils it.
    ForAll,
}

impl fmt::Display for Quantifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exists => "exists",
            Self::NotExists => "~exists",
            Self::ForAll => "forall",
        })
    }
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the comparison of that name")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The result.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Self::Equal => a == b,
            Self::NotEqual => a != b,
            Self::Less => a < b,
            Self::LessOrEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
        }
    }
}

/// What a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// A number.
    Number(i64),
    /// A register at the end.
    Register {
        /// The index of its thread.
        thread: usize,
        /// Its number there.
        register: usize,
    },
    /// A location at the end.
    Location(usize),
}

/// A condition on the end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All hold.
    All(Vec<Condition>),
    /// One holds.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// A comparison.
    Compare(Term, Comparison, Term),
}

impl Condition {
    /// Whether it holds for values of terms.
    pub fn holds(&self, value: &impl Fn(Term) -> i64) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(value)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(value)),
            Self::Not(part) => !part.holds(value),
            Self::Compare(a, comparison, b) => comparison.holds(value(*a), value(*b)),
        }
    }

    /// The registers and locations that it asks for, each once, in the order in which it names them.
    pub fn terms(&self) -> Vec<Term> {
        let mut terms = Vec::new();
        self.collect(&mut terms);
        terms
    }

    fn collect(&self, terms: &mut Vec<Term>) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.collect(terms))
            }
            Self::Not(part) => part.collect(terms),
            Self::Compare(a, _, b) => {
                for term in [*a, *b] {
                    if !matches!(term, Term::Number(_)) && !terms.contains(&term) {
                        terms.push(term);
                    }
                }
            }
        }
    }
}
