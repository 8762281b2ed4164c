//! A text that is being edited.

use std::collections::BTreeMap;
use std::fmt;

use slabfence_emu_ptx::{Operand, RegisterId};

use crate::entry::{Entry, Family};
use crate::flow::Flow;

/// Why an edit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditError {
    /// What is not as expected.
    pub message: String,
}

impl EditError {
    pub(crate) fn new(message: impl Into<String>) -> EditError {
        EditError {
            message: message.into(),
        }
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EditError {}

pub(crate) type Result<T> = core::result::Result<T, EditError>;

/// What becomes of one line.
#[derive(Debug, Default)]
struct Change {
    before: Vec<String>,
    line: Option<String>,
    after: Vec<String>,
}

/// An entry, what is known of it, and the changes so far. Each line holds one instruction at most.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) flow: Flow,
    pub(crate) family: Family,
    lines: Vec<&'a str>,
    changes: BTreeMap<usize, Change>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(entry: &'a Entry) -> Result<Draft<'a>> {
        let module = slabfence_emu_ptx::parse(&entry.text)
            .map_err(|error| EditError::new(error.to_string()))?;
        let parsed = module
            .entries
            .into_iter()
            .find(|parsed| parsed.name == entry.name);
        let parsed = parsed.ok_or_else(|| EditError::new(format!("no entry `{}`", entry.name)))?;
        let lines = parsed.body.iter().map(|inst| inst.line);
        if let Some((line, _)) = lines
            .clone()
            .zip(lines.skip(1))
            .find(|(one, next)| one >= next)
        {
            return Err(EditError::new(format!(
                "line {line} holds several instructions"
            )));
        }
        Ok(Draft {
            flow: Flow::new(parsed, entry.family),
            family: entry.family,
            lines: entry.text.lines().collect(),
            changes: BTreeMap::new(),
        })
    }

    /// The text with all changes.
    pub(crate) fn finish(self) -> String {
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            let change = self.changes.get(&index);
            let (before, after) =
                change.map_or((&[][..], &[][..]), |change| (&change.before, &change.after));
            let own = change
                .and_then(|change| change.line.as_deref())
                .unwrap_or(line);
            for line in before
                .iter()
                .map(String::as_str)
                .chain([own])
                .chain(after.iter().map(String::as_str))
            {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }

    fn change(&mut self, at: usize) -> &mut Change {
        let index = self.flow.at(at).line as usize - 1;
        self.changes.entry(index).or_default()
    }

    /// The text of an instruction, its guard included.
    pub(crate) fn text(&self, at: usize) -> &'a str {
        self.lines[self.flow.at(at).line as usize - 1].trim()
    }

    /// Replaces an instruction.
    pub(crate) fn rewrite(&mut self, at: usize, text: impl Into<String>) {
        self.change(at).line = Some(text.into());
    }

    /// Takes an instruction out.
    pub(crate) fn remove(&mut self, at: usize) {
        self.rewrite(at, "");
    }

    /// Replaces a part of an instruction that must occur once.
    pub(crate) fn replace(&mut self, at: usize, from: &str, to: &str) -> Result<()> {
        let text = self.text(at);
        if text.matches(from).count() != 1 {
            return Err(EditError::new(format!("`{text}` has no single `{from}`")));
        }
        self.rewrite(at, text.replace(from, to));
        Ok(())
    }

    /// Replaces a part of several instructions; gives their number.
    pub(crate) fn replace_all(&mut self, at: &[usize], from: &str, to: &str) -> Result<usize> {
        at.iter().try_for_each(|&at| self.replace(at, from, to))?;
        Ok(at.len())
    }

    pub(crate) fn insert_before(&mut self, at: usize, text: String) {
        self.change(at).before.push(text);
    }

    pub(crate) fn insert_after(&mut self, at: usize, text: String) {
        self.change(at).after.insert(0, text);
    }

    /// A line at the start of the body, before any instruction.
    pub(crate) fn declare(&mut self, text: String) {
        self.change(0).before.insert(0, text);
    }

    pub(crate) fn name(&self, register: RegisterId) -> &str {
        &self.flow.entry.registers[register.0 as usize].name
    }

    /// The name of the register that is an operand of an instruction.
    pub(crate) fn operand(&self, at: usize, index: usize) -> Result<&str> {
        match self.flow.at(at).operands.get(index) {
            Some(Operand::Register(register)) => Ok(self.name(*register)),
            _ => Err(EditError::new(format!(
                "`{}`: operand {index} is no register",
                self.text(at)
            ))),
        }
    }

    /// The name of the entry's one parameter.
    pub(crate) fn block(&self) -> Result<&str> {
        match self.flow.entry.params.as_slice() {
            [param] => Ok(&param.name),
            params => Err(EditError::new(format!("{} parameters", params.len()))),
        }
    }
}

/// The one position of a list.
pub(crate) fn only(found: &[usize], what: &str) -> Result<usize> {
    match found {
        &[at] => Ok(at),
        _ => Err(EditError::new(format!(
            "{what}: {} places, not one",
            found.len()
        ))),
    }
}
