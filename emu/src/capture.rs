//! Stream capture: work that becomes a graph, and what must not happen meanwhile.

use std::collections::BTreeMap;
use std::thread::ThreadId;

use crate::code::{Code, Status};
use crate::device::{CaptureMode, Thread};
use crate::event::{Event, Recorded};
use crate::graph::{Graph, Task};
use crate::machine::State;

/// One capture sequence.
#[derive(Debug)]
pub(crate) struct Capture {
    mode: CaptureMode,
    thread: ThreadId,
    origin: usize,
    graph: u64,
    valid: bool,
    /// Streams that take part, with what their next node would depend on.
    frontiers: BTreeMap<usize, Vec<u64>>,
}

/// The captures that have begun and not ended.
#[derive(Default)]
pub(crate) struct Captures {
    open: BTreeMap<u64, Capture>,
    next: u64,
}

/// What `cuStreamGetCaptureInfo` tells.
#[derive(Debug, PartialEq)]
pub(crate) enum Info {
    /// The stream is not captured.
    None,
    /// It is, into a graph; its next node depends on these.
    Active {
        id: u64,
        graph: u64,
        frontier: Vec<u64>,
    },
    /// It was, until something forbidden was done.
    Invalidated,
}

impl State {
    /// Makes a capture invalid and gives `code` back, as the answer to whoever did that.
    pub(crate) fn spoil(&mut self, capture: u64, code: Code) -> Code {
        if let Some(capture) = self.captures.open.get_mut(&capture) {
            capture.valid = false;
        }
        code
    }

    /// Refuses a call that may synchronise or allocate, while a capture forbids it to this thread.
    pub(crate) fn refuse_unsafe(&mut self, thread: &Thread) -> Status {
        let forbids = |capture: &Capture| match thread.mode {
            CaptureMode::Relaxed => false,
            CaptureMode::ThreadLocal => {
                capture.thread == thread.id && capture.mode != CaptureMode::Relaxed
            }
            CaptureMode::Global => {
                capture.mode == CaptureMode::Global
                    || capture.thread == thread.id && capture.mode != CaptureMode::Relaxed
            }
        };
        let mut refused = Ok(());
        for capture in self
            .captures
            .open
            .values_mut()
            .filter(|capture| forbids(capture))
        {
            capture.valid = false;
            refused = Err(Code::CAPTURE_UNSUPPORTED);
        }
        refused
    }

    /// Refuses a use of the legacy stream that would make it depend on a captured blocking stream.
    pub(crate) fn refuse_legacy_in_capture(&mut self, index: usize) -> Status {
        if !self.streams.is_legacy(index) {
            return Ok(());
        }
        let device = self.streams.get(index)?.device;
        let conflict = self
            .streams
            .iter()
            .filter(|other| other.device == device && other.blocking);
        let Some(capture) = conflict.filter_map(|other| other.capture).next() else {
            return Ok(());
        };
        Err(self.spoil(capture, Code::CAPTURE_IMPLICIT))
    }

    /// Refuses to synchronise a context of which a stream is captured.
    pub(crate) fn refuse_context_in_capture(&mut self, device: u32) -> Status {
        let captured: Vec<u64> = self
            .streams
            .iter()
            .filter(|stream| stream.device == device)
            .filter_map(|stream| stream.capture)
            .collect();
        let mut refused = Ok(());
        for capture in captured {
            refused = Err(self.spoil(capture, Code::CAPTURE_UNSUPPORTED));
        }
        refused
    }

    /// `cuStreamBeginCapture`.
    pub(crate) fn begin_capture(
        &mut self,
        thread: &Thread,
        index: usize,
        mode: CaptureMode,
    ) -> Status {
        if self.streams.is_legacy(index) {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if self.streams.get(index)?.capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        self.captures.next += 1;
        let id = self.captures.next;
        let graph = self.graphs.graphs.insert(Graph {
            capture: Some(id),
            ..Graph::default()
        });
        let frontiers = BTreeMap::from([(index, Vec::new())]);
        let capture = Capture {
            mode,
            thread: thread.id,
            origin: index,
            graph,
            valid: true,
            frontiers,
        };
        self.captures.open.insert(id, capture);
        self.streams.get_mut(index)?.capture = Some(id);
        Ok(())
    }

    /// `cuStreamEndCapture`: the graph.
    pub(crate) fn end_capture(&mut self, thread: &Thread, index: usize) -> Status<u64> {
        let id = self
            .streams
            .get(index)?
            .capture
            .ok_or(Code::ILLEGAL_STATE)?;
        let capture = self.captures.open.get(&id).ok_or(Code::ILLEGAL_STATE)?;
        if capture.mode != CaptureMode::Relaxed && capture.thread != thread.id {
            return Err(Code::CAPTURE_WRONG_THREAD);
        }
        if capture.origin != index {
            return Err(self.spoil(id, Code::CAPTURE_UNMATCHED));
        }
        let verdict = self.judge(id);
        let graph = self.close_capture(id)?;
        if let Err(code) = verdict {
            let due = self.graphs.destroy(graph)?;
            self.engine
                .calls
                .extend(due.into_iter().map(|call| (call, None)));
            return Err(code);
        }
        Ok(graph)
    }

    /// Whether a capture may become a graph: it is valid, and all forked work was joined into the origin.
    fn judge(&self, id: u64) -> Status {
        let capture = self.captures.open.get(&id).ok_or(Code::ILLEGAL_STATE)?;
        if !capture.valid {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        let joined = self
            .graphs
            .ancestors(capture.graph, &capture.frontiers[&capture.origin])?;
        let all_in = |frontier: &Vec<u64>| frontier.iter().all(|node| joined.contains(node));
        if capture.frontiers.values().all(all_in) {
            Ok(())
        } else {
            Err(Code::CAPTURE_UNJOINED)
        }
    }

    /// Lets all streams out of a capture; gives its graph.
    fn close_capture(&mut self, id: u64) -> Status<u64> {
        let capture = self.captures.open.remove(&id).ok_or(Code::ILLEGAL_STATE)?;
        for &index in capture.frontiers.keys() {
            if let Ok(stream) = self.streams.get_mut(index)
                && stream.capture == Some(id)
            {
                stream.capture = None;
            }
        }
        self.graphs.graphs.get_mut(capture.graph)?.capture = None;
        Ok(capture.graph)
    }

    /// What the next node of a captured stream would depend on; refuses an invalidated capture.
    pub(crate) fn capture_frontier(&self, id: u64, index: usize) -> Status<Vec<u64>> {
        let capture = self
            .captures
            .open
            .get(&id)
            .filter(|capture| capture.valid)
            .ok_or(Code::CAPTURE_INVALIDATED)?;
        Ok(capture.frontiers.get(&index).cloned().unwrap_or_default())
    }

    fn set_frontier(&mut self, id: u64, index: usize, frontier: Vec<u64>) {
        if let Some(capture) = self.captures.open.get_mut(&id) {
            capture.frontiers.insert(index, frontier);
        }
    }

    /// Adds a task of a captured stream to the graph.
    pub(crate) fn capture_task(&mut self, index: usize, task: Task) -> Status {
        let id = self
            .streams
            .get(index)?
            .capture
            .ok_or(Code::ILLEGAL_STATE)?;
        let frontier = self.capture_frontier(id, index)?;
        let graph = self.captures.open[&id].graph;
        let node = self.graphs.add(graph, task, &frontier)?;
        self.set_frontier(id, index, vec![node]);
        Ok(())
    }

    /// `cuStreamWaitEvent` where the stream or the event is of a capture.
    pub(crate) fn capture_wait(
        &mut self,
        index: usize,
        value: u64,
        event: &Event,
        external: bool,
    ) -> Status {
        let of_event = match &event.recorded {
            Recorded::Capture { capture, nodes } => Some((*capture, nodes.clone())),
            _ => None,
        };
        match (self.streams.get(index)?.capture, of_event) {
            (Some(_), _) if external => self.capture_task(index, Task::Wait(value)),
            (Some(own), Some((other, nodes))) if own == other => {
                let mut frontier = self.capture_frontier(own, index)?;
                let new: Vec<u64> = nodes
                    .into_iter()
                    .filter(|node| !frontier.contains(node))
                    .collect();
                frontier.extend(new);
                self.set_frontier(own, index, frontier);
                Ok(())
            }
            (Some(own), Some((other, _))) if self.captures.open.contains_key(&other) => {
                self.spoil(other, Code::CAPTURE_MERGE);
                Err(self.spoil(own, Code::CAPTURE_MERGE))
            }
            (Some(own), None) if event.recorded == Recorded::Never => {
                self.capture_frontier(own, index).map(drop)
            }
            (Some(own), _) => {
                self.capture_frontier(own, index)?;
                Err(self.spoil(own, Code::CAPTURE_ISOLATION))
            }
            (None, Some((other, _))) if !self.captures.open.contains_key(&other) => {
                Err(Code::CAPTURED_EVENT)
            }
            (None, Some((other, _))) if self.streams.is_legacy(index) => {
                Err(self.spoil(other, Code::CAPTURE_IMPLICIT))
            }
            (None, Some((other, nodes))) => {
                self.capture_frontier(other, index)?;
                self.set_frontier(other, index, nodes);
                self.streams.get_mut(index)?.capture = Some(other);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// `cuStreamGetCaptureInfo`, `cuStreamIsCapturing`.
    pub(crate) fn capture_info(&mut self, index: usize) -> Status<Info> {
        self.refuse_legacy_in_capture(index)?;
        let Some(id) = self.streams.get(index)?.capture else {
            return Ok(Info::None);
        };
        match self.captures.open.get(&id) {
            Some(Capture {
                valid: true,
                graph,
                frontiers,
                ..
            }) => {
                let frontier = frontiers.get(&index).cloned().unwrap_or_default();
                Ok(Info::Active {
                    id,
                    graph: *graph,
                    frontier,
                })
            }
            _ => Ok(Info::Invalidated),
        }
    }

    /// `cuStreamDestroy`. Work that was enqueued goes on; a capture that the stream takes part in does not.
    pub(crate) fn destroy_stream(&mut self, index: usize) -> Status {
        if let Some(id) = self.streams.get(index)?.capture {
            self.spoil(id, Code::CAPTURE_INVALIDATED);
            let origin = self
                .captures
                .open
                .get(&id)
                .is_some_and(|capture| capture.origin == index);
            if origin {
                // Nobody can end this capture any more.
                let graph = self.close_capture(id)?;
                let due = self.graphs.destroy(graph)?;
                self.engine
                    .calls
                    .extend(due.into_iter().map(|call| (call, None)));
            } else if let Some(capture) = self.captures.open.get_mut(&id) {
                capture.frontiers.remove(&index);
            }
        }
        self.streams.destroy(index);
        Ok(())
    }

    /// How many captures are open.
    pub(crate) fn open_captures(&self) -> usize {
        self.captures.open.len()
    }
}
