//! What one rank does, from its device to its results.

use std::sync::Arc;
use std::time::{Duration, Instant};

use slabfence::attention::AttentionKernels;
use slabfence::channel::{Channel, Pool};
use slabfence::driver::{CaptureMode, Device, Driver, Graph, GraphExec, Stream};
use slabfence::graph::Dump;
use slabfence::group::{Bootstrap, Group, Rank};
use slabfence::health::Health;
use slabfence::{Error, Result};

use serde::{Deserialize, Serialize};

use super::bits;
use super::extents::Extents;
use super::memory::Memory;
use super::setup::{EAGER, Setup, graph_channel};
use super::stages::Stages;
use super::step::Step;
use super::time::{self, Times};
use super::workload::SETS;
use super::{dump, reference, shard};

/// Seconds that an emulated run may take without a word.
const LONG_RUN: f64 = 120.0;

/// What came of one batch size on one rank.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchResult {
    /// Kernel nodes of the graph.
    pub kernel_nodes: usize,
    /// Whether every gathered byte is the one that its rank handed over.
    pub gathered_exact: bool,
    /// The first replay that differs from the eager pass, in words.
    pub difference: Option<String>,
    /// Largest error of any output of either query set.
    #[serde(with = "bits::one")]
    pub max_abs_error: f64,
    /// Outputs `[layers, batch, own heads, value_dim]` of the first query set.
    pub outputs: Vec<u8>,
    /// What they should be.
    #[serde(with = "bits::many")]
    pub expected: Vec<f64>,
    /// Times on a real driver, if asked for.
    pub times: Option<Times>,
}

/// Runs every batch size as rank `me`, on the device `ordinal`.
pub fn run(
    setup: &Setup<'_>,
    driver: &Driver,
    bootstrap: Arc<dyn Bootstrap>,
    me: Rank,
    ordinal: u32,
) -> Result<Vec<BatchResult>> {
    let stages = Stages::new(Group::new(bootstrap, me, setup.ranks as u32)?);
    let device = stages.together("open the device", Device::open(driver, ordinal))?;
    let pool = Pool::create(&device, stages.group().clone(), &setup.contract())?;
    let results = work(setup, &pool, &stages, me);
    // On all ranks, also after a failure, which every rank has seen: nothing stays mapped at a peer.
    let closed = stages.close(&pool);
    let results = results?;
    closed?;
    Ok(results)
}

fn work(setup: &Setup<'_>, pool: &Pool, stages: &Stages, me: Rank) -> Result<Vec<BatchResult>> {
    pool.prepare(&setup.channels())?;
    let device = pool.device();
    let made = || {
        Ok(Worker {
            setup,
            pool,
            stages,
            rank: me.index(),
            memory: Memory::new(device, setup, me.index())?,
            attention: AttentionKernels::load(device)?,
            channel: pool.channel(EAGER)?,
            stream: Stream::new(device)?,
        })
    };
    let worker = stages.together("allocate and upload", made())?;
    let batches = setup.batches.iter();
    batches.map(|&batch| worker.run_batch(batch)).collect()
}

/// One rank with everything that it needs.
struct Worker<'a> {
    setup: &'a Setup<'a>,
    pool: &'a Pool,
    stages: &'a Stages,
    rank: usize,
    memory: Memory,
    attention: AttentionKernels,
    channel: Channel,
    stream: Stream,
}

impl Worker<'_> {
    fn run_batch(&self, batch: usize) -> Result<BatchResult> {
        let step = Step {
            setup: self.setup,
            memory: &self.memory,
            batch,
            extents: Extents::new(self.setup, batch),
            attention: &self.attention,
            channel: &self.channel,
            stream: &self.stream,
        };
        let begin = Instant::now();
        let eager = self.stages.together("eager pass", self.eager(&step))?;
        self.announce(batch, begin.elapsed() / SETS as u32);
        let (graph, mut exec) = self.stages.together("capture", self.capture(&step))?;
        self.stages
            .together("dump the graph", self.dump(batch, &graph))?;
        let replayed = self.replay(&step, &mut exec, &eager);
        let difference = self.stages.together("replay", replayed)?;
        let kernel_nodes = graph.kernel_nodes()?;
        let times = match self.setup.time {
            true => {
                let measured = time::measure(&step, self.pool, &mut exec);
                Some(self.stages.together("measure", measured)?)
            }
            false => None,
        };
        let mut max_abs_error: f64 = 0.0;
        let mut expected = Vec::new();
        let outputs = |set: usize| &eager[set][step.extents.output_at(0)..];
        for set in (0..SETS).rev() {
            expected = self.expected(batch, set);
            let actual = self.setup.data.element.decode(outputs(set));
            max_abs_error = max_abs_error.max(reference::largest_error(&actual, &expected));
        }
        Ok(BatchResult {
            kernel_nodes,
            gathered_exact: (0..SETS).all(|set| self.gathered_exact(&step, set, &eager[set])),
            difference,
            max_abs_error,
            outputs: outputs(0).to_vec(),
            expected,
            times,
        })
    }

    /// Writes the graph down before it runs: whoever wants to see it may want to because it hangs.
    fn dump(&self, batch: usize, graph: &Graph) -> Result<()> {
        match &self.setup.dump {
            Some(path) if self.rank == 0 && batch == self.setup.largest_batch() => {
                dump::write(path, &Dump::of(self.pool.device(), graph, &[self.pool])?)
            }
            _ => Ok(()),
        }
    }

    /// Says beforehand that an emulated run will be long; `step` is the time of one step.
    fn announce(&self, batch: usize, step: Duration) {
        let replays = self.setup.replays;
        let whole = step.as_secs_f64() * replays as f64;
        if self.rank == 0 && self.pool.device().driver().is_emulated() && whole > LONG_RUN {
            log::warn!(
                "batch {batch}: {replays} replays will take some {whole:.0} s on the emulated machine; ask for fewer with --replays"
            );
        }
    }

    /// Runs every query set without a graph. The blocks of results.
    fn eager(&self, step: &Step<'_>) -> Result<Vec<Vec<u8>>> {
        let inputs = step.extents.inputs();
        for set in 0..SETS {
            self.memory
                .staged
                .write(set * inputs, &self.own_queries(step.batch, set))?;
        }
        let mut blocks = Vec::with_capacity(SETS);
        for set in 0..SETS {
            self.pass(step, set, 0, || step.enqueue())?;
            self.settle()?;
            blocks.push(self.block(step, 0)?);
        }
        Ok(blocks)
    }

    fn capture(&self, step: &Step<'_>) -> Result<(Graph, GraphExec)> {
        let scope = self
            .pool
            .capture(&graph_channel(step.batch), &self.stream)?;
        self.stream.begin_capture(CaptureMode::ThreadLocal)?;
        let enqueued = step.enqueue();
        // Ended in any case: a stream that captures can be used for nothing else.
        let graph = self.stream.end_capture();
        scope.finish()?;
        enqueued?;
        let graph = graph?;
        let exec = graph.instantiate()?;
        Ok((graph, exec))
    }

    /// Replays the graph with the query sets in turn and compares every replay with the eager pass, byte by byte.
    fn replay(
        &self,
        step: &Step<'_>,
        exec: &mut GraphExec,
        eager: &[Vec<u8>],
    ) -> Result<Option<String>> {
        let entries = self.memory.ring_entries(step.extents.results());
        let mut difference = None;
        let mut done = 0;
        while done < self.setup.replays {
            let now = entries.min(self.setup.replays - done);
            for entry in 0..now {
                let set = (done + entry) % SETS;
                self.pass(step, set, entry, || exec.launch(&self.stream))?;
            }
            self.settle()?;
            for entry in 0..now {
                let block = self.block(step, entry)?;
                let eager = &eager[(done + entry) % SETS];
                if difference.is_none() {
                    difference = step.extents.first_difference(done + entry, eager, &block);
                }
            }
            done += now;
        }
        Ok(difference)
    }

    /// Enqueues one step: the upload of a query set, the operations, the download of the results into an entry of the ring.
    fn pass(
        &self,
        step: &Step<'_>,
        set: usize,
        entry: usize,
        operations: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.send(step, set)?;
        self.apart("upload")?;
        operations()?;
        self.apart("operations")?;
        self.fetch(step, entry)
    }

    /// Where ranks share a real device, waits until all have come here. Copies of all ranks go through the same queues of
    /// the device: one rank's download waits in there for its operations, which wait for those of another rank, whose
    /// upload stands behind the download.
    fn apart(&self, stage: &'static str) -> Result<()> {
        match self.setup.shares_queues {
            true => self.stages.together(stage, self.settle()),
            false => Ok(()),
        }
    }

    /// Enqueues the upload of a query set.
    fn send(&self, step: &Step<'_>, set: usize) -> Result<()> {
        let (to, from) = (&self.memory.queries, &self.memory.staged);
        let bytes = step.extents.inputs();
        // SAFETY: both buffers live until the stream has come to rest, and the copy is not captured.
        unsafe { to.write_async(0, from, set * bytes, bytes, &self.stream) }
    }

    /// Enqueues the download of the results into an entry of the ring.
    fn fetch(&self, step: &Step<'_>, entry: usize) -> Result<()> {
        let (from, to) = (&self.memory.results, &self.memory.ring);
        let bytes = step.extents.results();
        // SAFETY: as in `send`.
        unsafe { from.read_async(0, to, entry * bytes, bytes, &self.stream) }
    }

    /// Waits for the stream, and fails with the report of an operation that failed meanwhile.
    fn settle(&self) -> Result<()> {
        self.stream.synchronize()?;
        if self.pool.health()? != Health::Failed {
            return Ok(());
        }
        Err(match self.pool.faults()?.into_iter().next() {
            Some(report) => Error::Fault(Box::new(report)),
            None => Error::Refused {
                operation: "decode",
                why: "the pool has failed and this rank has no report; read the other ranks'"
                    .to_owned(),
            },
        })
    }

    fn block(&self, step: &Step<'_>, entry: usize) -> Result<Vec<u8>> {
        let mut block = vec![0; step.extents.results()];
        self.memory.ring.read(entry * block.len(), &mut block)?;
        Ok(block)
    }

    /// This rank's queries of a set, all layers.
    fn own_queries(&self, batch: usize, set: usize) -> Vec<u8> {
        self.queries(batch, set, self.setup.heads_of(self.rank))
            .concat()
    }

    /// Some heads' queries of a set, by layer.
    fn queries(&self, batch: usize, set: usize, wanted: std::ops::Range<usize>) -> Vec<Vec<u8>> {
        let data = self.setup.data;
        let of = |layer: usize| {
            let tokens = data.tokens_of(set, batch);
            let queries = &data.layer(layer).queries;
            shard::heads(
                queries,
                data.query_row(),
                data.heads,
                tokens,
                wanted.clone(),
            )
        };
        (0..self.setup.layers).map(of).collect()
    }

    fn gathered_exact(&self, step: &Step<'_>, set: usize, block: &[u8]) -> bool {
        let mut all = self.queries(step.batch, set, 0..self.setup.data.heads);
        all.push(all[0].clone());
        block[..step.extents.output_at(0)] == *all.concat()
    }

    /// What this rank's outputs of a set should be, all layers.
    fn expected(&self, batch: usize, set: usize) -> Vec<f64> {
        let data = self.setup.data;
        let heads = self.setup.heads_of(self.rank);
        let distinct: Vec<Vec<f64>> = data
            .layers
            .iter()
            .take(self.setup.layers)
            .map(|layer| {
                reference::expected(data, layer, data.tokens_of(set, batch), heads.clone())
            })
            .collect();
        let layers = (0..self.setup.layers).map(|layer| &distinct[layer % distinct.len()]);
        layers.flatten().copied().collect()
    }
}
