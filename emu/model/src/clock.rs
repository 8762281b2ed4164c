//! Vector clocks and views: maps from small numbers to how much of each is known.

/// What is known of each thread: the time up to which its operations come before, by seat.
pub type Clock = Levels;

/// What must be seen of each location: the oldest message that may still be read, by location.
pub type View = Levels;

/// A map from indices to levels, joined entry by entry; an absent entry is 0. Equal maps compare and hash equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Levels(Vec<u32>);

impl Levels {
    /// The level of an index.
    pub fn get(&self, index: usize) -> u32 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Raises the level of an index; a lower one changes nothing.
    pub fn raise(&mut self, index: usize, level: u32) {
        // No zeros at the end: a map has one form.
        if level == 0 {
            return;
        }
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] = self.0[index].max(level);
    }

    /// Raises every entry to the other map's.
    pub fn join(&mut self, other: &Self) {
        for (index, &level) in other.0.iter().enumerate() {
            self.raise(index, level);
        }
    }

    /// Whether the level of `index` is at least `level`: for a clock, whether what `index` did at that time comes before.
    pub fn covers(&self, index: usize, level: u32) -> bool {
        self.get(index) >= level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_keeps_the_higher_level_of_each_entry() {
        let mut a = Clock::default();
        a.raise(0, 3);
        a.raise(2, 1);
        let mut b = Clock::default();
        b.raise(0, 2);
        b.raise(2, 5);
        b.raise(4, 1);
        a.join(&b);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|i| a.get(i)), [3, 0, 5, 0, 1, 0]);
        assert!(a.covers(2, 5) && !a.covers(2, 6) && a.covers(9, 0));
    }

    #[test]
    fn equal_maps_have_one_form() {
        let mut a = Clock::default();
        a.raise(7, 0);
        assert_eq!(a, Clock::default());
    }
}
