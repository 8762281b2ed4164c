//! Vector clocks over slots, with single lanes where less than a whole warp is known.
//!
//! A slot stands for a warp (or a copy, a fill) while it runs. Its time grows at every release, acquire and barrier, so that an
//! access is named by slot, lane and time. Most of what a thread knows of others it knows of whole warps: those times lie
//! in a plain vector. What one lane released without a barrier of its warp is known of that lane alone.

use std::sync::Arc;

/// All 32 lanes of a slot, as the `lane` of an access that all of them made at once.
pub(crate) const ALL: u8 = 32;

/// A lane of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lane {
    pub(crate) slot: u16,
    pub(crate) lane: u8,
}

/// What is known: of each slot the time up to which all lanes' accesses are, and later times of single lanes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Clock {
    whole: Vec<u32>,
    /// Sorted by lane; each later than its slot's time in `whole`.
    single: Vec<(Lane, u32)>,
    /// A bit for each slot of which single lanes are known: most questions are about others.
    parted: Vec<u64>,
}

impl Clock {
    /// Whether accesses of this lane up to this time are known.
    #[inline]
    pub(crate) fn covers(&self, lane: Lane, time: u32) -> bool {
        self.whole(lane.slot) >= time || self.is_parted(lane.slot) && self.knows_single(lane, time)
    }

    #[inline]
    fn is_parted(&self, slot: u16) -> bool {
        let bits = self.parted.get(usize::from(slot / 64));
        bits.is_some_and(|bits| bits >> (slot % 64) & 1 != 0)
    }

    /// Of these lanes of a slot those whose accesses up to this time are known.
    #[inline]
    pub(crate) fn known(&self, slot: u16, lanes: u32, time: u32) -> u32 {
        match self.whole(slot) >= time {
            true => lanes,
            false if self.is_parted(slot) => lanes & self.singles(slot, time),
            false => 0,
        }
    }

    #[cold]
    fn singles(&self, slot: u16, time: u32) -> u32 {
        let first = Lane { slot, lane: 0 };
        let from = self.single.partition_point(|entry| entry.0 < first);
        let own = self.single[from..]
            .iter()
            .take_while(|entry| entry.0.slot == slot);
        own.filter(|entry| entry.1 >= time)
            .fold(0, |lanes, entry| lanes | 1 << entry.0.lane)
    }

    #[cold]
    fn knows_single(&self, lane: Lane, time: u32) -> bool {
        if lane.lane == ALL {
            return self.singles(lane.slot, time) == u32::MAX;
        }
        match self.single.binary_search_by_key(&lane, |entry| entry.0) {
            Ok(at) => self.single[at].1 >= time,
            Err(_) => false,
        }
    }

    /// The time up to which a whole slot is known.
    #[inline]
    pub(crate) fn whole(&self, slot: u16) -> u32 {
        self.whole.get(usize::from(slot)).copied().unwrap_or(0)
    }

    /// Learns of all lanes of a slot.
    pub(crate) fn learn_slot(&mut self, slot: u16, time: u32) {
        let at = usize::from(slot);
        if self.whole.len() <= at {
            self.whole.resize(at + 1, 0);
        }
        self.whole[at] = self.whole[at].max(time);
        self.tidy();
    }

    /// Learns of one lane.
    pub(crate) fn learn_lane(&mut self, lane: Lane, time: u32) {
        if self.whole(lane.slot) >= time {
            return;
        }
        match self.single.binary_search_by_key(&lane, |entry| entry.0) {
            Ok(at) => self.single[at].1 = self.single[at].1.max(time),
            Err(at) => {
                self.single.insert(at, (lane, time));
                self.part(lane.slot);
            }
        }
    }

    fn part(&mut self, slot: u16) {
        let at = usize::from(slot / 64);
        if self.parted.len() <= at {
            self.parted.resize(at + 1, 0);
        }
        self.parted[at] |= 1 << (slot % 64);
    }

    /// Learns all that another knows.
    pub(crate) fn join(&mut self, other: &Clock) {
        if self.whole.len() < other.whole.len() {
            self.whole.resize(other.whole.len(), 0);
        }
        for (mine, theirs) in self.whole.iter_mut().zip(&other.whole) {
            *mine = (*mine).max(*theirs);
        }
        self.tidy();
        for &(lane, time) in &other.single {
            self.learn_lane(lane, time);
        }
    }

    fn tidy(&mut self) {
        if !self.single.is_empty() {
            let whole = &self.whole;
            let known = |lane: Lane| whole.get(usize::from(lane.slot)).copied().unwrap_or(0);
            let before = self.single.len();
            self.single.retain(|&(lane, time)| time > known(lane));
            if self.single.len() != before {
                self.parted.fill(0);
                for at in 0..self.single.len() {
                    self.part(self.single[at].0.slot);
                }
            }
        }
    }
}

/// Joins into a shared clock, which stays shared where nothing new is learnt.
pub(crate) fn joined(mine: &Arc<Clock>, theirs: &Arc<Clock>) -> Arc<Clock> {
    if Arc::ptr_eq(mine, theirs) {
        return Arc::clone(mine);
    }
    let mut clock = Clock::clone(mine);
    clock.join(theirs);
    Arc::new(clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(slot: u16, lane: u8) -> Lane {
        Lane { slot, lane }
    }

    #[test]
    fn a_single_lane_says_nothing_of_its_siblings_until_the_slot_is_known() {
        let mut clock = Clock::default();
        clock.learn_lane(lane(3, 5), 7);
        assert!(clock.covers(lane(3, 5), 7));
        assert!(!clock.covers(lane(3, 5), 8));
        assert!(!clock.covers(lane(3, 4), 1));
        clock.learn_slot(3, 7);
        assert!(clock.covers(lane(3, 4), 7));
        assert_eq!(clock.single, []);
    }

    #[test]
    fn joining_takes_the_later_time_of_each_lane_and_slot() {
        let mut a = Clock::default();
        a.learn_slot(0, 4);
        a.learn_lane(lane(2, 1), 9);
        let mut b = Clock::default();
        b.learn_slot(2, 5);
        b.learn_lane(lane(0, 7), 3);
        b.learn_lane(lane(0, 8), 6);
        a.join(&b);
        assert_eq!([a.whole(0), a.whole(1), a.whole(2)], [4, 0, 5]);
        assert_eq!(a.single, [(lane(0, 8), 6), (lane(2, 1), 9)]);
    }
}
