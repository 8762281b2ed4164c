//! Whether an access may go where it goes: regions that the launch knows, slots, writers, atomics.

use slabfence_emu_exec::{Access, AccessKind, Scope};

use crate::{
    Options, Region, RegionKind, Rule,
    operation::{Family, Operation},
    region::letter,
};

/// What is wrong with an access of an operation to an address of a region.
pub(crate) fn breaches(
    options: &Options,
    operation: &Operation,
    access: &Access<'_>,
    region: &Region,
    address: u64,
) -> Vec<(Rule, String)> {
    let mut found = Vec::new();
    let Some(bound) = &operation.bound else {
        return found;
    };
    let stores = access.kind != AccessKind::Load;
    let holds = |(at, _): &&(u64, String)| at.wrapping_sub(region.base) < region.len;
    if let Some((at, was)) = operation.captured.iter().find(holds) {
        let offset = at - region.base;
        let words = format!(
            "the parameters hold its address (+ {offset:#x}) since `{was}` was there, which is gone"
        );
        found.push((Rule::StaleAddress, words));
    }
    if region.kind.is_slab() {
        if !bound.families.contains(&Family::of(region)) {
            let words = "no pointer of the launch's parameters leads there".to_owned();
            found.push((Rule::WrongRegion, words));
        }
        if stores && let Some(words) = wrong_writer(operation, region, address) {
            found.push((Rule::WrongRegion, words));
        }
        if let (Some(number), Some(slot)) = (bound.number(), region.slot)
            && number & 1 != u64::from(slot)
        {
            let (own, other) = (letter((number & 1) as u32), letter(slot));
            let words = format!("an operation of epoch {number} uses slot {own}, not {other}");
            found.push((Rule::WrongSlot, words));
        }
    }
    if region.kind.is_signal() && access.scope.is_none() {
        found.push(match stores {
            true => (
                Rule::WrongRegion,
                "an ordinary store hits a word of the protocol".to_owned(),
            ),
            false => (Rule::WeakSignal, String::new()),
        });
    }
    if access.kind == AccessKind::ReadModifyWrite && region.kind != RegionKind::Host {
        let peer = region.device != operation.device;
        let narrow = access.scope != Some(Scope::Sys);
        if peer && !options.native_atomics {
            let words = format!(
                "device {} has no atomics on memory of device {}",
                operation.device, region.device
            );
            found.push((Rule::PeerAtomic, words));
        }
        if narrow && (peer || region.mapped != 0) {
            let words = match peer {
                true => format!("it is memory of device {}", region.device),
                false => format!("{} it too", having(region.mapped)),
            };
            found.push((Rule::GpuScopePeerAtomic, words));
        }
    }
    found
}

/// Which devices of a mask have something.
fn having(mask: u32) -> String {
    let devices = (0..u32::BITS).filter(|device| mask >> device & 1 == 1);
    let devices: Vec<String> = devices.map(|device| device.to_string()).collect();
    match devices.as_slice() {
        _ if mask == Region::ANYWHERE => "other devices have".to_owned(),
        [one] => format!("device {one} has"),
        some => format!("devices {} have", some.join(", ")),
    }
}

/// Every word of the library's memory has one writer.
fn wrong_writer(operation: &Operation, region: &Region, address: u64) -> Option<String> {
    let rank = operation.rank()?;
    let writer = if region.kind.is_written_by_sources() {
        region.writer(address)
    } else {
        region.rank
    };
    writer
        .filter(|&writer| writer != rank)
        .map(|writer| format!("rank {rank} stores where rank {writer} alone may"))
}
