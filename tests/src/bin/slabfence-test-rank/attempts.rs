//! Everything that a forked child could try with what its parent has.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::mm::{Advice, madvise};
use slabfence::attention::AttentionKernels;
use slabfence::channel::{Channel, Checkpoint, Contract, Part, Pool};
use slabfence::driver::{
    CaptureMode, Device, DeviceBuffer, Driver, Event, Graph, GraphExec, Module, PinnedBuffer,
    Stream, drop_released,
};
use slabfence::graph::Dump;
use slabfence::group::{Bootstrap, Group, Rank, ThreadBootstrap, UnixBootstrap};
use slabfence::slab::{Arena, Local, Mapping, Signal};
use slabfence::{Error, Result};
use slabfence_tests::ranks::{Gather, Member};

use super::Outcome;

/// What is in the parent's buffers.
const CONTENTS: [u8; 16] = *b"parent's, not to";
const BYTES: usize = 4096;

/// One object of each kind, made by the parent.
pub struct Stage<'a> {
    member: &'a Member,
    contract: &'a Contract,
    pool: &'a Pool,
    channel: &'a Channel,
    gather: Gather,
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
        let stage = Self {
            gather: Gather::new(member, contract, 2)?,
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
        drop_released();
        let words = Error::Forked.to_string();
        let mut wrong = Vec::new();
        for attempts in [
            self.devices(),
            self.memory(),
            self.streams(),
            self.pools(),
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

    fn devices(&self) -> Vec<Attempt> {
        let device = &self.member.device;
        let driver = device.driver();
        let own = device.ordinal();
        vec![
            (
                "Driver::from_api",
                no(Driver::from_api(driver.api().clone())),
            ),
            ("Driver::devices", no(driver.devices())),
            ("Device::open", no(Device::open(driver, own))),
            ("Device::bind", no(device.bind())),
            ("Device::synchronize", device.synchronize()),
            ("Device::granularity", no(device.granularity())),
            (
                "Device::is_accessible_from",
                no(device.is_accessible_from(own)),
            ),
            (
                "Device::native_atomics_to",
                no(device.native_atomics_to(own)),
            ),
            (
                "Device::allocation",
                no(device.allocation(self.buffer.ptr().raw())),
            ),
            (
                "Module::from_ptx",
                no(Module::from_ptx(device, "child", "child")),
            ),
            ("AttentionKernels::load", no(AttentionKernels::load(device))),
        ]
    }

    fn memory(&mut self) -> Vec<Attempt> {
        let device = &self.member.device;
        let (buffer, pinned, arena) = (&self.buffer, &self.pinned, &mut self.arena);
        let mut bytes = [0; 8];
        vec![
            ("DeviceBuffer::new", no(DeviceBuffer::new(device, 8))),
            ("DeviceBuffer::write", buffer.write(0, &[1; 8])),
            ("DeviceBuffer::write of nothing", buffer.write(0, &[])),
            ("DeviceBuffer::read", buffer.read(0, &mut bytes)),
            ("DeviceBuffer::fill", buffer.fill(1)),
            ("PinnedBuffer::new", no(PinnedBuffer::new(device, 8))),
            ("PinnedBuffer::load", no(pinned.load(0))),
            ("PinnedBuffer::store", pinned.store(0, 1)),
            ("PinnedBuffer::read", pinned.read(0, &mut bytes)),
            ("PinnedBuffer::write", pinned.write(0, &[1; 8])),
            ("PinnedBuffer::write of nothing", pinned.write(0, &[])),
            ("Arena::create", no(Arena::<Local>::create(device, 8, 1))),
            ("Arena::write", arena.write(1, 0, &[1; 8])),
            ("Arena::write of nothing", arena.write(1, 0, &[])),
            ("Arena::read", arena.read(1, 0, &mut bytes)),
            ("Arena::fill", arena.fill(1, 0, 1, 8)),
            ("Arena::grant", arena.grant(&[])),
            ("Arena::close", arena.close()),
            ("Mapping::create", no(Mapping::<Local>::create(device, 8))),
            ("Mapping::write", self.mapping.write(0, &[1; 8])),
            ("Mapping::read", self.mapping.read(0, &mut bytes)),
            ("Mapping::fill", self.mapping.fill(0, 1, 8)),
            ("Mapping::grant", self.mapping.grant(&[device.ordinal()])),
            ("Mapping::close", self.mapping.close()),
            ("Mapping::close of a closed one", self.closed.close()),
        ]
    }

    fn streams(&mut self) -> Vec<Attempt> {
        let device = &self.member.device;
        let (stream, event, graph) = (&self.stream, &self.event, &self.graph);
        vec![
            ("Stream::new", no(Stream::new(device))),
            ("Stream::id", no(stream.id())),
            ("Stream::synchronize", stream.synchronize()),
            ("Stream::query", no(stream.query())),
            ("Stream::wait", stream.wait(event)),
            (
                "Stream::begin_capture",
                stream.begin_capture(CaptureMode::Relaxed),
            ),
            ("Stream::capture_status", no(stream.capture_status())),
            (
                "Stream::retain_in_capture",
                stream.retain_in_capture(Arc::new(())),
            ),
            ("Stream::end_capture", no(stream.end_capture())),
            ("Event::new", no(Event::new(device))),
            ("Event::record", event.record(stream)),
            ("Event::query", no(event.query())),
            ("Event::synchronize", event.synchronize()),
            ("Event::since", no(event.since(event))),
            ("Graph::instantiate", no(graph.instantiate())),
            ("Graph::contents", no(graph.contents())),
            ("Graph::retain", graph.retain(Arc::new(()))),
            ("GraphExec::upload", self.exec.upload(stream)),
            ("GraphExec::launch", self.exec.launch(stream)),
        ]
    }

    fn pools(&self) -> Vec<Attempt> {
        let (pool, channel, stream) = (self.pool, self.channel, &self.stream);
        let device = &self.member.device;
        vec![
            ("Gather::fill", self.gather.fill(0, 7)),
            ("enqueue", self.gather.enqueue(channel, stream)),
            ("Pool::create", no(self.member.pool(self.contract))),
            ("Pool::channel", no(pool.channel("decode"))),
            ("Pool::capture", no(pool.capture("decode", stream))),
            ("Pool::fault_event", no(pool.fault_event())),
            ("Pool::health", no(pool.health())),
            ("Pool::faults", no(pool.faults())),
            ("Pool::warnings", no(pool.warnings())),
            ("Pool::ranges", no(pool.ranges())),
            ("Pool::prepare", pool.prepare(&["x"])),
            ("Pool::retire", pool.retire(&["decode"])),
            ("Pool::checkpoint", no(pool.checkpoint())),
            ("Pool::rollback", pool.rollback(&self.checkpoint)),
            ("Pool::reset", pool.reset()),
            ("Pool::close", pool.close()),
            ("Pool::abandon", pool.abandon().map(|_| ())),
            ("Channel::verdict", no(channel.verdict())),
            ("Channel::fault", no(channel.fault())),
            ("Channel::warning", no(channel.warning())),
            ("Dump::of", no(Dump::of(device, &self.graph, &[pool]))),
        ]
    }

    fn groups(&self) -> Vec<Attempt> {
        let soon = Instant::now() + Duration::from_secs(1);
        let exchange = |bootstrap: &dyn Bootstrap| {
            let parts = bootstrap.all_gather(b"child", soon);
            no(parts.map_err(Error::from))
        };
        let group = |bootstrap| Group::new(bootstrap, Rank(0), 2);
        let new = Arc::new(ThreadBootstrap::world(2).remove(0));
        let join = UnixBootstrap::join(Path::new("/"), "child", Rank(0), 2, soon);
        vec![
            ("Group::verdict", self.member.group.verdict("x", &Ok(()))),
            (
                "a new group",
                group(new).and_then(|group| group.verdict("x", &Ok(()))),
            ),
            ("UnixBootstrap::join", no(join)),
            ("the bootstrap", exchange(&*self.member.bootstrap)),
            ("ThreadBootstrap", exchange(&self.threads[0])),
        ]
    }

    /// Checks that the parent's memory is as it was, and its pool well.
    pub fn unchanged(&self) -> Outcome {
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
