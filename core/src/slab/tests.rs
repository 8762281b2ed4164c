//! Slab memory on a driver that answers as a test wants it to.

mod arena;
mod imports;
mod mapping;
mod peers;

use slabfence_sys::CUresult;

use super::*;
use crate::driver::fake::{self, ADDRESS, GRANULE};
use crate::error::Error;

const OOM: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

/// Two arenas as two ranks of one process have them, and a way to spoil a word of the second's record.
fn peers() -> (
    Arena<Inbox>,
    Arena<Inbox>,
    impl Fn(usize, u64) -> ArenaRecord,
) {
    let device = fake::device();
    let own = Arena::<Inbox>::create(&device, 256, 2).unwrap();
    let peer = Arena::<Inbox>::create(&device, 256, 2).unwrap();
    let bytes = peer.record().to_bytes();
    let spoil = move |word: usize, value: u64| {
        let mut bytes = bytes;
        bytes[word * 8..word * 8 + 8].copy_from_slice(&value.to_le_bytes());
        ArenaRecord::from_bytes(&bytes).unwrap()
    };
    (own, peer, spoil)
}
