//! Slots of clocks, which warps, copies and fills take in turn.

use crate::clock::Clock;

/// Above this many, a free slot is taken again though its last user is not ordered before the new one. Races between the
/// two are then missed; clocks stay short.
const MOST: usize = 2048;

/// The slots, with the time of each.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    times: Vec<u32>,
    free: Vec<u16>,
    /// How many were taken again though their last user was not ordered before the new one.
    pub(crate) reused: u64,
}

impl Slots {
    /// Takes a slot for somebody who knows this: one whose whole past is known to them, so that nothing of it can race
    /// with them, or a new one. Gives the slot and its time.
    pub(crate) fn take(&mut self, known: &Clock) -> (u16, u32) {
        let past = |slot: &u16| known.whole(*slot) >= self.times[usize::from(*slot)];
        let at = self.free.iter().rposition(past).or_else(|| {
            let full = self.times.len() >= MOST && !self.free.is_empty();
            self.reused += u64::from(full);
            full.then_some(0)
        });
        let slot = match at {
            Some(at) => self.free.remove(at),
            None => {
                self.times.push(0);
                (self.times.len() - 1).min(usize::from(u16::MAX) - 1) as u16
            }
        };
        (slot, self.times[usize::from(slot)] + 1)
    }

    /// Gives a slot back, with its last time.
    pub(crate) fn give(&mut self, slot: u16, time: u32) {
        self.times[usize::from(slot)] = time;
        self.free.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_taken_again_only_by_those_who_know_its_past() {
        let mut slots = Slots::default();
        let nothing = Clock::default();
        let (first, began) = slots.take(&nothing);
        slots.give(first, began + 5);
        let (second, _) = slots.take(&nothing);
        assert_ne!(first, second);
        let mut known = Clock::default();
        known.learn_slot(first, began + 5);
        assert_eq!(slots.take(&known), (first, began + 6));
    }
}
