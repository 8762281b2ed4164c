//! The last line.

use super::{At, Parser, thread_number};
use crate::litmus::lexer::Token;
use crate::litmus::{Comparison, Condition, Error, Quantifier, Term};

/// Deepest nesting of a condition.
const DEEPEST: u32 = 64;

impl Parser<'_> {
    pub(super) fn final_condition(&mut self) -> Result<(Quantifier, Condition), Error> {
        let at = self.lexer.place();
        if self.lexer.eat_word("filter")? {
            return Err(at.unsupported("`filter` is not supported"));
        }
        let negated = self.lexer.eat("~")?;
        let quantifier = match (negated, self.lexer.next()?) {
            (false, Token::Word("exists")) => Quantifier::Exists,
            (true, Token::Word("exists")) => Quantifier::NotExists,
            (false, Token::Word("forall")) => Quantifier::ForAll,
            _ => return Err(at.error("expected `exists`, `~exists` or `forall`")),
        };
        let condition = self.any(0)?;
        match self.lexer.peek() {
            Token::End => Ok((quantifier, condition)),
            _ => Err(self.lexer.unexpected("the end of the file")),
        }
    }

    fn any(&mut self, depth: u32) -> Result<Condition, Error> {
        let mut parts = vec![self.all(depth)?];
        while self.lexer.eat("\\/")? {
            parts.push(self.all(depth)?);
        }
        Ok(Condition::Any(parts))
    }

    fn all(&mut self, depth: u32) -> Result<Condition, Error> {
        let mut parts = vec![self.one(depth)?];
        while self.lexer.eat("/\\")? {
            parts.push(self.one(depth)?);
        }
        Ok(Condition::All(parts))
    }

    fn one(&mut self, depth: u32) -> Result<Condition, Error> {
        if depth == DEEPEST {
            return Err(self
                .lexer
                .place()
                .error("the condition is nested too deeply"));
        }
        if self.lexer.eat("~")? || self.lexer.eat_word("not")? {
            return Ok(Condition::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.lexer.eat("(")? {
            let inner = self.any(depth + 1)?;
            self.lexer.expect(")")?;
            return Ok(inner);
        }
        let a = self.term()?;
        let at = self.lexer.place();
        let comparison = match self.lexer.next()? {
            Token::Sign("=" | "==") => Comparison::Equal,
            Token::Sign("!=") => Comparison::NotEqual,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterOrEqual,
            other => {
                return Err(at.error(format!("expected a comparison, found {}", other.describe())));
            }
        };
        Ok(Condition::Compare(a, comparison, self.term()?))
    }

    fn term(&mut self) -> Result<Term, Error> {
        let at = self.lexer.place();
        match self.lexer.next()? {
            Token::Number(number) => match self.lexer.eat(":")? {
                true => self.register_of(u32::try_from(number).ok(), at),
                false => Ok(Term::Number(number)),
            },
            Token::Word(word) => match self.lexer.eat(":")? {
                true => self.register_of(thread_number(word), at),
                false => match self.locations.0.iter().position(|name| name == word) {
                    Some(location) => Ok(Term::Location(location)),
                    None => Err(at.error(format!("no thread accesses a location `{word}`"))),
                },
            },
            other => Err(at.error(format!(
                "expected a number, a register or a location, found {}",
                other.describe()
            ))),
        }
    }

    fn register_of(&mut self, thread: Option<u32>, at: At) -> Result<Term, Error> {
        let thread = self
            .columns
            .iter()
            .position(|column| Some(column.number) == thread);
        let thread = thread.ok_or_else(|| at.error("there is no such thread"))?;
        let at = self.lexer.place();
        let word = self.lexer.word("a register")?;
        let column = &self.columns[thread];
        match column.registers.0.iter().position(|name| name == word) {
            Some(register) => Ok(Term::Register { thread, register }),
            None => Err(at.error(format!("P{} has no register `{word}`", column.number))),
        }
    }
}
