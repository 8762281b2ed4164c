//! Rows of instructions.

use super::{Parser, is_register};
use crate::litmus::Error;
use crate::litmus::instruction::{Opcode, Rmw, opcode};
use crate::litmus::lexer::Token;
use crate::litmus::program::{Arithmetic, Instruction, Operand};
use crate::scope::Place;

/// Most instructions of a column.
const MOST_INSTRUCTIONS: usize = 512;

impl Parser<'_> {
    pub(super) fn row(&mut self) -> Result<(), Error> {
        if self.lexer.peek() == Token::End {
            let wanted = "a row, `exists`, `~exists` or `forall`";
            return Err(self.lexer.unexpected(wanted));
        }
        let mut column = 0;
        loop {
            if column == self.columns.len() {
                let wanted = "`;`: the row has more cells than there are threads";
                return Err(self.lexer.unexpected(wanted));
            }
            self.cell(column)?;
            if self.lexer.eat(";")? {
                return Ok(());
            }
            self.lexer.expect("|")?;
            column += 1;
        }
    }

    /// Labels, then an instruction; each may be absent.
    fn cell(&mut self, column: usize) -> Result<(), Error> {
        while let Token::Word(word) = self.lexer.peek() {
            let at = self.lexer.place();
            self.lexer.next()?;
            let here = self.columns[column].code.len();
            if self.lexer.eat(":")? {
                let labels = &mut self.columns[column].labels;
                if labels.insert(word.to_owned(), here).is_some() {
                    let what = format!("there is a second label `{word}` in this thread");
                    return Err(at.error(what));
                }
                continue;
            }
            if here == MOST_INSTRUCTIONS {
                let what = format!("more than {MOST_INSTRUCTIONS} instructions in a thread");
                return Err(at.error(what));
            }
            let instruction = self.instruction(column, opcode(word, at)?)?;
            self.columns[column].code.push((instruction, at.line));
            return Ok(());
        }
        Ok(())
    }

    fn instruction(&mut self, c: usize, opcode: Opcode) -> Result<Instruction, Error> {
        Ok(match opcode {
            Opcode::Move => Instruction::Move {
                to: self.register(c)?,
                value: self.last_operand(c)?,
            },
            Opcode::Compute(what) => Instruction::Compute {
                what,
                to: self.register(c)?,
                a: self.last_operand(c)?,
                b: self.last_operand(c)?,
            },
            Opcode::Branch(on) => {
                let (a, b) = (self.operand(c)?, self.last_operand(c)?);
                self.lexer.expect(",")?;
                let target = self.target(c)?;
                Instruction::Branch { on, a, b, target }
            }
            Opcode::Jump => Instruction::Jump {
                target: self.target(c)?,
            },
            Opcode::Load(order, scope) => {
                let to = self.register(c)?;
                self.lexer.expect(",")?;
                Instruction::Load {
                    order,
                    scope,
                    to,
                    location: self.location()?,
                }
            }
            Opcode::Store(order, scope) => Instruction::Store {
                order,
                scope,
                location: self.location()?,
                value: self.last_operand(c)?,
            },
            Opcode::Update {
                order,
                scope,
                returns,
                what,
            } => {
                let to = match returns {
                    true => {
                        let to = self.register(c)?;
                        self.lexer.expect(",")?;
                        Some(to)
                    }
                    false => None,
                };
                let location = self.location()?;
                let first = self.last_operand(c)?;
                let (compare, what, value) = match what {
                    Rmw::Swap => (Some(first), Arithmetic::Exch, self.last_operand(c)?),
                    Rmw::Compute(what) => (None, what, first),
                };
                Instruction::Update {
                    order,
                    scope,
                    to,
                    location,
                    compare,
                    what,
                    value,
                }
            }
            Opcode::Fence { order, sc, scope } => Instruction::Fence { order, sc, scope },
            Opcode::Barrier { waits } => self.barrier(c, waits)?,
            Opcode::Kernel => match self.columns[c].place {
                Place::Device { .. } => Instruction::Kernel,
                Place::Host => {
                    return Err(self.lexer.place().error("`kernel` in a thread of the host"));
                }
            },
            Opcode::Signal => Instruction::Signal { edge: self.edge()? },
            Opcode::Wait => Instruction::Wait { edge: self.edge()? },
        })
    }

    /// `id`, or as Dat3M writes it, `label, id` and `label, id, count`: the label tells occurrences apart and says nothing.
    fn barrier(&mut self, c: usize, waits: bool) -> Result<Instruction, Error> {
        if self.columns[c].place == Place::Host {
            return Err(self
                .lexer
                .place()
                .error("a barrier in a thread of the host"));
        }
        let mut operands = vec![self.operand(c)?];
        while operands.len() < 3 && self.lexer.eat(",")? {
            operands.push(self.operand(c)?);
        }
        Ok(Instruction::Barrier {
            waits,
            id: operands.get(1).copied().unwrap_or(operands[0]),
            count: operands.get(2).copied(),
        })
    }

    fn edge(&mut self) -> Result<usize, Error> {
        let name = self.lexer.word("the name of an edge")?;
        Ok(self.edges.index(name))
    }

    fn register(&mut self, c: usize) -> Result<usize, Error> {
        match self.lexer.peek() {
            Token::Word(word) if is_register(word) => {
                self.lexer.next()?;
                Ok(self.columns[c].registers.index(word))
            }
            _ => Err(self.lexer.unexpected("a register, such as `r0`")),
        }
    }

    fn location(&mut self) -> Result<usize, Error> {
        match self.lexer.peek() {
            Token::Word(word) if !is_register(word) => {
                let at = self.lexer.place();
                self.lexer.next()?;
                self.location_named(word, at)
            }
            _ => Err(self.lexer.unexpected("a location")),
        }
    }

    fn last_operand(&mut self, c: usize) -> Result<Operand, Error> {
        self.lexer.expect(",")?;
        self.operand(c)
    }

    fn operand(&mut self, c: usize) -> Result<Operand, Error> {
        match self.lexer.peek() {
            Token::Number(number) => {
                self.lexer.next()?;
                Ok(Operand::Number(number))
            }
            Token::Word(word) if is_register(word) => Ok(Operand::Register(self.register(c)?)),
            _ => Err(self.lexer.unexpected("a number or a register")),
        }
    }

    /// The number of an instruction that is known once the column has been read.
    fn target(&mut self, c: usize) -> Result<usize, Error> {
        let at = self.lexer.place();
        let label = self.lexer.word("a label")?.to_owned();
        let column = &mut self.columns[c];
        column.jumps.push((column.code.len(), label, at));
        Ok(0)
    }
}
