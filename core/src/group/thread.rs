//! A bootstrap for ranks that are threads of one process.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::bootstrap::{Bootstrap, BootstrapError, refuse_after_fork};
use super::rank::Rank;
use crate::driver::fork;

/// In-process [`Bootstrap`], one value a rank. A member that is dropped wakes the others at once. In a forked child it gives
/// errors.
#[derive(Debug)]
pub struct ThreadBootstrap {
    rank: Rank,
    meeting: Arc<Meeting>,
}

#[derive(Debug)]
struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Rounds that some rank has still to finish; the first one has number `first`.
    rounds: VecDeque<Round>,
    first: u64,
    /// Number of each rank's current round.
    next: Vec<u64>,
    alive: Vec<bool>,
}

#[derive(Debug)]
struct Round {
    parts: Vec<Option<Vec<u8>>>,
    /// Ranks that have taken their part back.
    gave_up: Vec<bool>,
    /// Ranks that have still to read the round.
    readers: usize,
}

impl Round {
    /// Why the round cannot go on, if it cannot: ranks that have left, or, when it is `late`, those that are missing. Who
    /// waited in vain, and perhaps left then, is not the cause while there is another.
    fn failure(&self, alive: &[bool], late: bool) -> Option<BootstrapError> {
        let open = || (0..alive.len()).filter(|&rank| self.parts[rank].is_none());
        let list = |of: &dyn Fn(usize) -> bool| -> Vec<Rank> {
            let ranks = open().filter(|&rank| of(rank));
            ranks.map(|rank| Rank(rank as u32)).collect()
        };
        let gone = list(&|rank| !alive[rank]);
        let cause = list(&|rank| !alive[rank] && !self.gave_up[rank]);
        let absent = list(&|rank| alive[rank] && !self.gave_up[rank]);
        if !cause.is_empty() {
            Some(BootstrapError::Left { ranks: cause })
        } else if (late || !gone.is_empty()) && !absent.is_empty() {
            Some(BootstrapError::Timeout { missing: absent })
        } else if !gone.is_empty() {
            Some(BootstrapError::Left { ranks: gone })
        } else if late {
            Some(BootstrapError::Timeout {
                missing: list(&|_| true),
            })
        } else {
            None
        }
    }
}

impl ThreadBootstrap {
    /// The members of a group of `world` threads, in rank order.
    pub fn world(world: u32) -> Vec<Self> {
        fork::watch();
        let size = world as usize;
        let meeting = Arc::new(Meeting {
            state: Mutex::new(State {
                rounds: VecDeque::new(),
                first: 0,
                next: vec![0; size],
                alive: vec![true; size],
            }),
            changed: Condvar::new(),
        });
        (0..world)
            .map(|rank| Self {
                rank: Rank(rank),
                meeting: Arc::clone(&meeting),
            })
            .collect()
    }

    /// The rank that this member is.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    // A rank that panics inside holds no half-made round, so a poisoned lock says nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        let state = self.meeting.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bootstrap for ThreadBootstrap {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        refuse_after_fork()?;
        let me = self.rank.index();
        let mut state = self.lock();
        let number = state.next[me];
        let world = state.alive.len();
        while state.first + state.rounds.len() as u64 <= number {
            state.rounds.push_back(Round {
                parts: vec![None; world],
                gave_up: vec![false; world],
                readers: world,
            });
        }
        let at = |state: &State| (number - state.first) as usize;
        let index = at(&state);
        state.rounds[index].parts[me] = Some(bytes.to_vec());
        state.rounds[index].gave_up[me] = false;
        self.meeting.changed.notify_all();
        loop {
            let index = at(&state);
            if state.rounds[index].parts.iter().all(Option::is_some) {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if let Some(failure) = state.rounds[index].failure(&state.alive, left.is_zero()) {
                // Taken back, so that the round cannot complete for the others after it failed here.
                state.rounds[index].parts[me] = None;
                state.rounds[index].gave_up[me] = true;
                return Err(failure);
            }
            let wait = self.meeting.changed.wait_timeout(state, left);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        let index = at(&state);
        let round = &mut state.rounds[index];
        round.readers -= 1;
        let parts = round.parts.iter().flatten().cloned().collect();
        state.next[me] += 1;
        while state.rounds.front().is_some_and(|round| round.readers == 0) {
            state.rounds.pop_front();
            state.first += 1;
        }
        Ok(parts)
    }
}

impl Drop for ThreadBootstrap {
    fn drop(&mut self) {
        // The others are the parent's threads, and one of them may have held the lock.
        if fork::forked() {
            return;
        }
        let me = self.rank.index();
        self.lock().alive[me] = false;
        self.meeting.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    fn soon(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn every_rank_gets_every_part_in_rank_order_round_after_round() {
        let members = ThreadBootstrap::world(3);
        let results: Vec<Vec<Vec<Vec<u8>>>> = thread::scope(|scope| {
            let handles: Vec<_> = members
                .iter()
                .map(|member| {
                    scope.spawn(move || {
                        (0..50u8)
                            .map(|round| {
                                let part = vec![member.rank().0 as u8; round as usize];
                                member.all_gather(&part, soon(10_000)).unwrap()
                            })
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        for rank in results {
            for (round, parts) in rank.into_iter().enumerate() {
                assert_eq!(parts, [vec![0; round], vec![1; round], vec![2; round]]);
            }
        }
        assert_eq!(members[0].lock().rounds.len(), 0);
        assert_eq!(members[0].lock().first, 50);
    }

    #[test]
    fn a_timeout_names_the_missing_ranks_and_the_round_can_be_tried_again() {
        let members = ThreadBootstrap::world(3);
        let missing = members[1].all_gather(b"x", soon(20)).unwrap_err();
        assert_eq!(
            missing,
            BootstrapError::Timeout {
                missing: vec![Rank(0), Rank(2)]
            }
        );
        thread::scope(|scope| {
            for (member, part) in members.iter().zip([b"a", b"b", b"c"]) {
                scope.spawn(move || {
                    let parts = member.all_gather(part, soon(10_000)).unwrap();
                    assert_eq!(parts, [b"a", b"b", b"c"]);
                });
            }
        });
    }

    #[test]
    fn a_rank_that_timed_out_is_missing_for_the_others_too() {
        let members = ThreadBootstrap::world(2);
        members[0].all_gather(b"x", soon(5)).unwrap_err();
        assert_eq!(
            members[1].all_gather(b"y", soon(5)).unwrap_err(),
            BootstrapError::Timeout {
                missing: vec![Rank(0)]
            }
        );
    }

    #[test]
    fn a_rank_that_waited_in_vain_and_left_is_not_the_one_that_is_missing() {
        let mut members = ThreadBootstrap::world(3);
        members[1].all_gather(b"x", soon(5)).unwrap_err();
        drop(members.remove(1));
        // At once, long before the deadline: the round cannot be completed any more.
        assert_eq!(
            members[0].all_gather(b"y", soon(60_000)).unwrap_err(),
            BootstrapError::Timeout {
                missing: vec![Rank(2)]
            }
        );
        // Rank 0 is there, and has given up.
        assert_eq!(
            members[1].all_gather(b"z", soon(60_000)).unwrap_err(),
            BootstrapError::Left {
                ranks: vec![Rank(1)]
            }
        );
    }

    #[test]
    fn a_dropped_member_wakes_the_others_at_once() {
        let mut members = ThreadBootstrap::world(2);
        let second = members.pop().unwrap();
        let first = members.pop().unwrap();
        let waiting = thread::spawn(move || first.all_gather(b"x", soon(60_000)));
        thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        drop(second);
        assert_eq!(
            waiting.join().unwrap().unwrap_err(),
            BootstrapError::Left {
                ranks: vec![Rank(1)]
            }
        );
        assert!(begin.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_a_member_handed_over_before_it_left_still_counts() {
        let mut members = ThreadBootstrap::world(2);
        let second = members.pop().unwrap();
        let first = members.pop().unwrap();
        let leaving = thread::spawn(move || {
            let parts = second.all_gather(b"last", soon(10_000));
            drop(second);
            parts.unwrap()
        });
        let parts = first.all_gather(b"first", soon(10_000)).unwrap();
        assert_eq!(parts, leaving.join().unwrap());
        assert_eq!(parts, [b"first".to_vec(), b"last".to_vec()]);
    }
}
