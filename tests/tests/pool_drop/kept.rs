//! What stays alive of pools that were dropped without close.

use slabfence_emu::Live;

use super::WORLD;

/// What a pool keeps that is dropped without close: its four arenas with what was announced of them, its health page, the
/// kernels of its two collectives, and its device, which has a stream for copies.
const KEPT_BY_A_POOL: Live = Live {
    physical: 4,
    mappings: 4,
    reservations: 4,
    host_allocations: 1,
    modules: 2,
    announced: 18,
    streams: 1,
    ..NOTHING
};

const NOTHING: Live = Live {
    contexts: 0,
    allocations: 0,
    host_allocations: 0,
    physical: 0,
    mappings: 0,
    reservations: 0,
    streams: 0,
    events: 0,
    modules: 0,
    captures: 0,
    graphs: 0,
    execs: 0,
    user_objects: 0,
    announced: 0,
    abandoned: 0,
};

/// What is alive while so many pools are kept.
pub fn kept(pools: usize) -> Live {
    let one = KEPT_BY_A_POOL;
    Live {
        contexts: pools.min(WORLD as usize),
        physical: pools * one.physical,
        mappings: pools * one.mappings,
        reservations: pools * one.reservations,
        host_allocations: pools * one.host_allocations,
        modules: pools * one.modules,
        announced: pools * one.announced,
        streams: pools * one.streams,
        ..NOTHING
    }
}
