//! The detector of held runs, if a plan wants it.

use std::collections::BTreeMap;

use slabfence_emu_check::{Checker, Options, Region, RegionKind, Touch, Writers};
use slabfence_emu_exec::{Access, CtaBarrier, Fence, Hook, Site};
use slabfence_sys::{RangeKind, RangeNote};

use crate::machine::State;
use crate::va::Kind;

use super::places::{Place, Places};
use super::plan::Plan;

/// The detector of a run.
#[derive(Debug)]
pub(super) struct Detector(pub(super) Option<Box<Checker>>);

impl Detector {
    /// The detector that a plan wants, told of all memory as it is now, and of what was written there before.
    pub(super) fn of(plan: &Plan, state: &State, places: &Places) -> Detector {
        if !plan.detect {
            return Detector(None);
        }
        let mut checker = Checker::new(Options {
            native_atomics: state.profile.native_peer_atomics,
            kernel_boundary: plan.kernel_boundary,
            ..Options::default()
        });
        places
            .homes()
            .for_each(|place| checker.region(whole(place)));
        let mut worlds: BTreeMap<u64, u32> = BTreeMap::new();
        for note in state.memory.notes() {
            if note.source != RangeNote::NONE {
                let world = worlds.entry(note.channel).or_default();
                *world = (*world).max(note.source + 1);
            }
        }
        let mut hint = 0;
        for note in state.memory.notes() {
            let home = places.home(note.base, &mut hint);
            if let Some(place) = places.find(home, &mut hint) {
                let world = worlds.get(&note.channel).copied().unwrap_or(1);
                let part = part(
                    &RangeNote {
                        base: home,
                        ..*note
                    },
                    place,
                    world,
                );
                checker.region(part);
            }
        }
        for place in places.homes() {
            for &(from, to) in place.written.iter().flat_map(|spans| spans.iter()) {
                checker.written(place.base + from, to - from);
            }
        }
        Detector(Some(Box::new(checker)))
    }

    /// A grid begins behind these operations.
    pub(super) fn begin(&mut self, op: u64, device: u32, after: &[u64]) {
        if let Some(checker) = &mut self.0 {
            checker.begin(op, device, after);
        }
    }

    /// The parameters of a grid hold an address that was taken when something else was there.
    pub(super) fn captured(&mut self, op: u64, address: u64, was: String) {
        if let Some(checker) = &mut self.0 {
            checker.captured(op, address, was);
        }
    }

    /// A grid has ended.
    pub(super) fn end(&mut self, op: u64) {
        if let Some(checker) = &mut self.0 {
            checker.end(op);
        }
    }

    /// An operation that is over at once is done, behind these.
    pub(super) fn task(&mut self, op: u64, device: u32, after: &[u64], touches: &[Touch]) {
        if let Some(checker) = &mut self.0 {
            checker.task(op, device, after, touches);
        }
    }
}

/// A whole range of addresses as the detector knows it.
fn whole(place: &Place) -> Region {
    let kind = match place.kind {
        Kind::Host => RegionKind::Host,
        Kind::Global => RegionKind::Variable,
        _ => RegionKind::Buffer,
    };
    let name = String::from(&*place.name);
    Region {
        kind,
        initialised: place.written.is_none(),
        ..Region::buffer(place.base, place.len, place.device, name)
    }
}

/// A part of one as the library laid it out.
fn part(note: &RangeNote, place: &Place, world: u32) -> Region {
    let some = |number| (number != RangeNote::NONE).then_some(number);
    let (slot, source) = (some(note.slot), some(note.source));
    let kind = match (note.kind, slot, source) {
        (RangeKind::EPOCH, ..) => RegionKind::Epoch,
        (RangeKind::TICKET, ..) => RegionKind::Ticket,
        (RangeKind::LOCAL, ..) => RegionKind::Counter,
        (RangeKind::SIGNAL, Some(_), Some(_)) => RegionKind::Entry,
        (RangeKind::SIGNAL, Some(_), None) => RegionKind::Flag,
        (RangeKind::SIGNAL, None, _) => RegionKind::Poison,
        (RangeKind::OUTBOX, ..) => RegionKind::Outbox,
        (RangeKind::INBOX, ..) => RegionKind::Inbox,
        (RangeKind::PACKETS, ..) => RegionKind::Packets,
        _ => RegionKind::Buffer,
    };
    let writers = match (kind, source) {
        (RegionKind::Flag, _) => Writers::Lines { world },
        (RegionKind::Epoch | RegionKind::Ticket | RegionKind::Counter, _) => {
            Writers::Rank(note.rank)
        }
        (_, Some(source)) => Writers::Rank(source),
        (_, None) => Writers::Anyone,
    };
    let mut name = format!("{} of rank {}", kind.name(), note.rank);
    if let Some(slot) = slot {
        name += &format!(", slot {slot}");
    }
    if let Some(source) = source {
        name += &format!(", from rank {source}");
    }
    Region {
        kind,
        channel: Some(note.channel),
        rank: Some(note.rank),
        slot,
        writers,
        initialised: place.written.is_none(),
        ..Region::buffer(note.base, note.bytes, place.device, name)
    }
}

impl Hook for Detector {
    const CHECKING: bool = true;

    fn access(&mut self, at: &Site<'_>, access: &Access<'_>) {
        if let Some(checker) = &mut self.0 {
            checker.access(at, access);
        }
    }

    fn fence(&mut self, at: &Site<'_>, lanes: u32, fence: Fence) {
        if let Some(checker) = &mut self.0 {
            checker.fence(at, lanes, fence);
        }
    }

    fn cta_barrier(&mut self, at: &Site<'_>, event: CtaBarrier<'_>) {
        if let Some(checker) = &mut self.0 {
            checker.cta_barrier(at, event);
        }
    }

    fn warp_barrier(&mut self, at: &Site<'_>, lanes: u32) {
        if let Some(checker) = &mut self.0 {
            checker.warp_barrier(at, lanes);
        }
    }

    fn exit(&mut self, at: &Site<'_>, lanes: u32) {
        if let Some(checker) = &mut self.0 {
            checker.exit(at, lanes);
        }
    }
}
