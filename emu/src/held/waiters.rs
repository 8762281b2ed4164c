//! Who has not ended when a run is given up, what each waits for, and who could change that.

use std::collections::BTreeMap;

use slabfence_emu_check::{Place, Region, RegionKind};
use slabfence_emu_exec::{Launch, Polled, Space, WaitReason};

use crate::host;
use crate::machine::State;
use crate::operations::Work;

use super::name::Name;
use super::regions::{region_at, regions};
use super::report::{LastWriter, Poll, Reason, Wait, Waiter, Writer};
use super::stage::Stage;

/// A grid that has not ended.
struct Left {
    name: Name,
    rank: Option<u32>,
    kernel: String,
    /// Home addresses in its parameters.
    addresses: Vec<u64>,
}

/// What there is to tell of.
struct Scene {
    regions: Vec<Region>,
    grids: Vec<Left>,
    ranks_are_devices: bool,
}

impl Scene {
    fn rank(&self, name: Name) -> Option<u32> {
        let same = |grid: &&Left| (grid.name.device, grid.name.op) == (name.device, name.op);
        let grid = self.grids.iter().find(same);
        let device = self.ranks_are_devices.then_some(name.device);
        grid.and_then(|grid| grid.rank).or(device)
    }

    /// Who could still write a word of a region: the rank whose word it is; those who have it mapped, where that is known;
    /// else those who have an address of that memory.
    fn writers(&self, region: &Region, word: u64, place: (u64, u64)) -> Vec<Writer> {
        let mine = region.writer(word).filter(|_| region.kind.is_slab());
        let leads = |&address: &u64| address.wrapping_sub(place.0) < place.1;
        let mut writers: BTreeMap<_, Vec<(u32, String)>> = BTreeMap::new();
        if mine.is_none() && !matches!(region.mapped, 0 | Region::ANYWHERE) {
            let has = |&device: &u32| device == region.device || region.mapped >> device & 1 == 1;
            for device in (0..u32::BITS).filter(has) {
                let rank = self.ranks_are_devices.then_some(device);
                writers.insert((rank, Some(device)), Vec::new());
            }
        }
        for grid in &self.grids {
            let role = mine.is_none() || grid.rank == mine;
            if role && grid.addresses.iter().any(leads) {
                let who = (grid.rank, Some(grid.name.device));
                let operation = (grid.name.op, grid.kernel.clone());
                writers.entry(who).or_default().push(operation);
            }
        }
        if let (Some(rank), true) = (mine, writers.is_empty()) {
            writers.insert((Some(rank), None), Vec::new());
        }
        let writer = |((rank, device), operations)| Writer {
            rank,
            device,
            operations,
        };
        writers.into_iter().map(writer).collect()
    }
}

impl Stage {
    /// Everybody who has not ended.
    pub(super) fn waiters(&mut self, state: &State) -> Vec<Waiter> {
        let scene = self.scene(state);
        let waiter = |name: Name, what: &str, wait| Waiter {
            device: name.device,
            rank: scene.rank(name),
            operation: name.op,
            what: what.to_owned(),
            wait,
        };
        let mut waiters = Vec::new();
        for (&name, grid) in &self.grids {
            if grid.waiting() > 0 {
                let blocks = grid.waiting();
                let kernel = grid.launch.kernel.name();
                waiters.push(waiter(name, kernel, Wait::Room { blocks }));
            }
        }
        let numbers: Vec<usize> = self.blocks.keys().copied().collect();
        for number in numbers {
            for (name, kernel, wait) in self.warps(number, state, &scene) {
                waiters.push(waiter(name, &kernel, wait));
            }
        }
        let started = |name| self.grids.contains_key(&name);
        for (id, op) in self.operations().iter() {
            let Some(name) = self.name_of(id) else {
                continue;
            };
            let what = match &op.work {
                Work::Kernel(launch, _) => launch.kernel.name(),
                Work::Copy { .. } => "a copy",
                Work::Fill { .. } => "a fill",
                Work::Host(_) => "a host function",
                Work::Marker | Work::Record(_) | Work::Retire(_) | Work::Free(_) => continue,
            };
            if !started(name) {
                let after = self.names_after(id).into_iter();
                let after = after.map(|name| (name.device, name.op)).collect();
                waiters.push(waiter(name, what, Wait::Operations(after)));
            }
        }
        waiters
    }

    fn scene(&mut self, state: &State) -> Scene {
        let regions = regions(&state.memory, self.watch.places());
        let ranks_are_devices = self.ranks_are_devices;
        let kernels = self.operations().iter().filter_map(|(id, op)| {
            let Work::Kernel(launch, _) = &op.work else {
                return None;
            };
            Some((self.name_of(id)?, launch.clone()))
        });
        let kernels: Vec<_> = kernels.collect();
        let left = |(name, launch): (Name, std::sync::Arc<Launch>)| {
            let words = launch.params.chunks_exact(8).filter_map(|bytes| {
                let bytes: [u8; 8] = bytes.try_into().ok()?;
                Some(u64::from_le_bytes(bytes))
            });
            let addresses: Vec<u64> = words.map(|word| self.watch.home(word)).collect();
            let local = addresses.iter().find_map(|&address| {
                let region = region_at(&regions, address)?;
                region.rank.filter(|_| region.kind == RegionKind::Epoch)
            });
            Left {
                name,
                rank: ranks_are_devices.then_some(name.device).or(local),
                kernel: launch.kernel.name().to_owned(),
                addresses,
            }
        };
        let grids = kernels.into_iter().map(left).collect();
        Scene {
            regions,
            grids,
            ranks_are_devices,
        }
    }

    /// What the warps of a block wait for.
    fn warps(&mut self, number: usize, state: &State, scene: &Scene) -> Vec<(Name, String, Wait)> {
        let Some(block) = self.blocks.get(&number) else {
            return Vec::new();
        };
        let (name, cta) = (block.name, block.cta.ctaid());
        let kernel = block.cta.launch().kernel.clone();
        let waits = block.cta.waits().into_iter();
        let waits = waits.map(|at| (block.cta.polled(at.warp, at.lanes), at));
        let waits: Vec<_> = waits.collect();
        let mut found = Vec::new();
        for (polled, at) in waits {
            let reason = match at.reason {
                WaitReason::Exited => continue,
                WaitReason::Running => Reason::Runs,
                WaitReason::Barrier { id, count } => Reason::Barrier { id, count },
                WaitReason::Lanes { mask } => Reason::Lanes { mask },
                WaitReason::Polling { .. } => {
                    let mut polls: Vec<Poll> = Vec::new();
                    for one in polled {
                        let line = kernel.ptx_line(one.pc);
                        let poll = self.polled(&one, line, state, scene);
                        match polls.iter_mut().find(|old| {
                            (&old.place, old.expected, old.awaited, old.seen)
                                == (&poll.place, poll.expected, poll.awaited, poll.seen)
                        }) {
                            Some(old) => old.lanes |= poll.lanes,
                            None => polls.push(poll),
                        }
                    }
                    Reason::Polls(polls)
                }
            };
            let wait = Wait::Warp {
                cta,
                warp: at.warp as u32,
                lanes: at.lanes,
                pc: at.pc,
                line: at.line,
                source: at.source,
                reason,
            };
            found.push((name, kernel.name().to_owned(), wait));
        }
        found
    }

    fn polled(&mut self, polled: &Polled, line: u32, state: &State, scene: &Scene) -> Poll {
        let mut poll = Poll {
            lanes: 1 << polled.lane,
            line,
            place: Place {
                address: polled.address,
                region: "shared memory".to_owned(),
                kind: None,
                offset: polled.address,
            },
            seen: polled.seen,
            now: None,
            expected: polled.compared,
            awaited: polled.awaited,
            writers: Vec::new(),
            last: None,
        };
        if !matches!(polled.space, Space::Global | Space::Const) {
            return poll;
        }
        let home = self.watch.home(polled.address);
        let Some(region) = region_at(&scene.regions, home) else {
            poll.place.region = "no memory".to_owned();
            poll.place.offset = 0;
            return poll;
        };
        poll.place = region.place(home);
        let len = u64::from(polled.size.min(8));
        if state
            .memory
            .map
            .find(home)
            .is_some_and(|range| home + len <= range.end())
        {
            let mut bytes = [0; 8];
            bytes[..len as usize].copy_from_slice(&host::snapshot(home, len));
            poll.now = Some(u64::from_le_bytes(bytes));
        }
        let place = self.watch.range(home);
        poll.writers = scene.writers(region, home, place);
        poll.last = self.watch.writers.get(&(home / 8)).map(|by| LastWriter {
            device: by.name.device,
            operation: by.name.op,
            kernel: by.kernel.name().to_owned(),
            cta: by.name.block,
            warp: by.name.warp,
            line: by.kernel.ptx_line(by.pc),
        });
        poll
    }
}
