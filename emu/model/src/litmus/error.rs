//! What is wrong with a litmus file, and where.

use std::fmt;

/// Whether a file is wrong or only beyond what is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text does not follow the format.
    Wrong,
    /// The text asks for something that the model does not have.
    Unsupported,
}

/// Why a litmus file cannot be explored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Of which kind.
    pub kind: ErrorKind,
    /// The line, from 1.
    pub line: u32,
    /// The column, in characters from 1.
    pub column: u32,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for Error {}
