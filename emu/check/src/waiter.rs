//! Who waits, as the machine tells it when nobody can go on.

use slabfence_emu_exec::WarpState;

use crate::Op;

/// Someone who waits in a deadlock.
#[derive(Clone, Debug)]
pub enum Waiter {
    /// Lanes of a resident warp.
    Warp {
        /// The grid.
        op: Op,
        /// The block.
        ctaid: [u32; 3],
        /// Where they are and what they wait for.
        state: WarpState,
        /// What the polled word holds now, if they poll one.
        current: Option<u64>,
    },
    /// Blocks of a grid that has begun and for which there is no room.
    NotResident {
        /// The grid.
        op: Op,
        /// How many.
        blocks: u64,
    },
    /// An operation that has not begun since others must end first.
    NotBegun {
        /// The operation.
        op: Op,
        /// Its device.
        device: u32,
        /// What it waits for.
        after: Vec<Op>,
    },
}
