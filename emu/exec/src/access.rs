//! Loads, stores and atomics of a warp.

use crate::{
    Access, AccessKind, FaultKind, GlobalMemory, MemoryFault, Operation, Order, Space,
    memory::{RegionCache, Word, modified},
    op::{Atomic, MemoryOp, Place, Where},
    registers::{Registers, lanes_of},
    value::{LANES, Wide, f32s},
    warp::Poll,
    window,
};
use std::sync::atomic::Ordering;

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
}

/// What an access moved, as a hook wants to know it. Kept only when there is one.
#[derive(Default)]
pub(crate) struct Record {
    loaded: Vec<Wide>,
    stored: Vec<Wide>,
}

/// What a strong access found, over all its lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) first: Poll,
    pub(crate) digest: u64,
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

    fn bytes(&self) -> u64 {
        u64::from(self.size * self.elements)
    }

    /// Whether its order makes it visible to a wait loop: such an access may be a poll.
    pub(crate) fn is_strong_read(&self) -> bool {
        self.kind != AccessKind::Store && self.order != Order::Weak
    }

    fn ordering(&self) -> Ordering {
        match (self.order, self.kind) {
            (Order::Acquire, AccessKind::Load | AccessKind::ReadModifyWrite) => Ordering::Acquire,
            (Order::Release, AccessKind::Store | AccessKind::ReadModifyWrite) => Ordering::Release,
            (Order::AcqRel, _) => Ordering::AcqRel,
            _ => Ordering::Relaxed,
        }
    }
}

impl<M: GlobalMemory> Memories<'_, M> {
    /// Performs an access in these lanes. `visit` gets every part of it, by space (one, unless generic addresses
    /// differ), if `RECORD`.
    pub(crate) fn perform<const RECORD: bool>(
        &mut self,
        op: &MemoryOp,
        lanes: u32,
        mut visit: impl FnMut(&Access<'_>),
    ) -> Result<Option<Found>, Trouble> {
        let addresses = op.addresses(self.registers);
        let mut found = None;
        let mut remaining = lanes;
        while remaining != 0 {
            let (space, part, rebased);
            let mut at = &addresses;
            match op.place {
                Where::In(named) => (space, part) = (named, remaining),
                Where::Generic => {
                    (space, part, rebased) = same_space(&addresses, remaining);
                    at = &rebased;
                }
            }
            remaining &= !part;
            let mut record = Record::default();
            self.check(op, space, at, part)?;
            match &op.atomic {
                Some(atomic) => {
                    self.modify::<RECORD>(op, atomic, space, at, part, &mut record, &mut found)?
                }
                None => self.move_data::<RECORD>(op, space, at, part, &mut record, &mut found)?,
            }
            if RECORD {
                visit(&access(op, space, part, at, &record));
            }
        }
        Ok(found)
    }

    /// Alignment, and the bounds of all spaces but global (whose regions are found lane by lane).
    fn check(
        &self,
        op: &MemoryOp,
        space: Space,
        addresses: &Wide,
        lanes: u32,
    ) -> Result<(), Trouble> {
        let bytes = op.bytes();
        let low = addresses
            .iter()
            .enumerate()
            .fold(0, |low, (lane, address)| {
                if lanes >> lane & 1 != 0 {
                    low | address
                } else {
                    low
                }
            });
        if low & (bytes - 1) != 0 {
            let lane = lanes_of(lanes)
                .find(|&lane| addresses[lane] & (bytes - 1) != 0)
                .unwrap_or(0);
            let kind = FaultKind::Misaligned {
                addr: addresses[lane],
                align: bytes as u32,
                space,
            };
            return Err((lane, kind));
        }
        let (len, writable) = match space {
            Space::Global | Space::Const => return Ok(()),
            Space::Shared => (self.shared.len(), true),
            Space::Local => (self.local.len() / LANES, true),
            Space::Param => (self.params.len(), false),
        };
        if !writable && op.kind != AccessKind::Load {
            let lane = lanes.trailing_zeros() as usize;
            return Err((
                lane,
                illegal(op, space, addresses[lane], MemoryFault::ReadOnly),
            ));
        }
        let outside = |&lane: &usize| {
            addresses[lane]
                .checked_add(bytes)
                .is_none_or(|end| end > len as u64)
        };
        match lanes_of(lanes).find(outside) {
            Some(lane) => Err((
                lane,
                illegal(op, space, addresses[lane], MemoryFault::Unmapped),
            )),
            None => Ok(()),
        }
    }

    fn move_data<const RECORD: bool>(
        &mut self,
        op: &MemoryOp,
        space: Space,
        addresses: &Wide,
        lanes: u32,
        record: &mut Record,
        found: &mut Option<Found>,
    ) -> Result<(), Trouble> {
        if op.size == 16 {
            return self.move_pair::<RECORD>(op, space, addresses, lanes, record, found);
        }
        for (element, &place) in op.registers.iter().enumerate() {
            let offset = element as u64 * u64::from(op.size);
            let mut row = [0; LANES];
            let row = if RECORD || op.is_strong_read() {
                Some(&mut row)
            } else {
                None
            };
            let moved = match op.size {
                1 => self.move_element::<u8>(op, space, addresses, lanes, offset, place, row),
                2 => self.move_element::<u16>(op, space, addresses, lanes, offset, place, row),
                4 => self.move_element::<u32>(op, space, addresses, lanes, offset, place, row),
                _ => self.move_element::<u64>(op, space, addresses, lanes, offset, place, row),
            }?;
            let Some(row) = moved else { continue };
            if op.is_strong_read() {
                note(found, addresses, lanes, &row);
            }
            if RECORD {
                match op.kind {
                    AccessKind::Store => record.stored.push(row),
                    _ => record.loaded.push(row),
                }
            }
        }
        Ok(())
    }

    /// Loads or stores one element of every lane; gives the values if the caller has a row for them.
    #[allow(
        clippy::too_many_arguments,
        reason = "the one place where all of an access comes together"
    )]
    fn move_element<T: Word>(
        &mut self,
        op: &MemoryOp,
        space: Space,
        addresses: &Wide,
        lanes: u32,
        offset: u64,
        place: Place,
        row: Option<&mut Wide>,
    ) -> Result<Option<Wide>, Trouble> {
        if op.kind == AccessKind::Store {
            let values = self.fetch::<T>(place);
            self.scatter(op, space, addresses, lanes, offset, &values)?;
            return Ok(row.map(|_| values.map(Word::wide)));
        }
        let values = self.gather::<T>(op, space, addresses, lanes, offset)?;
        self.deliver(place, op.signed, lanes, &values);
        Ok(row.map(|_| values.map(Word::wide)))
    }

    fn gather<T: Word>(
        &mut self,
        op: &MemoryOp,
        space: Space,
        addresses: &Wide,
        lanes: u32,
        offset: u64,
    ) -> Result<[T; LANES], Trouble> {
        let mut values = [T::default(); LANES];
        let order = op.ordering();
        let (bytes, stride): (&[u8], usize) = match space {
            Space::Global | Space::Const => {
                let mut region = None;
                for lane in lanes_of(lanes) {
                    let address = addresses[lane].wrapping_add(offset);
                    values[lane] = match region
                        .and_then(|region: crate::Region| region.load(address, order))
                    {
                        Some(value) => value,
                        None => {
                            let size = size_of::<T>() as u64;
                            let fresh = self.regions.find(self.global, address, size, false);
                            let fresh =
                                fresh.map_err(|why| (lane, illegal(op, space, address, why)))?;
                            region = Some(fresh);
                            let value = fresh.load(address, order);
                            value.ok_or_else(|| {
                                (lane, illegal(op, space, address, MemoryFault::Unmapped))
                            })?
                        }
                    };
                }
                return Ok(values);
            }
            Space::Shared => (self.shared, 0),
            Space::Local => (self.local, self.local.len() / LANES),
            Space::Param => (self.params, 0),
        };
        for lane in lanes_of(lanes) {
            values[lane] = peek(bytes, (addresses[lane] + offset) as usize + lane * stride);
        }
        Ok(values)
    }

    fn scatter<T: Word>(
        &mut self,
        op: &MemoryOp,
        space: Space,
        addresses: &Wide,
        lanes: u32,
        offset: u64,
        values: &[T; LANES],
    ) -> Result<(), Trouble> {
        let order = op.ordering();
        let (bytes, stride): (&mut [u8], usize) = match space {
            Space::Shared => (self.shared, 0),
            Space::Local => {
                let stride = self.local.len() / LANES;
                (self.local, stride)
            }
            // Stores to parameters were refused by `check`.
            Space::Global | Space::Const | Space::Param => {
                let mut region = None;
                for lane in lanes_of(lanes) {
                    let (address, value) = (addresses[lane].wrapping_add(offset), values[lane]);
                    if region
                        .and_then(|region: crate::Region| region.store(address, value, order))
                        .is_some()
                    {
                        continue;
                    }
                    let fresh =
                        self.regions
                            .find(self.global, address, size_of::<T>() as u64, true);
                    let fresh = fresh.map_err(|why| (lane, illegal(op, space, address, why)))?;
                    region = Some(fresh);
                    let stored = fresh.store(address, value, order);
                    stored.ok_or_else(|| {
                        (lane, illegal(op, space, address, MemoryFault::ReadOnly))
                    })?;
                }
                return Ok(());
            }
        };
        for lane in lanes_of(lanes) {
            poke(
                bytes,
                (addresses[lane] + offset) as usize + lane * stride,
                values[lane],
            );
        }
        Ok(())
    }

    /// 16 bytes as one access.
    fn move_pair<const RECORD: bool>(
        &mut self,
        op: &MemoryOp,
        space: Space,
        addresses: &Wide,
        lanes: u32,
        record: &mut Record,
        found: &mut Option<Found>,
    ) -> Result<(), Trouble> {
        let [low, high] =
            [0, 1].map(|half| op.registers.get(half).copied().unwrap_or(Place::Nowhere));
        let mut rows = [[0; LANES]; 2];
        if op.kind == AccessKind::Store {
            rows = [self.fetch::<u64>(low), self.fetch::<u64>(high)];
        }
        if !matches!(space, Space::Global | Space::Const) {
            // Nobody else can look: two halves are as good as one access.
            for (half, row) in rows.iter_mut().enumerate() {
                let offset = 8 * half as u64;
                match op.kind {
                    AccessKind::Store => self.scatter(op, space, addresses, lanes, offset, row)?,
                    _ => *row = self.gather(op, space, addresses, lanes, offset)?,
                }
            }
        } else {
            let store = op.kind == AccessKind::Store;
            for lane in lanes_of(lanes) {
                let address = addresses[lane];
                let region = self.regions.find(self.global, address, 16, store);
                let region = region.map_err(|why| (lane, illegal(op, space, address, why)))?;
                let done = if store {
                    region.store_pair(address, [rows[0][lane], rows[1][lane]], op.ordering())
                } else {
                    region.load_pair(address, op.ordering()).map(|[low, high]| {
                        rows[0][lane] = low;
                        rows[1][lane] = high;
                    })
                };
                done.ok_or_else(|| (lane, illegal(op, space, address, MemoryFault::Unmapped)))?;
            }
        }
        if op.kind == AccessKind::Load {
            self.deliver(low, false, lanes, &rows[0]);
            self.deliver(high, false, lanes, &rows[1]);
        }
        if op.is_strong_read() {
            note(found, addresses, lanes, &rows[0]);
            note(found, addresses, lanes, &rows[1]);
        }
        if RECORD {
            let list = if op.kind == AccessKind::Store {
                &mut record.stored
            } else {
                &mut record.loaded
            };
            list.extend(rows);
        }
        Ok(())
    }

    /// A read-modify-write, lane after lane.
    #[allow(
        clippy::too_many_arguments,
        reason = "the one place where all of an access comes together"
    )]
    fn modify<const RECORD: bool>(
        &mut self,
        op: &MemoryOp,
        atomic: &Atomic,
        space: Space,
        addresses: &Wide,
        lanes: u32,
        record: &mut Record,
        found: &mut Option<Found>,
    ) -> Result<(), Trouble> {
        let mut old = [0; LANES];
        let mut operands = [0; LANES];
        for lane in lanes_of(lanes) {
            let address = addresses[lane];
            let operand = self.registers.get(atomic.operand, lane);
            let expected = self.registers.get(atomic.expected, lane);
            operands[lane] = operand;
            let result = match op.size {
                2 => self.modify_one::<u16>(
                    op,
                    atomic.operation,
                    space,
                    address,
                    lane,
                    operand,
                    expected,
                ),
                4 => self.modify_one::<u32>(
                    op,
                    atomic.operation,
                    space,
                    address,
                    lane,
                    operand,
                    expected,
                ),
                _ => self.modify_one::<u64>(
                    op,
                    atomic.operation,
                    space,
                    address,
                    lane,
                    operand,
                    expected,
                ),
            };
            old[lane] = result.map_err(|why| (lane, illegal(op, space, address, why)))?;
        }
        if let Some(&place) = op.registers.first() {
            for lane in lanes_of(lanes) {
                self.registers.set(place, lane, old[lane]);
            }
        }
        if atomic.returns {
            note(found, addresses, lanes, &old);
        }
        if RECORD {
            record.loaded.extend(atomic.returns.then_some(old));
            record.stored.push(operands);
        }
        Ok(())
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the one place where all of an access comes together"
    )]
    fn modify_one<T: Word>(
        &mut self,
        op: &MemoryOp,
        operation: Operation,
        space: Space,
        address: u64,
        lane: usize,
        operand: u64,
        expected: u64,
    ) -> Result<u64, MemoryFault> {
        let size = size_of::<T>() as u64;
        let (bytes, at): (&mut [u8], usize) = match space {
            Space::Shared => (self.shared, address as usize),
            Space::Local => {
                let stride = self.local.len() / LANES;
                (self.local, address as usize + lane * stride)
            }
            Space::Global | Space::Const | Space::Param => {
                let region = self.regions.find(self.global, address, size, true)?;
                let old = region.modify::<T>(address, operation, operand, expected, op.ordering());
                return old.map(Word::wide).ok_or(MemoryFault::ReadOnly);
            }
        };
        let old = peek::<T>(bytes, at).wide();
        let new = match operation {
            Operation::Cas if old != expected => old,
            // Unlike in global memory, subnormal numbers are kept.
            Operation::AddF32 => {
                f32s::canonical(f32::from_bits(old as u32) + f32::from_bits(operand as u32)).into()
            }
            _ => modified(operation, old, operand, 8 * size as u32),
        };
        poke(bytes, at, T::of(new));
        Ok(old)
    }

    /// A register as values to store.
    fn fetch<T: Word>(&self, place: Place) -> [T; LANES] {
        match place {
            Place::Narrow(slot, _) => self.registers.n(slot).map(|value| T::of(value.into())),
            Place::Wide(slot) => self.registers.w(slot).map(T::of),
            Place::Nowhere => [T::default(); LANES],
        }
    }

    /// Loaded values to a register, extended to its width.
    fn deliver<T: Word>(&mut self, place: Place, signed: bool, lanes: u32, values: &[T; LANES]) {
        let unused = 64 - 8 * size_of::<T>() as u32;
        let extend = |value: T| {
            let value = value.wide();
            if signed {
                ((value << unused) as i64 >> unused) as u64
            } else {
                value
            }
        };
        match place {
            Place::Narrow(slot, mask) => {
                self.registers.put_narrow(
                    slot,
                    lanes,
                    &values.map(|value| extend(value) as u32 & mask),
                );
            }
            Place::Wide(slot) => self.registers.put_wide(slot, lanes, &values.map(extend)),
            Place::Nowhere => {}
        }
    }
}

fn access<'a>(
    op: &MemoryOp,
    space: Space,
    lanes: u32,
    addresses: &'a Wide,
    record: &'a Record,
) -> Access<'a> {
    Access {
        kind: op.kind,
        operation: op.atomic.map(|atomic| atomic.operation),
        returns: op.atomic.is_some_and(|atomic| atomic.returns),
        order: op.order,
        scope: op.scope,
        space,
        nc: op.nc,
        size: op.size,
        elements: op.elements,
        lanes,
        addresses,
        loaded: &record.loaded,
        stored: &record.stored,
    }
}

fn illegal(op: &MemoryOp, space: Space, addr: u64, reason: MemoryFault) -> FaultKind {
    FaultKind::IllegalAddress {
        addr,
        size: op.size,
        access: op.kind,
        space,
        reason,
    }
}

/// The lanes whose generic addresses fall into the space of the first lane's, and their addresses there.
fn same_space(addresses: &Wide, lanes: u32) -> (Space, u32, Wide) {
    let mut rebased = *addresses;
    let (space, _) = window::resolve(addresses[lanes.trailing_zeros() as usize % LANES]);
    let mut part = 0;
    for lane in lanes_of(lanes) {
        let (found, address) = window::resolve(addresses[lane]);
        if found == space {
            part |= 1 << lane;
            rebased[lane] = address;
        }
    }
    (space, part, rebased)
}

/// Adds a row of found values to what a strong access found.
fn note(found: &mut Option<Found>, addresses: &Wide, lanes: u32, row: &Wide) {
    let first = lanes.trailing_zeros() as usize % LANES;
    let found = found.get_or_insert(Found {
        first: Poll {
            addr: addresses[first],
            seen: row[first],
        },
        digest: 0,
    });
    for lane in lanes_of(lanes) {
        // Multiplication by an odd number and rotation: cheap, and every bit of every value has its say.
        for word in [addresses[lane], row[lane]] {
            found.digest = (found.digest ^ word)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
        }
    }
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
