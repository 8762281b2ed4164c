//! Captured graphs: how tests make them, and what tests read out of them.

use core::mem::offset_of;

use slabfence::channel::{Channel, Pool};
use slabfence::driver::{CaptureMode, Graph, Stream};
use slabfence::layout::{Header, LocalBlock, MAGIC};

use crate::probe::Probe;

/// Captures what `body` enqueues on `stream` in a scope of channel `name`.
///
/// # Panics
///
/// When the driver or the library refuses: these are tests.
pub fn capture(pool: &Pool, stream: &Stream, name: &str, body: impl FnOnce(&Channel)) -> Graph {
    let channel = pool.channel(name).expect("a prepared channel");
    let scope = pool.capture(name, stream).expect("a scope");
    stream
        .begin_capture(CaptureMode::ThreadLocal)
        .expect("a capture");
    body(&channel);
    let graph = stream.end_capture().expect("its graph");
    scope.finish().expect("the scope's end");
    graph
}

/// The epoch counter of a channel, found through the parameters of a captured operation of ours.
#[derive(Debug)]
pub struct EpochCounter {
    address: u64,
    probe: Probe,
}

impl EpochCounter {
    /// The counter of the channel that the first kernel of `graph` uses.
    ///
    /// # Panics
    ///
    /// When the first node is no operation of ours.
    pub fn of(graph: &Graph, stream: &Stream) -> Self {
        Self {
            address: local_block(graph) + offset_of!(LocalBlock, epoch) as u64,
            probe: Probe::new(stream.device()).expect("the probe's kernels"),
        }
    }

    /// Epoch of the channel's next operation. Nothing of the channel may be running.
    ///
    /// # Panics
    ///
    /// When the device refuses the load.
    pub fn read(&self) -> u64 {
        self.probe.peek(self.address).expect("the epoch")
    }
}

/// CTAs of each node of a graph.
///
/// # Panics
///
/// When one is no kernel.
pub fn grids(graph: &Graph) -> Vec<u32> {
    let nodes = graph.nodes().expect("the graph's nodes");
    let kernels = nodes.iter().map(|node| node.kernel().expect("a kernel"));
    kernels.map(|kernel| kernel.grid[0]).collect()
}

/// Address of the local block of the channel that the first kernel of `graph` uses.
///
/// # Panics
///
/// When the first node is no operation of ours.
pub fn local_block(graph: &Graph) -> u64 {
    assert_eq!(parameter(graph, 0), MAGIC, "not a kernel of ours");
    parameter(graph, offset_of!(Header, local))
}

/// Eight bytes of the parameter block of the first kernel of `graph`.
///
/// # Panics
///
/// When it has no such parameters.
pub fn parameter(graph: &Graph, offset: usize) -> u64 {
    let nodes = graph.nodes().expect("the graph's nodes");
    let kernels = nodes.iter().filter_map(|node| node.kernel());
    let block = kernels
        .filter_map(|kernel| kernel.params.as_ref()?.first())
        .next()
        .expect("a kernel with parameters");
    let bytes = block.bytes[offset..offset + 8].try_into();
    u64::from_le_bytes(bytes.expect("eight bytes"))
}
