//! Graphs, executable graphs, and what they hold.

use core::marker::PhantomData;
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

use slabfence_sys::{
    CUgraph, CUgraphExec, CUgraphInstantiate_flags, CUgraphNodeType, CUuserObject,
    CUuserObject_flags, CUuserObjectRetain_flags,
};

use super::deferred;
use super::device::Device;
use super::inspect;
use super::node::{Contents, Node};
use super::stream::Stream;
use crate::error::Result;

/// A graph. "Graph objects are not internally synchronized": it may move to another thread, and is never used by two.
#[derive(Debug)]
pub struct Graph {
    device: Device,
    raw: CUgraph,
}

impl Graph {
    /// Takes a graph over. Destroyed on drop.
    ///
    /// # Safety
    ///
    /// `raw` is a live graph that nothing else will destroy or use.
    pub unsafe fn from_raw(device: &Device, raw: CUgraph) -> Self {
        Self {
            device: device.clone(),
            raw,
        }
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUgraph {
        self.raw
    }

    /// Gives the graph away; it is no longer destroyed on drop.
    pub fn into_raw(self) -> CUgraph {
        let raw = self.raw;
        let mut this = core::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped or used again, so its device is dropped once, here.
        unsafe { core::ptr::drop_in_place(&mut this.device) };
        raw
    }

    /// Makes an executable of the graph. It is a copy: the graph may change or go.
    pub fn instantiate(&self) -> Result<GraphExec> {
        let _guard = self.device.setup()?;
        let api = self.device.api();
        // What could not be freed is not made.
        api.cuGraphExecDestroy()?;
        let mut raw = CUgraphExec::null();
        let flags = CUgraphInstantiate_flags::empty();
        // SAFETY: the graph is live and used by this thread alone (`Graph` is not `Sync`); `raw` is a live out-parameter.
        let code = unsafe { (api.cuGraphInstantiateWithFlags()?)(&mut raw, self.raw, flags) };
        self.device.check("cuGraphInstantiateWithFlags", code)?;
        Ok(GraphExec {
            device: self.device.clone(),
            raw,
            _one_thread: PhantomData,
        })
    }

    /// What the graph consists of.
    pub fn contents(&self) -> Result<Contents> {
        // SAFETY: the graph is live and used by this thread alone.
        unsafe { Contents::of_raw(&self.device, self.raw) }
    }

    /// Its nodes, in the driver's order.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        Ok(self.contents()?.nodes)
    }

    /// How many of the graph's nodes are kernels, whether or not the driver tells more of them.
    pub fn kernel_nodes(&self) -> Result<usize> {
        let nodes = self.nodes()?;
        let kernel = |node: &&Node| node.kind == CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
        Ok(nodes.iter().filter(kernel).count())
    }

    /// Makes the graph, and every executable made from it later, hold `object`. The object is dropped some time after the
    /// last of them is destroyed, at one of this library's later set-up or teardown calls, outside of
    /// collective calls of a pool.
    pub fn retain(&self, object: Arc<dyn Any + Send + Sync>) -> Result<()> {
        let _guard = self.device.bind()?;
        // SAFETY: the graph is live and used by this thread alone.
        unsafe { retain(&self.device, self.raw, object) }
    }
}

impl Contents {
    /// Reads a graph of any owner.
    ///
    /// # Safety
    ///
    /// The graph is live and of the device's driver, and no other thread uses it during the call, not even to read it.
    pub unsafe fn of_raw(device: &Device, graph: CUgraph) -> Result<Self> {
        let _guard = device.setup()?;
        // SAFETY: by this function's contract.
        unsafe { inspect::read(device, graph) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: owned, destroyed only here. Executables made from it are copies.
        let gone = self.device.teardown("cuGraphDestroy", |api| unsafe {
            Ok((api.cuGraphDestroy()?)(self.raw))
        });
        if !gone {
            self.device.note_stray();
        }
    }
}

/// Hands `object` to a graph as a user object.
///
/// # Safety
///
/// The graph is live, and no other thread uses it during the call.
pub(crate) unsafe fn retain(device: &Device, graph: CUgraph, object: deferred::Held) -> Result<()> {
    let api = device.api();
    // All three before the first: a user object must not be left without its graph, nor the object without an owner.
    let create = api.cuUserObjectCreate()?;
    let hand_over = api.cuGraphRetainUserObject()?;
    let release = api.cuUserObjectRelease()?;
    let word = deferred::into_word(object);
    let mut user = CUuserObject::null();
    let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
    // SAFETY: `user` is a live out-parameter; the destructor takes exactly such a word, makes no driver call and does not
    // unwind, as the driver demands of it.
    let code = unsafe { create(&mut user, word, Some(deferred::release), 1, flags) };
    if let Err(error) = device.check("cuUserObjectCreate", code) {
        // SAFETY: no user object was made, so nobody but this function has the word.
        drop(unsafe { deferred::from_word(word) });
        return Err(error);
    }
    let flags = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE;
    // SAFETY: the graph is live by the contract, the user object has the one reference that is moved.
    let code = unsafe { hand_over(graph, user, 1, flags) };
    if let Err(error) = device.check("cuGraphRetainUserObject", code) {
        // SAFETY: the reference was not moved; giving it up runs the destructor, which queues the object.
        let code = unsafe { release(user, 1) };
        if !device.driver().note_drop("cuUserObjectRelease", Ok(code)) {
            device.note_stray();
        }
        return Err(error);
    }
    Ok(())
}

/// An executable graph.
#[derive(Debug)]
pub struct GraphExec {
    device: Device,
    raw: CUgraphExec,
    /// `Send`, not `Sync`: see [`Graph`].
    _one_thread: PhantomData<Cell<()>>,
}

impl GraphExec {
    /// The driver's handle.
    pub fn raw(&self) -> CUgraphExec {
        self.raw
    }

    /// Enqueues one execution of the whole graph. Two executions of one executable never overlap.
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        let _guard = self.device.bind()?;
        // SAFETY: executable and stream are live; `&mut` keeps other threads out.
        let code = unsafe { (self.device.api().cuGraphLaunch()?)(self.raw, stream.raw()) };
        self.device.check("cuGraphLaunch", code)
    }

    /// Uploads the executable ahead of its first launch, so that this one does not pay for it.
    pub fn upload(&mut self, stream: &Stream) -> Result<()> {
        let _guard = self.device.bind()?;
        // SAFETY: as for `launch`.
        let code = unsafe { (self.device.api().cuGraphUpload()?)(self.raw, stream.raw()) };
        self.device.check("cuGraphUpload", code)
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        // SAFETY: made by `instantiate`, destroyed only here; the driver lets a running execution finish.
        let gone = self.device.teardown("cuGraphExecDestroy", |api| unsafe {
            Ok((api.cuGraphExecDestroy()?)(self.raw))
        });
        if !gone {
            self.device.note_stray();
        }
    }
}
