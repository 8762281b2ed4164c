//! Ranks whose calls a test enqueues as it likes, on a held machine: in another order than the peers, on two streams, or not
//! at all.

use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{CaptureMode, Driver, Graph, GraphExec, Stream};
use slabfence::layout::{Cause, split_verdict};
use slabfence_emu::held::Looked;

use crate::exchange::Exchange;
use crate::probe::Probe;
use crate::ranks::{Member, on_ranks};
use crate::shape::Shape;

/// One rank with two channels and two streams.
#[derive(Debug)]
pub struct Caller {
    /// The rank's pool.
    pub pool: Pool,
    /// The channel that the graphs use, and another.
    pub channels: [Channel; 2],
    /// Nothing orders them.
    pub streams: [Stream; 2],
    /// Collectives; number n has the input of operation n.
    pub exchanges: Vec<Exchange>,
    /// Kernels that touch single words.
    pub probe: Probe,
    /// Collective n alone, and two instances of that.
    graphs: Vec<([GraphExec; 2], Graph)>,
}

/// Sets up ranks with these collectives, which the test may enqueue in any order.
///
/// # Panics
///
/// When a rank cannot be set up: these are tests.
pub fn callers(driver: &Driver, world: u32, contract: &Contract, shapes: &[Shape]) -> Vec<Caller> {
    let contract = Contract {
        concurrent_operations: 2,
        ..contract.clone()
    };
    let ready = on_ranks(driver, world, |member| {
        let pool = member.pool(&contract).expect("a pool");
        pool.prepare(&["first", "second"]).expect("channels");
        let exchanges: Vec<Exchange> = (0..)
            .zip(shapes)
            .map(|(number, &shape)| exchange(member, shape, number))
            .collect();
        let probe = Probe::new(&member.device).expect("the probe's kernels");
        let streams = [(); 2].map(|()| Stream::new(&member.device).expect("a stream"));
        (pool, exchanges, probe, streams)
    });
    let caller = |(pool, exchanges, probe, streams): (Pool, Vec<Exchange>, Probe, _)| {
        let numbered = exchanges.iter().enumerate();
        Caller {
            graphs: numbered
                .map(|(number, exchange)| graph(&pool, exchange, &streams, number))
                .collect(),
            channels: ["first", "second"].map(|name| pool.channel(name).expect("a channel")),
            pool,
            streams,
            exchanges,
            probe,
        }
    };
    ready.into_iter().map(caller).collect()
}

fn exchange(member: &Member, shape: Shape, number: u32) -> Exchange {
    let exchange = Exchange::new(member, shape).expect("buffers");
    exchange.supply(number).expect("an input");
    exchange
}

/// A graph of one collective, with a label of its own.
fn graph(
    pool: &Pool,
    exchange: &Exchange,
    streams: &[Stream; 2],
    number: usize,
) -> ([GraphExec; 2], Graph) {
    let stream = &streams[0];
    let channel = pool.channel("first").expect("a channel");
    let label = format!("graph {number}");
    let scope = pool.capture_labelled("first", &label, stream);
    let scope = scope.expect("a scope");
    let mode = CaptureMode::ThreadLocal;
    stream.begin_capture(mode).expect("a capture");
    exchange.enqueue(&channel, stream).expect("a captured call");
    let graph = stream.end_capture().expect("its graph");
    scope.finish().expect("the scope's end");
    let execs = [(); 2].map(|()| graph.instantiate().expect("an instance"));
    (execs, graph)
}

impl Caller {
    /// Enqueues a collective of the first channel on a stream.
    ///
    /// # Panics
    ///
    /// When the library refuses: these are tests.
    pub fn eager(&self, number: usize, stream: usize) {
        let exchange = &self.exchanges[number];
        let enqueued = exchange.enqueue(&self.channels[0], &self.streams[stream]);
        enqueued.expect("a call");
    }

    /// Enqueues the graph of a collective on a stream; each stream has an instance of its own.
    ///
    /// # Panics
    ///
    /// When the driver refuses: these are tests.
    pub fn replay(&mut self, number: usize, stream: usize) {
        let exec = &mut self.graphs[number].0[stream];
        exec.launch(&self.streams[stream]).expect("a launch");
    }

    /// The graph of a collective.
    pub fn graph(&self, number: usize) -> &Graph {
        &self.graphs[number].1
    }

    /// The first channel's verdict: the cause and the epoch of the first call that failed.
    ///
    /// # Panics
    ///
    /// When there is no such word.
    pub fn verdict(&self, looked: &Looked<'_>) -> Option<(Cause, u64)> {
        let at = self.channels[0].verdict().expect("a verdict").raw();
        let mut word = [0; 8];
        assert!(looked.read(at, &mut word), "the verdict's word");
        split_verdict(u64::from_le_bytes(word))
    }

    /// The output of a collective.
    ///
    /// # Panics
    ///
    /// When there is no such memory.
    pub fn output(&self, number: usize, looked: &Looked<'_>) -> Vec<u8> {
        let output = &self.exchanges[number].output;
        let mut bytes = vec![0; output.len()];
        assert!(looked.read(output.ptr().raw(), &mut bytes), "the output");
        bytes
    }

    /// Whether the output of a collective is what all ranks' inputs of that number give.
    pub fn is_right(&self, number: usize, looked: &Looked<'_>) -> bool {
        let Exchange {
            shape, world, rank, ..
        } = self.exchanges[number];
        self.output(number, looked) == shape.expected(world, rank, number as u32)
    }
}

/// Closes the ranks' pools.
///
/// # Panics
///
/// When a pool cannot be closed: these are tests.
pub fn close(callers: Vec<Caller>) {
    std::thread::scope(|scope| {
        for caller in callers {
            scope.spawn(move || {
                drop(caller.graphs);
                caller.pool.close().expect("a closed pool");
            });
        }
    });
}
