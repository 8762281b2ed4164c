//! Which streams capture, as far as that was begun through this library.

use std::sync::{MutexGuard, PoisonError};

use slabfence_sys::{CUcontext, CUstream};

use super::device::Device;
use super::fork;
use super::stream::{self, CaptureStatus};
use crate::error::{Error, Result};

/// The streams of which there are values, so that none is asked that its host may have destroyed.
#[derive(Debug, Default)]
pub(super) struct Captures(Vec<Known>);

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
        let mut all = self.0.iter_mut();
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
            None => list.0.push(Known {
                context: self.context(),
                stream,
                values: 1,
                captures: false,
            }),
        }
    }

    /// A capture has begun on a stream, or has ended.
    pub(super) fn note_capture(&self, stream: CUstream, captures: bool) {
        if let Ok(mut list) = self.capturing()
            && let Some(known) = list.find(self, stream)
        {
            known.captures = captures;
        }
    }

    /// A value of a stream goes. With the last the stream may go too.
    pub(super) fn forget_stream(&self, stream: CUstream) {
        let Ok(mut list) = self.capturing() else {
            return;
        };
        if let Some(known) = list.find(self, stream) {
            known.values -= 1;
        }
        list.0.retain(|known| known.values > 0);
    }

    /// Refuses while a stream captures, if that was begun through this library. The driver refuses as well to wait for a
    /// context then, but invalidates the capture; of captures that a host begins by itself nothing else tells.
    pub(crate) fn refuse_during_capture(&self, operation: &'static str) -> Result<()> {
        let mut list = self.capturing()?;
        let mut count = 0;
        let begun = list.0.iter_mut();
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
