//! What all ranks of a run have in common.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::layout::Transport;

use super::args::DecodeArgs;
use super::shard::Sharding;
use super::workload::Workload;
use crate::failure::Failure;

/// Largest row dimension of the reference attention kernel.
const MAX_DIM: usize = 1024;
/// Most layers of a graph: far beyond any model, and no size overflows.
const MAX_LAYERS: usize = 1024;
/// A wait this long is reported, and goes on.
const WARN: Duration = Duration::from_secs(5);
/// A wait this long ends the run.
const FAIL: Duration = Duration::from_secs(60);

/// Largest grid where ranks share devices: sixteen of them must fit one.
const SHARED_GRID: u32 = 8;

/// Name of the channel of eager operations.
pub const EAGER: &str = "decode.eager";

/// Checked settings of a run.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The data.
    pub data: &'a Workload,
    /// Ranks.
    pub ranks: usize,
    /// Batch sizes, each with its graph.
    pub batches: Vec<usize>,
    /// Tokens that the pool has room for.
    pub capacity: u32,
    /// Layers of the graph.
    pub layers: usize,
    /// Replays of each graph.
    pub replays: usize,
    /// How data cross.
    pub transport: Transport,
    /// How keys are dealt.
    pub sharding: Sharding,
    /// Whether ranks may share a device.
    pub oversubscribe: bool,
    /// Whether ranks may share a real device, whose copies then stand in one queue.
    pub shares_queues: bool,
    /// Whether to measure.
    pub time: bool,
    /// Where rank 0 writes what its largest batch's graph consists of.
    pub dump: Option<PathBuf>,
}

/// Name of the channel of a batch size's graph.
pub fn graph_channel(batch: usize) -> String {
    format!("decode.graph.{batch}")
}

/// Name of the channel of the graphs that are only measured.
pub fn time_channel(batch: usize) -> String {
    format!("decode.time.{batch}")
}

impl<'a> Setup<'a> {
    /// Checks what does not need a driver. The library checks the rest.
    pub fn new(
        args: &DecodeArgs,
        data: &'a Workload,
        ranks: usize,
        emulated: bool,
    ) -> Result<Self, Failure> {
        let refuse = |what: String| Err(Failure::Use(what));
        if !data.heads.is_multiple_of(ranks) {
            return refuse(format!(
                "{} heads cannot be divided among {ranks} ranks: every rank owns equally many; choose a number of ranks that divides {}",
                data.heads, data.heads
            ));
        }
        for (what, dim) in [("key", data.key_dim), ("value", data.value_dim)] {
            let bytes = dim * data.element.bytes();
            if !bytes.is_multiple_of(16) {
                return refuse(format!(
                    "a {what} row of {dim} elements has {bytes} bytes, which is no multiple of 16"
                ));
            }
            if dim > MAX_DIM {
                return refuse(format!(
                    "a {what} row has {dim} elements; the reference attention kernel takes at most {MAX_DIM}"
                ));
            }
        }
        if args.layers > MAX_LAYERS {
            return refuse(format!("--layers {}: at most {MAX_LAYERS}", args.layers));
        }
        if let Some(&batch) = args.batch.iter().find(|&&b| b as usize > data.tokens) {
            return refuse(format!(
                "--batch {batch}: the data have {} query tokens",
                data.tokens
            ));
        }
        let mut batches: Vec<usize> = args.batch.iter().map(|&batch| batch as usize).collect();
        batches.sort_unstable();
        batches.dedup();
        let capacity = match args.capacity {
            Some(capacity) => capacity,
            None => args.batch.iter().copied().max().unwrap_or(1),
        };
        Ok(Self {
            data,
            ranks,
            batches,
            capacity,
            layers: args.layers,
            replays: args.replays,
            transport: args.transport.into(),
            sharding: args.sharding,
            oversubscribe: args.oversubscribe,
            shares_queues: args.oversubscribe && !emulated,
            time: args.time && !emulated,
            dump: args.dump_graph.clone(),
        })
    }

    /// Heads of one rank.
    pub fn own_heads(&self) -> usize {
        self.data.heads / self.ranks
    }

    /// As options and reports call the transport.
    pub const fn transport_name(&self) -> &'static str {
        match self.transport {
            Transport::Push => "push",
            _ => "pull",
        }
    }

    /// The heads of `rank`.
    pub fn heads_of(&self, rank: usize) -> Range<usize> {
        let own = self.own_heads();
        rank * own..(rank + 1) * own
    }

    /// The largest batch.
    pub fn largest_batch(&self) -> usize {
        self.batches.iter().copied().max().unwrap_or(1)
    }

    /// Collective operations in one replay: two a layer, and a gather more, so that their number is odd.
    pub fn operations(&self) -> usize {
        2 * self.layers + 1
    }

    /// Names of every channel of the run.
    pub fn channels(&self) -> Vec<String> {
        let mut names = vec![EAGER.to_owned()];
        for &batch in &self.batches {
            names.push(graph_channel(batch));
            if self.time {
                names.push(time_channel(batch));
            }
        }
        names
    }

    /// What the ranks agree on.
    pub fn contract(&self) -> Contract {
        let data = self.data;
        let bytes = data.element.bytes() as u32;
        let whole = Contract::new(
            data.heads as u32,
            data.key_dim as u32,
            data.value_dim as u32,
            self.capacity,
        );
        Contract {
            gather_element_bytes: bytes,
            reduce_element_bytes: bytes,
            max_channels: self.channels().len() as u32,
            warn: WARN,
            fail: FAIL,
            transport: self.transport,
            oversubscribe: self.oversubscribe,
            max_grid: match self.oversubscribe {
                true => SHARED_GRID,
                false => whole.max_grid,
            },
            ..whole
        }
    }
}
