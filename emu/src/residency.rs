//! Which blocks are resident on which multiprocessor, and whose turn it is.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use slabfence_emu_exec::{
    Cta, Env, Fast, Fault, GlobalMemory, Launch, MemoryFault, Region, Step, WaitReason,
};

use crate::host;
use crate::occupancy::Room;
use crate::operations::OpId;
use crate::profile::Profile;
use crate::taken::Stale;
use crate::va::AddressMap;
use crate::world::World;

/// Instructions that a warp runs before the next one has its turn.
const FUEL: u32 = 256;
/// Rounds of polling before it is looked at whether anything changes at all.
const QUIET_ROUNDS: u32 = 8;

/// A grid that has not ended.
struct Grid {
    op: OpId,
    device: u32,
    launch: Arc<Launch>,
    stale: Arc<[Stale]>,
    block: Room,
    next: u64,
    total: u64,
    live: u64,
}

/// A block on its multiprocessor.
struct Resident {
    op: OpId,
    device: u32,
    sm: usize,
    block: Room,
    stale: Arc<[Stale]>,
    cta: Cta,
}

/// How a turn of the resident warps ended.
pub(crate) enum Turn {
    /// Nothing is resident.
    Empty,
    /// The budget is spent.
    Ran,
    /// Every warp that can run polls, and nothing has changed for some rounds.
    Polled,
    /// A grid's last block ended.
    Finished(OpId),
    /// A grid cannot go on.
    Faulted(OpId, Box<Fault>),
}

/// The multiprocessors of all devices.
pub(crate) struct Residency {
    sms: Vec<Vec<Room>>,
    next_sm: Vec<usize>,
    grids: Vec<Grid>,
    residents: Vec<Resident>,
    /// Block and warp whose turn is next.
    cursor: (usize, usize),
    /// Whether a warp did more than poll since the round began.
    moved: bool,
    /// Rounds in a row in which every warp ended its turn polling.
    quiet: u32,
    /// Where all warps were when this was last looked at: a warp may get something done and end its turn polling.
    places: u64,
    /// Whether a grid came or room was freed since blocks were last placed.
    stale: bool,
    clock: u64,
}

impl Residency {
    /// Empty devices.
    pub(crate) fn new(profile: &Profile, devices: u32) -> Residency {
        let sms = vec![vec![Room::of(profile); profile.sm_count as usize]; devices as usize];
        Residency {
            sms,
            next_sm: vec![0; devices as usize],
            grids: Vec::new(),
            residents: Vec::new(),
            cursor: (0, 0),
            moved: false,
            quiet: 0,
            places: 0,
            stale: false,
            clock: 0,
        }
    }

    /// Takes in a grid; its blocks become resident as there is room, grids in the order in which they come. `stale` are
    /// addresses that it should not have.
    pub(crate) fn admit(&mut self, op: OpId, device: u32, launch: Arc<Launch>, stale: Vec<Stale>) {
        let block = Room::block(
            &launch.kernel,
            launch.threads() as u32,
            launch.dynamic_shared,
        );
        let total = launch.grid.iter().map(|&n| u64::from(n)).product();
        self.grids.push(Grid {
            op,
            device,
            launch,
            stale: stale.into(),
            block,
            next: 0,
            total,
            live: 0,
        });
        self.stale = true;
    }

    /// Whether there is no grid.
    pub(crate) fn is_empty(&self) -> bool {
        self.grids.is_empty()
    }

    /// Throws all grids of a device out; gives their operations.
    pub(crate) fn evict(&mut self, device: u32) -> Vec<OpId> {
        let mut ops = Vec::new();
        self.grids.retain(|grid| {
            if grid.device == device {
                ops.push(grid.op);
            }
            grid.device != device
        });
        for resident in self
            .residents
            .iter()
            .filter(|resident| resident.device == device)
        {
            self.sms[device as usize][resident.sm].give(resident.block);
        }
        self.residents.retain(|resident| resident.device != device);
        self.cursor = (0, 0);
        self.stale = true;
        ops
    }

    fn place(&mut self) {
        self.stale = false;
        for grid in &mut self.grids {
            let device = grid.device as usize;
            let count = self.sms[device].len();
            while grid.next < grid.total {
                let first = self.next_sm[device];
                let free = |&sm: &usize| self.sms[device][sm].fits(grid.block) > 0;
                let Some(sm) = (0..count).map(|i| (first + i) % count).find(free) else {
                    break;
                };
                self.sms[device][sm].take(grid.block);
                self.next_sm[device] = (sm + 1) % count;
                let [x, y, _] = grid.launch.grid.map(u64::from);
                let at = [grid.next % x, grid.next / x % y, grid.next / x / y].map(|n| n as u32);
                let cta = Cta::new(&grid.launch, at, sm as u32);
                let (op, device, block) = (grid.op, grid.device, grid.block);
                self.residents.push(Resident {
                    op,
                    device,
                    sm,
                    block,
                    stale: grid.stale.clone(),
                    cta,
                });
                grid.next += 1;
                grid.live += 1;
            }
        }
    }

    /// Runs resident warps in turn for about `budget` instructions.
    pub(crate) fn run(&mut self, world: &mut World<'_>, budget: u64, executed: &mut u64) -> Turn {
        if self.stale {
            self.place();
        }
        let mut spent = 0;
        while spent < budget {
            let (at, warp) = self.cursor;
            let Some(resident) = self.residents.get_mut(at) else {
                self.cursor = (0, 0);
                if self.residents.is_empty() {
                    return Turn::Empty;
                }
                if self.round_was_idle() {
                    return Turn::Polled;
                }
                continue;
            };
            if warp >= resident.cta.warps() {
                self.cursor = (at + 1, 0);
                continue;
            }
            self.cursor = (at, warp + 1);
            if !resident.cta.runnable(warp) {
                continue;
            }
            let used = RefCell::new(Vec::new());
            let mut memory = View {
                map: &world.memory.map,
                device: resident.device,
                stale: &resident.stale,
                used: &used,
            };
            let mut env = Env {
                memory: &mut memory,
                hook: &mut Fast,
                globaltimer: world.now,
                clock: self.clock,
                executed: 0,
            };
            let step = resident.cta.step(warp, &mut env, FUEL);
            let did = env.executed;
            let kernel = &resident.cta.launch().kernel;
            for stale in used.into_inner() {
                let words = stale_use(&stale, kernel.name(), resident.device, &world.memory.map);
                if !world.faults.contains(&words) {
                    log::error!("emulator: {words}");
                    world.faults.push(words);
                }
            }
            self.clock += did;
            *executed += did;
            spent += did.max(1);
            match step {
                Step::Polled => {}
                Step::Ran | Step::Barrier | Step::Exited => self.moved = true,
                Step::CtaDone => {
                    self.moved = true;
                    if let Some(op) = self.leave(at) {
                        return Turn::Finished(op);
                    }
                }
                Step::Fault(fault) => return Turn::Faulted(resident.op, fault),
            }
        }
        Turn::Ran
    }

    /// Whether nothing has changed for some rounds, as the one that ends now.
    fn round_was_idle(&mut self) -> bool {
        if std::mem::take(&mut self.moved) {
            self.quiet = 0;
            return false;
        }
        self.quiet += 1;
        if self.quiet < QUIET_ROUNDS {
            return false;
        }
        self.quiet = 0;
        let mut hasher = DefaultHasher::new();
        for state in self
            .residents
            .iter()
            .flat_map(|resident| resident.cta.waits())
        {
            (state.warp, state.lanes, state.pc).hash(&mut hasher);
            if let WaitReason::Polling { addr, seen } = state.reason {
                (addr, seen).hash(&mut hasher);
            }
        }
        let places = hasher.finish();
        std::mem::replace(&mut self.places, places) == places
    }

    /// A block ended: frees its room; gives the operation if it was the grid's last.
    fn leave(&mut self, at: usize) -> Option<OpId> {
        let gone = self.residents.swap_remove(at);
        self.cursor = (at, 0);
        self.sms[gone.device as usize][gone.sm].give(gone.block);
        self.stale = true;
        let index = self.grids.iter().position(|grid| grid.op == gone.op)?;
        let grid = &mut self.grids[index];
        grid.live -= 1;
        if grid.live > 0 || grid.next < grid.total {
            // Blocks that wait for this room are placed before the next round, not at the end of the budget.
            self.place();
            return None;
        }
        self.grids.remove(index);
        Some(gone.op)
    }
}

/// Global memory as one device sees it.
pub(crate) struct View<'a> {
    /// All addresses.
    pub(crate) map: &'a AddressMap,
    /// The device.
    pub(crate) device: u32,
    /// Addresses that the kernel should not have.
    pub(crate) stale: &'a [Stale],
    /// Those whose memory it used.
    pub(crate) used: &'a RefCell<Vec<Stale>>,
}

/// The use of memory by an address that was taken when other memory was there, in words.
fn stale_use(stale: &Stale, kernel: &str, device: u32, map: &AddressMap) -> String {
    let (Stale { address, was }, there) = (stale, map.describe(device, stale.address, false));
    format!(
        "device {device}: `{kernel}` uses the address {address:#x}, which its parameters hold since {was} was there; now it is {there}"
    )
}

impl GlobalMemory for View<'_> {
    fn region(&self, addr: u64, write: bool) -> Result<Region, MemoryFault> {
        let Some(range) = self.map.find(addr) else {
            return Err(MemoryFault::Unmapped);
        };
        let (read, writable) = (
            range.read >> self.device & 1 == 1,
            range.write >> self.device & 1 == 1,
        );
        match (read, writable) {
            (false, _) => Err(MemoryFault::NoAccess),
            (true, false) if write => Err(MemoryFault::ReadOnly),
            _ => {
                let holds = |stale: &&Stale| stale.address.wrapping_sub(range.base) < range.len;
                self.used
                    .borrow_mut()
                    .extend(self.stale.iter().filter(holds).cloned());
                if let Some(region) = self.map.lost(range, self.device, write) {
                    return Ok(region);
                }
                if write {
                    range.stored.set(true);
                }
                // Warps keep what they are told: who would store is to ask again, until somebody has.
                let writable = writable && range.stored.get();
                Ok(host::region(range.base, range.len, writable))
            }
        }
    }

    fn generation(&self) -> u64 {
        self.map.generation()
    }
}
