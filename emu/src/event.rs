//! Events: a point in a stream, or in a capture.

use crate::code::{Code, Status};
use crate::handle::{Kind, Table};
use crate::operations::OpId;

/// What an event was last recorded in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Recorded {
    /// Nothing yet.
    Never,
    /// A stream: done when the operation is; `at` is when that was, nanoseconds.
    Stream { op: OpId, at: Option<u64> },
    /// A capture: the nodes that the stream's next node would have depended on.
    Capture { capture: u64, nodes: Vec<u64> },
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// The device of its context.
    pub(crate) device: u32,
    /// Whether it keeps the time.
    pub(crate) timing: bool,
    /// Its last record.
    pub(crate) recorded: Recorded,
}

/// All events of a machine.
#[derive(Clone)]
pub(crate) struct Events(pub(crate) Table<Event>);

impl Events {
    /// No events.
    pub(crate) fn new(slot: usize) -> Events {
        Events(Table::new(Kind::Event, slot))
    }

    /// Notes when the record that `op` is was reached, unless the event is gone or was recorded anew.
    pub(crate) fn stamp(&mut self, event: u64, op: OpId, now: u64) {
        if let Ok(Event {
            recorded: Recorded::Stream { op: last, at },
            ..
        }) = self.0.get_mut(event)
            && *last == op
        {
            *at = Some(now);
        }
    }

    /// `cuEventElapsedTime`, milliseconds.
    pub(crate) fn elapsed(&self, start: u64, end: u64) -> Status<f32> {
        let time = |value: u64| {
            let event = self.0.get(value)?;
            match event.recorded {
                _ if !event.timing => Err(Code::INVALID_HANDLE),
                Recorded::Never => Err(Code::INVALID_HANDLE),
                Recorded::Capture { .. } => Err(Code::CAPTURED_EVENT),
                Recorded::Stream { at: None, .. } => Err(Code::NOT_READY),
                Recorded::Stream { at: Some(at), .. } => Ok(at),
            }
        };
        let (start, end) = (time(start)?, time(end)?);
        Ok((end as f64 - start as f64) as f32 / 1e6)
    }

    /// Destroys all events of a device's context; gives how many there were.
    pub(crate) fn forget(&mut self, device: u32) -> usize {
        let mine: Vec<u64> = self
            .0
            .iter()
            .filter(|(_, event)| event.device == device)
            .map(|(value, _)| value)
            .collect();
        mine.into_iter()
            .filter(|&value| self.0.remove(value).is_ok())
            .count()
    }
}
