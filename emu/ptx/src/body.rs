//! The body of a kernel: declarations, labels and instructions.

use crate::{
    Entry, Guard, Instruction, Loc, Modifier, Opcode, Operand, PtxError, Symbol, Type, Variable,
    directives::Parser,
    forms::{self, Candidate},
    lexer::Token,
    scope::Scopes,
};
use std::collections::HashMap;

/// The state of reading a body.
pub(crate) struct Body<'a, 'p> {
    pub(crate) parser: &'p mut Parser<'a>,
    pub(crate) scopes: Scopes<'a>,
    pub(crate) entry: Entry,
    /// Which of the entry's shared variables a module-scope one is.
    pub(crate) module_shared: HashMap<usize, usize>,
    loc: Option<Loc>,
    branches: Vec<Branch<'a>>,
}

/// A branch whose label may come later.
struct Branch<'a> {
    instruction: usize,
    scope: usize,
    label: &'a str,
    line: u32,
}

/// Reads a body in braces and gives the entry with all that was in it.
pub(crate) fn read(parser: &mut Parser<'_>, entry: Entry) -> Result<Entry, PtxError> {
    let mut body = Body {
        parser,
        scopes: Scopes::new(),
        entry,
        module_shared: HashMap::new(),
        loc: None,
        branches: Vec::new(),
    };
    body.parser.lexer.expect('{')?;
    while body.statement()? {}
    body.link()?;
    body.entry.registers = body.scopes.registers;
    Ok(body.entry)
}

impl<'a> Body<'a, '_> {
    /// Reads one statement; false at the end of the body.
    fn statement(&mut self) -> Result<bool, PtxError> {
        let lexer = &mut self.parser.lexer;
        let line = lexer.line();
        match lexer.peek() {
            Token::End => return Err(lexer.error("kernel without end")),
            Token::Punct('{') => {
                lexer.next()?;
                self.scopes.enter();
            }
            Token::Punct('}') => {
                lexer.next()?;
                return Ok(self.scopes.leave());
            }
            Token::Punct(';') => {
                lexer.next()?;
            }
            Token::Punct('@') => {
                lexer.next()?;
                let guard = self.guard()?;
                let opcode = self.parser.lexer.word("an opcode")?;
                self.instruction(opcode, Some(guard), line)?;
            }
            Token::Dotted(word) => {
                lexer.next()?;
                self.directive(word, line)?;
            }
            Token::Word(word) => {
                lexer.next()?;
                if lexer.eat(':')? {
                    if !self.scopes.place_label(word, self.entry.body.len() as u32) {
                        return Err(PtxError {
                            line,
                            message: format!("label `{word}` is placed twice"),
                        });
                    }
                } else {
                    self.instruction(word, None, line)?;
                }
            }
            other => {
                return Err(
                    lexer.error(format!("expected a statement, found {}", other.describe()))
                );
            }
        }
        Ok(true)
    }

    fn guard(&mut self) -> Result<Guard, PtxError> {
        let negated = self.parser.lexer.eat('!')?;
        let line = self.parser.lexer.line();
        let name = self.parser.lexer.word("a predicate")?;
        match self.scopes.register(name) {
            Some(register) if self.scopes.registers[register.0 as usize].ty == Type::Pred => {
                Ok(Guard { register, negated })
            }
            _ => Err(PtxError {
                line,
                message: format!("`@{name}`: `{name}` is no predicate register"),
            }),
        }
    }

    fn directive(&mut self, word: &str, line: u32) -> Result<(), PtxError> {
        match word {
            "reg" => self.registers(),
            "local" | "shared" => self.variable(word == "local", line),
            "loc" => self.location(),
            "pragma" => self.parser.pragma(),
            other => Err(PtxError {
                line,
                message: format!("directive `.{other}` is not supported in a kernel"),
            }),
        }
    }

    /// `.reg .type name, name<count>, …;`
    fn registers(&mut self) -> Result<(), PtxError> {
        let lexer = &mut self.parser.lexer;
        let error = lexer.error(format!(
            "{} is not supported as a register's type",
            lexer.peek().describe()
        ));
        let ty = match lexer.next()? {
            Token::Dotted(name) => Type::from_name(name).ok_or(error)?,
            _ => return Err(error),
        };
        loop {
            let name = self.parser.lexer.word("a register's name")?;
            if self.parser.lexer.eat('<')? {
                let count = self.parser.lexer.number32()?;
                self.parser.lexer.expect('>')?;
                self.scopes.declare_range(name, count, ty);
            } else {
                self.scopes.declare(name, ty);
            }
            if !self.parser.lexer.eat(',')? {
                return self.parser.lexer.expect(';');
            }
        }
    }

    fn variable(&mut self, local: bool, line: u32) -> Result<(), PtxError> {
        let declared = self.parser.declaration()?;
        self.parser.lexer.expect(';')?;
        let Some(size) = declared.size else {
            return Err(PtxError {
                line,
                message: format!("`{}` has no size", declared.name),
            });
        };
        let variables = if local {
            &mut self.entry.local
        } else {
            &mut self.entry.shared
        };
        let symbol = if local {
            Symbol::Local(variables.len())
        } else {
            Symbol::Shared(variables.len())
        };
        variables.push(Variable {
            name: declared.name.to_owned(),
            size,
            align: declared.align,
        });
        self.scopes.declare_symbol(declared.name, symbol);
        Ok(())
    }

    /// `.loc file line column[, function_name label[+n], inlined_at file line column]`: the innermost line counts.
    fn location(&mut self) -> Result<(), PtxError> {
        let (file, line, column) = self.place()?;
        self.loc = (line > 0).then_some(Loc { file, line, column });
        while self.parser.lexer.eat(',')? {
            match self.parser.lexer.word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.parser.lexer.word("a label")?;
                    self.parser.offset()?;
                }
                "inlined_at" => {
                    self.place()?;
                }
                other => {
                    return Err(self
                        .parser
                        .lexer
                        .error(format!("`.loc`: `{other}` is not supported")));
                }
            }
        }
        Ok(())
    }

    fn place(&mut self) -> Result<(u32, u32, u32), PtxError> {
        let lexer = &mut self.parser.lexer;
        Ok((lexer.number32()?, lexer.number32()?, lexer.number32()?))
    }

    /// Reads an instruction whose opcode has been taken, up to its semicolon.
    fn instruction(&mut self, name: &str, guard: Option<Guard>, line: u32) -> Result<(), PtxError> {
        let refuse = |message: String| Err(PtxError { line, message });
        let mut text = name.to_owned();
        let (mut modifiers, mut types, mut unknown) = (Vec::new(), Vec::new(), None);
        while let Token::Dotted(word) = self.parser.lexer.peek() {
            self.parser.lexer.next()?;
            text.push('.');
            text.push_str(word);
            if let Some(ty) = Type::from_name(word) {
                types.push(ty);
            } else if let Some(modifier) = Modifier::from_name(word) {
                modifiers.push(modifier);
            } else if unknown.is_none() {
                unknown = Some(word);
            }
        }
        let Some(opcode) = Opcode::from_name(name) else {
            let hint = if name == "call" {
                "; have the compiler inline device functions"
            } else {
                ""
            };
            return refuse(format!("`{text}`: opcode `{name}` is not supported{hint}"));
        };
        if let Some(word) = unknown {
            return refuse(format!("`{text}`: modifier `.{word}` is not supported"));
        }
        let mut operands = Vec::new();
        if opcode == Opcode::Bra {
            let label = self.parser.lexer.word("a label")?;
            let (instruction, scope) = (self.entry.body.len(), self.scopes.current());
            self.branches.push(Branch {
                instruction,
                scope,
                label,
                line,
            });
            operands.push(Operand::Label(0));
        } else if self.parser.lexer.peek() != Token::Punct(';') {
            operands.push(self.operand()?);
            while self.parser.lexer.eat(',')? {
                operands.push(self.operand()?);
            }
        }
        self.parser.lexer.expect(';')?;
        let registers = &self.scopes.registers;
        let candidate = Candidate {
            text: &text,
            opcode,
            modifiers: &modifiers,
            types: &types,
            operands: &operands,
            registers,
        };
        if let Err(message) = forms::check(&candidate) {
            return refuse(message);
        }
        self.entry.body.push(Instruction {
            guard,
            opcode,
            modifiers,
            types,
            operands,
            line,
            loc: self.loc,
        });
        Ok(())
    }

    /// Gives every branch its target.
    fn link(&mut self) -> Result<(), PtxError> {
        for branch in &self.branches {
            let Some(target) = self.scopes.label(branch.scope, branch.label) else {
                let message = format!("label `{}` is nowhere in this kernel", branch.label);
                return Err(PtxError {
                    line: branch.line,
                    message,
                });
            };
            self.entry.body[branch.instruction].operands[0] = Operand::Label(target);
        }
        Ok(())
    }
}
