//! Module level: directives between kernels.

use crate::{
    Global, GlobalSpace, Module, PtxError, SourceFile, Type, Variable, entry,
    initializer::{self, Initializer},
    lexer::{Lexer, Token},
};
use std::collections::HashMap;

/// Most bytes of all `.const` variables of a module.
const MOST_CONSTANT: u64 = 64 << 10;

/// Reads a PTX text.
///
/// Refuses whatever is not understood: an unknown directive, opcode, modifier or operand, each with its line.
pub fn parse(source: &str) -> Result<Module, PtxError> {
    let mut parser = Parser {
        lexer: Lexer::new(source)?,
        module: Module {
            version: (0, 0),
            target: 0,
            target_suffix: None,
            entries: Vec::new(),
            globals: Vec::new(),
            files: Vec::new(),
        },
        shared: Vec::new(),
        names: HashMap::new(),
    };
    parser.header()?;
    while parser.lexer.peek() != Token::End {
        parser.directive()?;
    }
    Ok(parser.module)
}

/// What a name at module scope stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ModuleName {
    /// Index into `Module::globals`.
    Global(usize),
    /// Index into [`Parser::shared`].
    Shared(usize),
    /// An `extern .shared` array of this alignment.
    DynamicShared(u32),
}

/// The state of reading a module.
pub(crate) struct Parser<'a> {
    pub(crate) lexer: Lexer<'a>,
    pub(crate) module: Module,
    /// `.shared` variables at module scope.
    pub(crate) shared: Vec<Variable>,
    pub(crate) names: HashMap<&'a str, ModuleName>,
}

/// A declared variable before it has a space.
pub(crate) struct Declaration<'a> {
    pub(crate) name: &'a str,
    pub(crate) ty: Type,
    /// In bytes; `None` for `[]`.
    pub(crate) size: Option<u64>,
    pub(crate) align: u32,
}

impl<'a> Parser<'a> {
    /// `.version`, `.target` and `.address_size`, in this order.
    fn header(&mut self) -> Result<(), PtxError> {
        self.keyword("version")?;
        let error = self.lexer.error("`.version` takes a number such as 9.0");
        let Token::Number(version) = self.lexer.next()? else {
            return Err(error);
        };
        let version = version
            .split_once('.')
            .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        self.module.version = version.ok_or(error)?;
        self.keyword("target")?;
        let error = self
            .lexer
            .error("`.target` takes one architecture such as sm_90");
        let name = self.lexer.word("an architecture")?;
        let number = name.strip_prefix("sm_").ok_or_else(|| error.clone())?;
        let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
        self.module.target = digits.parse().map_err(|_| error.clone())?;
        self.module.target_suffix = number[digits.len()..].chars().next();
        while self.lexer.eat(',')? {
            let line = self.lexer.line();
            let option = self.lexer.word("an option of `.target`")?;
            if option != "debug" {
                return Err(PtxError {
                    line,
                    message: format!("`.target` option `{option}` is not supported"),
                });
            }
        }
        if self.lexer.peek() == Token::Dotted("address_size") {
            self.lexer.next()?;
            let line = self.lexer.line();
            if self.lexer.number()? != 64 {
                return Err(PtxError {
                    line,
                    message: "only `.address_size 64` is supported".into(),
                });
            }
        }
        Ok(())
    }

    fn keyword(&mut self, word: &str) -> Result<(), PtxError> {
        if self.lexer.peek() == Token::Dotted(word) {
            self.lexer.next()?;
            return Ok(());
        }
        Err(self.lexer.error(format!(
            "expected `.{word}`, found {}",
            self.lexer.peek().describe()
        )))
    }

    fn directive(&mut self) -> Result<(), PtxError> {
        let line = self.lexer.line();
        let refuse = |message: String| Err(PtxError { line, message });
        let mut external = false;
        loop {
            let Token::Dotted(word) = self.lexer.peek() else {
                return refuse(format!(
                    "expected a directive, found {}",
                    self.lexer.peek().describe()
                ));
            };
            if word == "func" {
                self.lexer.next()?;
                return refuse(self.refused_function()?);
            }
            self.lexer.next()?;
            match word {
                "visible" | "weak" | "common" => {}
                "extern" => external = true,
                "entry" if external => return refuse("`.extern .entry` is not supported".into()),
                "entry" => return entry::read(self, line),
                "global" if !external => return self.global(GlobalSpace::Global, line),
                "const" if !external => return self.global(GlobalSpace::Const, line),
                "global" | "const" => {
                    return refuse(format!(
                        "`.extern .{word}`: variables of other modules are not supported"
                    ));
                }
                "shared" => return self.module_shared(external),
                "file" => return self.file(),
                "section" => return self.section(),
                "pragma" => return self.pragma(),
                other => return refuse(format!("directive `.{other}` is not supported")),
            }
        }
    }

    /// Why a device function is refused: its result in parentheses, if any, comes before its name.
    fn refused_function(&mut self) -> Result<String, PtxError> {
        if self.lexer.eat('(')? {
            while !self.lexer.eat(')')? && self.lexer.peek() != Token::End {
                self.lexer.next()?;
            }
        }
        let name = self.lexer.word("a function's name")?;
        Ok(format!(
            "`.func {name}`: device functions are not supported; have the compiler inline them"
        ))
    }

    fn global(&mut self, space: GlobalSpace, line: u32) -> Result<(), PtxError> {
        let declared = self.declaration()?;
        let init = match self.lexer.eat('=')? {
            true => initializer::read(self, declared.ty)?,
            false => Initializer::default(),
        };
        self.lexer.expect(';')?;
        let sized = declared
            .size
            .or((!init.bytes.is_empty()).then_some(init.bytes.len() as u64));
        let Some(size) = sized else {
            let message = format!("`{}` has no size", declared.name);
            return Err(PtxError { line, message });
        };
        if init.bytes.len() as u64 > size {
            let message = format!(
                "`{}`: {} bytes of initialiser for {size} bytes",
                declared.name,
                init.bytes.len()
            );
            return Err(PtxError { line, message });
        }
        let name = ModuleName::Global(self.module.globals.len());
        self.introduce(declared.name, name, line)?;
        self.module.globals.push(Global {
            name: declared.name.to_owned(),
            space,
            size,
            align: declared.align,
            init: init.bytes,
            relocations: init.relocations,
            line,
        });
        let constants = self
            .module
            .globals
            .iter()
            .filter(|global| global.space == GlobalSpace::Const);
        let constants = constants.fold(0u64, |all, global| all.saturating_add(global.size));
        if constants > MOST_CONSTANT {
            let message = format!(
                "`{}`: constants have at most {MOST_CONSTANT} bytes together",
                declared.name
            );
            return Err(PtxError { line, message });
        }
        Ok(())
    }

    fn module_shared(&mut self, external: bool) -> Result<(), PtxError> {
        let line = self.lexer.line();
        let declared = self.declaration()?;
        self.lexer.expect(';')?;
        let name = match (declared.size, external) {
            (None, true) => ModuleName::DynamicShared(declared.align),
            (Some(size), false) => {
                self.shared.push(Variable {
                    name: declared.name.to_owned(),
                    size,
                    align: declared.align,
                });
                ModuleName::Shared(self.shared.len() - 1)
            }
            _ => {
                let message = "a `.shared` variable is either sized or `.extern` with `[]`".into();
                return Err(PtxError { line, message });
            }
        };
        self.introduce(declared.name, name, line)
    }

    fn introduce(&mut self, name: &'a str, what: ModuleName, line: u32) -> Result<(), PtxError> {
        match self.names.insert(name, what) {
            None => Ok(()),
            Some(_) => Err(PtxError {
                line,
                message: format!("`{name}` is declared twice"),
            }),
        }
    }

    /// `[.align n] .type name [dimensions]`, the space already read.
    pub(crate) fn declaration(&mut self) -> Result<Declaration<'a>, PtxError> {
        let mut align = None;
        let mut vector = 1;
        let ty = loop {
            let error = |lexer: &Lexer<'_>| {
                lexer.error(format!(
                    "{} is not supported in a declaration",
                    lexer.peek().describe()
                ))
            };
            let Token::Dotted(word) = self.lexer.peek() else {
                return Err(error(&self.lexer));
            };
            match word {
                "align" => {
                    self.lexer.next()?;
                    let value = self.lexer.number32()?;
                    if !value.is_power_of_two() || value > 1 << 20 {
                        return Err(self
                            .lexer
                            .error(format!("`.align {value}` is no usable power of two")));
                    }
                    align = Some(value);
                    continue;
                }
                "v2" => vector = 2,
                "v4" => vector = 4,
                _ => match Type::from_name(word).filter(|ty| ty.bytes() > 0) {
                    Some(ty) => {
                        self.lexer.next()?;
                        break ty;
                    }
                    None => return Err(error(&self.lexer)),
                },
            }
            self.lexer.next()?;
        };
        self.pointer_attributes()?;
        let name = self.lexer.word("a name")?;
        let element = u64::from(ty.bytes() * vector);
        let mut size = Some(element);
        while self.lexer.eat('[')? {
            if self.lexer.eat(']')? {
                size = None;
                continue;
            }
            let count = self.lexer.number()?;
            let error = self.lexer.error(format!("`{name}` is too large"));
            size = match size {
                Some(size) => Some(
                    size.checked_mul(count)
                        .filter(|&n| n < 1 << 40)
                        .ok_or(error)?,
                ),
                None => None,
            };
            self.lexer.expect(']')?;
        }
        Ok(Declaration {
            name,
            ty,
            size,
            align: align.unwrap_or(ty.bytes() * vector),
        })
    }

    /// `.ptr [.space] [.align n]` of a parameter: promises to the compiler, without meaning here.
    fn pointer_attributes(&mut self) -> Result<(), PtxError> {
        if self.lexer.peek() != Token::Dotted("ptr") {
            return Ok(());
        }
        self.lexer.next()?;
        while let Token::Dotted(word) = self.lexer.peek() {
            match word {
                "global" | "shared" | "local" | "const" => {
                    self.lexer.next()?;
                }
                "align" => {
                    self.lexer.next()?;
                    self.lexer.number()?;
                }
                other => {
                    return Err(self
                        .lexer
                        .error(format!("`.{other}` is not supported behind `.ptr`")));
                }
            }
        }
        Ok(())
    }

    fn file(&mut self) -> Result<(), PtxError> {
        let number = self.lexer.number32()?;
        let error = self.lexer.error("`.file` takes a number and a path");
        let Token::Text(path) = self.lexer.next()? else {
            return Err(error);
        };
        while self.lexer.eat(',')? {
            self.lexer.number()?;
        }
        self.module.files.push(SourceFile {
            number,
            path: path.to_owned(),
        });
        Ok(())
    }

    /// Debugging data: of no use here.
    fn section(&mut self) -> Result<(), PtxError> {
        self.lexer.next()?;
        self.lexer.expect('{')?;
        while !self.lexer.eat('}')? {
            if self.lexer.next()? == Token::End {
                return Err(self.lexer.error("`.section` without end"));
            }
        }
        Ok(())
    }

    /// Advice to the compiler.
    pub(crate) fn pragma(&mut self) -> Result<(), PtxError> {
        while !self.lexer.eat(';')? {
            if self.lexer.next()? == Token::End {
                return Err(self.lexer.error("`.pragma` without end"));
            }
        }
        Ok(())
    }
}
