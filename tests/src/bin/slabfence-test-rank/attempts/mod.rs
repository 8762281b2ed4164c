//! Everything that a forked child could try with what its parent has.

mod driver;
mod left;
mod pools;

use rustix::mm::{Advice, madvise};
use slabfence::attention::AttentionKernels;
use slabfence::channel::{Channel, Checkpoint, Contract, Part, Pool};
use slabfence::driver::{
    CaptureMode, DeviceBuffer, Event, Graph, GraphExec, Kernel, Module, PinnedBuffer, Stream,
    drop_released,
};
use slabfence::group::ThreadBootstrap;
use slabfence::layout::DType;
use slabfence::slab::{Arena, Local, Mapping, Signal};
use slabfence::{Error, Result};
use slabfence_ptx::Image;
use slabfence_tests::exchange::Exchange;
use slabfence_tests::ranks::{Gather, Member};
use slabfence_tests::shape::Shape;

use super::Outcome;
use left::Left;

/// What is in the parent's buffers.
const CONTENTS: [u8; 16] = *b"parent's, not to";
const BYTES: usize = 4096;
/// An image, and a kernel of it.
const CLOCK: (&str, &str) = ("clock", "sf_clock");

/// One object of each kind, made by the parent.
pub struct Stage<'a> {
    member: &'a Member,
    contract: &'a Contract,
    pool: &'a Pool,
    channel: &'a Channel,
    gather: Gather,
    reduction: Exchange,
    attention: AttentionKernels,
    image: &'static Image,
    module: Module,
    clock: Kernel,
    stream: Stream,
    event: Event,
    graph: Graph,
    exec: GraphExec,
    buffer: DeviceBuffer,
    pinned: PinnedBuffer,
    arena: Arena<Local>,
    mapping: Mapping<Signal>,
    closed: Mapping<Local>,
    threads: Vec<ThreadBootstrap>,
    checkpoint: Checkpoint,
    left: Left,
}

type Attempt = (&'static str, Result<()>);

fn no<T>(result: Result<T>) -> Result<()> {
    result.map(drop)
}

impl<'a> Stage<'a> {
    pub fn new(
        member: &'a Member,
        contract: &'a Contract,
        pool: &'a Pool,
        channel: &'a Channel,
    ) -> std::result::Result<Self, Box<dyn std::error::Error>> {
        let device = &member.device;
        // The child has the list of what is looked at, and no thread that looks.
        pool.fault_event()?;
        let stream = Stream::new(device)?;
        stream.begin_capture(CaptureMode::ThreadLocal)?;
        let graph = stream.end_capture()?;
        let image = slabfence_ptx::image(CLOCK.0).ok_or("no such image")?;
        let module = Module::load(device, image)?;
        let stage = Self {
            gather: Gather::new(member, contract, 2)?,
            reduction: Exchange::new(member, Shape::reduce(DType::Bf16, 2, 2, 64))?,
            attention: AttentionKernels::load(device)?,
            clock: module.kernel(CLOCK.1)?,
            image,
            module,
            event: Event::timed(device)?,
            exec: graph.instantiate()?,
            buffer: DeviceBuffer::new(device, BYTES)?,
            pinned: PinnedBuffer::new(device, BYTES)?,
            arena: Arena::create(device, CONTENTS.len(), 2)?,
            mapping: Mapping::create(device, BYTES)?,
            closed: {
                let mut mapping = Mapping::create(device, BYTES)?;
                mapping.close()?;
                mapping
            },
            threads: ThreadBootstrap::world(2),
            checkpoint: pool.checkpoint()?,
            left: Left::new(device, contract)?,
            member,
            contract,
            pool,
            channel,
            stream,
            graph,
        };
        stage.buffer.write(0, &CONTENTS)?;
        stage.pinned.write(0, &CONTENTS)?;
        stage.arena.write(1, 0, &CONTENTS)?;
        stage.mapping.write(0, &CONTENTS)?;
        stage.withhold()?;
        Ok(stage)
    }

    /// Keeps page-locked memory out of children, as a real driver may: a child that touches it dies.
    #[allow(unsafe_code, reason = "madvise")]
    fn withhold(&self) -> Outcome {
        let header = self.pool.ranges()?.into_iter();
        let header = header.filter(|range| range.part == Part::HealthHeader);
        let pages = header
            .map(|range| range.base)
            .chain([self.pinned.ptr().raw()]);
        for page in pages {
            let page = std::ptr::with_exposed_provenance_mut(page as usize);
            // SAFETY: a whole page of page-locked memory, which begins there; this process keeps it.
            unsafe { madvise(page, BYTES, Advice::LinuxDontFork) }?;
        }
        Ok(())
    }

    /// Tries everything, and tells what did not fail as it should.
    pub fn wrong(&mut self) -> Vec<String> {
        self.left.forget_thread();
        drop_released();
        let words = Error::Forked.to_string();
        let mut wrong = Vec::new();
        for attempts in [
            self.devices(),
            self.memory(),
            self.streams(),
            self.pools(),
            self.tickets(),
            self.groups(),
        ] {
            for (what, result) in attempts {
                let said = result.as_ref().err().map(Error::to_string);
                if !said.as_ref().is_some_and(|said| said.contains(&words)) {
                    wrong.push(format!("{what} in a forked child: {said:?}"));
                }
            }
        }
        wrong
    }

    /// Checks that the parent's memory is as it was, and its pool well. Settles its ticket.
    pub fn unchanged(&mut self) -> Outcome {
        self.left.settle()?;
        let mut found = [[0; CONTENTS.len()]; 4];
        let [buffer, pinned, arena, mapping] = &mut found;
        self.buffer.read(0, buffer)?;
        self.pinned.read(0, pinned)?;
        self.arena.read(1, 0, arena)?;
        self.mapping.read(0, mapping)?;
        if found != [CONTENTS; 4] {
            return Err(format!("the child has changed its parent's memory: {found:?}").into());
        }
        let state = (
            self.pool.health()?,
            self.pool.faults()?,
            self.pool.warnings()?,
        );
        match state {
            (slabfence::health::Health::Healthy, faults, warnings)
                if faults.is_empty() && warnings.is_empty() =>
            {
                Ok(())
            }
            state => Err(format!("the child has left its mark: {state:?}").into()),
        }
    }
}
