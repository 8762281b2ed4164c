//! The shipped collectives on made-up addresses: what the library would set up for one channel, rank r on device r.

mod parameters;
mod regions;

use super::{
    checker, launch,
    machine::{Outcome, Schedule, Stream, run},
    memory,
    memory::Memory,
};
use core::mem::offset_of;
use slabfence::layout::{
    EntryLine, HealthHeader, InboxLayout, LINE, LocalBlock, SignalLayout, Slot, started_word,
};
use slabfence_emu_check::Options;
use slabfence_emu_exec::{Kernel, Launch};
use std::sync::Arc;

/// A gather or a reduce-scatter of one channel.
#[derive(Clone)]
pub struct Collective {
    /// PTX text.
    pub ptx: String,
    /// Its entry.
    pub entry: String,
    pub world: u32,
    pub batch: u32,
    /// Heads of one rank.
    pub heads: u32,
    /// Bytes of a row, a power of two of packs.
    pub row: u64,
    /// The grid of each operation.
    pub grids: Vec<u32>,
    /// The operation tag.
    pub tag: u64,
    pub options: Options,
    /// Waits end after so many ticks; 0: never.
    pub fail_ticks: u64,
    /// Ranks from this one on do nothing.
    pub absent: u32,
}

/// Largest grid.
const FLAG_GRID: u32 = 16;

impl Collective {
    pub fn new(image: &str, entry: &str, world: u32) -> Self {
        Self {
            ptx: slabfence_ptx::image(image).unwrap().ptx.to_owned(),
            entry: entry.to_owned(),
            world,
            batch: 3,
            heads: 4,
            row: 256,
            grids: vec![2, 2, 3, 1, 2, 2],
            tag: 0x1234_5678_9abc,
            options: Options::default(),
            fail_ticks: 0,
            absent: world,
        }
    }

    fn is_gather(&self) -> bool {
        self.entry.starts_with("sf_gather")
    }

    fn payload(&self) -> u64 {
        u64::from(self.batch * self.heads) * self.row
    }

    fn part(&self) -> u64 {
        (self.payload() + u64::from(self.batch * self.heads) * 4).next_multiple_of(128)
    }

    fn signal(&self) -> SignalLayout {
        SignalLayout::new(self.world as usize, FLAG_GRID as usize).unwrap()
    }

    fn inbox(&self) -> InboxLayout {
        InboxLayout::new(self.world as usize, self.part() as usize, 0).unwrap()
    }

    /// Where the memory of a rank begins, with its `LocalBlock`.
    pub fn base(rank: u32) -> u64 {
        0x100_0000_0000 * (u64::from(rank) + 1)
    }

    /// The counters of a rank whose first operation is of this epoch.
    pub fn begin_at(memory: &Memory, rank: u32, epoch: u64) {
        let local = Self::base(rank) + Self::LOCAL;
        memory.put(local + offset_of!(LocalBlock, epoch) as u64, epoch);
        let started = local + offset_of!(LocalBlock, started) as u64;
        memory.put(started, started_word(0, epoch));
    }

    /// Lets the counters of a rank whose first operation is of this epoch say that so many warps of earlier ones run.
    pub fn say_that_warps_run(memory: &Memory, rank: u32, warps: u64, epoch: u64) {
        let started = Self::base(rank) + Self::LOCAL + offset_of!(LocalBlock, started) as u64;
        memory.put(started, started_word(warps, epoch));
    }

    /// Where a rank's kernels leave the cause that they report, in its low half: the last one stays.
    pub fn last_cause(rank: u32) -> u64 {
        Self::base(rank) + Self::HEALTH + offset_of!(HealthHeader, fault) as u64
    }

    /// The signals at a rank that operations of this epoch have left there.
    pub fn leave(&self, memory: &Memory, rank: u32, epoch: u64) {
        let (signal, slot) = (self.signal(), Slot::BOTH[epoch as usize % 2]);
        let own = Self::base(rank) + Self::SIGNAL;
        for source in (0..self.world as usize).filter(|&source| source != rank as usize) {
            let line = own + (signal.entry(slot) + signal.source(source)) as u64;
            memory.put(line + offset_of!(EntryLine, epoch) as u64, epoch);
            let check = (self.tag << 32) | (epoch & 0xffff_ffff);
            memory.put(line + offset_of!(EntryLine, check) as u64, check);
            for cta in 0..FLAG_GRID as usize {
                let line = signal.flags(slot) + (cta * self.world as usize + source) * LINE;
                memory.put(own + line as u64, epoch);
            }
        }
    }

    const LOCAL: u64 = 0;
    const SIGNAL: u64 = 1 << 24;
    const HEALTH: u64 = 2 << 24;
    const INBOX: u64 = 0x10 << 24;
    const OUTBOX: u64 = 0x20 << 24;
    const SLOT: u64 = 8 << 24;
    const INPUT: u64 = 0x40 << 24;
    const LSE: u64 = 0x50 << 24;
    const OUTPUT: u64 = 0x60 << 24;

    /// The operations of all ranks, one stream each.
    pub fn streams(&self) -> Vec<Stream> {
        let module = slabfence_emu_ptx::parse(&self.ptx).unwrap();
        let kernel = Arc::new(Kernel::compile(&module, &self.entry).unwrap());
        let stream = |rank| {
            let params: Arc<[u8]> = self.params(rank).into();
            let operation = |&grid: &u32| Launch {
                params: Arc::clone(&params),
                ..launch(&kernel, grid, 288, &[])
            };
            Stream::grids(rank, self.grids.iter().map(operation))
        };
        (0..self.absent).map(stream).collect()
    }

    /// Runs all ranks' [streams](Self::streams) under one seed.
    pub fn run(&self, streams: &[Stream], seed: u64) -> Outcome {
        self.run_to_verdicts(streams, seed).0
    }

    /// The same; gives the verdict words of the ranks that took part too.
    pub fn run_to_verdicts(&self, streams: &[Stream], seed: u64) -> (Outcome, Vec<u64>) {
        let regions = self.regions();
        let mut memory = memory(&regions);
        for rank in 0..self.world {
            Self::begin_at(&memory, rank, 2);
        }
        let schedule = Schedule {
            fuel: 200,
            ..Schedule::of(seed)
        };
        let checker = checker(self.options.clone(), &regions);
        let outcome = run(&mut memory, checker, streams, schedule);
        let status = offset_of!(LocalBlock, status) as u64;
        let verdict = |rank| memory.get(Self::base(rank) + Self::LOCAL + status);
        (outcome, (0..self.absent).map(verdict).collect())
    }

    /// The text with one thing changed everywhere. It must be there.
    pub fn mutated(mut self, from: &str, to: &str) -> Self {
        assert!(self.ptx.contains(from), "{from}");
        self.ptx = self.ptx.replace(from, to);
        self
    }
}

/// All four shapes: gather and reduce, push and pull.
pub fn all(world: u32) -> Vec<Collective> {
    let bound = if world <= 2 { 2 } else { 4 };
    ["push", "pull"]
        .into_iter()
        .flat_map(|transport| {
            [
                Collective::new("gather", &format!("sf_gather_{transport}"), world),
                Collective::new(
                    "reduce",
                    &format!("sf_reduce_{transport}_bf16_w{bound}"),
                    world,
                ),
            ]
        })
        .collect()
}
