//! The detector as the machine uses it.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use slabfence_emu_exec::{Launch, Site};

use crate::{
    Finding, Options, Region, RegionKind, Rule,
    cell::{Part, Visitor},
    clock::Clock,
    clock::Lane,
    conflict::conflict,
    findings::{Findings, Where},
    map::Map,
    operation::Operation,
    protocol::UNREAD,
    registry::{How, Occupant, Registry, Stamp, Synchronised},
    shadow::Shadow,
    slots::Slots,
    warp::{Block, Warp},
    word::Head,
};

/// Names an operation; a grid's is its [`Launch::tag`]. The low 32 bits are its place among those of its device, by which
/// reports call it.
pub type Op = u64;

/// A range that a copy or fill accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
    /// Whether it writes there.
    pub write: bool,
    /// Where what it writes is copied from, if that is memory of the machine: what holds nothing there holds nothing here.
    pub from: Option<u64>,
}

/// Watches one run of a machine. See the [crate](crate).
#[derive(Debug)]
pub struct Checker {
    pub(crate) options: Options,
    pub(crate) map: Map,
    pub(crate) slots: Slots,
    pub(crate) operations: FxHashMap<Op, Operation>,
    pub(crate) blocks: FxHashMap<(Op, u64), Block>,
    pub(crate) registry: Registry,
    pub(crate) findings: Findings,
    /// The `.sc` fences that no later one stands for.
    pub(crate) strict: Vec<Head>,
    next_block: u32,
    /// The block that something was heard of last, while it is known.
    pub(crate) current: Option<(Op, u64)>,
}

impl Checker {
    /// A detector that knows no memory and has seen nothing.
    pub fn new(options: Options) -> Self {
        Self {
            findings: Findings::new(options.most_findings),
            options,
            map: Map::default(),
            slots: Slots::default(),
            operations: FxHashMap::default(),
            blocks: FxHashMap::default(),
            registry: Registry::default(),
            strict: Vec::new(),
            next_block: 0,
            current: None,
        }
    }

    /// Says what a range of addresses is. It takes the place of what was said of them before, so an allocation may be
    /// announced first and its parts after it.
    pub fn region(&mut self, region: Region) {
        self.map.insert(region);
    }

    /// Says that a range of a region that is not [initialised](Region::initialised) holds something all the same. To be
    /// said of regions that are all announced, before anybody accesses them.
    pub fn written(&mut self, base: u64, len: u64) {
        self.map.written(base, len);
    }

    /// Says that there is nothing any more in a range of addresses. Accesses to it are `stale-address`.
    pub fn forget(&mut self, base: u64, len: u64) {
        self.map.remove(base, len);
    }

    /// An operation of a device starts, after these have ended. Those of them that this checker never saw are taken to
    /// have happened before everything.
    pub fn begin(&mut self, op: Op, device: u32, after: &[Op]) {
        let mut clock = Clock::default();
        for &number in after {
            let Some(before) = self.operations.get_mut(&number) else {
                continue;
            };
            clock.join(&before.end);
            if let Some(followers) = &mut before.followers {
                *followers = followers.saturating_sub(1);
                if *followers == 0 {
                    self.operations.remove(&number);
                }
            }
        }
        let owner = self.options.ranks_are_devices.then_some(device);
        let operation = Operation::new(device, owner, clock);
        self.operations.insert(op, operation);
    }

    /// The parameters of a grid that has begun hold an address that was taken (by a capture, say) when something else was
    /// there. Accesses to the region that is there now are `stale-address`; `was` says what is gone.
    pub fn captured(&mut self, op: Op, address: u64, was: String) {
        if let Some(operation) = self.operations.get_mut(&op) {
            operation.captured.push((address, was));
        }
    }

    /// An operation has ended. Blocks of it that have not are given up.
    pub fn end(&mut self, op: Op) {
        let Some(operation) = self.operations.get_mut(&op) else {
            return;
        };
        let left: Vec<_> = self
            .blocks
            .keys()
            .filter(|key| key.0 == op)
            .copied()
            .collect();
        for key in left {
            let Some(block) = self.blocks.remove(&key) else {
                continue;
            };
            self.current = None;
            for mut warp in block.warps.into_iter().filter(|warp| warp.live != 0) {
                warp.end(warp.live, &mut operation.end);
                self.slots.give(warp.slot, warp.time);
            }
        }
        operation.ended();
    }

    /// So many operations that have not begun begin directly behind one that has ended, and none besides: with the last of
    /// them it is forgotten. If this is never said, it is remembered to the end.
    pub fn followed(&mut self, op: Op, by: usize) {
        if by == 0 {
            self.operations.remove(&op);
        } else if let Some(operation) = self.operations.get_mut(&op) {
            operation.followers = Some(by);
        }
    }

    /// A copy or fill of a device: starts after these operations, accesses these ranges, and has ended.
    pub fn task(&mut self, op: Op, device: u32, after: &[Op], touches: &[Touch]) {
        self.make_room();
        self.begin(op, device, after);
        let Some(operation) = self.operations.get_mut(&op) else {
            return;
        };
        let (slot, time) = self.slots.take(&operation.begin);
        let occupant = self.registry.occupant(Occupant {
            op,
            device,
            rank: operation.rank(),
            block: u32::MAX,
            warp: None,
            synchronised: Synchronised::Start,
        });
        let site = self.registry.site(occupant, 0);
        operation.end.learn_slot(slot, time);
        let knows = Arc::clone(&operation.begin);
        operation.ended();
        self.slots.give(slot, time);
        let lane = Lane { slot, lane: 0 };
        for touch in touches {
            let how = match touch.write {
                true => How::new(None, 1).writing(),
                false => How::new(None, 1),
            };
            let by = Visitor::new(Stamp::new(lane, time, site, how), &knows);
            let source = touch.from.filter(|_| touch.write);
            let nothing = source.map(|from| self.map.unwritten(from, touch.len));
            self.touch(touch, &by);
            for (from, to) in nothing.unwrap_or_default() {
                self.map.empty(touch.address + from, to - from);
            }
        }
    }

    /// One range of a copy or fill, region by region.
    fn touch(&mut self, touch: &Touch, by: &Visitor<'_>) {
        let end = touch.address.saturating_add(touch.len);
        let mut at = touch.address;
        while at < end {
            let Some(tract) = self.map.tract_at(at) else {
                // The machine says itself when a copy has no memory; between regions there may be memory that
                // nobody announced.
                at = self.map.next(at).unwrap_or(end);
                continue;
            };
            let len = tract.room(at).min(end - at);
            let offset = tract.offset(at);
            let (region, shadow) = (&tract.region, &mut tract.shadow);
            let (registry, findings) = (&self.registry, &mut self.findings);
            let place = |offset: u64| Where::Region(region, (region.base & !15) + offset);
            // What else is wrong with it for those who use signals is a race.
            let lost = match region.kind {
                RegionKind::Packets if touch.write => shadow.unread(offset, len),
                _ => Vec::new(),
            };
            for (offset, writer) in lost {
                let (at, sides) = (place(offset), (Some(writer), by.stamp));
                findings.report(Rule::PacketLost, registry, sides, at, || UNREAD.to_owned());
            }
            let met = |met, offset: u64| {
                let at = place(offset);
                if let Some((rule, earlier, detail)) = conflict(met, by.stamp, registry, false) {
                    findings.report(rule, registry, (earlier, by.stamp), at, || {
                        detail.to_owned()
                    });
                }
            };
            if touch.write {
                shadow.forget_words(offset, len);
                self.findings.forgotten += shadow.write(Part::Whole, (offset, len), by, met);
            } else {
                self.findings.forgotten += shadow.read(offset, len, by, met);
            }
            at += len;
        }
    }

    /// Whether anything was found so far.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.findings.dropped == 0
    }

    /// What was found, in the order in which it was first seen.
    pub fn finish(&mut self) -> Vec<Finding> {
        self.findings.take()
    }

    /// How many readers of words were forgotten, since more had to be remembered of one word than there is room for. What
    /// races with them is not found; with none, and no [`crowded`](Self::crowded) warps, nothing was missed for want of room.
    pub fn forgotten(&self) -> u64 {
        self.findings.forgotten
    }

    /// How many warps, copies and fills were taken to be ordered behind another one, since there were more at once than are
    /// told apart. Races between the two are not found.
    pub fn crowded(&self) -> u64 {
        self.slots.reused
    }

    /// How many findings there were beyond those that were kept.
    pub fn dropped(&self) -> u64 {
        self.findings.dropped
    }

    /// Makes sure that the grid and the block of a site are known; gives the block's key.
    pub(crate) fn enter(&mut self, at: &Site<'_>) -> (Op, u64) {
        let launch = at.launch;
        let [x, y, _] = launch.grid.map(u64::from);
        let [cx, cy, cz] = at.ctaid.map(u64::from);
        let key = (launch.tag, cx + x * (cy + y * cz));
        if self.current == Some(key) {
            return key;
        }
        self.current = Some(key);
        if !self.blocks.contains_key(&key) {
            let operation = self
                .operations
                .entry(launch.tag)
                .or_insert_with(|| Operation::new(0, None, Clock::default()));
            if operation.bound.is_none() {
                operation.bind(launch, &self.map);
            }
            self.make_room();
            let block = self.admit(launch, at.ctaid);
            self.blocks.insert(key, block);
        }
        key
    }

    fn admit(&mut self, launch: &Launch, ctaid: [u32; 3]) -> Block {
        let operation = &self.operations[&launch.tag];
        let id = self.next_block;
        self.next_block += 1;
        let threads = launch.threads();
        let shared_launch = match &operation.bound {
            Some(bound) => Arc::clone(&bound.launch),
            None => Arc::new(launch.clone()),
        };
        let warps = (0..threads.div_ceil(32)).map(|index| {
            let (slot, time) = self.slots.take(&operation.begin);
            let occupant = self.registry.occupant(Occupant {
                op: launch.tag,
                device: operation.device,
                rank: operation.rank(),
                block: id,
                warp: Some((Arc::clone(&shared_launch), ctaid, index as usize)),
                synchronised: Synchronised::Start,
            });
            let left = (threads - 32 * index).min(32);
            let live = u32::MAX >> (32 - left as u32);
            Warp::new(slot, time, occupant, Arc::clone(&operation.begin), live)
        });
        Block {
            warps: warps.collect(),
            shared: Shadow::new(false),
            arrived: Default::default(),
        }
    }
}
