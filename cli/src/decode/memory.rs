//! One rank's device memory.

use slabfence::driver::{Device, DeviceBuffer, DevicePtr, PinnedBuffer};
use slabfence::{Error, Result};

use super::extents::Extents;
use super::setup::Setup;
use super::shard;
use super::workload::{Cache, SETS};

/// Host memory for results that have not been compared yet.
const RING_BYTES: usize = 16 << 20;
/// Most replays between two comparisons.
const RING_ENTRIES: usize = 64;

/// Keys and values of one rank's shard of one layer, in device memory.
#[derive(Debug)]
pub struct Shard {
    /// Keys.
    pub keys: DeviceBuffer,
    /// Values; `None`: they are the first elements of the key rows.
    pub values: Option<DeviceBuffer>,
}

/// One rank's buffers, large enough for the largest batch.
#[derive(Debug)]
pub struct Memory {
    /// Own heads' queries of all layers.
    pub queries: DeviceBuffer,
    /// The block of results.
    pub results: DeviceBuffer,
    /// Partial outputs of all heads.
    pub partial: DeviceBuffer,
    /// Their log-sum-exp.
    pub lse: DeviceBuffer,
    /// The distinct layers' shards.
    pub shards: Vec<Shard>,
    /// Keys of a shard.
    pub keys: usize,
    /// Queries of each set, all layers, on the host.
    pub staged: PinnedBuffer,
    /// Results that wait for their comparison, on the host.
    pub ring: PinnedBuffer,
}

impl Memory {
    /// Allocates everything and uploads the shards of `rank`.
    pub fn new(device: &Device, setup: &Setup<'_>, rank: usize) -> Result<Self> {
        let data = setup.data;
        let batch = setup.largest_batch();
        let extents = Extents::new(setup, batch);
        let rows = batch * data.heads;
        let mine = setup.sharding.keys_of(rank, setup.ranks, data.keys);
        let (key_row, value_row) = (data.query_row(), data.value_row());
        let upload = |bytes: &[u8], row: usize| {
            let part = shard::rows(bytes, row, &mine);
            // A rank without keys has a buffer that is never read.
            let buffer = DeviceBuffer::new(device, part.len().max(1))?;
            buffer.write(0, &part)?;
            Ok::<_, Error>(buffer)
        };
        let shards = data.layers.iter().map(|layer| {
            Ok::<_, Error>(match &layer.cache {
                Cache::PerHead { keys, values } => Shard {
                    keys: upload(keys, data.heads * key_row)?,
                    values: Some(upload(values, data.heads * value_row)?),
                },
                Cache::Shared(rows) => Shard {
                    keys: upload(rows, key_row)?,
                    values: None,
                },
            })
        });
        let results = DeviceBuffer::new(device, extents.results())?;
        results.fill(0)?;
        Ok(Self {
            queries: DeviceBuffer::new(device, extents.inputs())?,
            results,
            partial: DeviceBuffer::new(device, rows * value_row)?,
            lse: DeviceBuffer::new(device, rows * size_of::<f32>())?,
            shards: shards.collect::<Result<_>>()?,
            keys: mine.len(),
            staged: PinnedBuffer::new(device, SETS * extents.inputs())?,
            ring: PinnedBuffer::new(device, ring_bytes(extents.results()))?,
        })
    }

    /// How many blocks of this size fit the ring.
    pub fn ring_entries(&self, block: usize) -> usize {
        (self.ring.len() / block).clamp(1, RING_ENTRIES)
    }
}

fn ring_bytes(block: usize) -> usize {
    let entries = (RING_BYTES / block).clamp(1, RING_ENTRIES);
    entries * block
}

/// The address `bytes` into a buffer.
pub fn at(buffer: &DeviceBuffer, bytes: usize) -> Result<DevicePtr> {
    let inside = u64::try_from(bytes).ok().filter(|_| bytes < buffer.len());
    inside
        .and_then(|bytes| buffer.ptr().offset(bytes))
        .ok_or_else(|| Error::Argument {
            operation: "decode",
            what: format!(
                "offset {bytes} is outside a buffer of {} bytes",
                buffer.len()
            ),
        })
}
