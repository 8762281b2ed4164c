//! Which streams capture, as far as that was begun through this library, and what of graphs could not be ended.

use std::sync::{MutexGuard, PoisonError};

use slabfence_sys::{CUcontext, CUstream};

use super::device::Device;
use super::fork;
use super::stream::{self, CaptureStatus};
use crate::error::{Error, Result};

/// The streams of which there are values, so that none is asked that its host may have destroyed.
#[derive(Debug, Default)]
pub(super) struct Captures {
    known: Vec<Known>,
    /// A context for each graph or executable of it, made or being made, that the driver has failed to end: it may still be
    /// there, although nobody has it any more.
    strays: Vec<CUcontext>,
}

#[derive(Debug)]
struct Known {
    context: CUcontext,
    stream: CUstream,
    /// Several may be of one stream.
    values: usize,
    /// Whether a capture was begun of which no end was seen.
    captures: bool,
}

impl Captures {
    fn find(&mut self, device: &Device, stream: CUstream) -> Option<&mut Known> {
        let mut all = self.known.iter_mut();
        all.find(|known| (known.context, known.stream) == (device.context(), stream))
    }
}

impl Device {
    /// The list, for as long as the guard lives. One for all that have opened a device by this driver, since they share its
    /// context.
    pub(super) fn capturing(&self) -> Result<MutexGuard<'_, Captures>> {
        fork::refuse()?;
        let list = self.driver().captures().lock();
        Ok(list.unwrap_or_else(PoisonError::into_inner))
    }

    /// There is one more value of a stream. Does nothing in a forked child, nor do the others.
    pub(super) fn know_stream(&self, stream: CUstream) {
        let Ok(mut list) = self.capturing() else {
            return;
        };
        match list.find(self, stream) {
            Some(known) => known.values += 1,
            None => list.known.push(Known {
                context: self.context(),
                stream,
                values: 1,
                captures: false,
            }),
        }
    }

    /// A capture has begun on a stream, or has ended.
    /// Whether one was before.
    pub(super) fn note_capture(&self, stream: CUstream, captures: bool) -> bool {
        match self.capturing() {
            Ok(mut list) => list
                .find(self, stream)
                .is_some_and(|known| std::mem::replace(&mut known.captures, captures)),
            Err(_) => false,
        }
    }

    /// The end of a graph of this device, or of what makes one, has failed: what it holds may stay for good.
    pub(super) fn note_stray(&self) {
        if let Ok(mut list) = self.capturing() {
            list.strays.push(self.context());
        }
    }

    /// How many ends have failed so.
    pub(crate) fn strays(&self) -> usize {
        let Ok(list) = self.capturing() else {
            return 0;
        };
        let mine = |context: &&CUcontext| **context == self.context();
        list.strays.iter().filter(mine).count()
    }

    /// A value of a stream goes. With the last the stream may go too.
    pub(super) fn forget_stream(&self, stream: CUstream) {
        let Ok(mut list) = self.capturing() else {
            return;
        };
        if let Some(known) = list.find(self, stream) {
            known.values -= 1;
        }
        list.known.retain(|known| known.values > 0);
    }

    /// Refuses while a stream captures, if that was begun through this library. The driver refuses as well to wait for a
    /// context then, but invalidates the capture; of captures that a host begins by itself nothing else tells.
    pub(crate) fn refuse_during_capture(&self, operation: &'static str) -> Result<()> {
        let mut list = self.capturing()?;
        let mut count = 0;
        let begun = list.known.iter_mut();
        for known in begun.filter(|known| known.captures && known.context == self.context()) {
            known.captures = stream::capture_status(self, known.stream)? != CaptureStatus::None;
            count += usize::from(known.captures);
        }
        match count {
            0 => Ok(()),
            count => Err(Error::Refused {
                operation,
                why: format!(
                    "{count} stream(s) of device {} capture; call again after the capture has ended",
                    self.ordinal()
                ),
            }),
        }
    }
}
