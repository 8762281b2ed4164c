//! A pool's limits for the tests of argument checks: 4 ranks with 4 heads each, up to 8 tokens, 16-bit elements, push.

use crate::driver::DevicePtr;
use crate::layout::{ABI, Header, MAGIC, PeerAddresses, Preamble, SlotAddresses, Transport};

use super::plan::Limits;

pub(super) fn limits() -> Limits {
    Limits {
        world: 4,
        heads: 4,
        query_head_dim: 576,
        value_head_dim: 512,
        max_batch: 8,
        max_grid: 32,
        transport: Transport::Push,
        staging: 36864,
    }
}

pub(super) fn pointer(address: u64) -> DevicePtr {
    DevicePtr::from_raw(address)
}

pub(super) fn header() -> Header {
    let slot = SlotAddresses {
        entry: 0,
        flags: 0,
        outbox: 0,
        inbox: 0,
        packets: 0,
    };
    let peer = PeerAddresses {
        slot: [slot; 2],
        poison: 0,
    };
    Header {
        preamble: Preamble {
            magic: MAGIC,
            abi: ABI,
            operation: 0,
        },
        channel: 0,
        tag: 0,
        rank: 0,
        world: 4,
        transport: Transport::Push.code(),
        dtype: 0,
        flag_grid: 32,
        clock: 0,
        warn_ticks: 0,
        fail_ticks: 0,
        inbox_stride: 0,
        packet_stride: 0,
        packet_capacity: 0,
        packet_bytes: 0,
        local: 0,
        health: 0,
        health_header: 0,
        poison: 0,
        own: [slot; 2],
        peers: [peer; 16],
        reserved: 0,
    }
}
