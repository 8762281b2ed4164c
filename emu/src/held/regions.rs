//! What memory there is and what it is called.

use std::collections::{BTreeMap, BTreeSet};

use slabfence_emu_check::{Region, RegionKind, Writers};
use slabfence_sys::{RangeKind, RangeNote};

use crate::describe::Description;
use crate::memory::Memory;
use crate::va::Kind;

use super::places::{Place, Places};

/// All ranges at their home addresses, as allocated, as the host describes them, and as the library laid them out: of those
/// that overlap, the last counts. Of an allocation that the host describes in part, the rest is nobody's.
pub(super) fn regions(memory: &Memory, places: &Places) -> Vec<Region> {
    let mut parts: Vec<Region> = Vec::new();
    let mut laid_out = BTreeSet::new();
    let mut hint = 0;
    for (base, len, description) in memory.descriptions() {
        let home = places.home(base, &mut hint);
        if let Some(place) = places.find(home, &mut hint) {
            laid_out.insert(place.base);
            parts.push(described(description, home, len, place));
        }
    }
    let free = |place: &&Place| !laid_out.contains(&place.base);
    let mut regions: Vec<Region> = places.homes().filter(free).map(whole).collect();
    regions.append(&mut parts);
    let mut worlds: BTreeMap<u64, u32> = BTreeMap::new();
    for note in memory.notes() {
        if note.source != RangeNote::NONE {
            let world = worlds.entry(note.channel).or_default();
            *world = (*world).max(note.source + 1);
        }
    }
    for note in memory.notes() {
        let base = places.home(note.base, &mut hint);
        if let Some(place) = places.find(base, &mut hint) {
            let world = worlds.get(&note.channel).copied().unwrap_or(1);
            regions.push(part(&RangeNote { base, ..*note }, place, world));
        }
    }
    regions
}

/// The region of a home address.
pub(super) fn region_at(regions: &[Region], address: u64) -> Option<&Region> {
    let holds = |region: &&Region| address.wrapping_sub(region.base) < region.len;
    regions.iter().rev().find(holds)
}

/// A whole range of addresses.
fn whole(place: &Place) -> Region {
    let kind = match place.kind {
        Kind::Host => RegionKind::Host,
        Kind::Global => RegionKind::Variable,
        _ => RegionKind::Buffer,
    };
    Region {
        kind,
        initialised: place.written.is_none(),
        ..Region::buffer(place.base, place.len, place.device, &*place.name)
    }
}

/// A part of one as the host laid it out.
fn described(description: &Description, base: u64, len: u64, place: &Place) -> Region {
    let whole = whole(place);
    let kind = match description.kind {
        RegionKind::Buffer => whole.kind,
        kind => kind,
    };
    Region {
        kind,
        channel: Some(description.group),
        rank: Some(description.rank),
        slot: description.slot,
        writers: description.writers,
        base,
        len: len.min(place.base + place.len - base),
        name: description.name.clone(),
        mapped: description.mapped & !(1 << place.device),
        ..whole
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
    Region {
        base: note.base,
        len: note.bytes,
        kind,
        channel: Some(note.channel),
        rank: Some(note.rank),
        slot,
        phase: some(note.phase),
        writers,
        name: String::new(),
        mapped: match kind.is_exported() {
            true => Region::ANYWHERE,
            false => 0,
        },
        ..whole(place)
    }
}
