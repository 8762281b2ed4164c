//! Handles: opaque numbers that name the machine's objects.
//!
//! A handle holds the machine's slot and the kind of its object, so one of another machine or another kind is refused.

use std::collections::BTreeMap;

use crate::code::{Code, Status};

/// What a handle names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Context = 1,
    Stream,
    Event,
    Module,
    Function,
    Graph,
    Node,
    Exec,
    UserObject,
    Pool,
}

/// The handle of object `number` of a kind. Never null, and far from any address.
pub(crate) fn handle(kind: Kind, slot: usize, number: u64) -> u64 {
    (0xe000 | slot as u64) << 48 | (kind as u64) << 40 | number << 4
}

/// The number in a handle of this kind and slot.
pub(crate) fn number(kind: Kind, slot: usize, value: u64) -> Option<u64> {
    let number = (value & 0xff_ffff_ffff) >> 4;
    (value == handle(kind, slot, number)).then_some(number)
}

/// Objects of one kind by handle. Handles are never reused.
#[derive(Clone)]
pub(crate) struct Table<T> {
    kind: Kind,
    slot: usize,
    next: u64,
    items: BTreeMap<u64, T>,
}

impl<T> Table<T> {
    /// An empty table.
    pub(crate) fn new(kind: Kind, slot: usize) -> Table<T> {
        Table {
            kind,
            slot,
            next: 0,
            items: BTreeMap::new(),
        }
    }

    /// Adds an object and gives its handle.
    pub(crate) fn insert(&mut self, item: T) -> u64 {
        self.next += 1;
        let value = handle(self.kind, self.slot, self.next);
        self.items.insert(value, item);
        value
    }

    /// The object, or `INVALID_HANDLE`.
    pub(crate) fn get(&self, value: u64) -> Status<&T> {
        self.items.get(&value).ok_or(Code::INVALID_HANDLE)
    }

    /// The object, or `INVALID_HANDLE`.
    pub(crate) fn get_mut(&mut self, value: u64) -> Status<&mut T> {
        self.items.get_mut(&value).ok_or(Code::INVALID_HANDLE)
    }

    /// Takes the object out.
    pub(crate) fn remove(&mut self, value: u64) -> Status<T> {
        self.items.remove(&value).ok_or(Code::INVALID_HANDLE)
    }

    /// All objects with their handles.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.items.iter().map(|(&value, item)| (value, item))
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}
