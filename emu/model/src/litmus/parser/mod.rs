//! Text to a litmus test.

mod code;
mod condition;
mod initial;

use std::collections::{BTreeMap, BTreeSet};

use super::condition::{Condition, Quantifier};
use super::error::Error;
use super::lexer::{Lexer, Place as At, Token};
use super::program::{Instruction, Litmus, Thread};
use crate::scope::Place;

/// Largest accepted file, in bytes.
const LARGEST: usize = 1 << 16;

/// Names in the order in which they were met.
#[derive(Debug, Default)]
struct Names(Vec<String>);

impl Names {
    fn index(&mut self, name: &str) -> usize {
        if let Some(known) = self.0.iter().position(|n| n == name) {
            return known;
        }
        self.0.push(name.to_owned());
        self.0.len() - 1
    }
}

fn is_register(word: &str) -> bool {
    let digits = word.strip_prefix('r');
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

fn thread_number(word: &str) -> Option<u32> {
    word.strip_prefix('P')?.parse().ok()
}

/// A column while it is read.
#[derive(Debug)]
struct Column {
    number: u32,
    place: Place,
    code: Vec<(Instruction, u32)>,
    registers: Names,
    initial: BTreeMap<usize, i64>,
    labels: BTreeMap<String, usize>,
    /// Jumps to a label, by the instruction that jumps.
    jumps: Vec<(usize, String, At)>,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    columns: Vec<Column>,
    locations: Names,
    initial: BTreeMap<usize, i64>,
    ordered: BTreeSet<usize>,
    edges: Names,
}

impl Litmus {
    /// Reads a litmus test.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > LARGEST {
            let start = At { line: 1, column: 1 };
            return Err(start.error(format!("the file is larger than {LARGEST} bytes")));
        }
        let (name, lexer) = Lexer::new(text)?;
        let mut parser = Parser {
            lexer,
            columns: Vec::new(),
            locations: Names::default(),
            initial: BTreeMap::new(),
            ordered: BTreeSet::new(),
            edges: Names::default(),
        };
        while parser.lexer.peek() == Token::Text {
            parser.lexer.next()?;
        }
        let registers = parser.initial_block()?;
        parser.heads()?;
        parser.initial_registers(registers)?;
        while !matches!(
            parser.lexer.peek(),
            Token::Word("exists" | "forall" | "filter") | Token::Sign("~")
        ) {
            parser.row()?;
        }
        parser.link()?;
        let (quantifier, condition) = parser.final_condition()?;
        Ok(parser.finish(name, quantifier, condition))
    }
}

impl Parser<'_> {
    fn link(&mut self) -> Result<(), Error> {
        for column in &mut self.columns {
            for (from, label, at) in &column.jumps {
                let to = column.labels.get(label);
                let to = *to.ok_or_else(|| {
                    at.error(format!("there is no label `{label}` in this thread"))
                })?;
                match &mut column.code[*from].0 {
                    Instruction::Branch { target, .. } | Instruction::Jump { target } => {
                        *target = to
                    }
                    other => unreachable!("{other:?} does not jump"),
                }
            }
        }
        self.check_kernels()
    }

    /// A stream's threads run the same kernels: as many boundaries in each column of a device, or none.
    fn check_kernels(&self) -> Result<(), Error> {
        let mut of_device = BTreeMap::new();
        for column in &self.columns {
            let boundaries = column
                .code
                .iter()
                .filter(|(i, _)| *i == Instruction::Kernel);
            let (Place::Device { gpu, .. }, count @ 1..) =
                (column.place, boundaries.clone().count())
            else {
                continue;
            };
            let known = *of_device.entry(gpu).or_insert(count);
            if known != count {
                let line = boundaries.map(|(_, line)| *line).next_back().unwrap_or(1);
                let what = format!(
                    "P{} has {count} `kernel`, another thread of gpu {gpu} has {known}: a stream's threads run the same kernels",
                    column.number
                );
                return Err(At { line, column: 1 }.error(what));
            }
        }
        Ok(())
    }

    fn finish(self, name: &str, quantifier: Quantifier, condition: Condition) -> Litmus {
        let values = |names: &Names, set: &BTreeMap<usize, i64>| {
            let value = |index| set.get(&index).copied().unwrap_or(0);
            (0..names.0.len()).map(value).collect::<Vec<_>>()
        };
        let initial = values(&self.locations, &self.initial);
        let thread = |column: Column| Thread {
            number: column.number,
            place: column.place,
            code: column.code,
            initial: values(&column.registers, &column.initial),
            registers: column.registers.0,
        };
        Litmus {
            name: name.to_owned(),
            threads: self.columns.into_iter().map(thread).collect(),
            initial,
            locations: self.locations.0,
            ordered: self.ordered,
            quantifier,
            condition,
        }
    }
}
