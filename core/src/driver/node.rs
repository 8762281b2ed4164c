//! What graphs consist of, as plain data.

use std::collections::BTreeMap;

use slabfence_sys::{CUgraphDependencyType, CUgraphNodeType};

/// Everything in a graph. Copied: the graph may change or go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// In the driver's order.
    pub nodes: Vec<Node>,
    /// In the driver's order.
    pub edges: Vec<Edge>,
}

/// One node of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// What the node does. Newer drivers have kinds that this library does not know.
    pub kind: CUgraphNodeType,
    /// With what.
    pub work: Work,
}

impl Node {
    pub(crate) fn new(kind: CUgraphNodeType, work: Work) -> Self {
        Self { kind, work }
    }

    /// Its launch, where it is a kernel.
    pub fn kernel(&self) -> Option<&KernelNode> {
        match &self.work {
            Work::Kernel(kernel) => Some(kernel),
            _ => None,
        }
    }
}

/// What could be read of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// A kernel's launch.
    Kernel(KernelNode),
    /// A copy.
    Copy(CopyNode),
    /// A fill.
    Fill(FillNode),
    /// A host function and its argument, as numbers.
    Host {
        /// Address of the function.
        function: u64,
        /// Its argument.
        argument: u64,
    },
    /// A graph inside.
    Child(Contents),
    /// The handle of the event that is recorded or waited for.
    Event(u64),
    /// The device address that is freed.
    Free(u64),
    /// Nothing: the node has no content, or one that this library does not read.
    Opaque,
    /// Nothing, since the driver refused with these words.
    Unread(String),
}

/// The launch of a kernel node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelNode {
    /// Name of the kernel, where the driver tells (CUDA 12.3).
    pub function: Option<String>,
    /// Grid in CTAs.
    pub grid: [u32; 3],
    /// CTA in threads.
    pub block: [u32; 3],
    /// Dynamic shared memory of a CTA, bytes.
    pub shared_bytes: u32,
    /// What the driver tells of the launch (`cooperative`, `priority`, `cluster.x`…) and of the kernel (`registers`,
    /// `static_shared_bytes`…). What it does not tell is not here.
    pub attributes: BTreeMap<String, i64>,
    /// Parameters in order, where the driver tells their sizes (CUDA 12.4).
    pub params: Option<Vec<Param>>,
}

impl KernelNode {
    pub(crate) fn new(grid: [u32; 3], block: [u32; 3], shared_bytes: u32) -> Self {
        Self {
            function: None,
            grid,
            block,
            shared_bytes,
            attributes: BTreeMap::new(),
            params: None,
        }
    }
}

/// One parameter of a kernel node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Param {
    /// Bytes from the start of the kernel's parameter block.
    pub offset: usize,
    /// The value.
    pub bytes: Vec<u8>,
}

impl Param {
    pub(crate) fn new(offset: usize, bytes: Vec<u8>) -> Self {
        Self { offset, bytes }
    }
}

/// One end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyEnd {
    /// First address, or the handle of an array.
    pub address: u64,
    /// Whether the address is the handle of an array.
    pub array: bool,
    /// Bytes from row to row.
    pub pitch: u64,
}

/// A copy of `bytes × rows × planes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyNode {
    /// From where.
    pub from: CopyEnd,
    /// To where.
    pub to: CopyEnd,
    /// Bytes of a row.
    pub bytes: u64,
    /// Rows of a plane.
    pub rows: u64,
    /// Planes.
    pub planes: u64,
}

/// A fill of `elements × rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillNode {
    /// First address.
    pub to: u64,
    /// The element's bits.
    pub value: u32,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Elements of a row.
    pub elements: u64,
    /// Rows.
    pub rows: u64,
    /// Bytes from row to row.
    pub pitch: u64,
}

/// A dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Index of the node that comes first.
    pub from: usize,
    /// Index of the node that waits for it.
    pub to: usize,
    /// How strongly the edge orders. Full on drivers before CUDA 12.3, which know no other.
    pub kind: CUgraphDependencyType,
    /// When the first node releases the second; 0: at its end.
    pub from_port: u8,
    /// Which part of the second node waits; 0: all of it.
    pub to_port: u8,
}
