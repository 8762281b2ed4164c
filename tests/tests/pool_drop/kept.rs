//! What stays alive of pools that were dropped without close.

use slabfence::layout::Transport;
use slabfence_emu::Live;

use super::WORLD;

/// What is alive when one pool more is kept that was dropped without close: its four arenas with what was announced of them and
/// of two channels, its health page, the kernels of its two collectives, and its device, which has a stream for copies.
pub fn add(to: Live, transport: Transport) -> Live {
    Live {
        contexts: WORLD as usize,
        physical: to.physical + 4,
        mappings: to.mappings + 4,
        reservations: to.reservations + 4,
        host_allocations: to.host_allocations + 1,
        modules: to.modules + 2,
        streams: to.streams + 1,
        announced: to.announced
            + match transport {
                Transport::Pull => 32,
                _ => 36,
            },
        ..to
    }
}
