//! The emulated machine: its state, and the handle that owns it.

use std::collections::BTreeSet;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::thread::JoinHandle;

use slabfence_sys::{Api, LoadError, RangeNote};

use crate::capture::Captures;
use crate::describe::Description;
use crate::device::Device;
use crate::engine::{Engine, Progress};
use crate::event::Events;
use crate::graph::Graphs;
use crate::held::Phase;
use crate::lost::Lost;
use crate::memory::Memory;
use crate::module::Modules;
use crate::profile::Profile;
use crate::residency::Residency;
use crate::runner::{self, Shared};
use crate::slots::{self, Lease};
use crate::stream::Streams;
use crate::va::Kind;
use crate::world::World;

/// Devices that a host has.
const HOST: u32 = 16;

/// Everything about a machine, behind one lock.
pub(crate) struct State {
    /// The machine's slot, which its handles carry.
    pub(crate) slot: usize,
    /// What its devices claim.
    pub(crate) profile: Profile,
    /// Whether `cuInit` was called.
    pub(crate) initialised: bool,
    /// Devices and their contexts.
    pub(crate) devices: Vec<Device>,
    /// Memory.
    pub(crate) memory: Memory,
    /// Modules and functions.
    pub(crate) modules: Modules,
    /// Streams.
    pub(crate) streams: Streams,
    /// Events.
    pub(crate) events: Events,
    /// Open captures.
    pub(crate) captures: Captures,
    /// Graphs, execs, user objects.
    pub(crate) graphs: Graphs,
    /// Device work.
    pub(crate) engine: Engine,
    /// Faults in words, oldest first.
    pub(crate) faults: Vec<String>,
    /// Objects that went with their context instead of being destroyed.
    pub(crate) abandoned: usize,
    /// Whether the machine is held.
    pub(crate) phase: Phase,
    /// Set when the machine goes.
    pub(crate) stop: bool,
}

impl State {
    fn new(slot: usize, profile: Profile, boards: &[u32]) -> Result<State, rustix::io::Errno> {
        let devices = boards.len() as u32;
        Ok(State {
            slot,
            initialised: false,
            devices: (0..devices).map(|_| Device::default()).collect(),
            memory: Memory::new(boards, profile.memory, profile.granularity)?,
            modules: Modules::new(slot),
            streams: Streams::new(devices),
            events: Events::new(slot),
            captures: Captures::default(),
            graphs: Graphs::new(slot),
            engine: Engine::new(Residency::new(&profile, devices)),
            faults: Vec::new(),
            abandoned: 0,
            phase: Phase::Free,
            stop: false,
            profile,
        })
    }

    /// Does a piece of the outstanding device work; `now` is `%globaltimer`.
    pub(crate) fn step(&mut self, now: u64, budget: u64) -> Progress {
        let mut world = World {
            memory: &mut self.memory,
            devices: &mut self.devices,
            events: &mut self.events,
            graphs: &mut self.graphs,
            faults: &mut self.faults,
            now,
        };
        self.engine.step(&mut world, budget)
    }

    /// What an operation may change, for whoever performs operations in place of the engine.
    pub(crate) fn world(&mut self, now: u64) -> World<'_> {
        World {
            memory: &mut self.memory,
            devices: &mut self.devices,
            events: &mut self.events,
            graphs: &mut self.graphs,
            faults: &mut self.faults,
            now,
        }
    }

    fn live(&self) -> Live {
        let ranges = |wanted: fn(Kind) -> bool| {
            self.memory
                .map
                .ranges()
                .filter(|range| wanted(range.kind))
                .count()
        };
        Live {
            contexts: self
                .devices
                .iter()
                .filter(|device| device.retained > 0)
                .count(),
            allocations: ranges(|kind| kind == Kind::Device),
            host_allocations: ranges(Kind::is_host),
            physical: self.memory.live_physical(),
            mappings: ranges(|kind| matches!(kind, Kind::Mapping(_))),
            reservations: self.memory.map.reservations.len(),
            streams: self.streams.created(),
            events: self.events.0.len(),
            modules: self.modules.len(),
            captures: self.open_captures(),
            graphs: self.graphs.graphs.len(),
            execs: self.graphs.live_execs(),
            user_objects: self.graphs.objects.len(),
            announced: self.memory.announced(),
            abandoned: self.abandoned,
        }
    }
}

/// How much of everything is alive in a machine. All zeros: nothing leaked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Primary contexts that are retained.
    pub contexts: usize,
    /// `cuMemAlloc` allocations.
    pub allocations: usize,
    /// Page-locked host memory.
    pub host_allocations: usize,
    /// Physical allocations (`cuMemCreate`, imports) with a handle that was not released.
    pub physical: usize,
    /// `cuMemMap` mappings.
    pub mappings: usize,
    /// Address reservations.
    pub reservations: usize,
    /// Streams.
    pub streams: usize,
    /// Events.
    pub events: usize,
    /// Modules.
    pub modules: usize,
    /// Captures that have begun and not ended.
    pub captures: usize,
    /// Graphs.
    pub graphs: usize,
    /// Executable graphs, those included that were destroyed and still run.
    pub execs: usize,
    /// User objects.
    pub user_objects: usize,
    /// Ranges that the library announced and did not withdraw.
    pub announced: usize,
    /// Objects that nobody destroyed before their context went, over the machine's life.
    pub abandoned: usize,
}

/// Why there is no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineError {
    /// A machine has 1 to 16 devices.
    Devices(u32),
    /// A host has devices 0 to 15, and a machine sees each once at most.
    Seen(Vec<u32>),
    /// All slots for machines in this process stayed taken.
    NoSlot,
    /// The host refused addresses or threads.
    Host(String),
    /// A PTX text is not accepted.
    Text(String),
    /// The machine has no such device.
    Device(u32),
    /// Nothing is at an address.
    Address(u64),
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Devices(asked) => write!(
                f,
                "a machine of {asked} devices was asked for: 1 to 16 are possible"
            ),
            Self::Seen(devices) => write!(
                f,
                "a machine that sees the devices {devices:?} was asked for: a host has devices 0 to 15, each once"
            ),
            Self::NoSlot => write!(
                f,
                "{} emulated machines or their function tables live in this process and none went within {} s: drop one first",
                slots::COUNT,
                slots::PATIENCE.as_secs()
            ),
            Self::Host(what) => {
                write!(f, "the host refused what an emulated machine needs: {what}")
            }
            Self::Text(what) => write!(f, "the PTX text is not accepted: {what}"),
            Self::Device(device) => write!(f, "the machine has no device {device}"),
            Self::Address(address) => write!(f, "there is no memory at {address:#x}"),
        }
    }
}

impl std::error::Error for MachineError {}

/// An emulated machine in this process. It runs until it is dropped.
///
/// After the drop its function tables answer `CUDA_ERROR_DEINITIALIZED`. A process has places for a few machines: a place
/// is free again when the machine and all its function tables are dropped; its memory stays until then.
///
/// In a forked child of its process a machine has no threads: its driver must not be called there, and its drop does
/// nothing.
pub struct Machine {
    shared: Arc<Shared>,
    lease: Arc<Lease>,
    threads: Vec<JoinHandle<()>>,
    /// The process that the threads are in.
    process: u32,
}

impl Machine {
    /// Starts a machine with 1 to 16 devices of this profile.
    pub fn new(profile: Profile, devices: u32) -> Result<Machine, MachineError> {
        if !(1..=HOST).contains(&devices) {
            return Err(MachineError::Devices(devices));
        }
        Self::seeing(profile, &(0..devices).collect::<Vec<_>>())
    }

    /// Starts a machine that sees these of a host's 16 devices, in this order, as a real driver does that finds
    /// `CUDA_VISIBLE_DEVICES`: ordinals count what is seen, while UUIDs, PCI addresses and exported memory are the host's. A
    /// machine of another process that sees the same device in another place means the same device by it.
    pub fn seeing(profile: Profile, boards: &[u32]) -> Result<Machine, MachineError> {
        if boards.is_empty() {
            return Err(MachineError::Devices(0));
        }
        let distinct: BTreeSet<u32> = boards.iter().copied().collect();
        if distinct.len() != boards.len() || distinct.last().is_some_and(|&last| last >= HOST) {
            return Err(MachineError::Seen(boards.to_vec()));
        }
        let make =
            |slot| State::new(slot, profile, boards).map(|state| Arc::new(Shared::new(state)));
        let (lease, shared) = slots::claim(make)?;
        let threads = Vec::new();
        let mut machine = Machine {
            shared,
            lease,
            threads,
            process: std::process::id(),
        };
        for (name, body) in [
            ("emu-runner", runner::run as fn(&Shared)),
            ("emu-callbacks", runner::call),
        ] {
            let shared = machine.shared.clone();
            let spawned = std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || body(&shared));
            // On an error the drop of `machine` stops what has started and frees the slot.
            machine
                .threads
                .push(spawned.map_err(|error| MachineError::Host(error.to_string()))?);
        }
        Ok(machine)
    }

    /// What the machine's threads share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The machine's driver as a function table.
    pub fn api(&self) -> Result<Api, LoadError> {
        crate::ffi::table(self.lease.index()).map(|table| table.keeping(self.lease.clone()))
    }

    /// Faults of kernels and copies in words, oldest first. So are kernels that went on, but by an address that their
    /// parameters hold since other memory was there (a graph's that memory was unmapped under).
    pub fn faults(&self) -> Vec<String> {
        self.shared.lock().faults.clone()
    }

    /// What is alive.
    pub fn live(&self) -> Live {
        self.shared.lock().live()
    }

    /// Warp-instructions executed so far.
    pub fn executed(&self) -> u64 {
        self.shared.lock().engine.executed
    }

    /// Lets the entries of a PTX text take the place of entries of the same name, in texts that are loaded already and in
    /// those that will be, and in later launches of graphs, and gives their names. Other entries stay as they are, and so do
    /// operations that are enqueued. Of two replacements the newer counts.
    ///
    /// A module in which an entry would be replaced by one with other parameters is refused when it is loaded later, with
    /// the reason in the JIT's error log.
    ///
    /// # Errors
    ///
    /// [`MachineError::Text`] when the devices would not load the text, an entry of it uses a variable at module scope, an
    /// entry that is loaded has other parameters, or a graph has a launch of one with more threads than it takes. Nothing is
    /// replaced then.
    pub fn replace_entries(&self, ptx: &str) -> Result<Vec<String>, MachineError> {
        let replaced = self.shared.lock().replace_entries(ptx);
        replaced.map_err(MachineError::Text)
    }

    /// Whether the machine's devices would load a PTX text.
    ///
    /// # Errors
    ///
    /// [`MachineError::Text`] with the line, when they would not.
    pub fn accepts(&self, ptx: &str) -> Result<(), MachineError> {
        let accepted = self.shared.lock().accepts_text(ptx);
        accepted.map_err(MachineError::Text)
    }

    /// Describes `len` bytes of the machine's memory to held runs, for what they find and say. It counts for runs of a held
    /// phase that begins later. Of an allocation of which some is described, the rest is nobody's: what accesses it is out of
    /// bounds.
    pub fn describe(&self, address: u64, len: u64, description: Description) {
        let memory = &mut self.shared.lock().memory;
        memory.describe(address, len, description);
    }

    /// Loses what kernels of a device do at the memory around `address`, though it may access it, for as long as that
    /// allocation or mapping is. Copies and fills arrive as before.
    ///
    /// # Errors
    ///
    /// [`MachineError::Device`] for a device that the machine has not, [`MachineError::Address`] when nothing is there, and
    /// [`MachineError::Host`].
    pub fn lose(&self, lost: Lost, device: u32, address: u64) -> Result<(), MachineError> {
        let mut state = self.shared.lock();
        if device as usize >= state.devices.len() {
            return Err(MachineError::Device(device));
        }
        let most = state.memory.capacity;
        match state.memory.map.lose(address, device, lost, most) {
            Ok(true) => Ok(()),
            Ok(false) => Err(MachineError::Address(address)),
            Err(error) => Err(MachineError::Host(error.to_string())),
        }
    }

    /// What the library announced about an address.
    pub fn announced(&self, address: u64) -> Option<RangeNote> {
        self.shared.lock().memory.announced_at(address)
    }

    /// The profile of its devices.
    pub fn profile(&self) -> Profile {
        self.shared.lock().profile.clone()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // A forked child: the threads are the parent's, and whoever held a lock at the fork holds it here for ever.
            mem::forget(mem::take(&mut self.threads));
            return;
        }
        self.shared.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("emulator: a thread of the machine panicked");
            }
        }
        self.lease.leave(&self.shared);
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("slot", &self.lease.index())
            .finish_non_exhaustive()
    }
}
