//! Connections that were refused, in the log.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Refusals that are told in each [`WINDOW`].
const MOST: u32 = 8;
const WINDOW: Duration = Duration::from_secs(10);

/// Tells why connections were refused; of those who keep coming, not each time.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    since: Option<Instant>,
    told: u32,
    untold: u64,
}

impl Refusals {
    /// One more.
    pub(crate) fn tell(&mut self, why: impl Display) {
        if self.is_told(Instant::now()) {
            log::warn!("a connection was refused: {why}");
        }
    }

    fn is_told(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now >= since + WINDOW) {
            self.summarise();
            (self.since, self.told) = (Some(now), 0);
        }
        let told = self.told < MOST;
        match told {
            true => self.told += 1,
            false => self.untold += 1,
        }
        told
    }

    fn summarise(&mut self) {
        let untold = std::mem::take(&mut self.untold);
        if untold > 0 {
            log::warn!("{untold} more connections were refused");
        }
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        self.summarise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusals_of_each_while_are_told_and_the_others_counted() {
        let mut refusals = Refusals::default();
        let begin = Instant::now();
        let told = |refusals: &mut Refusals, now| (0..20).filter(|_| refusals.is_told(now)).count();
        assert_eq!((told(&mut refusals, begin), refusals.untold), (8, 12));
        let later = begin + WINDOW - Duration::from_nanos(1);
        assert_eq!((told(&mut refusals, later), refusals.untold), (0, 32));
        assert_eq!(
            (told(&mut refusals, begin + WINDOW), refusals.untold),
            (8, 12)
        );
    }
}
