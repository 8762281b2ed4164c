//! One granule of memory: who wrote it last, who read it since, and what an access to it meets with.

use crate::{clock::Clock, registry::Stamp};

/// Unordered readers of a word that are remembered. Later ones take the place of the oldest.
const READERS: usize = 256;

#[derive(Clone, Debug, Default, PartialEq)]
enum Readers {
    #[default]
    None,
    One(Stamp),
    #[allow(
        clippy::box_collection,
        reason = "most cells have one reader: one pointer keeps all of them small"
    )]
    Many(Box<Vec<Stamp>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    write: Stamp,
    pub(crate) initialised: bool,
    /// Those who read what was written last. Among them are earlier writes that race with more than it does: a weak one,
    /// say, that the same thread's strong one followed.
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

impl Readers {
    #[inline]
    fn all(&self) -> &[Stamp] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(all) => all,
        }
    }
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

    /// Whether an earlier access happened before.
    #[inline]
    pub(crate) fn after(&self, earlier: Stamp) -> bool {
        earlier.is_none()
            || self.own && earlier.lane() == self.stamp.lane()
            || self.knows.covers(earlier.lane(), earlier.time)
    }
}

impl Cell {
    pub(crate) fn new(initialised: bool) -> Self {
        Self {
            write: Stamp::NONE,
            initialised,
            readers: Readers::None,
        }
    }

    /// Whether every access to it meets with what it would meet with there.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        (self.write, self.initialised) == (other.write, other.initialised)
            && self.readers == other.readers
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
        // Who polls was here before, and has learnt nothing since.
        let mut before = None;
        for (at, &old) in self.readers.all().iter().enumerate() {
            if old == by.stamp {
                before = Some(at);
            } else if old.how().is_write() && !by.after(old) {
                met(Met::Unordered(old));
            }
        }
        // A read stays beside a later one of the same thread if a store may race with it alone.
        let covers = |old: Stamp| !old.how().is_write() && by.stamp.how().covers(old.how());
        let replaced = |old: Stamp| by.after(old) && covers(old);
        match &mut self.readers {
            Readers::None => self.readers = Readers::One(by.stamp),
            Readers::One(old) if replaced(*old) => *old = by.stamp,
            Readers::One(old) => {
                self.readers = Readers::Many(Box::new(vec![*old, by.stamp]));
            }
            Readers::Many(all) => {
                if let Some(at) = before {
                    // Only the order of those who came changes.
                    all[at..].rotate_left(1);
                    return false;
                }
                let last = all.last().map(|last| (last.lane().slot, last.time));
                if last == Some((by.stamp.lane().slot, by.stamp.time)) {
                    // Another lane of the same instruction has asked about all others: what this one knows besides can wait.
                    all.retain(|old| old.lane() != by.stamp.lane() || !covers(*old));
                } else {
                    all.retain(|old| !replaced(*old));
                }
                let full = all.len() == READERS;
                if full {
                    all.remove(0);
                }
                all.push(by.stamp);
                if let [one] = all[..] {
                    self.readers = Readers::One(one);
                }
                return full;
            }
        }
        false
    }

    #[inline]
    pub(crate) fn write(&mut self, by: &Visitor<'_>, met: &mut impl FnMut(Met)) {
        if !by.after(self.write) {
            met(Met::Unordered(self.write));
        }
        let mut reader = |old: Stamp| {
            if old.how().is_nc() {
                met(Met::Uncached(old, by.after(old)));
            } else if !by.after(old) {
                met(Met::Unordered(old));
            }
        };
        self.readers.all().iter().for_each(|old| reader(*old));
        *self = Self {
            write: by.stamp,
            initialised: true,
            readers: self.outlived(by),
        };
    }

    /// The earlier writes that a write does not stand for.
    #[inline]
    fn outlived(&self, by: &Visitor<'_>) -> Readers {
        let how = by.stamp.how();
        if !how.is_strong() {
            return Readers::None;
        }
        let before = self.readers.all().iter().copied().chain([self.write]);
        let stays = |old: &Stamp| old.how().is_write() && by.after(*old) && !how.covers(old.how());
        let mut stay: Vec<Stamp> = Vec::new();
        for old in before.filter(stays) {
            // Of a thread's equal writes the last stands for all.
            stay.retain(|other| (other.lane(), other.how()) != (old.lane(), old.how()));
            stay.push(old);
        }
        match stay[..] {
            [] => Readers::None,
            [one] => Readers::One(one),
            _ => {
                stay.drain(..stay.len().saturating_sub(READERS));
                Readers::Many(Box::new(stay))
            }
        }
    }
}
