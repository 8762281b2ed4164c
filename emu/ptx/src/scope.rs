//! What names mean inside a body: braces nest, inner names hide outer ones.

use crate::{Register, RegisterId, Symbol, Type};
use std::collections::HashMap;

/// The names of one pair of braces.
#[derive(Debug, Default)]
struct Scope<'a> {
    registers: HashMap<&'a str, Type>,
    ranges: Vec<(&'a str, u32, Type)>,
    used: HashMap<String, RegisterId>,
    symbols: HashMap<&'a str, Symbol>,
    labels: HashMap<&'a str, u32>,
    parent: Option<usize>,
}

/// All scopes of a body, and which one is open.
#[derive(Debug)]
pub(crate) struct Scopes<'a> {
    scopes: Vec<Scope<'a>>,
    open: usize,
    /// Registers in use, over all scopes.
    pub(crate) registers: Vec<Register>,
}

impl<'a> Scopes<'a> {
    pub(crate) fn new() -> Self {
        Self {
            scopes: vec![Scope::default()],
            open: 0,
            registers: Vec::new(),
        }
    }

    /// The open scope, to resolve a label in later.
    pub(crate) fn current(&self) -> usize {
        self.open
    }

    /// Opens a scope (`{`).
    pub(crate) fn enter(&mut self) {
        self.scopes.push(Scope {
            parent: Some(self.open),
            ..Scope::default()
        });
        self.open = self.scopes.len() - 1;
    }

    /// Closes the open scope (`}`); false when it is the body itself.
    pub(crate) fn leave(&mut self) -> bool {
        match self.scopes[self.open].parent {
            Some(parent) => {
                self.open = parent;
                true
            }
            None => false,
        }
    }

    /// Declares one register.
    pub(crate) fn declare(&mut self, name: &'a str, ty: Type) {
        self.scopes[self.open].registers.insert(name, ty);
    }

    /// Declares registers `prefix0` to `prefix(count-1)`.
    pub(crate) fn declare_range(&mut self, prefix: &'a str, count: u32, ty: Type) {
        self.scopes[self.open].ranges.push((prefix, count, ty));
    }

    /// Declares a variable.
    pub(crate) fn declare_symbol(&mut self, name: &'a str, symbol: Symbol) {
        self.scopes[self.open].symbols.insert(name, symbol);
    }

    /// Places a label; false when the scope has one of this name.
    pub(crate) fn place_label(&mut self, name: &'a str, at: u32) -> bool {
        self.scopes[self.open].labels.insert(name, at).is_none()
    }

    /// Where a label is, seen from a scope.
    pub(crate) fn label(&self, from: usize, name: &str) -> Option<u32> {
        self.outwards(from)
            .find_map(|at| self.scopes[at].labels.get(name).copied())
    }

    /// The variable of this name, seen from the open scope.
    pub(crate) fn symbol(&self, name: &str) -> Option<Symbol> {
        self.outwards(self.open)
            .find_map(|at| self.scopes[at].symbols.get(name).copied())
    }

    /// The register of this name, seen from the open scope.
    pub(crate) fn register(&mut self, name: &str) -> Option<RegisterId> {
        let (at, ty) = self
            .outwards(self.open)
            .find_map(|at| Some((at, self.scopes[at].declared(name)?)))?;
        if let Some(&id) = self.scopes[at].used.get(name) {
            return Some(id);
        }
        let id = RegisterId(self.registers.len() as u32);
        self.registers.push(Register {
            name: name.to_owned(),
            ty,
        });
        self.scopes[at].used.insert(name.to_owned(), id);
        Some(id)
    }

    fn outwards(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(from), |&at| self.scopes[at].parent)
    }
}

impl Scope<'_> {
    fn declared(&self, name: &str) -> Option<Type> {
        if let Some(&ty) = self.registers.get(name) {
            return Some(ty);
        }
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        // A prefix may itself end in digits, so every split is tried.
        (digits..name.len()).find_map(|split| {
            let (prefix, number) = name.split_at(split);
            let number: u32 = number.parse().ok()?;
            let range = self
                .ranges
                .iter()
                .find(|range| range.0 == prefix && number < range.1)?;
            Some(range.2)
        })
    }
}
