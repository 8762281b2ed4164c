//! First use of every path between ranks, as the last step of a pool's creation.
//!
//! What the driver grants may still not work: stores can be lost or misdirected by ACS or IOMMU settings, inside containers
//! and virtual machines. So two small gathers, one a staging slot, run over the very memory, kernels and waits that
//! operations will use, in both directions at once, with a pattern that no other rank, slot or place has.

use std::sync::Arc;
use std::time::Duration;

use crate::collective::AllGatherHeads;
use crate::driver::{Apart, DeviceBuffer, Stream};
use crate::error::{Error, Result};
use crate::group::Rank;
use crate::health::Slip;
use crate::layout::{Cause, DType, Slot};

use super::lane::{Channel, Lane};
use super::memory::Memory;
use super::pool::Pool;
use super::prepare::FIRST_EPOCH;

/// Longest wait for a peer: all of them have just answered on the host.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of a row, the fewest that an operation takes.
const ROW: usize = 16;
/// The channel whose ranges are used; no channel is prepared yet.
const INDEX: usize = 0;
/// Name in reports.
const NAME: &str = "slabfence.self-test";

impl Pool {
    /// Tries every path of this pool, on all ranks. Leaves the ranges as they were.
    pub(super) fn self_test(&self) -> Result<()> {
        let shared = &self.shared;
        let group = &shared.group;
        let lane = group.agree("create: self test, prepare", self.trial_lane())?;
        let channel = Channel {
            pool: Arc::clone(shared),
            lane: Arc::new(lane),
        };
        let trial = group.agree("create: self test, allocate", Trial::new(&channel))?;
        for slot in Slot::BOTH {
            // Apart from the others' copies: on a device that ranks share, a copy could stand behind a waiting kernel.
            let sent = trial.send(slot);
            group.agree("create: self test, upload", sent)?;
            let done = trial.exchange();
            group.agree("create: self test, exchange", done)?;
            group.agree("create: self test, compare", trial.compare(slot))?;
        }
        // Every rank is at rest now: nothing of the trial is on its way any more.
        group.agree("create: self test, clear", self.clear_trial())
    }

    /// A channel that nobody can ask for, with a short limit.
    fn trial_lane(&self) -> Result<Lane> {
        let shared = &self.shared;
        let mut header = shared.with_memory("Pool::create", |memory| {
            memory.set_epoch(INDEX, FIRST_EPOCH, 0)?;
            shared.source(memory).header(INDEX, 1)
        })?;
        let clock = shared.page.clock();
        // Less than the host waits for the device: the kernel's report says more.
        let limit = LIMIT.min(shared.group.timeout() / 4);
        let limit = match shared.contract.fail {
            Duration::ZERO => limit,
            fail => fail.min(limit),
        };
        header.fail_ticks = clock.ticks(limit);
        header.warn_ticks = 0;
        Ok(Lane::new(INDEX, NAME.to_owned(), header, FIRST_EPOCH))
    }

    fn clear_trial(&self) -> Result<()> {
        let clear = |memory: &Memory| memory.clear(INDEX);
        self.shared.with_memory("Pool::create", clear)
    }
}

/// One rank's part.
#[derive(Debug)]
struct Trial<'a> {
    channel: &'a Channel,
    stream: Stream,
    input: DeviceBuffer,
    output: DeviceBuffer,
}

impl<'a> Trial<'a> {
    fn new(channel: &'a Channel) -> Result<Self> {
        let pool = channel.pool();
        let own = pool.limits.heads as usize * ROW;
        Ok(Self {
            channel,
            stream: Stream::new(&pool.device)?,
            input: DeviceBuffer::new(&pool.device, own)?,
            output: DeviceBuffer::new(&pool.device, own * pool.limits.world as usize)?,
        })
    }

    fn send(&self, slot: Slot) -> Result<()> {
        let mine = pattern(self.channel.pool().group.me(), slot, self.input.len());
        self.input.write(0, &mine)?;
        // Neither a pattern nor what a failed operation leaves.
        self.output.fill(0)
    }

    #[allow(unsafe_code, reason = "enqueues an operation on buffers of its own")]
    fn exchange(&self) -> Result<()> {
        let pool = self.channel.pool();
        let gather = AllGatherHeads {
            input: self.input.ptr(),
            output: self.output.ptr(),
            batch: 1,
            dtype: DType::U8,
            head_dim: Some(ROW as u32),
        };
        // SAFETY: the buffers have the shapes of one token of rows of `ROW` bytes; they are freed by the driver's `cuMemFree`,
        // which waits for the kernel, and the kernel ends within its limit.
        unsafe { gather.enqueue(self.channel, &self.stream) }?;
        let drained = pool.drain();
        if let Some(report) = pool.report(&self.channel.lane, Slip::Fault)? {
            let path = match report.cause {
                Some(Cause::EntryTimeout | Cause::DataTimeout) => {
                    format!(
                        "what {} writes to {} does not arrive: ",
                        report.late(),
                        report.rank
                    )
                }
                _ => String::new(),
            };
            return Err(refuse(format!("{path}{report}; {}", Apart::Lost)));
        }
        drained.map_err(|error| refuse(format!("{error}; {}", Apart::Lost)))
    }

    fn compare(&self, slot: Slot) -> Result<()> {
        let mut output = vec![0; self.output.len()];
        self.output.read(0, &mut output)?;
        let (own, me) = (self.input.len(), self.channel.pool().group.me());
        for (rank, seen) in (0u32..).map(Rank).zip(output.chunks_exact(own)) {
            let expected = pattern(rank, slot, own);
            let pairs = seen.iter().zip(&expected);
            if let Some(place) = pairs.clone().position(|(seen, expected)| seen != expected) {
                let wrong = pairs.filter(|(seen, expected)| seen != expected).count();
                return Err(refuse(format!(
                    "what {rank} sent to {me} by way of slot {slot:?} is not what came: {wrong} of {own} bytes differ, the first at {place}: {:#04x} in place of {:#04x}; {}",
                    seen[place],
                    expected[place],
                    Apart::Lost
                )));
            }
        }
        Ok(())
    }
}

fn refuse(why: String) -> Error {
    Error::Refused {
        operation: "Pool::create",
        why,
    }
}

/// Bytes that tell rank, slot and place, and hold every bit both ways.
fn pattern(rank: Rank, slot: Slot, bytes: usize) -> Vec<u8> {
    let seed = (rank.0 as u64 + 1) << 32 | (slot as u64 + 1) << 16;
    let byte = |place: usize| {
        let mixed = (seed ^ place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 56) as u8
    };
    (0..bytes).map(byte).collect()
}
