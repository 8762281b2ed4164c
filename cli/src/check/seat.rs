//! One rank whose work is enqueued on a held machine.

use std::mem::offset_of;
use std::sync::Arc;

use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{CaptureMode, Device, Driver, Graph, GraphExec, Stream};
use slabfence::group::{Bootstrap, Group, Rank, ThreadBootstrap};
use slabfence::health::Health;
use slabfence::layout::{Cause, Header, HealthHeader, LocalBlock, started_warps};
use slabfence::{Error, Result};
use slabfence_emu::held::Looked;
use slabfence_tests::ranks::Member;
use slabfence_tests::rounds::Rounds;

use super::aside::Aside;
use super::kernels::Way;
use super::scenario::{Act, BATCH, Ending, FRESH, Phase, ROWS, Scenario};

const NAMES: [&str; 2] = ["first", "second"];

/// A channel with its stream, buffers and graph.
#[derive(Debug)]
struct Lane {
    channel: Channel,
    stream: Stream,
    rounds: Rounds,
    /// Rounds that were enqueued.
    enqueued: u32,
    exec: GraphExec,
    graph: Graph,
}

/// One rank.
#[derive(Debug)]
pub struct Seat {
    member: Member,
    aside: Aside,
    lanes: Vec<Lane>,
    pool: Pool,
}

/// What all ranks of a scenario agree on.
pub fn contract(way: Way, world: u32, channels: usize) -> Contract {
    Contract {
        transport: way.transport(),
        gather_element_bytes: 4,
        reduce_element_bytes: 4,
        max_channels: channels as u32,
        max_grid: 4,
        concurrent_operations: 2,
        ..Contract::new(world, ROWS.0, ROWS.1, BATCH)
    }
}

impl Seat {
    /// Sets up a rank. All ranks must, each on a thread of its own.
    pub fn new(
        driver: &Driver,
        bootstrap: ThreadBootstrap,
        ordinal: u32,
        contract: &Contract,
        scenario: &Scenario,
    ) -> Result<Self> {
        let bootstrap: Arc<dyn Bootstrap> = Arc::new(bootstrap);
        let world = contract.total_heads;
        let member = Member {
            device: Device::open(driver, ordinal)?,
            group: Group::new(bootstrap.clone(), Rank(ordinal), world)?,
            bootstrap,
        };
        let names = &NAMES[..scenario.channels.len()];
        let pool = member.pool(contract)?;
        let lanes = pool
            .prepare(names)
            .and_then(|()| lanes(&member, &pool, names, scenario))
            .and_then(|lanes| match scenario.floor > FRESH {
                true => pool.reset_above(scenario.floor).map(|()| lanes),
                false => Ok(lanes),
            });
        match (lanes, Aside::new(&member.device)) {
            (Ok(lanes), Ok(aside)) => Ok(Self {
                member,
                aside,
                lanes,
                pool,
            }),
            (Err(error), _) | (_, Err(error)) => {
                // The first error counts.
                let _ = pool.close();
                Err(error)
            }
        }
    }

    /// Enqueues what the rank does in a phase.
    pub fn enqueue(&mut self, acts: &[Act]) -> Result<()> {
        acts.iter().try_for_each(|&act| match act {
            Act::Eager { channel, shape } => self.lanes[channel].eager(shape),
            Act::Replay { channel } => self.lanes[channel].replay(),
            Act::Sleep { channel } => self.aside.sleep(&self.lanes[channel].stream),
            Act::Trip { channel } => {
                let lane = &self.lanes[channel];
                let retired = local_block(&lane.graph)? + offset_of!(LocalBlock, retired) as u64;
                self.aside.trip(&lane.stream, retired)
            }
        })
    }

    /// What is wrong after a phase.
    pub fn check(&self, phase: &Phase, acts: &[Act], looked: &Looked<'_>) -> Result<(), String> {
        for (number, lane) in self.lanes.iter().enumerate() {
            let trips = |act: &&Act| matches!(act, Act::Trip { channel } if *channel == number);
            lane.at_rest(looked, acts.iter().filter(trips).count() as u64)?;
        }
        let health = self.pool.health().map_err(|error| error.to_string())?;
        let rank = self.pool.group().me();
        match phase.ending {
            Ending::Right | Ending::Retired | Ending::Raised(_) => {
                let faults = self.pool.faults().map_err(|error| error.to_string())?;
                if health != Health::Healthy {
                    return Err(format!("{rank} is {health:?}: {faults:?}"));
                }
                self.lanes.iter().try_for_each(|lane| lane.rounds.compare())
            }
            Ending::Away if acts.is_empty() => Ok(()),
            Ending::Away if health != Health::Failed => {
                Err(format!("{rank} is {health:?}, though a rank stayed away"))
            }
            Ending::Away => self
                .lanes
                .iter()
                .try_for_each(|lane| lane.poisoned(looked).and_then(|()| lane.skipped(looked))),
            Ending::Tripped => match (health, self.cause()?) {
                (Health::Failed, Some(Cause::Overlap)) if rank == Rank(0) => Ok(()),
                (Health::Failed, Some(Cause::PeerFailed | Cause::Skipped)) if rank != Rank(0) => {
                    Ok(())
                }
                (_, cause) => Err(format!(
                    "{rank} is {health:?} ({cause:?}), though rank 0 had failed before it entered"
                )),
            },
            Ending::Mismatch => match (health, self.cause()?) {
                (Health::Failed, Some(Cause::TagMismatch | Cause::PeerFailed | Cause::Skipped)) => {
                    Ok(())
                }
                (_, cause) => Err(format!(
                    "{rank} is {health:?} ({cause:?}), though ranks were in different operations"
                )),
            },
        }
    }

    /// Why the rank's first operation failed, if one did.
    pub fn cause(&self) -> Result<Option<Cause>, String> {
        let faults = self.pool.faults().map_err(|error| error.to_string())?;
        Ok(faults.first().and_then(|fault| fault.cause))
    }

    /// Brings the pool back to life, with epochs of at least `floor`; inputs begin anew, and outputs that were never written
    /// are not looked at. All ranks must.
    pub fn reset_above(&mut self, floor: u64) -> Result<()> {
        for lane in &mut self.lanes {
            lane.stream.synchronize()?;
            lane.rounds.forget();
            lane.enqueued = 0;
        }
        self.pool.reset_above(floor)
    }

    /// Gives the channels back, and takes others of the same names in their ranges. All ranks must.
    pub fn reuse(&mut self, scenario: &Scenario) -> Result<()> {
        self.lanes.clear();
        let names = &NAMES[..scenario.channels.len()];
        self.pool.retire(names)?;
        self.pool.prepare(names)?;
        self.lanes = lanes(&self.member, &self.pool, names, scenario)?;
        Ok(())
    }

    /// Gives everything up. All ranks must.
    pub fn close(self) -> Result<()> {
        drop(self.lanes);
        self.pool.close()
    }
}

fn lanes(member: &Member, pool: &Pool, names: &[&str], scenario: &Scenario) -> Result<Vec<Lane>> {
    let numbered = names.iter().zip(&scenario.channels).enumerate();
    let lane = |(number, (name, shapes)): (usize, (&&str, &Vec<_>))| {
        let stream = Stream::new(&member.device)?;
        let channel = pool.channel(name)?;
        let rounds = Rounds::new(member, shapes, scenario.rounds(number))?;
        let scope = pool.capture(name, &stream)?;
        stream.begin_capture(CaptureMode::ThreadLocal)?;
        for exchange in &rounds.exchanges {
            exchange.enqueue(&channel, &stream)?;
        }
        let graph = stream.end_capture()?;
        scope.finish()?;
        Ok(Lane {
            exec: graph.instantiate()?,
            channel,
            stream,
            rounds,
            enqueued: 0,
            graph,
        })
    };
    numbered.map(lane).collect()
}

impl Lane {
    fn eager(&mut self, shape: usize) -> Result<()> {
        let (round, stream) = (self.enqueued, &self.stream);
        self.enqueued += 1;
        self.rounds.supply(round, shape, stream)?;
        self.rounds.exchanges[shape].enqueue(&self.channel, stream)?;
        self.rounds.collect(round, shape, stream)
    }

    fn replay(&mut self) -> Result<()> {
        let (round, stream) = (self.enqueued, &self.stream);
        self.enqueued += 1;
        let all = 0..self.rounds.exchanges.len();
        for shape in all.clone() {
            self.rounds.supply(round, shape, stream)?;
        }
        self.exec.launch(stream)?;
        for shape in all {
            self.rounds.collect(round, shape, stream)?;
        }
        Ok(())
    }

    /// Whether every warp that started has ended, but for those that counters were made to name: the guard against
    /// overlapping operations reads these.
    fn at_rest(&self, looked: &Looked<'_>, tripped: u64) -> Result<(), String> {
        let local = local_block(&self.graph).map_err(|error| error.to_string())?;
        let word = |offset: usize| {
            let mut bytes = [0; 8];
            let read = looked.read(local + offset as u64, &mut bytes);
            read.then_some(u64::from_le_bytes(bytes))
        };
        let started = word(offset_of!(LocalBlock, started)).map(started_warps);
        let retired = word(offset_of!(LocalBlock, retired));
        let retired = retired.map(|retired| retired.wrapping_add(tripped));
        match started.is_some() && started == retired {
            true => Ok(()),
            false => Err(format!(
                "{:?} warps of channel '{}' have started and {:?} have ended",
                started.unwrap_or_default(),
                self.channel.name(),
                retired.unwrap_or_default()
            )),
        }
    }

    /// Whether the last operation was skipped: nobody who finds poison when it begins enters, or waits.
    fn skipped(&self, looked: &Looked<'_>) -> Result<(), String> {
        let header = address(&self.graph, offset_of!(Header, health_header));
        let header = header.map_err(|error| error.to_string())?;
        let mut code = [0; 4];
        let read = looked.read(header + offset_of!(HealthHeader, fault) as u64, &mut code);
        match Cause::from_code(u32::from_le_bytes(code)) {
            Some(Cause::Skipped) if read => Ok(()),
            cause => Err(format!(
                "the last operation of channel '{}' reports {cause:?}, though an earlier one had failed",
                self.channel.name()
            )),
        }
    }

    /// Whether the outputs of operations that failed say so in every byte.
    fn poisoned(&self, looked: &Looked<'_>) -> Result<(), String> {
        for exchange in &self.rounds.exchanges {
            let mut bytes = vec![0; exchange.output.len()];
            let read = looked.read(exchange.output.ptr().raw(), &mut bytes);
            if let Some(at) = bytes.iter().position(|&byte| !read || byte != 0xff) {
                return Err(format!(
                    "rank {} of {}, {:?}: byte {at} of the output of an operation that failed is {:#04x}, not 0xff",
                    exchange.rank, exchange.world, exchange.shape, bytes[at]
                ));
            }
        }
        Ok(())
    }
}

/// The local block of the channel that a graph's operations use.
fn local_block(graph: &Graph) -> Result<u64> {
    address(graph, offset_of!(Header, local))
}

/// An address in the parameter block that a graph's operations begin with.
fn address(graph: &Graph, at: usize) -> Result<u64> {
    let missing = || Error::Refused {
        operation: "check",
        why: "a captured collective has no parameters".to_owned(),
    };
    let nodes = graph.nodes()?;
    let mut kernels = nodes.iter().filter_map(|node| node.kernel());
    let block = kernels.find_map(|kernel| kernel.params.as_ref()?.first().cloned());
    let block = block.ok_or_else(missing)?;
    let word = block.bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    Ok(u64::from_le_bytes(word.ok_or_else(missing)?))
}
