//! What one rank measures.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use slabfence::Result;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::collective::{AllGatherHeads, Layout, LseBase, LseReduceScatter};
use slabfence::driver::{CaptureMode, Device, DeviceBuffer, Driver, GraphExec, Stream};
use slabfence::group::{Bootstrap, Group, Rank};
use slabfence::layout::DType;

use super::args::Operation;
use super::data::{self, Shape};
use super::times::ALONE;

/// Operations in a graph.
pub const OPERATIONS: u32 = 40;
/// Channel of single operations.
const EAGER: &str = "bench.eager";
/// Channel of graphs.
const GRAPH: &str = "bench.graph";
/// How long a rank waits for the others.
const TIMEOUT: Duration = Duration::from_secs(120);

/// One operation at one size.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Which.
    pub operation: Operation,
    /// Of what shape.
    pub shape: Shape,
}

/// What a rank found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Whether its results were right, eager and replayed.
    pub right: bool,
    /// Microseconds of one operation in a graph, by replay.
    pub graph: Vec<f64>,
    /// The same of replays that began at rest, one after the other.
    pub alone: Vec<f64>,
    /// Microseconds from the call to the end of one operation, by operation.
    pub blocking: Vec<f64>,
}

/// What ranks do over one transport.
#[derive(Debug)]
pub struct Plan {
    /// Ranks.
    pub world: usize,
    /// The cases, in order.
    pub cases: Vec<Case>,
    /// What the ranks agree on.
    pub contract: Contract,
    /// Whether ranks share the queues of a real device.
    pub shares_queues: bool,
    /// Seed of the data.
    pub seed: u64,
    /// Timed replays of each graph; 0: results are checked only.
    pub replays: u32,
}

/// Checks and times every case of every plan on rank `me`, on the device `ordinal`.
pub fn run(
    plans: &[Plan],
    driver: &Driver,
    bootstrap: Arc<dyn Bootstrap>,
    me: Rank,
    ordinal: u32,
) -> Result<Vec<Vec<Measured>>> {
    let world = plans.first().map_or(1, |plan| plan.world);
    let group = Group::new(bootstrap, me, world as u32)?.with_timeout(TIMEOUT);
    let device = Device::open(driver, ordinal);
    group.verdict("open the device", &device)?;
    let device = device?;
    let measured = plans.iter().map(|plan| {
        let pool = Pool::create(&device, group.clone(), &plan.contract)?;
        let measured = measure_all(plan, &pool, &group);
        let closed = pool.close();
        let measured = measured?;
        closed?;
        Ok(measured)
    });
    measured.collect()
}

fn measure_all(plan: &Plan, pool: &Pool, group: &Group) -> Result<Vec<Measured>> {
    pool.prepare(&[EAGER, GRAPH])?;
    let cases = plan.cases.iter();
    let measured = cases.map(|case| {
        let made = Bench::new(plan, pool, group, *case);
        group.verdict("allocate and upload", &made)?;
        let bench = made?;
        let found = bench.measure(plan.replays);
        group.verdict("measure", &found)?;
        found
    });
    measured.collect()
}

/// One case with its buffers on one rank.
pub(super) struct Bench<'a> {
    pub(super) pool: &'a Pool,
    pub(super) group: &'a Group,
    case: Case,
    channel: Channel,
    pub(super) stream: Stream,
    input: DeviceBuffer,
    lse: DeviceBuffer,
    output: DeviceBuffer,
    pub(super) shares_queues: bool,
    seed: u64,
}

impl<'a> Bench<'a> {
    fn new(plan: &Plan, pool: &'a Pool, group: &'a Group, case: Case) -> Result<Self> {
        let (device, shape) = (pool.device(), case.shape);
        let (from, to) = match case.operation {
            Operation::Gather | Operation::Floor => (shape.own(), shape.all()),
            Operation::Reduce => (shape.all(), shape.own()),
        };
        let seed = data::seed_of(plan.seed, group.me().index());
        let input = DeviceBuffer::new(device, from * 2)?;
        input.write(0, &data::values(seed, from))?;
        let lse = DeviceBuffer::new(device, shape.batch * shape.heads * 4)?;
        let lse_bytes: Vec<u8> = lse_of(&case, seed)
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        lse.write(0, &lse_bytes)?;
        let output = DeviceBuffer::new(device, to * 2)?;
        Ok(Self {
            pool,
            group,
            case,
            channel: pool.channel(EAGER)?,
            stream: Stream::new(device)?,
            input,
            lse,
            output,
            shares_queues: plan.shares_queues,
            seed: plan.seed,
        })
    }

    pub(super) fn enqueue(&self) -> Result<()> {
        let batch = self.case.shape.batch as u32;
        match self.case.operation {
            Operation::Gather | Operation::Floor => {
                let gather = AllGatherHeads {
                    input: self.input.ptr(),
                    output: self.output.ptr(),
                    batch,
                    dtype: DType::Bf16,
                    head_dim: Some(self.case.shape.dim as u32),
                };
                // SAFETY: the buffers have the shapes of the case and outlive the stream's work; nothing else uses them.
                unsafe { gather.enqueue(&self.channel, &self.stream) }
            }
            Operation::Reduce => {
                let reduce = LseReduceScatter {
                    input: self.input.ptr(),
                    lse: self.lse.ptr(),
                    output: self.output.ptr(),
                    batch,
                    dtype: DType::Bf16,
                    head_dim: None,
                    base: LseBase::E,
                    input_layout: Layout::TokenMajor,
                    output_layout: Layout::TokenMajor,
                };
                // SAFETY: as above.
                unsafe { reduce.enqueue(&self.channel, &self.stream) }
            }
        }
    }

    fn measure(&self, replays: u32) -> Result<Measured> {
        let eager = self.checked(|| self.enqueue())?;
        let mut exec = self.capture()?;
        // Whatever this rank has found: the others wait for it.
        let replayed = self.checked(|| exec.launch(&self.stream))?;
        let right = self.is_right(&eager) && replayed == eager;
        self.apart()?;
        if replays == 0 {
            return Ok(Measured {
                right,
                graph: Vec::new(),
                alone: Vec::new(),
                blocking: Vec::new(),
            });
        }
        Ok(Measured {
            right,
            graph: self.replays(&mut exec, replays)?,
            alone: self.alone(&mut exec, ALONE)?,
            blocking: self.blocking()?,
        })
    }

    /// What an operation writes over bytes that it cannot have left by chance.
    fn checked(&self, operation: impl FnOnce() -> Result<()>) -> Result<Vec<u8>> {
        self.output.fill(0xee)?;
        self.apart()?;
        operation()?;
        self.stream.synchronize()?;
        self.apart()?;
        let mut bytes = vec![0; self.output.len()];
        self.output.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Where ranks share a real device, waits until all have come here: one rank's copies can stand behind another's
    /// operations, which wait for operations of the first.
    fn apart(&self) -> Result<()> {
        match self.shares_queues {
            true => self.group.verdict("measure: apart", &Ok(())),
            false => Ok(()),
        }
    }

    fn is_right(&self, output: &[u8]) -> bool {
        let shape = &self.case.shape;
        let seeds = (0..shape.world).map(|rank| data::seed_of(self.seed, rank));
        match self.case.operation {
            Operation::Gather | Operation::Floor => {
                let inputs: Vec<_> = seeds.map(|seed| data::values(seed, shape.own())).collect();
                data::gathered(&inputs, shape) == output
            }
            Operation::Reduce => {
                let inputs: Vec<_> = seeds
                    .clone()
                    .map(|seed| data::values(seed, shape.all()))
                    .collect();
                let lses: Vec<_> = seeds.map(|seed| lse_of(&self.case, seed)).collect();
                data::is_combined(output, &inputs, &lses, shape, self.group.me().index())
            }
        }
    }

    fn capture(&self) -> Result<GraphExec> {
        let scope = self.pool.capture(GRAPH, &self.stream)?;
        self.stream.begin_capture(CaptureMode::ThreadLocal)?;
        let enqueued = (0..OPERATIONS).try_for_each(|_| self.enqueue());
        let graph = self.stream.end_capture();
        scope.finish()?;
        enqueued?;
        let mut exec = graph?.instantiate()?;
        // Not at the first launch, for which ranks that share the device would wait.
        exec.upload(&self.stream)?;
        self.stream.synchronize()?;
        Ok(exec)
    }
}

/// A rank's LSE of a case; `seed` is the rank's.
pub fn lse_of(case: &Case, seed: u64) -> Vec<f32> {
    data::lse(seed ^ 0x5eed, case.shape.batch * case.shape.heads)
}
