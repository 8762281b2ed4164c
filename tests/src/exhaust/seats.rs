//! Seats for the worlds of one process.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::injection::SEATS;

/// Whether somebody has each seat.
static TAKEN: Mutex<[bool; SEATS]> = Mutex::new([false; SEATS]);
static FREED: Condvar = Condvar::new();

/// Seats that nobody else has meanwhile.
#[derive(Debug)]
pub(super) struct Seats(Vec<usize>);

fn taken() -> MutexGuard<'static, [bool; SEATS]> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seats {
    /// Waits for so many, without a limit: whoever has some needs no others.
    pub fn take(count: usize) -> Self {
        assert!(count <= SEATS, "there are {SEATS} seats");
        let mut all = taken();
        loop {
            let free = all.iter().enumerate().filter(|(_, taken)| !**taken);
            let free: Vec<usize> = free.map(|(seat, _)| seat).take(count).collect();
            if free.len() == count {
                free.iter().for_each(|&seat| all[seat] = true);
                return Self(free);
            }
            all = FREED.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        let mut all = taken();
        self.0.iter().for_each(|&seat| all[seat] = false);
        FREED.notify_all();
    }
}
