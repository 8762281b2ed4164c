//! What a process tells, as JSON.

use serde::{Deserialize, Serialize};

use crate::channel::{ChannelStatus, KindBytes, PoolStatus};
use crate::error::Result;
use crate::health::Health;
use crate::layout::Transport;

use super::record::Record;

/// The form's name and version. The number changes when a reader of the old form would misread the new one; members may be
/// added.
pub const SCHEMA: &str = "slabfence.status/1";

/// The state of all pools of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// Number of the process, where it runs.
    pub process: u32,
    /// Version of the library that it uses.
    pub version: String,
    /// Its pools, in the order of their creation.
    pub pools: Vec<Pool>,
    /// Why a pool is not among them, a line each.
    pub failures: Vec<String>,
}

/// A [`PoolStatus`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pool {
    /// Number in the process.
    pub number: u64,
    /// This process's rank.
    pub rank: u32,
    /// Number of ranks.
    pub world: u32,
    /// The members' names in the caller's world, in rank order.
    pub members: Vec<u64>,
    /// Number of the rank's device in its process.
    pub device: u32,
    /// The device's identity, as `nvidia-smi -L` prints it; of a MIG instance with `GPU-` in front, and not `MIG-`.
    pub uuid: String,
    /// The device's product name.
    pub device_name: String,
    /// `push` or `pull`.
    pub transport: String,
    /// What may be done with the pool, in words.
    pub phase: String,
    /// `healthy`, `warned` or `failed`.
    pub health: String,
    /// Seconds after which a wait is reported; 0 is never.
    pub warn_seconds: f64,
    /// Seconds after which a wait fails; 0 is never.
    pub fail_seconds: f64,
    /// Channels that there is room for.
    pub max_channels: u32,
    /// Device memory of this rank.
    pub bytes: Bytes,
    /// Bytes of other processes' memory that are mapped here.
    pub imported_bytes: u64,
    /// Bytes of page-locked host memory.
    pub host_bytes: u64,
    /// Why the device was not asked, or did not answer; `null` where it did.
    pub unanswered: Option<String>,
    /// The prepared channels, by name.
    pub channels: Vec<Channel>,
}

/// A [`ChannelStatus`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// What holds it.
    pub owner: Owner,
    /// Epoch that the next operation gets; `null`, as the next three, where the device did not answer.
    pub epoch: Option<u64>,
    /// Operations that have begun on the device since the channel was prepared or last reset.
    pub begun: Option<u64>,
    /// Whether one has begun that has not ended.
    pub running: Option<bool>,
    /// Resets that its memory has seen.
    pub resets: Option<u64>,
    /// Operations that were launched outside captures.
    pub launched: u64,
    /// Operations that were recorded into graphs.
    pub recorded: u64,
    /// Its share of the device memory.
    pub bytes: Bytes,
    /// Its share of the page-locked host memory.
    pub host_bytes: u64,
    /// The latest long wait since the last reset.
    pub warning: Option<Record>,
    /// The first failure since the last reset.
    pub fault: Option<Record>,
}

/// What holds a channel; nothing but eager calls where there is neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Owner {
    /// Whether a capture scope does.
    pub scope: bool,
    /// How many graphs do.
    pub graphs: usize,
}

/// [`KindBytes`], with their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bytes {
    /// Of this kind.
    pub local: u64,
    /// Of this kind.
    pub signal: u64,
    /// Of this kind.
    pub inbox: u64,
    /// Of this kind.
    pub outbox: u64,
    /// Of all kinds.
    pub total: u64,
}

impl Document {
    /// Of this process.
    pub(super) fn new(statuses: Vec<Result<PoolStatus>>) -> Self {
        let (mut pools, mut failures) = (Vec::new(), Vec::new());
        for status in statuses {
            match status {
                Ok(status) => pools.push(Pool::from(&status)),
                Err(error) => failures.push(error.to_string()),
            }
        }
        Self {
            schema: SCHEMA.to_owned(),
            process: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pools,
            failures,
        }
    }
}

impl From<&PoolStatus> for Pool {
    fn from(of: &PoolStatus) -> Self {
        Self {
            number: of.number,
            rank: of.rank.0,
            world: of.members.len() as u32,
            members: of.members.clone(),
            device: of.device,
            uuid: format!("{:?}", of.uuid),
            device_name: of.device_name.clone(),
            transport: match of.transport {
                Transport::Push => "push",
                Transport::Pull => "pull",
            }
            .to_owned(),
            phase: of.phase.clone(),
            health: match of.health {
                Health::Healthy => "healthy",
                Health::Warned => "warned",
                Health::Failed => "failed",
            }
            .to_owned(),
            warn_seconds: of.warn.as_secs_f64(),
            fail_seconds: of.fail.as_secs_f64(),
            max_channels: of.max_channels,
            bytes: of.mapped.into(),
            imported_bytes: of.imported_bytes,
            host_bytes: of.host_bytes,
            unanswered: of.unanswered.clone(),
            channels: of.channels.iter().map(Channel::from).collect(),
        }
    }
}

impl From<&ChannelStatus> for Channel {
    fn from(of: &ChannelStatus) -> Self {
        Self {
            name: of.name.clone(),
            owner: Owner {
                scope: of.scoped,
                graphs: of.graphs,
            },
            epoch: of.epoch,
            begun: of.begun,
            running: of.running,
            resets: of.resets,
            launched: of.launched,
            recorded: of.recorded,
            bytes: of.bytes.into(),
            host_bytes: of.host_bytes,
            warning: of.warning.as_ref().map(Record::from),
            fault: of.fault.as_ref().map(Record::from),
        }
    }
}

impl From<KindBytes> for Bytes {
    fn from(of: KindBytes) -> Self {
        Self {
            local: of.local,
            signal: of.signal,
            inbox: of.inbox,
            outbox: of.outbox,
            total: of.total(),
        }
    }
}
