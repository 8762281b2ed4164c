//! Those who read a word since it was last written, and earlier accesses that race with more than the last write does.

use crate::{
    cell::{Met, Visitor},
    registry::Stamp,
    sweep::Marks,
};

/// Unordered readers of a word that are remembered: lanes that read by one execution of an instruction are one. Later
/// ones take the place of the oldest.
const READERS: usize = 256;

/// Lanes of a warp that made one access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reader {
    /// The access, as if of all lanes.
    stamp: Stamp,
    lanes: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Readers {
    #[default]
    None,
    One(Stamp),
    #[allow(
        clippy::box_collection,
        reason = "most cells have one reader: one pointer keeps all of them small"
    )]
    Many(Box<Vec<Reader>>),
}

impl Reader {
    pub(crate) fn of(stamp: Stamp) -> Self {
        Self {
            stamp: stamp.of_all(),
            lanes: stamp.lanes(),
        }
    }

    /// The access; its lane says nothing.
    #[inline]
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    #[inline]
    pub(crate) fn lanes(&self) -> u32 {
        self.lanes
    }

    /// The one access that it is, of a lane or of all.
    #[inline]
    fn alone(&self) -> Option<Stamp> {
        match self.lanes.count_ones() {
            1 => Some(self.stamp.of_lane(self.lanes.trailing_zeros() as u8)),
            32 => Some(self.stamp),
            _ => None,
        }
    }

    /// The accesses of these lanes of it: one for all if all 32 are meant.
    #[inline]
    fn each(&self, lanes: u32, mut told: impl FnMut(Stamp)) {
        match lanes {
            0 => {}
            u32::MAX => told(self.stamp),
            _ => {
                let some = (0..32).filter(|lane| lanes >> lane & 1 != 0);
                some.for_each(|lane| told(self.stamp.of_lane(lane)));
            }
        }
    }

    /// Tells of those that are not ordered before an access.
    #[inline]
    fn unordered(&self, by: &Visitor<'_>, met: &mut impl FnMut(Met)) {
        self.each(self.lanes & !by.known(self), |old| met(Met::Unordered(old)));
    }

    /// Leaves out lanes whose access a read stands for; whether any is left.
    #[inline]
    fn outlasts(&mut self, lanes: u32, by: &Visitor<'_>) -> bool {
        if stands_for(by, self.stamp) {
            self.lanes &= !lanes;
        }
        self.lanes != 0
    }
}

/// Whether a read made like this stands for an earlier access of its thread: not for a write, nor if a store may race with
/// the earlier one alone.
#[inline]
fn stands_for(by: &Visitor<'_>, old: Stamp) -> bool {
    !old.how().is_write() && by.stamp.how().covers(old.how())
}

impl Readers {
    /// Takes a reader in, and tells of the earlier writes among the others that are not ordered before it. Gives whether one
    /// was forgotten.
    #[inline]
    pub(crate) fn read(&mut self, by: &Visitor<'_>, met: &mut impl FnMut(Met)) -> bool {
        match self {
            Self::None => *self = Self::One(by.stamp),
            // Who polls was here before, and has learnt nothing since.
            Self::One(old) if *old == by.stamp => {}
            Self::One(old) => {
                let mut before = Reader::of(*old);
                if old.how().is_write() {
                    before.unordered(by, met);
                }
                if before.outlasts(by.replaces(&before), by) {
                    let mut all = vec![before];
                    join(&mut all, by);
                    *self = Self::Many(Box::new(all));
                } else {
                    *old = by.stamp;
                }
            }
            Self::Many(all) => {
                for old in all.iter().filter(|old| old.stamp.how().is_write()) {
                    old.unordered(by, met);
                }
                let full = join(all, by);
                if let [one] = all[..]
                    && let Some(alone) = one.alone()
                {
                    *self = Self::One(alone);
                }
                return full;
            }
        }
        false
    }

    /// Tells of those that are not ordered before a write, and of those that read outside the model.
    #[inline]
    pub(crate) fn written(&self, by: &Visitor<'_>, met: &mut impl FnMut(Met)) {
        self.all(|old| match old.stamp.how().is_nc() {
            true => {
                let known = by.known(&old);
                old.each(old.lanes & !known, |old| met(Met::Uncached(old, false)));
                old.each(old.lanes & known, |old| met(Met::Uncached(old, true)));
            }
            false => old.unordered(by, met),
        });
    }

    #[inline]
    fn all(&self, mut told: impl FnMut(Reader)) {
        match self {
            Self::None => {}
            Self::One(one) => told(Reader::of(*one)),
            Self::Many(all) => all.iter().copied().for_each(told),
        }
    }

    /// What is remembered beside a write: those of the earlier accesses, the last write among them, that are ordered before
    /// it and that it does not stand for. Of writes that is at most one for each scope and size, since it stands for those
    /// that were made like it. And whether a reader was forgotten.
    #[inline]
    pub(crate) fn outlived(&self, last: Stamp, by: &Visitor<'_>) -> (Self, bool) {
        let how = by.stamp.how();
        if !how.is_strong() {
            return (Self::None, false);
        }
        let (mut stay, mut full) = (Self::None, false);
        let mut keep = |old: Reader| {
            let made = old.stamp.how();
            if made.is_nc() || how.covers(made) {
                return;
            }
            let lanes = old.lanes & by.known(&old);
            if lanes != 0 {
                full |= stay.push(Reader { lanes, ..old });
            }
        };
        self.all(&mut keep);
        if !last.is_none() {
            keep(Reader::of(last));
        }
        (stay, full)
    }

    /// Takes a write in that another lane made by the same execution of an instruction as the last one. Gives whether an
    /// access was forgotten.
    #[cold]
    pub(crate) fn beside(&mut self, write: Stamp) -> bool {
        let access = Reader::of(write);
        if let Self::One(one) = self
            && one.of_all() == access.stamp
        {
            let lanes = one.lanes() | access.lanes;
            *self = Self::Many(Box::new(vec![Reader { lanes, ..access }]));
            return false;
        }
        if let Self::Many(all) = self
            && let Some(same) = all.iter_mut().find(|old| old.stamp == access.stamp)
        {
            same.lanes |= access.lanes;
            return false;
        }
        self.push(access)
    }

    /// Marks all of them as remembered.
    pub(crate) fn mark(&self, marks: &mut Marks) {
        self.all(|reader| marks.stamp(reader.stamp));
    }

    /// Whether one was forgotten.
    fn push(&mut self, reader: Reader) -> bool {
        match (&mut *self, reader.alone()) {
            (Self::None, Some(stamp)) => *self = Self::One(stamp),
            (Self::None, None) => *self = Self::Many(Box::new(vec![reader])),
            (Self::One(one), _) => {
                *self = Self::Many(Box::new(vec![Reader::of(*one), reader]));
            }
            (Self::Many(all), _) => {
                let full = all.len() == READERS;
                if full {
                    all.remove(0);
                }
                all.push(reader);
                return full;
            }
        }
        false
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let mut count = 0;
        self.all(|_| count += 1);
        count
    }
}

/// Adds a reader in place of those that it stands for. Gives whether one was forgotten.
fn join(all: &mut Vec<Reader>, by: &Visitor<'_>) -> bool {
    let (access, lanes) = (by.stamp.of_all(), by.stamp.lanes());
    let same = all.iter().rposition(|old| old.stamp == access);
    if let Some(at) = same {
        // Only the order of those who came changes, if these lanes did so before.
        all[at..].rotate_left(1);
        let last = all.len() - 1;
        if all[last].lanes & lanes != lanes {
            // Another lane of the same instruction has asked about all others: what this one knows besides can wait.
            all[last].lanes |= lanes;
            let mut at = 0;
            all.retain_mut(|old| {
                at += 1;
                let own = at <= last && old.stamp.lane().slot == access.lane().slot;
                !own || old.outlasts(lanes, by)
            });
        }
        return false;
    }
    all.retain_mut(|old| old.outlasts(by.replaces(old), by));
    let full = all.len() == READERS;
    if full {
        all.remove(0);
    }
    all.push(Reader::of(by.stamp));
    full
}

#[cfg(test)]
mod tests {
    use slabfence_emu_exec::Scope;

    use super::*;
    use crate::{
        clock::{Clock, Lane},
        registry::How,
    };

    fn stamp(slot: u16, lane: u8, how: How) -> Stamp {
        Stamp::new(Lane { slot, lane }, 1, u32::from(slot), how)
    }

    /// A clock that knows of all slots below this one.
    fn below(slot: u16) -> Clock {
        let mut clock = Clock::default();
        (0..slot).for_each(|slot| clock.learn_slot(slot, 1));
        clock
    }

    #[test]
    fn beside_a_write_at_most_one_earlier_one_of_each_scope_and_size_is_kept() {
        let scopes = [Scope::Cta, Scope::Gpu, Scope::Sys].map(Some);
        let sizes = [1, 2, 4, 8, 16];
        let ways: Vec<How> = sizes
            .iter()
            .flat_map(|&size| scopes.map(|scope| How::new(scope, size).writing()))
            .collect();
        let (mut readers, mut last, mut most) = (Readers::None, Stamp::NONE, 0);
        for slot in 0..600 {
            let clock = below(slot);
            let how = ways[usize::from(slot) % ways.len()];
            let by = Visitor::new(stamp(slot, 0, how), &clock);
            readers = readers.outlived(last, &by).0;
            last = by.stamp;
            most = most.max(readers.len());
            readers.written(&by, &mut |met| panic!("{met:?}"));
        }
        // All but the last one.
        assert_eq!(most, 14);
    }

    #[test]
    fn beside_a_strong_write_weak_readers_before_it_are_kept_and_of_too_many_the_oldest_goes() {
        let (strong, weak) = (How::new(Some(Scope::Gpu), 4).writing(), How::new(None, 4));
        let clock = below(600);
        let by = Visitor::new(stamp(600, 0, strong), &clock);
        let mut readers = Readers::None;
        let like_it = How::new(Some(Scope::Gpu), 4);
        for (slot, how) in [(1, weak), (2, like_it), (3, weak)] {
            readers.read(
                &Visitor::new(stamp(slot, 0, how), &Clock::default()),
                &mut |_| {},
            );
        }
        let (kept, forgotten) = readers.outlived(Stamp::NONE, &by);
        assert!(!forgotten);
        let mut slots = Vec::new();
        kept.all(|old| slots.push(old.stamp.lane().slot));
        assert_eq!(slots, [1, 3]);
        // A weak write stands for all.
        let weakly = Visitor::new(stamp(600, 0, weak.writing()), &clock);
        assert_eq!(kept.outlived(Stamp::NONE, &weakly).0, Readers::None);

        let mut many = kept;
        for slot in 4..3 + READERS as u16 {
            many.push(Reader::of(stamp(slot, 0, weak)));
        }
        assert_eq!(many.len(), READERS);
        let earlier = stamp(700, 0, How::new(Some(Scope::Cta), 4).writing());
        let (kept, forgotten) = many.outlived(earlier, &Visitor::new(by.stamp, &below(701)));
        assert_eq!((kept.len(), forgotten), (READERS, true));
    }

    #[test]
    fn lanes_of_one_access_are_one_reader_and_a_later_read_takes_the_place_of_its_own_lane() {
        let weak = How::new(None, 4);
        let nothing = Clock::default();
        let mut readers = Readers::None;
        let mut read = |stamp: Stamp| {
            assert!(!readers.read(&Visitor::new(stamp, &nothing), &mut |met| panic!("{met:?}")));
            readers.len()
        };
        let first = stamp(3, 0, weak);
        assert_eq!([0, 7, 9, 7].map(|lane| read(first.of_lane(lane))), [1; 4]);
        let later = Stamp::new(Lane { slot: 3, lane: 7 }, 2, 5, weak);
        assert_eq!(read(later), 2);
        let mut met = Vec::new();
        let writer = Visitor::new(stamp(4, 0, weak.writing()), &nothing);
        readers.written(&writer, &mut |what| met.push(what));
        let lanes = [first, first.of_lane(9), later].map(Met::Unordered);
        assert_eq!(met, lanes);
    }
}
