//! What is in a graph: any raw `CUgraph`, ours or anybody's, read into plain data and told in words.
//!
//! Drivers from CUDA 12.4 tell everything; earlier ones do not tell parameters. No profiling interface is used.

mod dot;
#[cfg(feature = "serde")]
mod json;
mod names;
mod params;
mod place;
mod text;
#[cfg(feature = "serde")]
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use slabfence_sys::CUgraph;

use crate::channel::Pool;
use crate::driver::{Contents, Device, Graph, Work};
use crate::error::Result;

#[cfg(feature = "serde")]
pub use json::{JsonError, SCHEMA};
pub use params::{Block, Field, Value};
pub use place::Place;
use place::Registry;

/// A graph and what its addresses are, as it was when it was read.
///
/// `Display` gives the text form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dump {
    /// Newest CUDA version that the driver serves: 1000 × major + 10 × minor.
    pub driver_version: i32,
    /// Ordinal of the device through which the graph was read.
    pub device: u32,
    /// Its product name.
    pub device_name: String,
    /// Nodes and edges.
    pub contents: Contents,
    /// What every pointer-like word of the graph is, by its value.
    ///
    /// Pointer-like are the address fields of this library's parameter blocks, the ends of copies and fills, and in
    /// kernels of others every 8-byte word at a multiple of 8 bytes that could be an address. So a number that looks like
    /// one is here too, most often as [`Place::Nothing`].
    pub places: BTreeMap<u64, Place>,
}

impl Dump {
    /// Reads a graph. The ranges of `pools` are told by name; all other memory as the driver knows it.
    ///
    /// # Errors
    ///
    /// Those of the driver's calls, and [`Error::Closed`](crate::Error::Closed) for a closed pool.
    ///
    /// # Safety
    ///
    /// The graph is live and of the device's driver, and no other thread uses it during the call, not even to read it.
    #[allow(unsafe_code, reason = "the caller's handle cannot be checked")]
    pub unsafe fn of_raw(device: &Device, graph: CUgraph, pools: &[&Pool]) -> Result<Self> {
        // SAFETY: by this function's contract.
        let contents = unsafe { Contents::of_raw(device, graph) }?;
        Self::new(device, contents, pools)
    }

    /// Reads a graph of this library's.
    pub fn of(device: &Device, graph: &Graph, pools: &[&Pool]) -> Result<Self> {
        Self::new(device, graph.contents()?, pools)
    }

    fn new(device: &Device, contents: Contents, pools: &[&Pool]) -> Result<Self> {
        let registry = Registry::new(pools)?;
        let mut addresses = BTreeSet::new();
        collect(&contents, &mut addresses);
        let places = addresses
            .into_iter()
            .map(|address| (address, registry.find(device, address)));
        Ok(Self {
            driver_version: device.driver().version(),
            device: device.ordinal(),
            device_name: device.info().name.clone(),
            places: places.collect(),
            contents,
        })
    }

    /// What an address is; `None` for one that the graph does not contain.
    pub fn place(&self, address: u64) -> Option<&Place> {
        self.places.get(&address)
    }
}

/// Every pointer-like word.
fn collect(contents: &Contents, to: &mut BTreeSet<u64>) {
    for node in &contents.nodes {
        match &node.work {
            Work::Kernel(kernel) => {
                for param in kernel.params.iter().flatten() {
                    to.extend(params::addresses(param));
                }
            }
            Work::Copy(copy) => {
                let ends = [copy.from, copy.to];
                to.extend(ends.iter().filter(|end| !end.array).map(|end| end.address));
            }
            Work::Fill(fill) => _ = to.insert(fill.to),
            Work::Free(address) => _ = to.insert(*address),
            Work::Host { argument, .. } if params::is_pointer_like(*argument) => {
                to.insert(*argument);
            }
            Work::Child(inner) => collect(inner, to),
            _ => {}
        }
    }
}
