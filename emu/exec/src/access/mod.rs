//! Loads, stores and atomics of a warp.

mod atomics;
mod moves;

use crate::{
    Access, AccessKind, FaultKind, GlobalMemory, MemoryFault, Order, Space,
    memory::{Covered, RegionCache, Word},
    op::{MemoryOp, Place, Where},
    registers::{Registers, blend, lanes_of},
    value::{LANES, Wide},
    window,
};
use std::sync::atomic::{Ordering, fence};

/// What stopped an access, and in which lane.
pub(crate) type Trouble = (usize, FaultKind);

/// All memory that a warp can reach.
pub(crate) struct Memories<'a, M> {
    pub(crate) registers: &'a mut Registers,
    pub(crate) global: &'a M,
    pub(crate) regions: &'a mut RegionCache,
    pub(crate) shared: &'a mut [u8],
    pub(crate) local: &'a mut [u8],
    pub(crate) params: &'a [u8],
    /// Room for the rows that a hook wants to know.
    pub(crate) rows: &'a mut [Vec<Wide>; 2],
}

/// What a strong access found, over all its lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Address and value of the first lane.
    pub(crate) first: (u64, u64),
    /// Digest of all lanes' addresses.
    pub(crate) places: u64,
    /// Digest of what all lanes found there.
    pub(crate) values: u64,
}

/// What an access brought to light, apart from what it did to registers and memory.
#[derive(Default)]
struct Notes {
    /// Whether a hook wants to know the values.
    recording: bool,
    loaded: Vec<Wide>,
    stored: Vec<Wide>,
    kept: u32,
    found: Option<Found>,
}

/// A part of an access: lanes whose bytes lie in one place.
struct Part<'a> {
    space: Space,
    /// Addresses in the space.
    addresses: &'a Wide,
    lanes: u32,
}

impl MemoryOp {
    /// Where each lane's access starts.
    pub(crate) fn addresses(&self, registers: &Registers) -> Wide {
        let mut addresses = [self.offset as u64; LANES];
        match self.base {
            Place::Nowhere => {}
            Place::Wide(slot) => {
                for (address, base) in addresses.iter_mut().zip(registers.w(slot)) {
                    *address = address.wrapping_add(*base);
                }
            }
            // 32-bit addresses wrap in 32 bits.
            Place::Narrow(slot, _) => {
                for (address, base) in addresses.iter_mut().zip(registers.n(slot)) {
                    *address = (*address as u32).wrapping_add(*base).into();
                }
            }
        }
        addresses
    }

    /// Bytes of a lane's whole access.
    fn bytes(&self) -> u64 {
        u64::from(self.size * self.elements)
    }

    /// Whether its order makes it fit for a wait loop: such an access may be a poll.
    fn is_strong_read(&self) -> bool {
        self.kind == AccessKind::Load && self.order != Order::Weak
            || self.atomic.is_some_and(|atomic| atomic.returns)
    }

    /// Whether other warps may take part in what it means: it is no ordinary access.
    pub(crate) fn is_strong(&self) -> bool {
        self.order != Order::Weak || self.atomic.is_some()
    }

    fn releases(&self) -> bool {
        matches!(self.order, Order::Release | Order::AcqRel)
    }

    fn acquires(&self) -> bool {
        matches!(self.order, Order::Acquire | Order::AcqRel)
    }

    fn illegal(&self, space: Space, addr: u64, reason: MemoryFault) -> FaultKind {
        let size = if self.atomic.is_some() {
            self.size
        } else {
            self.bytes() as u32
        };
        FaultKind::IllegalAddress {
            addr,
            size,
            access: self.kind,
            space,
            reason,
        }
    }
}

impl<M: GlobalMemory> Memories<'_, M> {
    /// Performs an access in these lanes. `visit` gets every part of it by space (one, unless generic addresses fall
    /// into several), if it is wanted.
    pub(crate) fn perform(
        &mut self,
        op: &MemoryOp,
        lanes: u32,
        mut visit: Option<&mut dyn FnMut(&Access<'_>)>,
    ) -> Result<Option<Found>, Trouble> {
        let addresses = op.addresses(self.registers);
        let mut found = None;
        let mut remaining = lanes;
        while remaining != 0 {
            let rebased;
            let part = match op.place {
                Where::In(space) => Part {
                    space,
                    addresses: &addresses,
                    lanes: remaining,
                },
                Where::Generic => {
                    let (space, lanes, at) = same_space(&addresses, remaining);
                    rebased = at;
                    Part {
                        space,
                        addresses: &rebased,
                        lanes,
                    }
                }
            };
            remaining &= !part.lanes;
            let mut notes = Notes {
                recording: visit.is_some(),
                found,
                ..Notes::default()
            };
            if notes.recording {
                [notes.loaded, notes.stored] = std::mem::take(self.rows);
                notes.loaded.clear();
                notes.stored.clear();
            }
            self.perform_part(op, &part, &mut notes)?;
            found = notes.found;
            if let Some(visit) = &mut visit {
                visit(&notes.access(op, &part));
                *self.rows = [notes.loaded, notes.stored];
            }
        }
        Ok(found)
    }

    /// An access of lanes that all mean the same space.
    fn perform_part(
        &mut self,
        op: &MemoryOp,
        part: &Part<'_>,
        notes: &mut Notes,
    ) -> Result<(), Trouble> {
        // A release fence before relaxed stores, and an acquire fence behind relaxed loads, order all that the
        // accesses themselves would.
        if op.releases() {
            fence(Ordering::Release);
        }
        if matches!(part.space, Space::Global | Space::Const) {
            self.perform_in_regions(op, part, notes)?;
        } else {
            check_alignment(op, part)?;
            self.check_bounds(op, part)?;
            match &op.atomic {
                Some(atomic) => self.modify_own(op, atomic, part, notes),
                None => self.move_own(op, part, notes),
            }
        }
        if op.acquires() {
            fence(Ordering::Acquire);
        }
        Ok(())
    }

    /// An access to device memory, region by region.
    fn perform_in_regions(
        &mut self,
        op: &MemoryOp,
        part: &Part<'_>,
        notes: &mut Notes,
    ) -> Result<(), Trouble> {
        let write = op.kind != AccessKind::Load;
        let mut remaining = part.lanes;
        while remaining != 0 {
            let lane = remaining.trailing_zeros() as usize % LANES;
            let address = part.addresses[lane];
            let region = self.regions.find(self.global, address, op.bytes(), write);
            let covered =
                region.map(|region| region.cover(part.addresses, remaining, op.bytes(), write));
            let covered = match covered {
                Ok(covered) if covered.lanes() != 0 => covered,
                // No lane that can go on: misalignment is the better explanation where there is one.
                failed => {
                    check_alignment(op, part)?;
                    let why = failed.err().unwrap_or(MemoryFault::Unmapped);
                    return Err((lane, op.illegal(part.space, address, why)));
                }
            };
            remaining &= !covered.lanes();
            match &op.atomic {
                Some(atomic) => self.modify_covered(op, atomic, part, &covered, notes),
                None => self.move_covered(op, part, &covered, notes),
            }
        }
        Ok(())
    }

    /// Bounds of the spaces that a block owns.
    fn check_bounds(&self, op: &MemoryOp, part: &Part<'_>) -> Result<(), Trouble> {
        let (len, writable) = match part.space {
            Space::Local => (self.local.len() / LANES, true),
            Space::Param => (self.params.len(), false),
            _ => (self.shared.len(), true),
        };
        let trouble =
            |lane: usize, why| Err((lane, op.illegal(part.space, part.addresses[lane], why)));
        if !writable && op.kind != AccessKind::Load {
            return trouble(
                part.lanes.trailing_zeros() as usize % LANES,
                MemoryFault::ReadOnly,
            );
        }
        let ends = |lane: usize| part.addresses[lane].checked_add(op.bytes());
        match lanes_of(part.lanes).find(|&lane| ends(lane).is_none_or(|end| end > len as u64)) {
            Some(lane) => trouble(lane, MemoryFault::Unmapped),
            None => Ok(()),
        }
    }

    /// The bytes of a space that a block owns, and how far apart those of two lanes are.
    fn own(&mut self, space: Space) -> (&mut [u8], usize) {
        match space {
            Space::Local => {
                let stride = self.local.len() / LANES;
                (self.local, stride)
            }
            _ => (self.shared, 0),
        }
    }
}

fn check_alignment(op: &MemoryOp, part: &Part<'_>) -> Result<(), Trouble> {
    let low = op.bytes() - 1;
    let mut bits = 0;
    for (lane, address) in part.addresses.iter().enumerate() {
        bits |= if part.lanes >> lane & 1 != 0 {
            address & low
        } else {
            0
        };
    }
    if bits == 0 {
        return Ok(());
    }
    let lane = lanes_of(part.lanes)
        .find(|&lane| part.addresses[lane] & low != 0)
        .unwrap_or(0);
    let (addr, align) = (part.addresses[lane], op.bytes() as u32);
    Err((
        lane,
        FaultKind::Misaligned {
            addr,
            align,
            space: part.space,
        },
    ))
}

impl Notes {
    /// A row of loaded values (or of old ones), of these lanes.
    fn loaded(
        &mut self,
        op: &MemoryOp,
        part: &Part<'_>,
        lanes: u32,
        element: usize,
        row: impl FnOnce() -> Wide,
    ) {
        let strong = op.is_strong_read();
        if !strong && !self.recording {
            return;
        }
        let row = row();
        if strong {
            self.find(part.addresses, lanes, &row);
        }
        if self.recording {
            merge(&mut self.loaded, element, lanes, &row);
        }
    }

    /// A row of stored values, of these lanes.
    fn stored(&mut self, lanes: u32, element: usize, row: impl FnOnce() -> Wide) {
        if self.recording {
            merge(&mut self.stored, element, lanes, &row());
        }
    }

    fn find(&mut self, addresses: &Wide, lanes: u32, row: &Wide) {
        let lane = lanes.trailing_zeros() as usize % LANES;
        let first = (addresses[lane], row[lane]);
        let found = self.found.get_or_insert(Found {
            first,
            places: 0,
            values: 0,
        });
        // Multiplication by an odd number and rotation: cheap, and every bit of every value has its say.
        let mix = |digest: u64, word: u64| {
            (digest ^ word)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
        };
        for lane in lanes_of(lanes) {
            found.places = mix(found.places, addresses[lane]);
            found.values = mix(found.values, row[lane]);
        }
    }

    fn access<'a>(&'a self, op: &MemoryOp, part: &Part<'a>) -> Access<'a> {
        Access {
            kind: op.kind,
            operation: op.atomic.map(|atomic| atomic.operation),
            returns: op.atomic.is_some_and(|atomic| atomic.returns),
            order: op.order,
            scope: op.scope,
            space: part.space,
            nc: op.nc,
            size: op.size,
            elements: op.elements,
            lanes: part.lanes,
            addresses: part.addresses,
            loaded: &self.loaded,
            kept: self.kept,
            stored: &self.stored,
        }
    }
}

/// Puts lanes of a row at a place in a list of rows.
fn merge(rows: &mut Vec<Wide>, at: usize, lanes: u32, row: &Wide) {
    if rows.len() <= at {
        rows.resize(at + 1, [0; LANES]);
    }
    blend(&mut rows[at], lanes, row);
}

/// The lanes whose generic addresses fall into the space of the first lane's, and their addresses there.
fn same_space(addresses: &Wide, lanes: u32) -> (Space, u32, Wide) {
    let (space, _) = window::resolve(addresses[lanes.trailing_zeros() as usize % LANES]);
    let mut rebased = *addresses;
    let mut part = 0;
    for (lane, address) in rebased.iter_mut().enumerate() {
        let (found, at) = window::resolve(*address);
        part |= u32::from(found == space) << lane;
        *address = at;
    }
    (space, part & lanes, rebased)
}

/// Values of every lane in another form.
fn converted<T: Word, U: Copy + Default>(row: &[T; LANES], convert: impl Fn(T) -> U) -> [U; LANES] {
    let mut out = [U::default(); LANES];
    for (out, value) in out.iter_mut().zip(row) {
        *out = convert(*value);
    }
    out
}

/// Reads a word that lies within `bytes`.
#[inline]
fn peek<T: Word>(bytes: &[u8], at: usize) -> T {
    let mut word = [0; 8];
    word[..size_of::<T>()].copy_from_slice(&bytes[at..at + size_of::<T>()]);
    T::of(u64::from_le_bytes(word))
}

/// Writes a word that lies within `bytes`.
#[inline]
fn poke<T: Word>(bytes: &mut [u8], at: usize, value: T) {
    bytes[at..at + size_of::<T>()].copy_from_slice(&value.wide().to_le_bytes()[..size_of::<T>()]);
}
