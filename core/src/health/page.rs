//! The host-mapped page of a pool: a header, then one pair of records a channel.

use core::mem::offset_of;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::driver::{Device, DevicePtr, PinnedBuffer};
use crate::error::Result;
use crate::layout::{ChannelHealth, FaultRecord, HealthHeader};

use super::{Clock, Health};

/// Page-locked memory that kernels write records to. Read without any driver call, so also while a device hangs.
#[derive(Debug)]
pub(crate) struct HealthPage {
    buffer: PinnedBuffer,
    channels: usize,
    clock: Clock,
    /// For each [`Slip`]: whether the header has told of one for a whole [`MOMENT`] that no channel had.
    in_vain: [AtomicBool; 2],
}

/// Which of a channel's records.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slip {
    Warning,
    Fault,
}

impl HealthPage {
    /// All zero: nothing has happened.
    pub(crate) fn new(device: &Device, channels: usize, clock: Clock) -> Result<Self> {
        let bytes = size_of::<HealthHeader>() + channels * size_of::<ChannelHealth>();
        Ok(Self {
            buffer: PinnedBuffer::new(device, bytes)?,
            channels,
            clock,
            in_vain: Default::default(),
        })
    }

    /// How many channels have records.
    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// Epoch of the operation that failed first on a channel; zero: none has.
    pub(crate) fn fault_epoch(&self, channel: usize) -> Result<u64> {
        let fault = Self::offset(channel) + offset_of!(ChannelHealth, fault);
        self.buffer.load(fault + offset_of!(FaultRecord, state))
    }

    /// Bytes of page-locked memory.
    pub(crate) fn bytes(&self) -> usize {
        self.buffer.len()
    }

    /// What kernels measure their waits by.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Address of the header, for parameter blocks.
    pub(crate) fn header(&self) -> DevicePtr {
        self.buffer.ptr()
    }

    /// Address of a channel's records, for parameter blocks.
    pub(crate) fn channel(&self, channel: usize) -> Option<DevicePtr> {
        let inside = (channel < self.channels).then(|| Self::offset(channel))?;
        self.buffer.ptr().offset(inside as u64)
    }

    /// The pool's state: one load.
    pub(crate) fn health(&self) -> Result<Health> {
        Ok(match halves(self.buffer.load(HEADER_WORD)?) {
            (0, 0) => Health::Healthy,
            (0, _) => Health::Warned,
            _ => Health::Failed,
        })
    }

    /// Waits until one of these channels has a record, where the header says that something has happened, and until
    /// `deadline` at the longest. A warp that finds the record claimed sets the header while the one that claimed it may still
    /// be writing, so there can be a state with no record yet. It is not waited for where no channel is left, nor once more when
    /// it has not come in a whole [`MOMENT`]: its device has stopped.
    pub(crate) fn settle(
        &self,
        slip: Slip,
        channels: impl ExactSizeIterator<Item = usize> + Clone,
        deadline: Instant,
    ) -> Result<()> {
        let begin = Instant::now();
        let in_vain = &self.in_vain[slip as usize];
        while channels.len() > 0 && self.says(slip)? && !in_vain.load(Ordering::Relaxed) {
            for channel in channels.clone() {
                if self.record(channel, slip)?.is_some() {
                    return Ok(());
                }
            }
            if begin.elapsed() >= MOMENT {
                in_vain.store(true, Ordering::Relaxed);
            }
            if Instant::now() >= deadline {
                break;
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Whether the header says that there is such a record.
    fn says(&self, slip: Slip) -> Result<bool> {
        let (fault, warning) = halves(self.buffer.load(HEADER_WORD)?);
        Ok(match slip {
            Slip::Warning => warning != 0,
            Slip::Fault => fault != 0,
        })
    }

    /// One of a channel's records, if a kernel has written it.
    pub(crate) fn record(&self, channel: usize, slip: Slip) -> Result<Option<FaultRecord>> {
        let base = Self::offset(channel)
            + match slip {
                Slip::Warning => offset_of!(ChannelHealth, warning),
                Slip::Fault => offset_of!(ChannelHealth, fault),
            };
        let read = || -> Result<Words> {
            let mut words = [0; WORDS];
            // The state first, with acquire: it was written last, with release.
            for (index, word) in words.iter_mut().enumerate() {
                *word = self.buffer.load(base + index * size_of::<u64>())?;
            }
            Ok(words)
        };
        Ok(settled(read)?.map(|words| {
            let word = |field: usize| words[field / size_of::<u64>()];
            let (cause, operation) = halves(word(offset_of!(FaultRecord, cause)));
            let (rank, late_rank) = halves(word(offset_of!(FaultRecord, rank)));
            let (cta, phase) = halves(word(offset_of!(FaultRecord, cta)));
            FaultRecord {
                state: word(offset_of!(FaultRecord, state)),
                cause,
                operation,
                rank,
                late_rank,
                cta,
                phase,
                expected: word(offset_of!(FaultRecord, expected)),
                seen: word(offset_of!(FaultRecord, seen)),
                waited: word(offset_of!(FaultRecord, waited)),
                tag: word(offset_of!(FaultRecord, tag)),
                late_ranks: word(offset_of!(FaultRecord, late_ranks)),
                reserved: [0; 7],
            }
        }))
    }

    /// Forgets a channel's records, and the state of the pool where no other channel has any. Only while no kernel of the
    /// pool runs.
    pub(crate) fn forget(&self, channel: usize) -> Result<()> {
        self.wait_again();
        let base = Self::offset(channel);
        for offset in (0..size_of::<ChannelHealth>()).step_by(size_of::<u64>()) {
            self.buffer.store(base + offset, 0)?;
        }
        let (mut fault, mut warning) = halves(self.buffer.load(HEADER_WORD)?);
        for (slip, half) in [(Slip::Fault, &mut fault), (Slip::Warning, &mut warning)] {
            let mut others = 0..self.channels;
            let left = others.try_fold(false, |left, other| {
                Ok::<_, crate::error::Error>(left || self.record(other, slip)?.is_some())
            })?;
            if !left {
                *half = 0;
            }
        }
        let word = u64::from(fault) | u64::from(warning) << 32;
        self.buffer.store(HEADER_WORD, word)
    }

    /// Forgets everything. Only while no kernel of the pool runs.
    pub(crate) fn clear(&self) -> Result<()> {
        self.wait_again();
        for offset in (0..self.buffer.len()).step_by(size_of::<u64>()) {
            self.buffer.store(offset, 0)?;
        }
        Ok(())
    }

    fn wait_again(&self) {
        for in_vain in &self.in_vain {
            in_vain.store(false, Ordering::Relaxed);
        }
    }

    const fn offset(channel: usize) -> usize {
        size_of::<HealthHeader>() + channel * size_of::<ChannelHealth>()
    }
}

/// Longest wait for a record of which the header tells: a warp that lives writes one in microseconds.
pub(crate) const MOMENT: Duration = Duration::from_millis(100);
/// Between two looks.
const PAUSE: Duration = Duration::from_micros(50);

/// Words of a record that mean something.
const WORDS: usize = offset_of!(FaultRecord, reserved) / size_of::<u64>();
type Words = [u64; WORDS];
/// Readings of one record: kernels write one in microseconds, and the next after a wait.
const READINGS: usize = 16;

/// A record that was read twice alike, or the last reading; `None` where there is none. A kernel replaces a warning by the
/// next one and has no word that says that it is about to. So a reading from while it does can still be of both, where the
/// kernel, or what carries its stores, pauses between two of them.
fn settled(mut read: impl FnMut() -> Result<Words>) -> Result<Option<Words>> {
    let mut last = read()?;
    for _ in 1..READINGS {
        // The state, which stays zero until everything else is there.
        if last[0] == 0 {
            return Ok(None);
        }
        let again = read()?;
        if again == last {
            break;
        }
        last = again;
    }
    Ok((last[0] != 0).then_some(last))
}

/// The header's two fields are read as one word; kernels, which know one of them each, write them apart.
const HEADER_WORD: usize = offset_of!(HealthHeader, fault);

// Kernels write the records' pairs of 32-bit fields as one word.
const _: () = {
    assert!(offset_of!(HealthHeader, warning) == HEADER_WORD + 4);
    assert!(offset_of!(FaultRecord, operation) == offset_of!(FaultRecord, cause) + 4);
    assert!(offset_of!(FaultRecord, late_rank) == offset_of!(FaultRecord, rank) + 4);
    assert!(offset_of!(FaultRecord, phase) == offset_of!(FaultRecord, cta) + 4);
};

const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(test)]
mod tests;
