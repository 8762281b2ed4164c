//! The host-mapped page of a pool: a header, then one pair of records a channel.

use core::mem::offset_of;

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

    /// One of a channel's records, if a kernel has written it.
    pub(crate) fn record(&self, channel: usize, slip: Slip) -> Result<Option<FaultRecord>> {
        let base = Self::offset(channel)
            + match slip {
                Slip::Warning => offset_of!(ChannelHealth, warning),
                Slip::Fault => offset_of!(ChannelHealth, fault),
            };
        let word = |field: usize| self.buffer.load(base + field);
        // Written last, with release; loaded first, with acquire.
        let state = word(offset_of!(FaultRecord, state))?;
        if state == 0 {
            return Ok(None);
        }
        let (cause, operation) = halves(word(offset_of!(FaultRecord, cause))?);
        let (rank, late_rank) = halves(word(offset_of!(FaultRecord, rank))?);
        let (cta, phase) = halves(word(offset_of!(FaultRecord, cta))?);
        Ok(Some(FaultRecord {
            state,
            cause,
            operation,
            rank,
            late_rank,
            cta,
            phase,
            expected: word(offset_of!(FaultRecord, expected))?,
            seen: word(offset_of!(FaultRecord, seen))?,
            waited: word(offset_of!(FaultRecord, waited))?,
            tag: word(offset_of!(FaultRecord, tag))?,
            late_ranks: word(offset_of!(FaultRecord, late_ranks))?,
            reserved: [0; 7],
        }))
    }

    /// Forgets a channel's records, and the state of the pool where no other channel has any. Only while no kernel of the
    /// pool runs.
    pub(crate) fn forget(&self, channel: usize) -> Result<()> {
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
        for offset in (0..self.buffer.len()).step_by(size_of::<u64>()) {
            self.buffer.store(offset, 0)?;
        }
        Ok(())
    }

    const fn offset(channel: usize) -> usize {
        size_of::<HealthHeader>() + channel * size_of::<ChannelHealth>()
    }
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
