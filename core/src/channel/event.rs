//! The event that tells a host of faults which it does not ask for.

use std::os::fd::{AsFd, BorrowedFd};

use crate::error::{Error, Result};
use crate::health::FaultEvent;

use super::pool::Pool;

const OPERATION: &str = "Pool::fault_event";

impl Pool {
    /// An eventfd that becomes readable (`POLLIN`) when a channel of the pool has failed on this rank: for hosts that only
    /// replay graphs, and look at nothing. Its count, the 8 bytes that `read` gives, is the number of channels that have
    /// failed since the last read; [`faults`](Self::faults) says which and why. It does not block, warnings do not count, and
    /// when no fault is left after a reset or a retirement, it is not readable any more.
    ///
    /// The same for every call, and open as long as the pool is there; after a close nothing is told. Whoever needs it longer,
    /// or owned, duplicates it. From the first call on a thread of the process looks for faults every millisecond, and ends
    /// when no pool is left to look at. A forked child that reads from its copy takes from its parent's count.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when there is no room for a descriptor or a thread, or, at the first call, the pool can only be
    /// closed or a collective call of it is under way; [`Error::Closed`].
    pub fn fault_event(&self) -> Result<BorrowedFd<'_>> {
        let shared = &self.shared;
        if shared.is_closed()? {
            return Err(Error::Closed { what: OPERATION });
        }
        if let Some(event) = shared.event.get() {
            return Ok(event.as_fd());
        }
        // No reset forgets a fault meanwhile.
        let _open = shared.open(OPERATION)?;
        let event = FaultEvent::new(&shared.page)?;
        // The first of two that come at once is kept.
        Ok(shared.event.get_or_init(|| event).as_fd())
    }
}
