//! Which memory changed since it was last put back, so that a run does not begin with a copy of all there is.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Bytes of a page, counted from the start of the memory that it is a page of.
pub(super) const PAGE: u64 = 4096;

/// A mark for every page of the memory of a held machine. Who writes marks: the runs, one at a time, under the machine's
/// lock. So plain loads and stores would do; they are atomics since runs share them.
#[derive(Debug)]
pub(super) struct Changed {
    marks: Box<[AtomicU64]>,
    all: AtomicBool,
}

impl Changed {
    /// No marks, for so many pages.
    pub(super) fn new(pages: usize) -> Changed {
        Changed {
            marks: (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            all: AtomicBool::new(false),
        }
    }

    /// Marks a page.
    #[inline]
    pub(super) fn mark(&self, page: usize) {
        if let Some(marks) = self.marks.get(page / 64) {
            marks.store(marks.load(Relaxed) | 1 << (page % 64), Relaxed);
        }
    }

    /// Nobody knows what changed.
    pub(super) fn mark_all(&self) {
        self.all.store(true, Relaxed);
    }

    /// Takes all marks away.
    pub(super) fn clear(&self) {
        self.marks.iter().for_each(|marks| marks.store(0, Relaxed));
        self.all.store(false, Relaxed);
    }

    fn is_marked(&self, page: usize) -> bool {
        let marks = self.marks.get(page / 64);
        self.all.load(Relaxed)
            || marks.is_none_or(|marks| marks.load(Relaxed) >> (page % 64) & 1 != 0)
    }

    /// Those of these pages that are marked, as ranges.
    pub(super) fn within(&self, pages: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut next = pages.start;
        std::iter::from_fn(move || {
            let from = (next..pages.end).find(|&page| self.is_marked(page))?;
            let to = (from..pages.end).find(|&page| !self.is_marked(page));
            next = to.unwrap_or(pages.end);
            Some(from..next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_pages_come_as_ranges_until_they_are_cleared() {
        let changed = Changed::new(200);
        let within = |pages| {
            let found = changed.within(pages);
            found.map(|of| (of.start, of.end)).collect::<Vec<_>>()
        };
        assert_eq!(within(0..200), []);
        for page in [3, 62, 63, 64, 65, 199] {
            changed.mark(page);
        }
        assert_eq!(within(0..200), [(3, 4), (62, 66), (199, 200)]);
        assert_eq!(within(63..65), [(63, 65)]);
        assert_eq!(within(4..62), []);
        changed.mark_all();
        assert_eq!(within(5..70), [(5, 70)]);
        changed.clear();
        assert_eq!(within(0..200), []);
    }
}
