//! What stays alive of pools that were dropped without close, and of tickets.

use slabfence::layout::Transport;
use slabfence_emu::Live;

use super::WORLD;

/// What is alive when one rank more keeps what so many pools have: four arenas, a health page and the kernels of two
/// collectives each, with what was announced of them all, and its device, which has a stream for copies.
pub fn add(to: Live, pools: usize, announced: usize) -> Live {
    Live {
        contexts: WORLD as usize,
        physical: to.physical + 4 * pools,
        mappings: to.mappings + 4 * pools,
        reservations: to.reservations + 4 * pools,
        host_allocations: to.host_allocations + pools,
        modules: to.modules + 2 * pools,
        streams: to.streams + 1,
        announced: to.announced + announced,
        ..to
    }
}

/// What a pool announces of its memory when it has two channels.
pub fn announced(transport: Transport) -> usize {
    match transport {
        Transport::Pull => 32,
        _ => 36,
    }
}
