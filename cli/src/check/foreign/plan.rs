//! A scenario file whose every name and number is known to fit.

use slabfence_emu::{Description, Profile};

/// What is run.
#[derive(Debug)]
pub struct Plan {
    pub text: String,
    pub profile: Profile,
    pub ranks: u32,
    /// Whether time passes when everybody waits.
    pub time_passes: bool,
    pub buffers: Vec<Place>,
    pub graphs: Vec<Capture>,
    /// Ranks of the events.
    pub events: Vec<u32>,
    pub steps: Vec<Task>,
    /// Buffer, and bytes at its start.
    pub expected: Vec<(usize, Vec<u8>)>,
}

/// Memory.
#[derive(Debug)]
pub struct Place {
    pub name: String,
    pub spans: Vec<Span>,
    pub owner: u32,
    pub mapped: Vec<u32>,
    /// As many bytes as it has.
    pub initial: Vec<u8>,
    /// Where in them the address of a buffer is put, which buffer, and how far in.
    pub addresses: Vec<(usize, usize, u64)>,
    /// Whether they are written before the ranks begin.
    pub written: bool,
}

/// A range of a buffer that is for something: the whole or a part.
#[derive(Debug)]
pub struct Span {
    pub offset: u64,
    pub len: u64,
    pub description: Description,
}

/// Launches of a graph.
#[derive(Debug)]
pub struct Capture {
    pub rank: u32,
    pub launches: Vec<Grid>,
}

/// A launch.
#[derive(Debug)]
pub struct Grid {
    /// Line of the file.
    pub line: usize,
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    /// Bytes of each parameter, and the places in it that get the address of a buffer and an offset.
    pub parameters: Vec<Parameter>,
}

/// Bytes with addresses in them.
#[derive(Debug, Default)]
pub struct Parameter {
    pub bytes: Vec<u8>,
    /// Where, which buffer, and how far in.
    pub addresses: Vec<(usize, usize, u64)>,
}

/// A step.
#[derive(Debug)]
pub struct Task {
    pub rank: u32,
    pub stream: u32,
    pub times: u32,
    pub work: Work,
}

/// What a step enqueues.
#[derive(Debug)]
pub enum Work {
    Launch(Grid),
    Replay(usize),
    /// Sets so many bytes of a buffer from an offset on.
    Fill {
        /// Line of the file.
        line: usize,
        to: (usize, u64),
        size: u64,
        byte: u8,
    },
    /// Copies so many bytes between offsets of two buffers.
    Copy {
        /// Line of the file.
        line: usize,
        from: (usize, u64),
        to: (usize, u64),
        size: u64,
    },
    /// Records an event, by number.
    Record(usize),
    /// Waits for one.
    Wait(usize),
}
