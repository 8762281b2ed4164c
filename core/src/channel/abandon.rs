//! Leaving a pool without the other ranks.

use std::mem;

use crate::error::Result;

use super::close::{drained, free_all};
use super::memory::Memory;
use super::pool::Pool;
use super::shared::{Phase, Shared, Ties};

const CALL: &str = "abandon";

/// What a rank that has abandoned a pool has not given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abandoned {
    /// Bytes of its memory that stay for the life of the process, since ranks that are other threads of it may use them, or
    /// a graph that the driver has failed to destroy.
    pub kept: u64,
}

impl Pool {
    /// Gives back what this rank can without a word to the others: for ranks whose peers have ended, or whose bootstrap is
    /// gone. Not collective. Waits until nothing of this rank runs, for at most half of the group's timeout; unmaps peers'
    /// memory and never touches it; frees this rank's own where no peer is a thread of this process: what another process
    /// has mapped, the driver keeps until that process lets go. Does nothing once the pool is closed or abandoned.
    ///
    /// To ranks that still use the pool this rank is one that does not come: their operations end at their limit.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`](crate::Error::Refused) while a graph or a capture scope of this rank holds a channel, and when the device does not come to
    /// rest: the pool is then as it was. Once the driver has failed to destroy a graph or a stream of this library's, a graph's
    /// hold is no refusal, since it may be for good: then everything is kept, peers' memory too. A failure to unmap or to free leaves a pool that can be closed or abandoned again.
    pub fn abandon(&self) -> Result<Abandoned> {
        let shared = &self.shared;
        let _turn = shared.turn()?;
        let (before, ties) = {
            let mut state = shared.write()?;
            if matches!(state.phase, Phase::Closed) {
                return Ok(Abandoned { kept: 0 });
            }
            let before = mem::replace(&mut state.phase, Phase::Busy(CALL));
            (before, state.ties)
        };
        let released = drained(shared, CALL).and_then(|()| free_of_graphs(shared));
        match released {
            Ok(true) => {}
            Ok(false) => return keep(shared, Kept::All),
            Err(error) => {
                shared.write()?.phase = before;
                return Err(error);
            }
        }
        // A process's memory outlives its mapping here; a thread's peers use the very mapping.
        let beside = shared.peers.iter().any(|peer| !peer.imported);
        if beside && ties == Ties::Tied {
            return keep(shared, Kept::Shared);
        }
        free_all(shared, None)?;
        Ok(Abandoned { kept: 0 })
    }
}

/// Whether no graph or scope holds a channel. One that may do so for good, which nobody can change, is no refusal.
fn free_of_graphs(shared: &Shared) -> Result<bool> {
    match shared.released("Pool::abandon", |_| true) {
        Ok(()) => Ok(true),
        Err(_) if shared.may_be_held_for_good()? => Ok(false),
        Err(error) => Err(error),
    }
}

/// What stays for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// The own memory that other threads may use.
    Shared,
    /// All, peers' memory too: a graph may be there that uses it.
    All,
}

/// Gives back what is not to be kept.
fn keep(shared: &Shared, kept: Kept) -> Result<Abandoned> {
    let unmapped = match kept {
        Kept::Shared => shared.give_back(Memory::leave_private),
        Kept::All => Ok(()),
    };
    let mut state = shared.write()?;
    if let Err(error) = unmapped {
        state.phase = Phase::Broken(format!("its abandonment failed: {error}"));
        return Err(error);
    }
    shared.unwatch();
    state.phase = Phase::Closed;
    state.lanes.clear();
    drop(state);
    let memory = shared.take_memory();
    let (bytes, users): (fn(&Memory) -> u64, _) = match kept {
        Kept::Shared => (Memory::shared_bytes, "ranks of this process may use"),
        Kept::All => (Memory::bytes, "graphs that may never go use"),
    };
    let kept = memory.as_ref().map_or(0, bytes);
    log::warn!(
        "{}: {CALL}: {users} its memory: {kept} bytes are kept",
        shared.group.speaker()
    );
    mem::forget(memory);
    Ok(Abandoned { kept })
}
