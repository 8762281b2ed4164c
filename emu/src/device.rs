//! Devices, their primary contexts, and what each host thread has current.

use std::collections::BTreeMap;
use std::thread::ThreadId;

use slabfence_sys::{CUgraphEdgeData, CUgraphNode};

use crate::code::{Code, Status};
use crate::handle::{self, Kind};
use crate::machine::State;
use crate::operations::OpId;
use crate::settings::Settings;

/// One device with its primary context.
#[derive(Debug, Default)]
pub(crate) struct Device {
    /// How often the primary context is retained; 0: there is none.
    pub(crate) retained: u32,
    /// Counts the primary contexts that the device has had: the context's id.
    pub(crate) context: u64,
    /// What broke the context. Every call on it answers this.
    pub(crate) error: Option<Code>,
    /// What its memory pool was told, by attribute.
    pub(crate) pool: BTreeMap<u32, u64>,
    /// What its context was told.
    pub(crate) settings: Settings,
}

/// Which calls a thread or a capture forbids (the driver's capture modes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaptureMode {
    /// Unsafe calls are forbidden to all threads.
    Global,
    /// Unsafe calls are forbidden to the capturing thread.
    ThreadLocal,
    /// Nothing is forbidden.
    Relaxed,
}

/// What the driver keeps per host thread.
#[derive(Debug)]
pub(crate) struct Thread {
    /// The thread.
    pub(crate) id: ThreadId,
    /// Devices whose contexts are pushed, the current one last.
    pub(crate) stack: Vec<u32>,
    /// `cuThreadExchangeStreamCaptureMode`.
    pub(crate) mode: CaptureMode,
    /// The array that `cuStreamGetCaptureInfo` last gave out.
    pub(crate) frontier: Vec<CUgraphNode>,
    /// What goes with it: what kind each of those dependencies is.
    pub(crate) frontier_data: Vec<CUgraphEdgeData>,
}

impl Thread {
    /// This thread, with nothing current.
    pub(crate) fn new(id: ThreadId) -> Thread {
        Thread {
            id,
            stack: Vec::new(),
            mode: CaptureMode::Global,
            frontier: Vec::new(),
            frontier_data: Vec::new(),
        }
    }

    /// Whether nothing is kept that a new one would not have.
    pub(crate) fn is_fresh(&self) -> bool {
        self.stack.is_empty() && self.mode == CaptureMode::Global && self.frontier.is_empty()
    }
}

impl State {
    /// Refuses calls before `cuInit`.
    pub(crate) fn ready(&self) -> Status {
        if self.initialised {
            Ok(())
        } else {
            Err(Code::NOT_INITIALIZED)
        }
    }

    /// A device by ordinal.
    pub(crate) fn device(&self, ordinal: i32) -> Status<u32> {
        self.ready()?;
        let device = u32::try_from(ordinal).map_err(|_| Code::INVALID_DEVICE)?;
        if (device as usize) < self.devices.len() {
            Ok(device)
        } else {
            Err(Code::INVALID_DEVICE)
        }
    }

    /// The handle of a device's primary context.
    pub(crate) fn context_handle(&self, device: u32) -> u64 {
        handle::handle(Kind::Context, self.slot, u64::from(device) + 1)
    }

    /// The handle of a device's memory pool.
    pub(crate) fn pool_handle(&self, device: u32) -> u64 {
        handle::handle(Kind::Pool, self.slot, u64::from(device) + 1)
    }

    /// The device of a memory pool.
    pub(crate) fn pool_device(&self, pool: u64) -> Status<u32> {
        self.ready()?;
        let number = handle::number(Kind::Pool, self.slot, pool).ok_or(Code::INVALID_VALUE)?;
        let device = number.checked_sub(1).ok_or(Code::INVALID_VALUE)?;
        self.device(device as i32).map_err(|_| Code::INVALID_VALUE)
    }

    /// The device of a context that exists.
    pub(crate) fn context_device(&self, context: u64) -> Status<u32> {
        let number =
            handle::number(Kind::Context, self.slot, context).ok_or(Code::INVALID_CONTEXT)?;
        let device = number.checked_sub(1).ok_or(Code::INVALID_CONTEXT)? as u32;
        match self.devices.get(device as usize) {
            None => Err(Code::INVALID_CONTEXT),
            Some(found) if found.retained == 0 => Err(Code::CONTEXT_IS_DESTROYED),
            Some(_) => Ok(device),
        }
    }

    /// The device of the thread's current context, whole or broken.
    pub(crate) fn current(&self, thread: &Thread) -> Status<u32> {
        self.ready()?;
        let &device = thread.stack.last().ok_or(Code::INVALID_CONTEXT)?;
        if self.devices[device as usize].retained == 0 {
            return Err(Code::CONTEXT_IS_DESTROYED);
        }
        Ok(device)
    }

    /// Refuses work on a context that is gone or broken.
    pub(crate) fn whole(&self, device: u32) -> Status {
        let device = &self.devices[device as usize];
        match device.error {
            _ if device.retained == 0 => Err(Code::CONTEXT_IS_DESTROYED),
            Some(code) => Err(code),
            None => Ok(()),
        }
    }

    /// The device of the thread's current context, which is whole.
    pub(crate) fn working(&self, thread: &Thread) -> Status<u32> {
        let device = self.current(thread)?;
        self.whole(device)?;
        Ok(device)
    }

    /// `cuDevicePrimaryCtxRetain`: the context's handle.
    pub(crate) fn retain_context(&mut self, device: u32) -> u64 {
        let found = &mut self.devices[device as usize];
        if found.retained == 0 {
            found.context += 1;
            found.error = None;
            // Flags are set before there is a context, and stay.
            let flags = found.settings.flags;
            found.settings = Settings::default();
            found.settings.flags = flags;
        }
        found.retained += 1;
        self.context_handle(device)
    }

    /// `cuDevicePrimaryCtxRelease`. With the last reference go the context's streams, events, modules and memory.
    ///
    /// Work that still runs is cut off: gives the operations that ended so.
    pub(crate) fn release_context(&mut self, device: u32) -> Status<Vec<OpId>> {
        let cut = self.engine.outstanding(Some(device));
        match self.devices[device as usize].retained {
            0 => return Err(Code::INVALID_CONTEXT),
            1 if !cut.is_empty() => self.works("the end of a context")?,
            _ => {}
        }
        let found = &mut self.devices[device as usize];
        found.retained -= 1;
        if found.retained > 0 {
            return Ok(Vec::new());
        }
        self.engine.abort(device);
        let mut left = self.memory.free_context(device);
        left += self.streams.forget(device) + self.events.forget(device) + self.unload_all(device);
        self.abandoned += left;
        if left > 0 {
            log::warn!("emulator: the context of device {device} took {left} live objects with it");
        }
        Ok(cut)
    }

    /// `cuCtxGetId`'s answer: differs between successive primary contexts of a device.
    pub(crate) fn context_id(&self, device: u32) -> u64 {
        self.devices[device as usize].context << 8 | u64::from(device)
    }
}
