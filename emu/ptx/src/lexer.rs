//! Text to tokens, each with its line.

use crate::PtxError;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A name: opcode, register (`%r1`), label, variable.
    Word(&'a str),
    /// What follows a dot: a directive, a modifier or a type, without the dot.
    Dotted(&'a str),
    /// A numeric literal as written, without sign.
    Number(&'a str),
    /// The inside of a string literal.
    Text(&'a str),
    /// Punctuation.
    Punct(char),
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// The token as a message quotes it.
    pub(crate) fn describe(self) -> String {
        match self {
            Token::Word(text) | Token::Number(text) => format!("`{text}`"),
            Token::Dotted(text) => format!("`.{text}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Punct(c) => format!("`{c}`"),
            Token::End => "the end of the text".into(),
        }
    }
}

/// The tokens of a text, with one token of lookahead.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    rest_line: u32,
    next: Token<'a>,
    line: u32,
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, PtxError> {
        let mut lexer = Self {
            rest: text,
            rest_line: 1,
            next: Token::End,
            line: 1,
        };
        lexer.advance()?;
        Ok(lexer)
    }

    /// The next token, which stays.
    pub(crate) fn peek(&self) -> Token<'a> {
        self.next
    }

    /// The line of the next token.
    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, PtxError> {
        let token = self.next;
        self.advance()?;
        Ok(token)
    }

    /// Takes the next token if it is this punctuation.
    pub(crate) fn eat(&mut self, c: char) -> Result<bool, PtxError> {
        let found = self.next == Token::Punct(c);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Takes this punctuation, or refuses.
    pub(crate) fn expect(&mut self, c: char) -> Result<(), PtxError> {
        if self.eat(c)? {
            return Ok(());
        }
        Err(self.error(format!("expected `{c}`, found {}", self.next.describe())))
    }

    /// Takes a name, or refuses, saying what was wanted.
    pub(crate) fn word(&mut self, what: &str) -> Result<&'a str, PtxError> {
        match self.next {
            Token::Word(name) => {
                self.advance()?;
                Ok(name)
            }
            other => Err(self.error(format!("expected {what}, found {}", other.describe()))),
        }
    }

    /// Takes a plain unsigned number, or refuses.
    pub(crate) fn number(&mut self) -> Result<u64, PtxError> {
        match self.next {
            Token::Number(text) => {
                let value = crate::literal::integer(text)
                    .ok_or_else(|| self.error(format!("`{text}` is not an integer")))?;
                self.advance()?;
                Ok(value)
            }
            other => Err(self.error(format!("expected a number, found {}", other.describe()))),
        }
    }

    /// Takes a plain number that fits 32 bits, or refuses.
    pub(crate) fn number32(&mut self) -> Result<u32, PtxError> {
        let line = self.line;
        let value = self.number()?;
        u32::try_from(value).map_err(|_| PtxError {
            line,
            message: format!("{value} does not fit 32 bits"),
        })
    }

    /// An error at the next token.
    pub(crate) fn error(&self, message: impl Into<String>) -> PtxError {
        PtxError {
            line: self.line,
            message: message.into(),
        }
    }

    fn advance(&mut self) -> Result<(), PtxError> {
        self.skip_blanks()?;
        self.line = self.rest_line;
        let Some(first) = self.rest.chars().next() else {
            self.next = Token::End;
            return Ok(());
        };
        self.next = match first {
            '.' => {
                let name = self.take(1, |c| is_name(c) || c == ':');
                Token::Dotted(name)
            }
            '%' => Token::Word(self.take_with_first(is_name)),
            '"' => Token::Text(self.take_string()?),
            c if c.is_ascii_digit() => Token::Number(self.take_number()),
            c if is_name(c) => Token::Word(self.take_with_first(is_name)),
            c => {
                self.rest = &self.rest[c.len_utf8()..];
                Token::Punct(c)
            }
        };
        Ok(())
    }

    fn skip_blanks(&mut self) -> Result<(), PtxError> {
        loop {
            let trimmed = self.rest.trim_start();
            self.pass(self.rest.len() - trimmed.len());
            if self.rest.starts_with("//") {
                self.pass(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return Err(PtxError {
                        line: self.rest_line,
                        message: "comment without end".into(),
                    });
                };
                self.pass(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn pass(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.rest_line += passed.bytes().filter(|&b| b == b'\n').count() as u32;
        self.rest = rest;
    }

    fn take(&mut self, skip: usize, belongs: impl Fn(char) -> bool) -> &'a str {
        let body = &self.rest[skip..];
        let len = body.find(|c| !belongs(c)).unwrap_or(body.len());
        self.rest = &body[len..];
        &body[..len]
    }

    fn take_with_first(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let whole = self.rest;
        let first = whole.chars().next().map_or(0, char::len_utf8);
        let len = first + self.take(first, belongs).len();
        &whole[..len]
    }

    fn take_number(&mut self) -> &'a str {
        let whole = self.rest;
        let mut len = self.take(0, |c| c.is_ascii_alphanumeric()).len();
        let mut after = self.rest.chars();
        if after.next() == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit()) {
            len += 1 + self.take(1, |c| c.is_ascii_alphanumeric()).len();
        }
        &whole[..len]
    }

    fn take_string(&mut self) -> Result<&'a str, PtxError> {
        let body = &self.rest[1..];
        let mut escaped = false;
        for (at, c) in body.char_indices() {
            match c {
                '"' if !escaped => {
                    self.rest = &body[at + 1..];
                    return Ok(&body[..at]);
                }
                '\n' => break,
                _ => escaped = c == '\\' && !escaped,
            }
        }
        Err(PtxError {
            line: self.rest_line,
            message: "string without end".into(),
        })
    }
}
