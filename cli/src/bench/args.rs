//! The options of `slabfence bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::decode::TransportName;
use crate::driver::{Choice, ProfileName};
use crate::processes::Role;

/// Times the collectives on a real driver: one operation in a graph of many, and one that the host waits for. Every
/// result is checked before anything is timed.
///
/// On the emulated machine results are checked and nothing is timed: its times are not GPU times.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Operations to time.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Operation::Gather, Operation::Reduce])]
    pub op: Vec<Operation>,

    /// Transports to time.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [TransportName::Push, TransportName::Pull])]
    pub transport: Vec<TransportName>,

    /// Tokens of an operation.
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 48, 64])]
    pub batch: Vec<u32>,

    /// Attention heads of all ranks.
    #[arg(long, default_value_t = 64)]
    pub heads: u32,

    /// Elements of a gathered row.
    #[arg(long, default_value_t = 576)]
    pub query_dim: u32,

    /// Elements of a combined row.
    #[arg(long, default_value_t = 512)]
    pub value_dim: u32,

    /// Run the ranks as threads of this process. Otherwise each rank is a process.
    #[arg(long)]
    pub threads: bool,

    /// Set in a process that is one rank of a run.
    #[command(flatten)]
    pub role: Option<Role>,

    /// Allow several ranks on one device, on a real driver with --threads. No path between devices is timed then: for
    /// comparing builds where there is one device.
    #[arg(long)]
    pub oversubscribe: bool,

    /// Ranks, 2 to 16 (default: up to four, as many as there are devices).
    #[arg(long, value_name = "N")]
    pub ranks: Option<u32>,

    /// Most CTAs of an operation (default: the library's).
    #[arg(long, value_name = "CTAS")]
    pub max_grid: Option<u32>,

    /// Timed replays of each graph.
    #[arg(long, default_value_t = 200)]
    pub replays: u32,

    /// Which driver: a real one with enough devices, else the emulated machine; or exactly one of them.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub driver: Choice,

    /// What the emulated machine claims to be.
    #[arg(long, value_enum, default_value_t = ProfileName::H200Nvlink)]
    pub profile: ProfileName,

    /// Seed of the data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Also time other libraries on the same tensors, with this Python program (bench/peers.py), and compare.
    #[arg(long, value_name = "PROGRAM")]
    pub peers: Option<PathBuf>,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,

    /// Also write the JSON object to a file.
    #[arg(long, value_name = "FILE")]
    pub json_file: Option<PathBuf>,

    /// Draw time against bytes, a line for each operation and transport.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// All-gather of heads.
    Gather,
    /// LSE-weighted reduce-scatter.
    Reduce,
    /// A gather of one token with rows of 16 bytes: what the protocol costs with hardly any data. Always timed.
    #[value(skip)]
    Floor,
}

impl Operation {
    /// As options and reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Reduce => "reduce",
            Self::Floor => "floor",
        }
    }
}
