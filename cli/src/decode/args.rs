//! The options of `slabfence decode`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use slabfence::layout::Transport;

use super::element::Element;
use super::model::Model;
use super::shard::Sharding;
use crate::driver::{Choice, ProfileName};
use crate::processes::Role;

/// Runs the collectives of a decode step on attention data, eagerly and as a replayed CUDA graph, and checks every result.
///
/// Each rank holds a shard of the keys and values. A layer gathers the query heads of all ranks, attends to the local
/// shard, and combines the partial outputs by their log-sum-exp while scattering the heads. All layers, and one gather
/// more, are one graph for each batch size.
///
/// Exit status: 0 all results right, 1 a wrong result or a fault, 2 wrong use or bad input.
#[derive(Debug, Clone, Args)]
pub struct DecodeArgs {
    /// Attention activations to use instead of the built-in ones (all-MiniLM-L6-v2): a safetensors file with f32 `q`
    /// [tokens, heads, dim], `k` [keys, heads, dim], `v` [keys, heads, value dim], `context` [tokens, heads, value dim].
    /// Given more than once: layers take the files in turn.
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub input: Vec<PathBuf>,

    /// Made data in the attention shape of a published model (all heads share the keys, as in MLA).
    #[arg(long, value_enum)]
    pub model: Option<Model>,

    /// Keys of the made data.
    #[arg(long, value_name = "KEYS", default_value_t = 512, requires = "model")]
    pub context: usize,

    /// Element type of the made data.
    #[arg(long, value_enum, default_value_t = Element::Bf16, requires = "model")]
    pub dtype: Element,

    /// Seed of the made data.
    #[arg(long, default_value_t = 1, requires = "model")]
    pub seed: u64,

    /// Ranks, 2 to 16 (default: 4, or as many as a real driver has devices, if it has two or three).
    #[arg(long, value_name = "N")]
    pub ranks: Option<u32>,

    /// Ranks are threads of one process. Without this every rank is a process of its own.
    #[arg(long)]
    pub threads: bool,

    /// What makes a process a rank of another one's run; that one gives it.
    #[command(flatten)]
    pub role: Option<Role>,

    /// Which driver: a real one with enough devices, else the emulated machine; or exactly one of them.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub driver: Choice,

    /// What the emulated machine claims to be.
    #[arg(long, value_enum, default_value_t = ProfileName::H200Nvlink)]
    pub profile: ProfileName,

    /// Devices: of the emulated machine (default: one a rank), or the most to use of a real one.
    #[arg(long, value_name = "N")]
    pub devices: Option<u32>,

    /// Allow several ranks on one device. For tests: ranks of one device wait for one another.
    #[arg(long)]
    pub oversubscribe: bool,

    /// Tokens of one decode step; a list makes one graph for each, such as 1,4,8.
    #[arg(
        long,
        value_name = "TOKENS",
        value_delimiter = ',',
        default_value = "1"
    )]
    pub batch: Vec<u32>,

    /// Tokens that the pool has room for (default: the largest batch).
    #[arg(long, value_name = "TOKENS")]
    pub capacity: Option<u32>,

    /// Layers in the graph.
    #[arg(long, default_value_t = 1)]
    pub layers: usize,

    /// Replays of each graph.
    #[arg(long, default_value_t = 1025)]
    pub replays: usize,

    /// How data cross from rank to rank.
    #[arg(long, value_enum, default_value_t = TransportName::Push)]
    pub transport: TransportName,

    /// Which keys a rank holds: a stretch of them, or every ranks-th.
    #[arg(long, value_enum, default_value_t = Sharding::Contiguous)]
    pub sharding: Sharding,

    /// Also measure the time of an operation in a graph. On a real driver only.
    #[arg(long)]
    pub time: bool,

    /// Write rank 0's graph of the largest batch, as it was captured, to a file: what its nodes are, with which parameters,
    /// and whose memory each address is. The name's ending chooses the form: .txt, .json or .dot.
    #[arg(long, value_name = "FILE")]
    pub dump_graph: Option<PathBuf>,

    /// Let `slabfence status --folder FOLDER` see what the ranks' pools are doing.
    #[arg(long, value_name = "FOLDER")]
    pub status: Option<PathBuf>,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,

    /// Write inputs, expected and actual outputs to a safetensors file, so that the error can be computed again.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// [`Transport`] as an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportName {
    /// The source stores into the destination's memory.
    Push,
    /// The destination loads from the source's memory.
    Pull,
}

impl TransportName {
    /// As options and reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
        }
    }
}

impl From<TransportName> for Transport {
    fn from(name: TransportName) -> Self {
        match name {
            TransportName::Push => Self::Push,
            TransportName::Pull => Self::Pull,
        }
    }
}
