//! What a pool is doing: from the host's own knowledge, the health page, and a question to the device that has a bound.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use slabfence_sys::CUuuid;

use crate::error::{Error, Result};
use crate::group::Rank;
use crate::health::{FaultReport, Health, MOMENT, Slip};
use crate::layout::{ChannelHealth, Transport};

use super::bytes::KindBytes;
use super::lane::Lane;
use super::memory::Memory;
use super::pool::Pool;
use super::probe::Turn;
use super::rest::Inside;
use super::shared::{Phase, Shared, State, Ties};

/// How long [`Pool::status`] waits.
pub(super) const LIMIT: Duration = Duration::from_millis(250);

/// A pool on this rank, as it was at one time. While operations run, channels are read one after the other.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Number of the pool in this process, from 1 in the order of creation. Other ranks may number it differently.
    pub number: u64,
    /// This rank.
    pub rank: Rank,
    /// The members' names in the caller's world, in rank order.
    pub members: Vec<u64>,
    /// Number of this rank's device in this process.
    pub device: u32,
    /// The device's identity, the same in every process.
    pub uuid: CUuuid,
    /// The device's product name.
    pub device_name: String,
    /// How data cross from rank to rank.
    pub transport: Transport,
    /// What may be done with the pool, in words: `open`, `closed`, that a call is under way, or why it can only be closed.
    pub phase: String,
    /// What kernels have reported since the creation or the last reset.
    pub health: Health,
    /// How long an operation waits before it is reported; zero is never.
    pub warn: Duration,
    /// How long an operation waits before it fails; zero is never.
    pub fail: Duration,
    /// Channels that the contract has room for.
    pub max_channels: u32,
    /// Device memory of this rank that is mapped for the pool, by kind.
    pub mapped: KindBytes,
    /// Bytes of other processes' memory that are mapped here.
    pub imported_bytes: u64,
    /// Bytes of page-locked host memory.
    pub host_bytes: u64,
    /// Why no channel has an epoch, where that is so: the device did not answer in time, or must not be asked.
    pub unanswered: Option<String>,
    /// The prepared channels, by name.
    pub channels: Vec<ChannelStatus>,
}

/// A channel on this rank.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChannelStatus {
    /// Its name.
    pub name: String,
    /// Whether a capture scope owns it.
    pub scoped: bool,
    /// Captured graphs that hold it, each with its executables as one. With none, and no scope, its operations are eager.
    pub graphs: usize,
    /// Epoch that the next operation gets, as the device has it.
    pub epoch: Option<u64>,
    /// Operations that have begun on the device, all CTAs of each, since the channel was prepared or last moved to another
    /// epoch (reset). Those that failed are counted.
    pub begun: Option<u64>,
    /// Whether an operation has begun that has not ended. It may wait for a peer.
    pub running: Option<bool>,
    /// Resets that the channel's memory has seen.
    pub resets: Option<u64>,
    /// Operations that this rank has launched outside captures.
    pub launched: u64,
    /// Operations that this rank has recorded into graphs. Replays are seen in `begun` only.
    pub recorded: u64,
    /// Its share of the pool's device memory.
    pub bytes: KindBytes,
    /// Its share of the page-locked host memory.
    pub host_bytes: u64,
    /// The latest wait past the warning limit since the last reset.
    pub warning: Option<FaultReport>,
    /// The first failure since the last reset.
    pub fault: Option<FaultReport>,
}

impl Pool {
    /// What the pool is doing on this rank. Not collective, allowed on any thread and during captures, also while
    /// operations hang, and of a pool that can only be closed or is closed. Takes a quarter of a second at the longest,
    /// apart from what single driver calls take, none of which waits for the device.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when a close gives the memory back all that time. A device that does not answer is no error:
    /// [`unanswered`](PoolStatus::unanswered) says so.
    pub fn status(&self) -> Result<PoolStatus> {
        self.status_within(LIMIT)
    }

    /// [`status`](Self::status) with another limit.
    ///
    /// # Errors
    ///
    /// Those of `status`.
    pub fn status_within(&self, limit: Duration) -> Result<PoolStatus> {
        let deadline = Instant::now().checked_add(limit);
        let deadline = deadline.ok_or_else(|| Error::Argument {
            operation: "Pool::status_within",
            what: format!("a limit of {limit:?}, which no clock can add; use a shorter one"),
        })?;
        look(&self.shared, deadline)?.finish(deadline)
    }
}

/// A status of which the device's part may not have come.
pub(super) struct Look<'a> {
    shared: &'a Shared,
    status: PoolStatus,
    lanes: Vec<Arc<Lane>>,
    asked: Result<Turn<'a>, String>,
}

/// Takes down what the host knows, and asks the device.
pub(super) fn look(shared: &Shared, deadline: Instant) -> Result<Look<'_>> {
    // First: who waits for it is not inside the pool yet, and keeps no call from it.
    let turn = shared.probe.turn(deadline);
    let (phase, lanes, inside) = {
        let state = shared.read()?;
        let inside = resting(&state).map(|()| shared.callers.enter(&state));
        let lanes: Vec<Arc<Lane>> = state.lanes.values().cloned().collect();
        (state.phase.to_string(), lanes, inside)
    };
    let held = shared
        .look_at_memory(deadline)?
        .ok_or_else(|| Error::Refused {
            operation: "Pool::status",
            why: format!("the pool's memory is being given back: {phase}; ask again"),
        })?;
    let memory = held.as_ref();
    let asked = inside.and_then(|inside| {
        // An abandonment that failed may have unmapped it.
        let memory = memory.filter(|memory| memory.local.is_mapped());
        let memory = memory.ok_or_else(|| unasked(&phase))?;
        let mut turn = turn?;
        ask(&mut turn, &inside, memory, &lanes)?;
        Ok(turn)
    });
    let mapped = memory.map(KindBytes::mapped).unwrap_or_default();
    let per_channel = memory.map(KindBytes::per_channel).unwrap_or_default();
    let imported_bytes = memory.map_or(0, Memory::imported);
    drop(held);
    let channels = lanes.iter().map(|lane| channel(shared, lane, per_channel));
    let (info, contract) = (shared.device.info(), &shared.contract);
    let status = PoolStatus {
        number: shared.number,
        rank: shared.group.me(),
        members: shared.group.members().to_vec(),
        device: info.ordinal,
        uuid: info.uuid,
        device_name: info.name.clone(),
        transport: contract.transport,
        phase,
        health: shared.page.health()?,
        warn: contract.warn,
        fail: contract.fail,
        max_channels: contract.max_channels,
        mapped,
        imported_bytes,
        host_bytes: (shared.page.bytes() + shared.probe.bytes()) as u64,
        unanswered: None,
        channels: channels.collect::<Result<_>>()?,
    };
    Ok(Look {
        shared,
        status,
        lanes,
        asked,
    })
}

fn channel(shared: &Shared, lane: &Lane, bytes: KindBytes) -> Result<ChannelStatus> {
    Ok(ChannelStatus {
        name: lane.name.clone(),
        scoped: lane.scoped.load(Ordering::Acquire),
        graphs: lane.graphs.load(Ordering::Acquire),
        epoch: None,
        begun: None,
        running: None,
        resets: None,
        launched: lane.launched.load(Ordering::Relaxed),
        recorded: lane.recorded.load(Ordering::Relaxed),
        bytes,
        host_bytes: size_of::<ChannelHealth>() as u64,
        warning: shared.report(lane, Slip::Warning)?,
        fault: shared.report(lane, Slip::Fault)?,
    })
}

/// Whether the memory stays until the device was waited for. Calls that give it back wait for the device at their beginning,
/// so they must not have begun; without peers they do not wait. Why not, in words.
fn resting(state: &State) -> Result<(), String> {
    let stays = match &state.phase {
        Phase::Open | Phase::Broken(_) => state.ties != Ties::Loose,
        Phase::Busy(call) => ["prepare", "reset", "retire", "rollback"].contains(call),
        Phase::Closed => false,
    };
    match stays {
        true => Ok(()),
        false => Err(unasked(&state.phase)),
    }
}

fn unasked(phase: &impl fmt::Display) -> String {
    format!("the device is not asked: {phase}")
}

#[allow(unsafe_code, reason = "the copies end after this returns")]
fn ask(
    turn: &mut Turn<'_>,
    _inside: &Inside<'_>,
    memory: &Memory,
    lanes: &[Arc<Lane>],
) -> Result<(), String> {
    let indices = lanes.iter().map(|lane| lane.index);
    // SAFETY: the caller has entered the pool in a phase in which no call gives memory back; each that begins later waits for
    // it to leave, and then for the device.
    unsafe { turn.ask(memory, indices) }
}

impl Look<'_> {
    /// Waits for the device's part.
    pub(super) fn finish(self, deadline: Instant) -> Result<PoolStatus> {
        let mut status = self.status;
        let answer = self.asked.and_then(|mut asked| {
            asked.wait(deadline)?;
            Ok(asked)
        });
        match answer {
            Ok(asked) => {
                for (channel, lane) in status.channels.iter_mut().zip(&self.lanes) {
                    let counters = asked.counters(lane.index)?;
                    let first = lane.first_epoch.load(Ordering::Relaxed);
                    channel.epoch = Some(counters.epoch);
                    channel.begun = Some(counters.epoch.saturating_sub(first));
                    channel.running = Some(counters.running);
                    channel.resets = Some(counters.resets);
                }
            }
            Err(why) => status.unanswered = Some(why),
        }
        // It may have changed while the device was waited for.
        status.health = self.shared.page.health()?;
        let slip = match status.health {
            Health::Failed => Slip::Fault,
            Health::Warned => Slip::Warning,
            Health::Healthy => return Ok(status),
        };
        let told = |channel: &ChannelStatus| match slip {
            Slip::Fault => channel.fault.is_some(),
            Slip::Warning => channel.warning.is_some(),
        };
        if !status.channels.iter().any(told) {
            let moment = deadline.min(Instant::now() + MOMENT);
            self.shared.settle(slip, &self.lanes, moment)?;
            for (channel, lane) in status.channels.iter_mut().zip(&self.lanes) {
                channel.warning = self.shared.report(lane, Slip::Warning)?;
                channel.fault = self.shared.report(lane, Slip::Fault)?;
            }
            // A reset may have come between.
            status.health = self.shared.page.health()?;
        }
        Ok(status)
    }
}
