//! Operands.

use crate::{
    Base, Operand, PtxError, SpecialRegister, Symbol, body::Body, directives::ModuleName,
    lexer::Token, literal,
};

impl Body<'_, '_> {
    /// Reads one operand.
    pub(crate) fn operand(&mut self) -> Result<Operand, PtxError> {
        let lexer = &mut self.parser.lexer;
        let line = lexer.line();
        match lexer.peek() {
            Token::Punct('{') => {
                lexer.next()?;
                let mut parts = vec![self.element()?];
                while self.parser.lexer.eat(',')? {
                    parts.push(self.element()?);
                }
                self.parser.lexer.expect('}')?;
                Ok(Operand::Vector(parts))
            }
            Token::Punct('[') => {
                lexer.next()?;
                let address = self.address()?;
                self.parser.lexer.expect(']')?;
                Ok(address)
            }
            Token::Punct('!') => {
                lexer.next()?;
                let name = self.parser.lexer.word("a predicate")?;
                match self.scopes.register(name) {
                    Some(register) => Ok(Operand::Not(register)),
                    None => Err(PtxError {
                        line,
                        message: format!("`{name}` is no register"),
                    }),
                }
            }
            Token::Punct('-') | Token::Number(_) => self.literal(),
            Token::Word(name) => {
                lexer.next()?;
                let operand = match name {
                    "_" => Operand::Sink,
                    name => self.named(name, line)?,
                };
                if !self.parser.lexer.eat('|')? {
                    return Ok(operand);
                }
                let line = self.parser.lexer.line();
                let second = match self.parser.lexer.word("a predicate or `_`")? {
                    "_" => Operand::Sink,
                    name => self.named(name, line)?,
                };
                Ok(Operand::Pair(Box::new(operand), Box::new(second)))
            }
            other => Err(lexer.error(format!("expected an operand, found {}", other.describe()))),
        }
    }

    /// A part of a vector: nothing that has parts itself.
    fn element(&mut self) -> Result<Operand, PtxError> {
        match self.parser.lexer.peek() {
            found @ Token::Punct('{' | '[') => {
                let message = format!("expected an element, found {}", found.describe());
                Err(self.parser.lexer.error(message))
            }
            _ => self.operand(),
        }
    }

    fn literal(&mut self) -> Result<Operand, PtxError> {
        let lexer = &mut self.parser.lexer;
        let negative = lexer.eat('-')?;
        let error = lexer.error(format!("{} is not a number", lexer.peek().describe()));
        match lexer.next()? {
            Token::Number(text) => literal::operand(text, negative).ok_or(error),
            _ => Err(error),
        }
    }

    /// A register, a special register, or the address of a variable.
    fn named(&mut self, name: &str, line: u32) -> Result<Operand, PtxError> {
        if let Some(register) = self.scopes.register(name) {
            return Ok(Operand::Register(register));
        }
        if let Some(symbol) = self.symbol(name) {
            return Ok(Operand::Symbol(symbol, self.parser.offset()?));
        }
        let mut full = name.to_owned();
        if let Token::Dotted(part) = self.parser.lexer.peek() {
            self.parser.lexer.next()?;
            full.push('.');
            full.push_str(part);
        }
        match SpecialRegister::from_name(&full) {
            Some(special) => Ok(Operand::Special(special)),
            None => Err(PtxError {
                line,
                message: format!("operand `{full}` is not declared or not supported"),
            }),
        }
    }

    /// The inside of `[…]`.
    fn address(&mut self) -> Result<Operand, PtxError> {
        let lexer = &mut self.parser.lexer;
        let line = lexer.line();
        let base = match lexer.peek() {
            Token::Word(name) => {
                lexer.next()?;
                if let Some(register) = self.scopes.register(name) {
                    Base::Register(register)
                } else if let Some(symbol) = self.symbol(name) {
                    Base::Symbol(symbol)
                } else {
                    return Err(PtxError {
                        line,
                        message: format!("`[{name}]`: `{name}` is not declared"),
                    });
                }
            }
            Token::Number(_) => {
                let at = lexer.number()? as i64;
                let offset = at.wrapping_add(self.parser.offset()?);
                return Ok(Operand::Address(Base::Absolute, offset));
            }
            other => {
                return Err(lexer.error(format!("expected an address, found {}", other.describe())));
            }
        };
        Ok(Operand::Address(base, self.parser.offset()?))
    }

    /// The variable of this name: of the body, a parameter, or of the module.
    fn symbol(&mut self, name: &str) -> Option<Symbol> {
        if let Some(symbol) = self.scopes.symbol(name) {
            return Some(symbol);
        }
        if let Some(param) = self
            .entry
            .params
            .iter()
            .position(|param| param.name == name)
        {
            return Some(Symbol::Param(param));
        }
        match *self.parser.names.get(name)? {
            ModuleName::Global(index) => Some(Symbol::Global(index)),
            ModuleName::DynamicShared(align) => {
                let wanted = self.entry.dynamic_shared_align.get_or_insert(align);
                *wanted = align.max(*wanted);
                Some(Symbol::DynamicShared)
            }
            ModuleName::Shared(index) => {
                let shared = &mut self.entry.shared;
                let variables = &self.parser.shared;
                let own = *self.module_shared.entry(index).or_insert_with(|| {
                    shared.push(variables[index].clone());
                    shared.len() - 1
                });
                Some(Symbol::Shared(own))
            }
        }
    }
}
