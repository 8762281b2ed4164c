//! One decode step on one rank: what is enqueued, eagerly or into a graph.

use slabfence::Result;
use slabfence::attention::{Attention, AttentionKernels};
use slabfence::channel::Channel;
use slabfence::collective::{AllGatherHeads, Layout, LseBase, LseReduceScatter};
use slabfence::driver::Stream;

use super::extents::Extents;
use super::memory::{Memory, at};
use super::setup::Setup;
use super::workload::Cache;

/// The operations of a step for one batch size.
#[derive(Debug)]
pub struct Step<'a> {
    /// What all ranks have in common.
    pub setup: &'a Setup<'a>,
    /// This rank's buffers.
    pub memory: &'a Memory,
    /// Tokens.
    pub batch: usize,
    /// Where arrays lie.
    pub extents: Extents,
    /// The reference attention kernel.
    pub attention: &'a AttentionKernels,
    /// The channel of eager operations. A capture scope redirects them.
    pub channel: &'a Channel,
    /// The stream of everything.
    pub stream: &'a Stream,
}

impl Step<'_> {
    /// Enqueues all layers and the extra gather.
    pub fn enqueue(&self) -> Result<()> {
        for layer in 0..self.setup.layers {
            self.gather(layer, layer)?;
            self.attend(layer)?;
            self.reduce(layer)?;
        }
        self.gather(0, self.setup.layers)
    }

    /// Enqueues the gather of a layer's queries; the result becomes number `index` of the gathered ones.
    pub fn gather(&self, layer: usize, index: usize) -> Result<()> {
        let operation = AllGatherHeads {
            input: at(&self.memory.queries, layer * self.extents.queries)?,
            output: at(&self.memory.results, self.extents.gathered_at(index))?,
            batch: self.batch as u32,
            dtype: self.setup.data.element.dtype(),
            head_dim: None,
        };
        // SAFETY: the addresses are of this rank's buffers, which were allocated for the largest batch and are dropped
        // after the stream has come to rest and the graphs are gone; only this stream writes to them meanwhile.
        unsafe { operation.enqueue(self.channel, self.stream) }
    }

    /// Enqueues the combination of the partial outputs into a layer's output.
    pub fn reduce(&self, layer: usize) -> Result<()> {
        let operation = LseReduceScatter {
            input: self.memory.partial.ptr(),
            lse: self.memory.lse.ptr(),
            output: at(&self.memory.results, self.extents.output_at(layer))?,
            batch: self.batch as u32,
            dtype: self.setup.data.element.dtype(),
            head_dim: None,
            base: LseBase::E,
            input_layout: Layout::TokenMajor,
            output_layout: Layout::TokenMajor,
        };
        // SAFETY: as in `gather`.
        unsafe { operation.enqueue(self.channel, self.stream) }
    }

    /// Enqueues attention of all heads over this rank's keys.
    fn attend(&self, layer: usize) -> Result<()> {
        let data = self.setup.data;
        let distinct = layer % data.layers.len();
        let shard = &self.memory.shards[distinct];
        let (key_dim, value_dim) = (data.key_dim as u64, data.value_dim as u64);
        let heads = data.heads as u64;
        let ((key_stride, key_head_stride), (value_stride, value_head_stride)) = match data.layers
            [distinct]
            .cache
        {
            Cache::PerHead { .. } => ((heads * key_dim, key_dim), (heads * value_dim, value_dim)),
            Cache::Shared(_) => ((key_dim, 0), (key_dim, 0)),
        };
        let operation = Attention {
            query: at(&self.memory.results, self.extents.gathered_at(layer))?,
            key: shard.keys.ptr(),
            value: shard.values.as_ref().unwrap_or(&shard.keys).ptr(),
            output: self.memory.partial.ptr(),
            lse: self.memory.lse.ptr(),
            key_stride,
            key_head_stride,
            value_stride,
            value_head_stride,
            batch: self.batch as u32,
            heads: data.heads as u32,
            keys: self.memory.keys as u32,
            key_dim: data.key_dim as u32,
            value_dim: data.value_dim as u32,
            scale: data.scale as f32,
            base: LseBase::E,
            dtype: data.element.dtype(),
        };
        // SAFETY: as in `gather`; the shard has the keys, dimensions and strides that are stated.
        unsafe { operation.enqueue(self.attention, self.stream) }
    }
}
