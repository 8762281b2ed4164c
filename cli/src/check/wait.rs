//! Who waits in a deadlock, in data.

use serde::Serialize;
use slabfence_emu::held::{self, LastWriter, Poll, Reason, Relation, Waiter, Writer};

/// Somebody who waits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wait {
    rank: Option<u32>,
    device: u32,
    /// Place among the operations of the device.
    operation: u32,
    /// The kernel, or what else the operation is.
    kernel: String,
    cta: Option<[u32; 3]>,
    warp: Option<u32>,
    lanes: Vec<u32>,
    ptx_line: Option<u32>,
    source: Option<String>,
    /// `poll`, `barrier`, `lanes`, `runs`, `room` or `operations`.
    on: &'static str,
    /// The words that lanes poll.
    polls: Vec<Word>,
    /// For `operations`: those that it waits for.
    after: Vec<Operation>,
    /// All of it in words.
    words: String,
}

/// An operation by its place on its device.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Operation {
    device: u32,
    operation: u32,
}

/// A word that is polled.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Word {
    lanes: Vec<u32>,
    ptx_line: u32,
    /// Name of the memory, and bytes from its start.
    region: String,
    offset: u64,
    /// What the code compares it with.
    expected: Option<u64>,
    /// What it must be to that for the lanes to go on: `equal`, `different`, `less`, `at-most`, `more` or `at-least`.
    awaited: Option<&'static str>,
    /// What the lanes saw last.
    seen: u64,
    /// What it holds now.
    current: Option<u64>,
    /// Who could still write it.
    writers: Vec<Source>,
    /// Who wrote it last.
    last_writer: Option<Last>,
}

/// Somebody who could write a word.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Source {
    rank: Option<u32>,
    device: Option<u32>,
    /// What it has left with an address that leads there.
    operations: Vec<Kernel>,
}

/// A kernel by its place on its device.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Kernel {
    operation: u32,
    kernel: String,
}

/// Who wrote a word last.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Last {
    device: u32,
    operation: u32,
    kernel: String,
    cta: u64,
    warp: u32,
    ptx_line: u32,
}

impl Wait {
    /// What is told of a waiter.
    pub fn of(waiter: &Waiter) -> Self {
        let mut wait = Self {
            rank: waiter.rank,
            device: waiter.device,
            operation: waiter.operation,
            kernel: waiter.what.clone(),
            cta: None,
            warp: None,
            lanes: Vec::new(),
            ptx_line: None,
            source: None,
            on: "room",
            polls: Vec::new(),
            after: Vec::new(),
            words: waiter.to_string(),
        };
        match &waiter.wait {
            held::Wait::Room { .. } => {}
            held::Wait::Operations(after) => {
                wait.on = "operations";
                let one = |&(device, operation)| Operation { device, operation };
                wait.after = after.iter().map(one).collect();
            }
            held::Wait::Warp {
                cta,
                warp,
                lanes: mask,
                line,
                source,
                reason,
                ..
            } => {
                wait.cta = Some(*cta);
                wait.warp = Some(*warp);
                wait.lanes = lanes(*mask);
                wait.ptx_line = Some(*line);
                wait.source = source.as_ref().map(ToString::to_string);
                wait.on = match reason {
                    Reason::Polls(polls) => {
                        wait.polls = polls.iter().map(Word::of).collect();
                        "poll"
                    }
                    Reason::Barrier { .. } => "barrier",
                    Reason::Lanes { .. } => "lanes",
                    Reason::Runs => "runs",
                };
            }
        }
        wait
    }
}

impl Word {
    fn of(poll: &Poll) -> Self {
        Self {
            lanes: lanes(poll.lanes),
            ptx_line: poll.line,
            region: poll.place.region.clone(),
            offset: poll.place.offset,
            expected: poll.expected,
            awaited: poll.awaited.map(name),
            seen: poll.seen,
            current: poll.now,
            writers: poll.writers.iter().map(Source::of).collect(),
            last_writer: poll.last.as_ref().map(Last::of),
        }
    }
}

impl Source {
    fn of(writer: &Writer) -> Self {
        let kernel = |(operation, kernel): &(u32, String)| Kernel {
            operation: *operation,
            kernel: kernel.clone(),
        };
        Self {
            rank: writer.rank,
            device: writer.device,
            operations: writer.operations.iter().map(kernel).collect(),
        }
    }
}

impl Last {
    fn of(by: &LastWriter) -> Self {
        Self {
            device: by.device,
            operation: by.operation,
            kernel: by.kernel.clone(),
            cta: by.cta,
            warp: by.warp,
            ptx_line: by.line,
        }
    }
}

/// The word for a relation in JSON.
fn name(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => "equal",
        Relation::Different => "different",
        Relation::Less => "less",
        Relation::AtMost => "at-most",
        Relation::More => "more",
        Relation::AtLeast => "at-least",
    }
}

/// The lanes of a mask.
fn lanes(mask: u32) -> Vec<u32> {
    (0..u32::BITS)
        .filter(|lane| mask >> lane & 1 == 1)
        .collect()
}
