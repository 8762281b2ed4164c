//! The initial block and the heads of the columns.

use std::collections::BTreeMap;

use super::{At, Column, Names, Parser, thread_number};
use crate::litmus::Error;
use crate::litmus::lexer::Token;
use crate::scope::Place;

/// Most columns of a file.
const MOST_THREADS: usize = 16;
/// Most locations of a file.
const MOST_LOCATIONS: usize = 64;

/// A register of a thread, what it holds at the start, and where that is said.
pub(super) type InitialRegister<'a> = (u32, &'a str, i64, At);

impl<'a> Parser<'a> {
    pub(super) fn initial_block(&mut self) -> Result<Vec<InitialRegister<'a>>, Error> {
        let mut registers = Vec::new();
        self.lexer.expect("{")?;
        while !self.lexer.eat("}")? {
            if self.lexer.eat(";")? {
                continue;
            }
            let at = self.lexer.place();
            let thread = match self.lexer.peek() {
                Token::Number(number) => u32::try_from(number).ok(),
                Token::Word("ordered") => {
                    self.ordered_locations()?;
                    continue;
                }
                _ => None,
            };
            let name = match thread {
                Some(_) => {
                    self.lexer.next()?;
                    ""
                }
                None => self.lexer.word("a location or a thread's register")?,
            };
            if self.lexer.eat(":")? {
                let thread = thread.or_else(|| thread_number(name));
                let thread = thread.ok_or_else(|| at.error(format!("`{name}` is not a thread")))?;
                let register = self.lexer.word("a register")?;
                self.lexer.expect("=")?;
                registers.push((thread, register, self.lexer.number("a number")?, at));
            } else if thread.is_some() {
                return Err(self.lexer.unexpected("`:` and a register"));
            } else {
                self.initial_location(name, at)?;
            }
            if !matches!(self.lexer.peek(), Token::Sign(";" | "}")) {
                return Err(self.lexer.unexpected("`;` or `}`"));
            }
        }
        Ok(registers)
    }

    fn ordered_locations(&mut self) -> Result<(), Error> {
        self.lexer.next()?;
        loop {
            let at = self.lexer.place();
            let name = self.lexer.word("a location")?;
            let location = self.location_named(name, at)?;
            self.ordered.insert(location);
            if !self.lexer.eat(",")? {
                return Ok(());
            }
        }
    }

    fn initial_location(&mut self, name: &str, at: At) -> Result<(), Error> {
        match self.lexer.peek() {
            Token::Sign("@") | Token::Word("aliases") => {
                return Err(at.unsupported("aliases and proxies are not modelled"));
            }
            _ => self.lexer.expect("=")?,
        }
        if let Token::Word(_) = self.lexer.peek() {
            return Err(
                at.unsupported("locations that hold or are other locations are not modelled")
            );
        }
        let value = self.lexer.number("a number")?;
        let location = self.location_named(name, at)?;
        self.initial.insert(location, value);
        Ok(())
    }

    /// The number of a location.
    pub(super) fn location_named(&mut self, name: &str, at: At) -> Result<usize, Error> {
        let location = self.locations.index(name);
        match location < MOST_LOCATIONS {
            true => Ok(location),
            false => Err(at.error(format!("more than {MOST_LOCATIONS} locations"))),
        }
    }

    pub(super) fn heads(&mut self) -> Result<(), Error> {
        loop {
            let at = self.lexer.place();
            if self.columns.len() == MOST_THREADS {
                return Err(at.error(format!("more than {MOST_THREADS} threads")));
            }
            let word = self.lexer.word("a thread, `P0@cta 0,gpu 0`")?;
            let number = thread_number(word);
            let number = number
                .ok_or_else(|| at.error(format!("`{word}` is not a thread, such as `P0`")))?;
            if self.columns.iter().any(|column| column.number == number) {
                return Err(at.error(format!("there is a second `{word}`")));
            }
            self.lexer.expect("@")?;
            let place = self.place()?;
            self.columns.push(Column {
                number,
                place,
                code: Vec::new(),
                registers: Names::default(),
                initial: BTreeMap::new(),
                labels: BTreeMap::new(),
                jumps: Vec::new(),
            });
            if self.lexer.eat(";")? {
                return Ok(());
            }
            self.lexer.expect("|")?;
        }
    }

    fn place(&mut self) -> Result<Place, Error> {
        if self.lexer.eat_word("host")? {
            return Ok(Place::Host);
        }
        let mut numbers = [0; 2];
        for (number, what) in numbers.iter_mut().zip(["cta", "gpu"]) {
            if what == "gpu" {
                self.lexer.expect(",")?;
            }
            if !self.lexer.eat_word(what)? {
                return Err(self.lexer.unexpected(&format!("`{what}`")));
            }
            let at = self.lexer.place();
            let read = self.lexer.number("a number")?;
            *number = u32::try_from(read)
                .map_err(|_| at.error(format!("`{read}` is no number of a {what}")))?;
        }
        Ok(Place::Device {
            gpu: numbers[1],
            cta: numbers[0],
        })
    }

    pub(super) fn initial_registers(
        &mut self,
        registers: Vec<InitialRegister<'_>>,
    ) -> Result<(), Error> {
        for (thread, name, value, at) in registers {
            let column = self
                .columns
                .iter_mut()
                .find(|column| column.number == thread);
            let column = column.ok_or_else(|| at.error(format!("there is no thread P{thread}")))?;
            let register = column.registers.index(name);
            column.initial.insert(register, value);
        }
        Ok(())
    }
}
