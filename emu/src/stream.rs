//! Streams: the order in which work of one lane runs.

use crate::code::{Code, Status};
use crate::device::Thread;
use crate::event::Recorded;
use crate::graph::Task;
use crate::handle::{self, Kind};
use crate::machine::State;
use crate::operations::{OpId, Work};

/// One stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// The device of its context.
    pub(crate) device: u32,
    /// Whether it and the legacy stream wait for each other.
    pub(crate) blocking: bool,
    /// Its last operation.
    pub(crate) last: Option<OpId>,
    /// Distinguishes it from other streams that had its handle.
    pub(crate) id: u64,
    /// The capture it takes part in.
    pub(crate) capture: Option<u64>,
}

/// All streams of a machine by index. The first are the devices' legacy streams.
///
/// The handle of a destroyed stream is given to the next one that is created, as the driver does: who finds something
/// by a stream's handle finds a stranger's.
pub(crate) struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<usize>,
    devices: usize,
    next_id: u64,
}

impl Streams {
    /// The legacy streams of `devices` devices.
    pub(crate) fn new(devices: u32) -> Streams {
        let legacy = |device| {
            Some(Stream {
                device,
                blocking: false,
                last: None,
                id: u64::from(device) + 1,
                capture: None,
            })
        };
        let (devices, slots) = (devices as usize, (0..devices).map(legacy).collect());
        Streams {
            slots,
            free: Vec::new(),
            devices,
            next_id: devices as u64,
        }
    }

    /// Adds a stream; gives its index.
    pub(crate) fn create(&mut self, device: u32, blocking: bool) -> usize {
        self.next_id += 1;
        let stream = Some(Stream {
            device,
            blocking,
            last: None,
            id: self.next_id,
            capture: None,
        });
        match self.free.pop() {
            Some(index) => {
                self.slots[index] = stream;
                index
            }
            None => {
                self.slots.push(stream);
                self.slots.len() - 1
            }
        }
    }

    /// Takes a stream out; its handle is the next to be reused.
    pub(crate) fn destroy(&mut self, index: usize) {
        self.slots[index] = None;
        self.free.push(index);
    }

    /// Whether the index is that of a legacy stream.
    pub(crate) fn is_legacy(&self, index: usize) -> bool {
        index < self.devices
    }

    /// The stream of an index, which must be live.
    pub(crate) fn get(&self, index: usize) -> Status<&Stream> {
        self.slots
            .get(index)
            .and_then(Option::as_ref)
            .ok_or(Code::INVALID_HANDLE)
    }

    /// The stream of an index, which must be live.
    pub(crate) fn get_mut(&mut self, index: usize) -> Status<&mut Stream> {
        self.slots
            .get_mut(index)
            .and_then(Option::as_mut)
            .ok_or(Code::INVALID_HANDLE)
    }

    /// All live streams, legacy ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.slots.iter().flatten()
    }

    /// How many streams were created and not destroyed.
    pub(crate) fn created(&self) -> usize {
        self.slots.iter().flatten().count() - self.devices
    }

    /// Destroys all streams of a device's context; gives how many there were.
    pub(crate) fn forget(&mut self, device: u32) -> usize {
        let mine = |index: &usize| {
            self.slots[*index]
                .as_ref()
                .is_some_and(|stream| stream.device == device)
        };
        let gone: Vec<usize> = (self.devices..self.slots.len()).filter(mine).collect();
        gone.iter().for_each(|&index| self.destroy(index));
        self.slots[device as usize]
            .iter_mut()
            .for_each(|legacy| legacy.last = None);
        gone.len()
    }
}

impl State {
    /// The handle of a created stream.
    pub(crate) fn stream_handle(&self, index: usize) -> u64 {
        handle::handle(Kind::Stream, self.slot, index as u64)
    }

    /// The stream that a handle names: null and `CU_STREAM_LEGACY` are the current context's legacy stream.
    pub(crate) fn stream(&self, thread: &Thread, value: u64) -> Status<usize> {
        self.ready()?;
        let index = match value {
            0 | 1 => self.current(thread)? as usize,
            _ => {
                let number = handle::number(Kind::Stream, self.slot, value)
                    .ok_or(Code::INVALID_HANDLE)? as usize;
                if self.streams.is_legacy(number) {
                    return Err(Code::INVALID_HANDLE);
                }
                number
            }
        };
        let device = self.streams.get(index)?.device;
        self.whole(device)?;
        Ok(index)
    }

    /// What the stream's next operation must wait for.
    fn order(&self, index: usize) -> Status<Vec<OpId>> {
        let stream = self.streams.get(index)?;
        let mut after: Vec<OpId> = stream.last.into_iter().collect();
        if self.streams.is_legacy(index) {
            let blocking = |other: &&Stream| other.blocking && other.device == stream.device;
            after.extend(
                self.streams
                    .iter()
                    .filter(blocking)
                    .filter_map(|other| other.last),
            );
        } else if stream.blocking {
            after.extend(self.streams.get(stream.device as usize)?.last);
        }
        Ok(after)
    }

    /// Enqueues work on a stream that is not capturing.
    pub(crate) fn enqueue(
        &mut self,
        index: usize,
        work: Work,
        also_after: &[OpId],
    ) -> Status<OpId> {
        self.accepts()?;
        let mut after = self.order(index)?;
        after.extend_from_slice(also_after);
        let stream = self.streams.get_mut(index)?;
        let op = self.engine.enqueue(stream.device, work, &after);
        stream.last = Some(op);
        Ok(op)
    }

    /// Does a task in stream order, or adds it to the graph that the stream is captured into.
    pub(crate) fn submit(&mut self, index: usize, task: Task) -> Status {
        if self.streams.get(index)?.capture.is_some() {
            return self.capture_task(index, task);
        }
        self.refuse_legacy_in_capture(index)?;
        self.enqueue(index, task.work(), &[])?;
        Ok(())
    }

    /// The operations that must be done for the stream to be idle. Refuses a stream that is captured.
    pub(crate) fn stream_tail(&mut self, index: usize) -> Status<Vec<OpId>> {
        if let Some(capture) = self.streams.get(index)?.capture {
            return Err(self.spoil(capture, Code::CAPTURE_UNSUPPORTED));
        }
        self.refuse_legacy_in_capture(index)?;
        self.order_tail(index)
    }

    fn order_tail(&self, index: usize) -> Status<Vec<OpId>> {
        match self.streams.is_legacy(index) {
            true => self.order(index),
            false => Ok(self.streams.get(index)?.last.into_iter().collect()),
        }
    }

    /// `cuEventRecord`.
    pub(crate) fn record(&mut self, value: u64, index: usize) -> Status {
        let stream = self.streams.get(index)?.clone();
        if self.events.0.get(value)?.device != stream.device {
            return Err(Code::INVALID_HANDLE);
        }
        let recorded = match stream.capture {
            Some(capture) => {
                let nodes = self.capture_frontier(capture, index)?;
                Recorded::Capture { capture, nodes }
            }
            None => {
                self.refuse_legacy_in_capture(index)?;
                Recorded::Stream {
                    op: self.enqueue(index, Work::Record(value), &[])?,
                    at: None,
                }
            }
        };
        self.events.0.get_mut(value)?.recorded = recorded;
        Ok(())
    }

    /// `cuStreamWaitEvent`; `external` is the flag that makes it a node in a capture.
    pub(crate) fn wait_event(&mut self, index: usize, value: u64, external: bool) -> Status {
        let event = self.events.0.get(value)?.clone();
        let capturing = self.streams.get(index)?.capture;
        if capturing.is_some() || matches!(event.recorded, Recorded::Capture { .. }) {
            return self.capture_wait(index, value, &event, external);
        }
        self.refuse_legacy_in_capture(index)?;
        if let Recorded::Stream { op, .. } = event.recorded
            && self.engine.pending(op)
        {
            self.enqueue(index, Work::Marker, &[op])?;
        }
        Ok(())
    }

    /// The operation that must be done for the event to be. Refuses an event that was recorded in a capture.
    pub(crate) fn event_tail(&mut self, value: u64) -> Status<Option<OpId>> {
        let event = self.events.0.get(value)?.clone();
        self.whole(event.device)?;
        match event.recorded {
            Recorded::Never => Ok(None),
            Recorded::Stream { op, .. } => Ok(Some(op)),
            Recorded::Capture { capture, .. } => Err(self.spoil(capture, Code::CAPTURED_EVENT)),
        }
    }
}
