//! Accesses: to which memory, by whom, and what follows.

use std::sync::Arc;

use slabfence_emu_exec::{Access, AccessKind, Operation as Atomic, Order, Scope, lanes_of};

use crate::{
    Options, Region, RegionKind, Rule, Writers, binding,
    cell::{Part, Visitor},
    conflict::conflict,
    findings::{Findings, Where},
    map::Map,
    operation::Operation,
    registry::{How, Registry, Stamp},
    shadow::Shadow,
    warp::{Look, Warp},
};

/// One access of a warp, with all that it concerns.
pub(crate) struct Scene<'a> {
    pub(crate) options: &'a Options,
    pub(crate) registry: &'a mut Registry,
    pub(crate) findings: &'a mut Findings,
    pub(crate) operation: &'a mut Operation,
    pub(crate) warp: &'a mut Warp,
    pub(crate) access: &'a Access<'a>,
    pub(crate) pc: u32,
    pub(crate) site: u32,
    /// Whether the lanes' access is taken for one, as far as later accesses may race with it.
    pub(crate) joint: bool,
    /// Whether a lane has learnt something by it.
    pub(crate) learnt: bool,
}

/// Memory that one lane accesses.
pub(crate) struct Target<'a> {
    /// None for shared memory.
    pub(crate) region: Option<&'a Arc<Region>>,
    pub(crate) shadow: &'a mut Shadow,
    /// Address of the first element, and its offset in the shadow.
    pub(crate) address: u64,
    pub(crate) offset: u64,
}

impl Target<'_> {
    pub(crate) fn kind(&self) -> Option<RegionKind> {
        self.region.map(|region| region.kind)
    }
}

impl Scene<'_> {
    /// Whether a lane stores. Of `cas` those do that find what they expect.
    pub(crate) fn stores(&self, lane: usize) -> bool {
        self.access.kind != AccessKind::Load && !self.fails(lane)
    }

    fn fails(&self, lane: usize) -> bool {
        self.access.operation == Some(Atomic::Cas) && self.keeps(lane)
    }

    /// Whether a lane's read-modify-write leaves the value as it was.
    pub(crate) fn keeps(&self, lane: usize) -> bool {
        self.access.kept >> lane & 1 != 0
    }

    pub(crate) fn acquires(&self) -> Option<Scope> {
        let acquires = matches!(self.access.order, Order::Acquire | Order::AcqRel);
        // A reduction gives its thread nothing to know.
        let returns = self.access.operation.is_none() || self.access.returns;
        self.access.scope.filter(|_| acquires && returns)
    }

    pub(crate) fn releases(&self) -> Option<Scope> {
        let releases = matches!(self.access.order, Order::Release | Order::AcqRel);
        self.access.scope.filter(|_| releases)
    }

    /// Whether all lanes of the warp load the same word, see the same there and go on knowing the same.
    fn is_joint(&self) -> bool {
        let access = self.access;
        let same = |row: &[u64; 32]| row.iter().all(|seen| *seen == row[0]);
        access.lanes == u32::MAX
            && access.kind == AccessKind::Load
            && access.order != Order::Acquire
            && !access.nc
            && same(access.addresses)
            && (access.scope.is_none() || access.loaded.iter().all(same))
            && self.warp.is_uniform()
    }

    /// The lanes to look at, one for all if they do the same.
    fn lanes_apart(&mut self) -> u32 {
        self.joint = self.is_joint();
        match self.joint {
            true => 1,
            false => self.access.lanes,
        }
    }

    fn stamp(&self, lane: usize) -> Stamp {
        let how = How::new(self.access.scope, self.access.size);
        let how = match self.access.kind {
            AccessKind::Load if self.access.nc => how.outside_the_model(),
            AccessKind::Load => how,
            AccessKind::Store => how.writing(),
            AccessKind::ReadModifyWrite if self.fails(lane) => how.failed(),
            AccessKind::ReadModifyWrite => how.atomic(),
        };
        Stamp::new(self.warp.lane(lane), self.warp.time, self.site, how)
    }

    fn bytes(&self) -> u64 {
        u64::from(self.access.size * self.access.elements)
    }

    /// What is done lane by lane: all of it, or first one part and then the other, where lanes store to one word.
    fn parts(&self) -> &'static [Part] {
        let access = self.access;
        let mut last = None;
        // Most stores are of rising addresses.
        let rises = |lane: usize| {
            let before = last.replace(access.addresses[lane]);
            before.is_none_or(|before| before < access.addresses[lane])
        };
        if access.kind == AccessKind::Load || lanes_of(access.lanes).all(rises) {
            return &[Part::Whole];
        }
        let mut all: Vec<u64> = lanes_of(access.lanes)
            .map(|lane| access.addresses[lane])
            .collect();
        all.sort_unstable();
        match all.windows(2).any(|pair| pair[0] == pair[1]) {
            true => &[Part::Look, Part::Mark],
            false => &[Part::Whole],
        }
    }

    /// The access goes to device memory.
    pub(crate) fn global(&mut self, map: &mut Map) {
        let lanes = self.lanes_apart();
        for &part in self.parts() {
            self.global_part(lanes, part, map);
        }
        self.after();
    }

    fn global_part(&mut self, lanes: u32, part: Part, map: &mut Map) {
        let mut hint = usize::MAX;
        for lane in lanes_of(lanes) {
            let address = self.access.addresses[lane];
            let Some(index) = map.locate(address, hint) else {
                if part != Part::Mark {
                    self.nowhere(lane, address, map);
                }
                continue;
            };
            let tract = map.tract(index);
            let room = tract.room(address);
            let offset = tract.offset(address);
            let (region, shadow) = (&tract.region, &mut tract.shadow);
            if room < self.bytes() {
                if part == Part::Mark {
                    continue;
                }
                let (stamp, at) = (self.stamp(lane), Where::Region(region, address));
                let detail = || format!("{} bytes of it are left", room);
                self.findings
                    .report(Rule::OutOfBounds, self.registry, (None, stamp), at, detail);
                continue;
            }
            // Within a region addresses differ only where lines have different writers.
            let differs = index != hint || matches!(region.writers, Writers::Lines { .. });
            if differs && part != Part::Mark {
                self.bound(lane, region, address);
            }
            hint = index;
            let target = Target {
                region: Some(region),
                shadow,
                address,
                offset,
            };
            self.lane(lane, part, target);
        }
    }

    /// The access goes to the block's memory.
    pub(crate) fn shared(&mut self, shadow: &mut Shadow) {
        let lanes = self.lanes_apart();
        for &part in self.parts() {
            for lane in lanes_of(lanes) {
                let offset = self.access.addresses[lane];
                let target = Target {
                    region: None,
                    shadow,
                    address: offset,
                    offset,
                };
                self.lane(lane, part, target);
            }
        }
        self.after();
    }

    /// The slot's time passes at each release, so that what comes after is not taken for published, and where a lane
    /// learns something, so that what it does from then on differs from what it did before.
    fn after(&mut self) {
        if self.releases().is_some() || self.learnt {
            self.warp.time += 1;
        }
    }

    fn nowhere(&mut self, lane: usize, address: u64, map: &Map) {
        let (rule, detail) = match map.gone_at(address) {
            Some(gone) => (Rule::StaleAddress, format!("`{}` was there", gone.title())),
            None => (Rule::OutOfBounds, map.nowhere(address)),
        };
        let stamp = self.stamp(lane);
        let at = Where::Nowhere(address);
        self.findings
            .report(rule, self.registry, (None, stamp), at, || detail);
    }

    fn bound(&mut self, lane: usize, region: &Region, address: u64) {
        let found = binding::breaches(self.options, self.operation, self.access, region, address);
        let stamp = self.stamp(lane);
        for (rule, detail) in found {
            let at = Where::Region(region, address);
            self.findings
                .report(rule, self.registry, (None, stamp), at, || detail);
        }
    }

    /// What one lane does, or a part of it.
    fn lane(&mut self, lane: usize, part: Part, mut target: Target<'_>) {
        let (bytes, stores) = (self.bytes(), self.stores(lane));
        let stamp = self.stamp(lane);
        if part == Part::Mark {
            // It has done the rest.
        } else if self.access.scope.is_some() {
            for element in 0..self.access.elements {
                match self.joint {
                    true => self.words(element, stamp, &mut target),
                    false => self.word(lane, element, stamp, &mut target),
                }
            }
        } else if stores {
            target.shadow.forget_words(target.offset, bytes);
        }
        let (registry, findings, shared) = (
            &*self.registry,
            &mut *self.findings,
            target.region.is_none(),
        );
        let stamp = match self.joint {
            true => stamp.of_all(),
            false => stamp,
        };
        let by = match self.access.nc {
            true => Visitor::outside_the_model(stamp, &self.warp.begin),
            false => Visitor::new(stamp, self.warp.view(lane)),
        };
        let Target {
            region,
            shadow,
            address,
            offset,
        } = target;
        // Of signals users are remembered, and no ordinary access is allowed.
        let signal = region.is_some_and(|region| region.kind.is_signal());
        let met = |met, at: u64| {
            if let Some((rule, earlier, detail)) = conflict(met, stamp, registry, shared) {
                let at = place(region.map(|region| &**region), address, offset, at);
                findings.report(rule, registry, (earlier, stamp), at, || detail.to_owned());
            }
        };
        let forgotten = match (stores, part) {
            (true, _) => shadow.write(part, (offset, bytes), &by, met),
            (false, Part::Mark) => 0,
            (false, _) => shadow.read(offset, bytes, &by, met),
        };
        self.findings.forgotten += if signal { 0 } else { forgotten };
    }
}

/// Reports waits that ended on another operation's values.
pub(crate) fn report_stale(
    stale: Vec<(Look, String)>,
    map: &Map,
    registry: &Registry,
    findings: &mut Findings,
) {
    for (look, detail) in stale {
        let at = match map.region_at(look.address) {
            Some(region) => Where::Region(region, look.address),
            None => Where::Nowhere(look.address),
        };
        let earlier = (!look.write.is_none()).then_some(look.write);
        findings.report(
            Rule::StaleAccept,
            registry,
            (earlier, look.stamp),
            at,
            || detail,
        );
    }
}

/// Names offset `at` of a shadow in which `address` is at `offset`.
pub(crate) fn place(region: Option<&Region>, address: u64, offset: u64, at: u64) -> Where<'_> {
    match region {
        Some(region) => Where::Region(region, address.wrapping_add(at).wrapping_sub(offset)),
        None => Where::Shared(at),
    }
}
