//! Reading channels' counters while kernels run, or hang: copies on a stream of its own, waited for with a bound.

use core::mem::offset_of;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crate::driver::{Device, PinnedBuffer, Stream};
use crate::error::Result;
use crate::layout::{LocalBlock, started_warps, started_word};

use super::memory::Memory;

/// Between two looks at a device that has not answered.
const PAUSE: Duration = Duration::from_micros(200);
/// The first words of a [`LocalBlock`], which are copied.
const BYTES: usize = offset_of!(LocalBlock, reserved1);

/// What copies of counters need.
#[derive(Debug)]
pub(super) struct Probe {
    // Both are made with the pool: an allocation may wait for what runs on the device.
    stream: Option<Stream>,
    buffer: Option<PinnedBuffer>,
    /// Whether copies were enqueued that have not been seen to end. Held by who asks, and by nobody else.
    pending: Mutex<bool>,
}

/// A channel's counters, as its device has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counters {
    /// Epoch of the next operation.
    pub epoch: u64,
    pub resets: u64,
    /// Whether some CTA has begun an operation that has not ended.
    pub running: bool,
}

/// The right to ask, and what was asked.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    stream: &'a Stream,
    buffer: &'a PinnedBuffer,
    pending: MutexGuard<'a, bool>,
}

impl Probe {
    pub(super) fn new(device: &Device, channels: usize) -> Result<Self> {
        Ok(Self {
            buffer: Some(PinnedBuffer::new(device, channels * BYTES)?),
            stream: Some(Stream::new(device)?),
            pending: Mutex::new(false),
        })
    }

    /// Bytes of page-locked memory.
    pub(super) fn bytes(&self) -> usize {
        self.buffer.as_ref().map_or(0, PinnedBuffer::len)
    }

    /// Waits its turn to ask, which whoever waits for an answer has. Why there is none, in words.
    pub(super) fn turn(&self, deadline: Instant) -> Result<Turn<'_>, String> {
        let (Some(stream), Some(buffer)) = (&self.stream, &self.buffer) else {
            return Err("there is nothing left to ask with".to_owned());
        };
        let pending = self.lock(deadline)?;
        let mut turn = Turn {
            stream,
            buffer,
            pending,
        };
        // Its answer would be taken for this one's.
        if *turn.pending && !turn.has_ended()? {
            return Err("the device has not answered an earlier question either".to_owned());
        }
        Ok(turn)
    }

    fn lock(&self, deadline: Instant) -> Result<MutexGuard<'_, bool>, String> {
        loop {
            match self.pending.try_lock() {
                Ok(pending) => return Ok(pending),
                Err(TryLockError::Poisoned(pending)) => return Ok(pending.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err("another thread asks the device, which has not answered".to_owned());
                }
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            }
        }
    }
}

impl Turn<'_> {
    /// Enqueues copies of the counters of these channels. Waits for nothing of the device. Why not, in words.
    ///
    /// # Safety
    ///
    /// Nobody frees the memory before the device, or the probe's stream, was waited for.
    #[allow(unsafe_code, reason = "the copies end after this returns")]
    pub(super) unsafe fn ask(
        &mut self,
        memory: &Memory,
        indices: impl Iterator<Item = usize>,
    ) -> Result<(), String> {
        let words = |error: crate::Error| error.to_string();
        for index in indices {
            let from = memory.local.range(index).map_err(words)?.ptr();
            *self.pending = true;
            // SAFETY: the range is of mapped memory, which stays by the contract. Stream and buffer stay with the
            // probe, whose drop keeps them for good unless the copies have been seen to end; the stream never captures.
            let enqueued = unsafe {
                self.buffer
                    .copy_from(index * BYTES, from.device_ptr(), BYTES, self.stream)
            };
            enqueued.map_err(words)?;
        }
        Ok(())
    }

    /// Waits for the copies. Why they have not come, in words.
    pub(super) fn wait(&mut self, deadline: Instant) -> Result<(), String> {
        while !self.has_ended()? {
            if Instant::now() >= deadline {
                return Err("the device has not answered in time".to_owned());
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// The counters of a channel that was asked for, once the copies have ended.
    pub(super) fn counters(&self, index: usize) -> Result<Counters> {
        let word = |field: usize| self.buffer.load(index * BYTES + field);
        let begun = started_warps(word(offset_of!(LocalBlock, started))?);
        let ended = word(offset_of!(LocalBlock, retired))?;
        // The count of those that began is a shorter word, and wraps.
        let in_flight = started_word(begun, 0) != started_word(ended, 0);
        Ok(Counters {
            epoch: word(offset_of!(LocalBlock, epoch))?,
            resets: word(offset_of!(LocalBlock, generation))?,
            running: in_flight || word(offset_of!(LocalBlock, ticket))? != 0,
        })
    }

    fn has_ended(&mut self) -> Result<bool, String> {
        let ended = self.stream.query_during_captures();
        let ended = ended.map_err(|error| error.to_string())?;
        *self.pending = !ended;
        Ok(ended)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let pending = match self.pending.get_mut() {
            Ok(pending) => *pending,
            Err(poisoned) => *poisoned.into_inner(),
        };
        let stream = self.stream.as_ref().filter(|_| pending);
        let ended = stream.is_none_or(|it| it.query_during_captures().unwrap_or(false));
        if !ended {
            // A copy may still come, and the driver may wait for it before it frees either.
            std::mem::forget((self.stream.take(), self.buffer.take()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Contract;
    use crate::channel::memory::Cut;
    use crate::driver::fake;
    use slabfence_sys::CUresult;

    fn ask<'a>(probe: &'a Probe, memory: &Memory) -> Result<Turn<'a>, String> {
        let mut turn = probe.turn(Instant::now())?;
        // SAFETY: the fake copies nothing.
        #[allow(unsafe_code, reason = "the fake copies nothing")]
        unsafe { turn.ask(memory, [0, 2].into_iter()) }?;
        Ok(turn)
    }

    fn freed() -> Vec<String> {
        let calls = fake::calls().into_iter();
        let frees =
            |call: &String| call.starts_with("cuStreamDestroy") || call.contains("FreeHost");
        calls.filter(frees).collect()
    }

    #[test]
    fn what_a_copy_may_still_use_is_kept_and_everything_else_is_freed() {
        let contract = Contract::new(4, 64, 64, 8);
        let cut = Cut::new(&contract, 2, contract.staging(2).unwrap()).unwrap();
        let device = fake::device();
        let memory = Memory::allocate(&device, &contract, &cut).unwrap();
        let probe = Probe::new(&device, 4).unwrap();
        fake::fail("cuStreamQuery", CUresult::CUDA_ERROR_NOT_READY);
        let late = ask(&probe, &memory).and_then(|mut asked| asked.wait(Instant::now()));
        assert_eq!(late.unwrap_err(), "the device has not answered in time");
        let again = ask(&probe, &memory).unwrap_err();
        assert_eq!(
            again,
            "the device has not answered an earlier question either"
        );
        fake::fail("cuStreamQuery", CUresult::CUDA_SUCCESS);
        fake::calls();
        ask(&probe, &memory).unwrap().wait(Instant::now()).unwrap();
        let copies = fake::calls().into_iter();
        let copies = copies.filter(|call| call.starts_with("cuMemcpyDtoHAsync"));
        assert_eq!(copies.count(), 2);
        drop(probe);
        assert_eq!(freed().len(), 2);

        let probe = Probe::new(&device, 4).unwrap();
        fake::fail("cuStreamQuery", CUresult::CUDA_ERROR_NOT_READY);
        ask(&probe, &memory).unwrap();
        drop(probe);
        fake::fail("cuStreamQuery", CUresult::CUDA_SUCCESS);
        assert_eq!(freed(), Vec::<String>::new());
    }
}
