//! Connections that were refused, in the log.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Refusals that are told in each [`WINDOW`].
const MOST: u32 = 8;
const WINDOW: Duration = Duration::from_secs(10);

/// Tells why connections were refused; of those who keep coming, not each time.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Who refuses them, if it is said.
    whose: Option<String>,
    since: Option<Instant>,
    told: u32,
    untold: u64,
}

impl Refusals {
    /// Those that `speaker` refuses: every line begins with it.
    pub(crate) fn of(speaker: impl Display) -> Self {
        Self {
            whose: Some(speaker.to_string()),
            ..Self::default()
        }
    }

    /// One more.
    pub(crate) fn tell(&mut self, why: impl Display) {
        if self.is_told(Instant::now()) {
            let line = self.line(format_args!("a connection was refused: {why}"));
            log::warn!("{line}");
        }
    }

    fn line(&self, what: impl Display) -> String {
        match &self.whose {
            Some(whose) => format!("{whose}: {what}"),
            None => what.to_string(),
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
            let line = self.line(format_args!("{untold} more connections were refused"));
            log::warn!("{line}");
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
    fn a_line_begins_with_who_refuses_where_it_is_said() {
        let line = |refusals: Refusals| refusals.line("1 more");
        assert_eq!(line(Refusals::of("rank 0")), "rank 0: 1 more");
        assert_eq!(line(Refusals::default()), "1 more");
    }

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
