//! One granule of memory: who wrote it last, who read it since, and what an access to it meets with.

use crate::{
    clock::{ALL, Clock},
    readers::{Reader, Readers},
    registry::Stamp,
    sweep::Marks,
};

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    write: Stamp,
    pub(crate) initialised: bool,
    /// Those who read what was written last. Among them are earlier accesses that race with more than it does: a weak one,
    /// say, that the same thread's strong write followed.
    readers: Readers,
}

/// Somebody who accesses.
#[derive(Clone, Copy)]
pub(crate) struct Visitor<'a> {
    pub(crate) stamp: Stamp,
    knows: &'a Clock,
    /// Whether what the same lane did counts as known.
    own: bool,
}

/// Which part of a write is done. Lanes that store to one word by one execution of an instruction all look before any of
/// them leaves its mark: none of them comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Both: the lane has the word for itself.
    Whole,
    /// Asking what it meets with.
    Look,
    /// Leaving its mark.
    Mark,
}

/// What an access met with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// Bytes that nobody has written.
    Nothing,
    /// An access that is not ordered before this one.
    Unordered(Stamp),
    /// A load outside the model, and whether it is ordered before this write. Of the same grid, it must not be.
    Uncached(Stamp, bool),
}

impl<'a> Visitor<'a> {
    pub(crate) fn new(stamp: Stamp, knows: &'a Clock) -> Self {
        Self {
            stamp,
            knows,
            own: true,
        }
    }

    /// A load outside the model: only what happened before its grid began is ordered before it.
    pub(crate) fn outside_the_model(stamp: Stamp, begin: &'a Clock) -> Self {
        Self {
            stamp,
            knows: begin,
            own: false,
        }
    }

    /// Whether an earlier access happened before: that of all its lanes before that of all of these.
    #[inline]
    pub(crate) fn after(&self, earlier: Stamp) -> bool {
        earlier.is_none()
            || self.own && earlier.lane() == self.stamp.lane() && earlier.lane().lane != ALL
            || self.knows.covers(earlier.lane(), earlier.time)
            || earlier.lane().lane == ALL && self.is_after_its_warp(earlier)
    }

    /// A lane comes after what it did itself with the others of its warp, if it knows of theirs.
    #[cold]
    fn is_after_its_warp(&self, earlier: Stamp) -> bool {
        self.known(&Reader::of(earlier)) == u32::MAX
    }

    /// The lanes of an earlier access that happened before.
    #[inline]
    pub(crate) fn known(&self, earlier: &Reader) -> u32 {
        let own = match self.stamp.lane().lane {
            ALL => 0,
            _ => self.own_lanes(earlier.stamp()),
        };
        own | self.others(earlier)
    }

    /// The lanes of an earlier access after which one of these lanes comes: it stands for theirs.
    #[inline]
    pub(crate) fn replaces(&self, earlier: &Reader) -> u32 {
        self.own_lanes(earlier.stamp()) | self.others(earlier)
    }

    #[inline]
    fn others(&self, earlier: &Reader) -> u32 {
        let stamp = earlier.stamp();
        self.knows
            .known(stamp.lane().slot, earlier.lanes(), stamp.time)
    }

    #[inline]
    fn own_lanes(&self, earlier: Stamp) -> u32 {
        match self.own && earlier.lane().slot == self.stamp.lane().slot {
            true => self.stamp.lanes(),
            false => 0,
        }
    }

    /// Whether whoever comes after this access comes after all of an earlier one too.
    pub(crate) fn comes_with(&self, earlier: Stamp) -> bool {
        earlier.lanes() & !self.replaces(&Reader::of(earlier)) == 0
    }
}

impl Cell {
    pub(crate) fn new(initialised: bool) -> Self {
        Self {
            write: Stamp::NONE,
            initialised,
            readers: Readers::default(),
        }
    }

    /// Whether every access to it meets with what it would meet with there.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        (self.write, self.initialised) == (other.write, other.initialised)
            && self.readers == other.readers
    }

    /// Marks whom it remembers.
    pub(crate) fn mark(&self, marks: &mut Marks) {
        marks.stamp(self.write);
        self.readers.mark(marks);
    }

    /// Gives whether a reader was forgotten.
    #[inline]
    pub(crate) fn read(&mut self, by: &Visitor<'_>, met: &mut impl FnMut(Met)) -> bool {
        if !by.after(self.write) {
            met(Met::Unordered(self.write));
        }
        if !self.initialised {
            met(Met::Nothing);
        }
        self.readers.read(by, met)
    }

    /// Gives whether a reader was forgotten.
    #[inline]
    pub(crate) fn write(
        &mut self,
        part: Part,
        by: &Visitor<'_>,
        met: &mut impl FnMut(Met),
    ) -> bool {
        if part != Part::Mark {
            if !by.after(self.write) {
                met(Met::Unordered(self.write));
            }
            self.readers.written(by, met);
        }
        if part == Part::Look {
            return false;
        }
        if part == Part::Mark && self.write.of_all() == by.stamp.of_all() {
            let forgotten = self.readers.beside(self.write);
            self.write = by.stamp;
            return forgotten;
        }
        let (readers, forgotten) = self.readers.outlived(self.write, by);
        *self = Self {
            write: by.stamp,
            initialised: true,
            readers,
        };
        forgotten
    }
}
