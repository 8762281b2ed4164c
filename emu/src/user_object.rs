//! User objects: things of the caller's that live as long as anything refers to them.

use std::collections::BTreeMap;

use crate::callback::Callback;
use crate::code::{Code, Status};
use crate::handle::{Kind, Table};

struct UserObject {
    references: u32,
    destroy: Callback,
}

/// All user objects of a machine.
pub(crate) struct UserObjects(Table<UserObject>);

impl UserObjects {
    /// None.
    pub(crate) fn new(slot: usize) -> UserObjects {
        UserObjects(Table::new(Kind::UserObject, slot))
    }

    /// How many live.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// `cuUserObjectCreate` with the caller's first references.
    pub(crate) fn create(&mut self, destroy: Callback, references: u32) -> Status<u64> {
        if references == 0 || references > i32::MAX as u32 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(self.0.insert(UserObject {
            references,
            destroy,
        }))
    }

    /// More references.
    pub(crate) fn retain(&mut self, object: u64, count: u32) -> Status {
        if count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let object = self.0.get_mut(object)?;
        object.references = object
            .references
            .checked_add(count)
            .ok_or(Code::INVALID_VALUE)?;
        Ok(())
    }

    /// Whether the caller can give that many references away.
    pub(crate) fn owned(&self, object: u64, count: u32) -> Status {
        let references = self.0.get(object)?.references;
        if (1..=references).contains(&count) {
            Ok(())
        } else {
            Err(Code::INVALID_VALUE)
        }
    }

    /// Fewer references; gives the destructor when these were the last.
    pub(crate) fn release(&mut self, object: u64, count: u32) -> Status<Option<Callback>> {
        let found = self.0.get_mut(object)?;
        if count == 0 || count > found.references {
            return Err(Code::INVALID_VALUE);
        }
        found.references -= count;
        if found.references > 0 {
            return Ok(None);
        }
        Ok(Some(self.0.remove(object)?.destroy))
    }

    /// Another holder of the same references.
    pub(crate) fn retain_all(&mut self, held: &BTreeMap<u64, u32>) {
        for (&object, &count) in held {
            if let Err(code) = self.retain(object, count) {
                log::warn!("emulator: retaining user object {object:#x} failed with {code:?}");
            }
        }
    }

    /// A holder goes; gives the destructors that are due.
    pub(crate) fn release_all(&mut self, held: &BTreeMap<u64, u32>) -> Vec<Callback> {
        held.iter()
            .filter_map(|(&object, &count)| self.release(object, count).ok().flatten())
            .collect()
    }
}
