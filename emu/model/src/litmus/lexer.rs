//! Text to tokens, each with its place.

use super::error::{Error, ErrorKind};

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or an instruction with its modifiers.
    Word(&'a str),
    /// A number.
    Number(i64),
    /// The inside of a string.
    Text,
    /// Punctuation.
    Sign(&'a str),
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// The token as a message quotes it.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Word(text) | Self::Sign(text) => format!("`{text}`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Text => "a string".into(),
            Self::End => "the end of the file".into(),
        }
    }
}

/// Where a token begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    pub(super) fn error(self, what: impl Into<String>) -> Error {
        self.of_kind(ErrorKind::Wrong, what)
    }

    pub(super) fn unsupported(self, what: impl Into<String>) -> Error {
        self.of_kind(ErrorKind::Unsupported, what)
    }

    fn of_kind(self, kind: ErrorKind, what: impl Into<String>) -> Error {
        Error {
            kind,
            line: self.line,
            column: self.column,
            what: what.into(),
        }
    }
}

/// Longer signs before their beginnings.
const SIGNS: [&str; 19] = [
    "/\\", "\\/", "==", "!=", "<=", ">=", "=", "<", ">", "~", "(", ")", "{", "}", ";", "|", ":",
    ",", "@",
];

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// The tokens of a text, with one token of lookahead.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    here: Place,
    next: Token<'a>,
    next_at: Place,
}

impl<'a> Lexer<'a> {
    /// Reads the first line, `PTX` and the test's name, and begins with what follows.
    pub(super) fn new(text: &'a str) -> Result<(&'a str, Self), Error> {
        let start = Place { line: 1, column: 1 };
        let (first, _) = text.split_once('\n').unwrap_or((text, ""));
        let name = first
            .trim()
            .strip_prefix("PTX")
            .filter(|name| name.starts_with(char::is_whitespace));
        let name =
            name.ok_or_else(|| start.error("the first line must be `PTX` and the test's name"))?;
        let mut lexer = Self {
            rest: &text[first.len()..],
            here: Place {
                line: 1,
                column: first.chars().count() as u32 + 1,
            },
            next: Token::End,
            next_at: start,
        };
        lexer.advance()?;
        Ok((name.trim(), lexer))
    }

    /// The next token, which stays.
    pub(super) fn peek(&self) -> Token<'a> {
        self.next
    }

    /// Where the next token begins.
    pub(super) fn place(&self) -> Place {
        self.next_at
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Result<Token<'a>, Error> {
        let token = self.next;
        self.advance()?;
        Ok(token)
    }

    /// Takes the next token if it is this sign.
    pub(super) fn eat(&mut self, sign: &str) -> Result<bool, Error> {
        let found = self.next == Token::Sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Takes the next token if it is this word.
    pub(super) fn eat_word(&mut self, word: &str) -> Result<bool, Error> {
        let found = self.next == Token::Word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Takes this sign, or refuses.
    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Error> {
        if self.eat(sign)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{sign}`")))
    }

    /// Takes a word, or refuses, saying what was wanted.
    pub(super) fn word(&mut self, wanted: &str) -> Result<&'a str, Error> {
        match self.next {
            Token::Word(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// Takes a number, or refuses, saying what was wanted.
    pub(super) fn number(&mut self, wanted: &str) -> Result<i64, Error> {
        match self.next {
            Token::Number(number) => {
                self.advance()?;
                Ok(number)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// That something else was wanted than the next token.
    pub(super) fn unexpected(&self, wanted: &str) -> Error {
        self.next_at
            .error(format!("expected {wanted}, found {}", self.next.describe()))
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        for c in taken.chars() {
            match c {
                '\n' => {
                    self.here.line += 1;
                    self.here.column = 1;
                }
                _ => self.here.column += 1,
            }
        }
        self.rest = rest;
        taken
    }

    fn skip(&mut self, end: &str, what: &str) -> Result<(), Error> {
        let start = self.here;
        match self.rest.find(end) {
            Some(at) => {
                self.take(at + end.len());
                Ok(())
            }
            None => Err(start.error(format!("{what} does not end"))),
        }
    }

    fn skip_blanks(&mut self) -> Result<(), Error> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.take(blanks);
            if self.rest.starts_with("//") {
                let line = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(line);
            } else if self.rest.starts_with("(*") {
                self.skip("*)", "a comment")?;
            } else {
                return Ok(());
            }
        }
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.skip_blanks()?;
        let at = self.here;
        self.next_at = at;
        let Some(first) = self.rest.chars().next() else {
            self.next = Token::End;
            return Ok(());
        };
        if first == '"' {
            self.take(1);
            self.skip("\"", "a string")?;
            self.next = Token::Text;
            return Ok(());
        }
        if let Some(sign) = SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
            self.take(sign.len());
            self.next = Token::Sign(sign);
            return Ok(());
        }
        let minus = usize::from(first == '-');
        let end = self.rest[minus..].find(|c| !is_name(c));
        let length = minus + end.unwrap_or(self.rest.len() - minus);
        if length == minus {
            return Err(at.error(format!("unexpected {first:?}")));
        }
        let word = self.take(length);
        self.next = if word[minus..].starts_with(|c: char| c.is_ascii_digit()) {
            let number = word
                .parse()
                .map_err(|_| at.error(format!("`{word}` is not a number of 64 bits")))?;
            Token::Number(number)
        } else if minus == 0 {
            Token::Word(word)
        } else {
            return Err(at.error(format!("`{word}` is not a number")));
        };
        Ok(())
    }
}
