//! Graphs: templates of work, their executable forms, and the launch of those.

use std::collections::BTreeMap;
use std::sync::Arc;

use slabfence_emu_exec::Launch;

use crate::callback::Callback;
use crate::code::{Code, Status};
use crate::event::Recorded;
use crate::handle::{Kind, Table};
use crate::machine::State;
use crate::operations::{OpId, Source, Work};
use crate::taken::Taken;
use crate::user_object::UserObjects;

/// A kernel with its launch.
#[derive(Clone, Debug)]
pub(crate) struct KernelTask {
    /// The function's handle, valid while its module is loaded.
    pub(crate) function: u64,
    /// The device of the function's context.
    pub(crate) device: u32,
    /// Geometry and parameters, copied when the task was made.
    pub(crate) launch: Arc<Launch>,
    /// The addresses in its parameters when the task was made.
    pub(crate) taken: Taken,
    /// Whether all blocks must be resident at once.
    pub(crate) cooperative: bool,
}

/// Work that a stream can be given, or a graph's node can be.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// A kernel.
    Kernel(KernelTask),
    /// A copy; `checked` says which ends (to, from) are memory of the machine.
    Copy {
        to: u64,
        from: Source,
        len: u64,
        checked: (bool, bool),
    },
    /// Stores of one element.
    Fill {
        to: u64,
        element: [u8; 4],
        width: usize,
        count: u64,
    },
    /// A host function.
    Host(Callback),
    /// Nothing: joins what it depends on.
    Empty,
    /// Waits for an event that something outside the graph records.
    Wait(u64),
}

impl Task {
    /// The operation that does it.
    pub(crate) fn work(self) -> Work {
        match self {
            Task::Kernel(kernel) => Work::Kernel(kernel.launch, kernel.taken),
            Task::Copy {
                to,
                from,
                len,
                checked,
            } => Work::Copy {
                to,
                from,
                len,
                checked,
            },
            Task::Fill {
                to,
                element,
                width,
                count,
            } => Work::Fill {
                to,
                element,
                width,
                count,
            },
            Task::Host(callback) => Work::Host(callback),
            Task::Empty | Task::Wait(_) => Work::Marker,
        }
    }
}

/// A node of a graph.
pub(crate) struct Node {
    /// The graph that it belongs to.
    pub(crate) graph: u64,
    /// What it does.
    pub(crate) task: Task,
    /// Addresses of its kernel's parameters, once somebody asked: they stay where they are while the node lives.
    pub(crate) pointers: Option<Box<[usize]>>,
}

/// A graph.
#[derive(Default)]
pub(crate) struct Graph {
    /// Nodes in the order in which they were made: each one's dependencies come before it.
    pub(crate) nodes: Vec<u64>,
    /// Dependencies, from and to.
    pub(crate) edges: Vec<(u64, u64)>,
    /// References to user objects that it holds.
    pub(crate) objects: BTreeMap<u64, u32>,
    /// The capture that is adding to it.
    pub(crate) capture: Option<u64>,
}

#[derive(Clone)]
struct ExecNode {
    /// The node of the graph that it was made from.
    node: u64,
    task: Task,
    after: Vec<usize>,
}

/// An executable graph.
pub(crate) struct Exec {
    nodes: Arc<[ExecNode]>,
    objects: BTreeMap<u64, u32>,
    /// The end of its last launch, and the device of that launch's stream.
    last: Option<(u32, OpId)>,
}

/// Graphs, nodes, execs and user objects of a machine.
pub(crate) struct Graphs {
    pub(crate) graphs: Table<Graph>,
    pub(crate) nodes: Table<Node>,
    execs: Table<Exec>,
    /// Execs that were destroyed while they ran.
    dying: BTreeMap<u64, Exec>,
    pub(crate) objects: UserObjects,
}

impl Graphs {
    /// None of anything.
    pub(crate) fn new(slot: usize) -> Graphs {
        Graphs {
            graphs: Table::new(Kind::Graph, slot),
            nodes: Table::new(Kind::Node, slot),
            execs: Table::new(Kind::Exec, slot),
            dying: BTreeMap::new(),
            objects: UserObjects::new(slot),
        }
    }

    /// How many execs live, those included that were destroyed and still run.
    pub(crate) fn live_execs(&self) -> usize {
        self.execs.len() + self.dying.len()
    }

    /// Adds a node behind others of the same graph.
    pub(crate) fn add(&mut self, graph: u64, task: Task, after: &[u64]) -> Status<u64> {
        let mut after = after.to_vec();
        after.sort_unstable();
        let many = after.len();
        after.dedup();
        if many != after.len() {
            return Err(Code::INVALID_VALUE);
        }
        for &node in &after {
            if self.nodes.get(node)?.graph != graph {
                return Err(Code::INVALID_VALUE);
            }
        }
        let owner = self.graphs.get_mut(graph)?;
        let node = self.nodes.insert(Node {
            graph,
            task,
            pointers: None,
        });
        owner.nodes.push(node);
        owner
            .edges
            .extend(after.into_iter().map(|before| (before, node)));
        Ok(node)
    }

    /// Destroys a graph; gives the destructors that are due.
    pub(crate) fn destroy(&mut self, graph: u64) -> Status<Vec<Callback>> {
        if self.graphs.get(graph)?.capture.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        let graph = self.graphs.remove(graph)?;
        for node in graph.nodes {
            self.nodes.remove(node)?;
        }
        Ok(self.objects.release_all(&graph.objects))
    }

    /// The nodes that `from` depend on, and themselves.
    pub(crate) fn ancestors(&self, graph: u64, from: &[u64]) -> Status<Vec<u64>> {
        let graph = self.graphs.get(graph)?;
        let mut found = from.to_vec();
        let mut at = 0;
        while let Some(&node) = found.get(at) {
            for &(before, after) in &graph.edges {
                if after == node && !found.contains(&before) {
                    found.push(before);
                }
            }
            at += 1;
        }
        Ok(found)
    }

    /// `cuGraphInstantiate`: tasks and references as they are now.
    pub(crate) fn instantiate(&mut self, graph: u64) -> Status<u64> {
        let graph = self.graphs.get(graph)?;
        if graph.capture.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        let index: BTreeMap<u64, usize> = graph
            .nodes
            .iter()
            .enumerate()
            .map(|(at, &node)| (node, at))
            .collect();
        let mut nodes = Vec::new();
        for &node in &graph.nodes {
            nodes.push(ExecNode {
                node,
                task: self.nodes.get(node)?.task.clone(),
                after: Vec::new(),
            });
        }
        for (before, after) in &graph.edges {
            nodes[index[after]].after.push(index[before]);
        }
        let objects = graph.objects.clone();
        self.objects.retain_all(&objects);
        Ok(self.execs.insert(Exec {
            nodes: nodes.into(),
            objects,
            last: None,
        }))
    }

    /// `cuGraphExecKernelNodeSetParams`: what the kernel of a node is in later launches of an exec.
    pub(crate) fn set_kernel(&mut self, exec: u64, node: u64, task: KernelTask) -> Status {
        let exec = self.execs.get_mut(exec)?;
        // Launches that are under way keep the nodes as they were.
        let mut nodes = exec.nodes.to_vec();
        let found = nodes.iter_mut().find(|found| found.node == node);
        let Some(Task::Kernel(kernel)) = found.map(|found| &mut found.task) else {
            return Err(Code::INVALID_VALUE);
        };
        *kernel = task;
        exec.nodes = nodes.into();
        Ok(())
    }

    /// `cuGraphClone`: the same nodes, edges and references in a graph of its own.
    pub(crate) fn duplicate(&mut self, graph: u64) -> Status<u64> {
        let from = self.graphs.get(graph)?;
        if from.capture.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        let (nodes, edges, objects) =
            (from.nodes.clone(), from.edges.clone(), from.objects.clone());
        let copy = self.graphs.insert(Graph::default());
        let mut of = BTreeMap::new();
        for node in nodes {
            let task = self.nodes.get(node)?.task.clone();
            of.insert(node, self.add(copy, task, &[])?);
        }
        self.objects.retain_all(&objects);
        let made = self.graphs.get_mut(copy)?;
        made.edges = edges.iter().map(|(from, to)| (of[from], of[to])).collect();
        made.objects = objects;
        Ok(copy)
    }

    /// Whether an exec lives.
    pub(crate) fn exec(&self, exec: u64) -> Status<&Exec> {
        self.execs.get(exec)
    }

    /// Gives up an exec whose last launch is done; gives the destructors that are due.
    pub(crate) fn retire(&mut self, exec: u64) -> Vec<Callback> {
        let gone = self.dying.remove(&exec);
        gone.map_or_else(Vec::new, |gone| self.objects.release_all(&gone.objects))
    }
}

impl State {
    /// `cuGraphLaunch`: behind the stream's work and behind the exec's own last launch.
    pub(crate) fn launch_graph(&mut self, exec: u64, index: usize) -> Status {
        let found = self.graphs.exec(exec)?;
        let (nodes, last) = (found.nodes.clone(), found.last);
        if let Some(capture) = self.streams.get(index)?.capture {
            return Err(self.spoil(capture, Code::CAPTURE_UNSUPPORTED));
        }
        self.refuse_legacy_in_capture(index)?;
        for node in nodes.iter() {
            self.runnable(&node.task)?;
        }
        let device = self.streams.get(index)?.device;
        let before: Vec<OpId> = last.into_iter().map(|(_, op)| op).collect();
        let head = self.enqueue(index, Work::Marker, &before)?;
        let mut ops: Vec<OpId> = Vec::with_capacity(nodes.len());
        for node in nodes.iter() {
            let mut after: Vec<OpId> = node.after.iter().map(|&at| ops[at]).collect();
            after.push(head);
            let on = match &node.task {
                Task::Kernel(kernel) => kernel.device,
                _ => device,
            };
            if let Task::Wait(event) = node.task
                && let Recorded::Stream { op, .. } = self.events.0.get(event)?.recorded
            {
                after.push(op);
            }
            ops.push(self.engine.enqueue(on, node.task.clone().work(), &after));
        }
        let tail = self.enqueue(index, Work::Marker, &ops)?;
        if let Ok(exec) = self.graphs.execs.get_mut(exec) {
            exec.last = Some((device, tail));
        }
        Ok(())
    }

    /// Refuses a kernel whose context is broken or whose module is gone: hardware would run whatever lies there now.
    fn runnable(&mut self, task: &Task) -> Status {
        let Task::Kernel(kernel) = task else {
            return Ok(());
        };
        if self.modules.functions.get(kernel.function).is_err() {
            let name = kernel.launch.kernel.name();
            self.faults.push(format!(
                "launch of a graph whose kernel `{name}` is of a module that was unloaded"
            ));
            return Err(Code::INVALID_HANDLE);
        }
        self.whole(kernel.device)
    }

    /// `cuGraphExecDestroy`. One that runs ends with its last launch.
    pub(crate) fn destroy_exec(&mut self, exec: u64) -> Status {
        let gone = self.graphs.execs.remove(exec)?;
        let last = gone.last.filter(|&(_, op)| self.engine.pending(op));
        self.graphs.dying.insert(exec, gone);
        match last {
            Some((device, op)) => {
                self.engine.enqueue(device, Work::Retire(exec), &[op]);
            }
            None => {
                let due = self.graphs.retire(exec);
                self.engine
                    .calls
                    .extend(due.into_iter().map(|call| (call, None)));
            }
        }
        Ok(())
    }
}
