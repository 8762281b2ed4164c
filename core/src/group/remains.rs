//! What failed creations have left on a rank of a group.

use std::any::Any;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::wire::{Reader, Writer};

/// Counts what is left, so that no creation begins before it is given back.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    count: AtomicUsize,
    /// The pool of which only all ranks together can give back what is left; 0 for none.
    together: AtomicU64,
    /// Pools of this rank by number. A creation that succeeded here may have failed on another rank.
    made: Mutex<Vec<(u64, Weak<Made>)>>,
}

/// A pool, of which this module knows nothing.
pub(crate) type Made = dyn Any + Send + Sync;

impl Remains {
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Something more is left, of this pool where all ranks are needed.
    pub(crate) fn add(&self, together: Option<u64>) {
        self.count.fetch_add(1, Ordering::AcqRel);
        if let Some(pool) = together {
            self.together.store(pool, Ordering::Release);
        }
    }

    /// One of those is gone.
    pub(crate) fn settle(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.together.store(0, Ordering::Release);
        }
    }

    /// What is left of this pool no longer needs all ranks.
    pub(crate) fn loosen(&self, pool: u64) {
        let at = Ordering::AcqRel;
        let _ = self
            .together
            .compare_exchange(pool, 0, at, Ordering::Acquire);
    }

    /// A creation has succeeded.
    pub(crate) fn made(&self, pool: u64, made: Weak<Made>) {
        let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, other)| other.strong_count() > 0);
        all.push((pool, made));
    }

    /// The pool of this number, if it still lives here.
    pub(crate) fn living(&self, pool: u64) -> Option<Arc<Made>> {
        let all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|&&(number, _)| number == pool)?;
        found.1.upgrade()
    }

    /// What the others are told.
    pub(crate) fn write(&self) -> Vec<u8> {
        let together = self.together.load(Ordering::Acquire);
        Writer::new()
            .word(self.count() as u64)
            .word(together)
            .finish()
    }
}

/// Reads what [`Remains::write`] gave: how many, and the pool that needs all ranks.
pub(crate) fn read_remains(message: &[u8]) -> Option<(u64, Option<u64>)> {
    let mut reader = Reader::new(message);
    let (count, together) = (reader.word()?, reader.word()?);
    reader.end((count, (together != 0).then_some(together)))
}

#[cfg(test)]
mod tests {
    use super::super::envelope::FORM;
    use super::*;

    /// Where these bytes change, `FORM` has to be raised, and they be put here.
    #[test]
    fn remains_of_this_form_are_to_the_byte_what_they_were() {
        let remains = Remains::default();
        remains.add(None);
        remains.add(Some(0x1_2345_6789));
        let wanted = [
            [2, 0, 0, 0, 0, 0, 0, 0],
            [0x89, 0x67, 0x45, 0x23, 1, 0, 0, 0],
        ];
        let message = remains.write();
        assert_eq!((FORM, &message[..]), (1, &wanted.concat()[..]));
        assert_eq!(read_remains(&message), Some((2, Some(0x1_2345_6789))));
        assert_eq!(read_remains(&message[..15]), None);
        let nothing = Remains::default().write();
        assert_eq!(nothing, [0; 16]);
        assert_eq!(read_remains(&nothing), Some((0, None)));
    }
}
