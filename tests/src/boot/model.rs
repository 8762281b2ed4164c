//! One model of the engine: a pool, an eager channel, and a graph for each batch size, all on one stream.

use core::mem::offset_of;
use std::time::Duration;

use slabfence::Result;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{CaptureMode, Graph, GraphExec, Stream};
use slabfence::layout::{DType, LocalBlock, Transport};

use crate::exchange::Exchange;
use crate::graphs::local_block;
use crate::late::{FAIL, local_of};
use crate::probe::Probe;
use crate::ranks::Member;
use crate::shape::Shape;

/// Batch sizes that have a graph.
pub(super) const BATCHES: [u32; 8] = [64, 48, 32, 16, 8, 4, 2, 1];
/// The graphs of batches up to this one share a channel, each with its own label.
const SMALL: u32 = 2;

/// Epoch of a new channel's first operation.
const FIRST_EPOCH: u64 = 2;

/// What a model is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub name: &'static str,
    /// Heads of one rank.
    pub heads: u32,
    pub query_dim: u32,
    pub value_dim: u32,
    pub dtype: DType,
    pub layers: usize,
    pub transport: Transport,
    pub oversubscribe: bool,
}

impl Size {
    fn contract(&self, world: u32) -> Contract {
        let heads = self.heads * world;
        Contract {
            max_channels: BATCHES.len() as u32 + 1,
            max_grid: 8,
            concurrent_operations: 2,
            // A loaded machine may make a rank late; that is no failure.
            warn: Duration::ZERO,
            fail: FAIL,
            transport: self.transport,
            oversubscribe: self.oversubscribe,
            ..Contract::new(heads, self.query_dim, self.value_dim, BATCHES[0])
        }
    }
}

/// The collectives of a model's layers for one batch: of each layer a gather and a reduce-scatter.
#[derive(Debug)]
pub(super) struct Layers {
    exchanges: Vec<Exchange>,
    /// Number of the first one's operation.
    first: u32,
}

impl Layers {
    pub fn new(member: &Member, size: &Size, batch: u32, layers: usize) -> Result<Self> {
        let gather = Shape::gather(size.dtype, batch, size.heads, size.query_dim);
        let reduce = Shape::reduce(size.dtype, batch, size.heads, size.value_dim);
        let shapes = [gather, reduce].into_iter().cycle().take(2 * layers);
        let exchanges = shapes.map(|shape| Exchange::new(member, shape));
        Ok(Self {
            exchanges: exchanges.collect::<Result<_>>()?,
            first: 0,
        })
    }

    /// Writes inputs that nothing has had yet, and clears the outputs. `number` counts operations, alike on all ranks.
    pub fn supply(&mut self, number: &mut u32) -> Result<()> {
        self.first = *number;
        *number += self.exchanges.len() as u32;
        let mut numbered = (self.first..).zip(&self.exchanges);
        numbered.try_for_each(|(operation, exchange)| exchange.supply(operation))
    }

    pub fn enqueue(&self, channel: &Channel, stream: &Stream) -> Result<()> {
        let mut exchanges = self.exchanges.iter();
        exchanges.try_for_each(|exchange| exchange.enqueue(channel, stream))
    }

    /// Enqueues the first alone.
    pub fn enqueue_first(&self, channel: &Channel, stream: &Stream) -> Result<()> {
        self.exchanges[0].enqueue(channel, stream)
    }

    /// Compares every output with what its operation must give.
    pub fn check(&self) -> Result<()> {
        for (operation, exchange) in (self.first..).zip(&self.exchanges) {
            exchange.check(operation, &exchange.read()?);
        }
        Ok(())
    }
}

/// A captured graph with its buffers.
#[derive(Debug)]
pub(super) struct Captured {
    pub layers: Layers,
    pub exec: GraphExec,
    pub graph: Graph,
}

impl Captured {
    /// Destroys graph, instance and buffers, in either order.
    pub fn destroy(self, instance_first: bool) {
        let Self {
            layers,
            exec,
            graph,
        } = self;
        if instance_first {
            drop(exec);
            drop((graph, layers));
        } else {
            drop((layers, graph));
            drop(exec);
        }
    }
}

/// The model on this rank.
#[derive(Debug)]
pub(super) struct Model {
    pub size: Size,
    pub pool: Pool,
    /// What the model's code calls operations on, captures included.
    pub eager: Channel,
    pub stream: Stream,
    /// Of the batches of [`BATCHES`], in that order.
    pub graphs: Vec<Captured>,
    /// A batch that no graph has, such as of a prefill.
    pub prefill: Layers,
    probe: Probe,
    /// Epoch of the eager channel's next operation.
    epoch: u64,
}

impl Model {
    /// A pool on the member's group with an eager channel, and buffers for a prefill.
    pub fn new(member: &Member, size: Size, prefill: u32, stream: Stream) -> Result<Self> {
        let pool = member.pool(&size.contract(member.group.world()))?;
        let name = format!("{}:eager", size.name);
        pool.prepare(&[&name])?;
        Ok(Self {
            eager: pool.channel(&name)?,
            pool,
            stream,
            graphs: Vec::new(),
            prefill: Layers::new(member, &size, prefill, 1)?,
            probe: Probe::new(&member.device)?,
            size,
            epoch: FIRST_EPOCH,
        })
    }

    /// Enqueues the prefill on the eager channel.
    pub fn enqueue_prefill(&mut self, stream: &Stream) -> Result<()> {
        self.epoch += self.prefill.exchanges.len() as u64;
        self.prefill.enqueue(&self.eager, stream)
    }

    /// [`enqueue_prefill`](Self::enqueue_prefill) on the model's own stream.
    pub fn enqueue_eager(&mut self) -> Result<()> {
        self.epoch += self.prefill.exchanges.len() as u64;
        self.prefill.enqueue(&self.eager, &self.stream)
    }

    /// Channel and label of the graph for a batch.
    fn place(&self, batch: u32) -> (String, String) {
        let name = self.size.name;
        let label = format!("{name}:{batch}");
        match batch > SMALL {
            true => (label.clone(), label),
            false => (format!("{name}:small"), label),
        }
    }

    /// Prepares the channels of all graphs in one call.
    pub fn prepare(&self) -> Result<()> {
        let mut names: Vec<String> = BATCHES.iter().map(|&batch| self.place(batch).0).collect();
        names.dedup();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.pool.prepare(&names)
    }

    /// Captures the graph for a batch into its channel.
    pub fn capture(
        &self,
        layers: Layers,
        batch: u32,
        warm_up: impl FnOnce(&Self, &Layers) -> Result<()>,
    ) -> Result<Captured> {
        let (channel, label) = self.place(batch);
        self.capture_into(layers, &channel, &label, warm_up)
    }

    /// Captures the layers as the model's code enqueues them: on the eager channel, from which the scope takes them away.
    /// `warm_up` comes first, inside the scope.
    pub fn capture_into(
        &self,
        layers: Layers,
        channel: &str,
        label: &str,
        warm_up: impl FnOnce(&Self, &Layers) -> Result<()>,
    ) -> Result<Captured> {
        let scope = self.pool.capture_labelled(channel, label, &self.stream)?;
        warm_up(self, &layers)?;
        self.stream.begin_capture(CaptureMode::ThreadLocal)?;
        layers.enqueue(&self.eager, &self.stream)?;
        let graph = self.stream.end_capture()?;
        scope.finish()?;
        assert_eq!(graph.kernel_nodes()?, layers.exchanges.len());
        assert_eq!(
            local_block(&graph),
            local_of(&self.pool, channel),
            "{label}"
        );
        let mut exec = graph.instantiate()?;
        // Not at the first launch, when other ranks wait on the device.
        exec.upload(&self.stream)?;
        self.stream.synchronize()?;
        Ok(Captured {
            layers,
            exec,
            graph,
        })
    }

    /// Supplies these graphs and the prefill.
    pub fn supply(&mut self, graphs: [usize; 2], number: &mut u32) -> Result<()> {
        for index in graphs {
            self.graphs[index].layers.supply(number)?;
        }
        self.prefill.supply(number)
    }

    /// Enqueues a replay.
    pub fn replay(&mut self, index: usize) -> Result<()> {
        self.graphs[index].exec.launch(&self.stream)
    }

    /// Enqueues a replay, the prefill and another replay.
    pub fn run(&mut self, [first, second]: [usize; 2]) -> Result<()> {
        self.replay(first)?;
        self.enqueue_eager()?;
        self.replay(second)
    }

    /// Compares what [`run`](Self::run) has given.
    pub fn check(&self, graphs: [usize; 2]) -> Result<()> {
        self.check_prefill()?;
        for index in graphs {
            self.graphs[index].layers.check()?;
        }
        Ok(())
    }

    /// Compares what [`enqueue_eager`](Self::enqueue_eager) or [`enqueue_prefill`](Self::enqueue_prefill) has given.
    pub fn check_prefill(&self) -> Result<()> {
        self.check_healthy()?;
        self.prefill.check()
    }

    /// Holds that no operation has failed: a report tells more than a wrong output.
    pub fn check_healthy(&self) -> Result<()> {
        assert_eq!(self.pool.faults()?, []);
        Ok(())
    }

    /// Enqueues what holds `stream` up for a while. By a kernel: on an H200 the first host functions of a process have not
    /// come to an end beside kernels that waited for them.
    pub fn hold(&self, stream: &Stream, time: Duration) -> Result<()> {
        self.probe.enqueue_pause(stream, time)
    }

    fn read_epoch(&self) -> Result<u64> {
        let local = local_of(&self.pool, self.eager.name());
        self.probe
            .peek(local + offset_of!(LocalBlock, epoch) as u64)
    }

    /// Holds that no operation went to the eager channel but those that were meant for it. Nothing may be running.
    pub fn check_eager(&self) -> Result<()> {
        assert_eq!(self.read_epoch()?, self.epoch, "{}", self.eager.name());
        Ok(())
    }

    /// After a reset: the eager channel's epoch is beyond every earlier one.
    pub fn has_moved(&mut self) -> Result<()> {
        let epoch = self.read_epoch()?;
        assert!(epoch > self.epoch, "{epoch}, after {}", self.epoch);
        self.epoch = epoch;
        Ok(())
    }
}
