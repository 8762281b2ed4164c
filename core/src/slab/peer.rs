//! Memory of other ranks, as learnt from the exchange.

use core::marker::PhantomData;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use slabfence_sys::RangeKind;

use super::arena::Arena;
use super::kind::Kind;
use super::range::Ptr;
use crate::driver::{Access, vmm::GuardedMapping};
use crate::error::{Error, Result};
use crate::layout::ALIGN;

/// A number that tells this process from every other, so that an address is never taken for one of this process's.
pub(crate) fn process_token() -> u64 {
    static TOKEN: OnceLock<u64> = OnceLock::new();
    // The standard library seeds its hashers from the system's random numbers.
    *TOKEN.get_or_init(|| RandomState::new().hash_one(std::process::id()) | 1)
}

/// What a rank tells its peers of one arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaRecord {
    process: u64,
    kind: u32,
    base: u64,
    stride: u64,
    count: u64,
    /// Bytes of the whole mapping, at whose end the ranges lie.
    mapped: u64,
}

impl ArenaRecord {
    /// Length in bytes of the form that travels.
    pub(crate) const BYTES: usize = 48;

    pub(super) fn new<K: Kind>(base: u64, stride: usize, count: usize, mapped: usize) -> Self {
        Self {
            process: process_token(),
            kind: K::CODE.0,
            base,
            stride: stride as u64,
            count: count as u64,
            mapped: mapped as u64,
        }
    }

    /// The form that travels: six little-endian words.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = [
            self.process,
            u64::from(self.kind),
            self.base,
            self.stride,
            self.count,
            self.mapped,
        ];
        let mut bytes = [0; Self::BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads what travelled. `None` for the wrong length or a kind that does not fit; the rest is checked when the record
    /// is used.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let mut words = bytes.chunks_exact(8).map(|word| {
            let mut le = [0; 8];
            le.copy_from_slice(word);
            u64::from_le_bytes(le)
        });
        Some(Self {
            process: words.next()?,
            kind: u32::try_from(words.next()?).ok()?,
            base: words.next()?,
            stride: words.next()?,
            count: words.next()?,
            mapped: words.next()?,
        })
    }
}

/// Another rank's arena of one kind. It keeps nothing alive: its owner must not close it while kernels here use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerArena<K: Kind> {
    base: u64,
    stride: usize,
    count: usize,
    _kind: PhantomData<K>,
}

impl<K: Kind> PeerArena<K> {
    /// Accepts the record that a peer in this process gave of the arena that corresponds to `own`: same kind, same cut, an
    /// address of this process.
    pub fn accept(record: &ArenaRecord, own: &Arena<K>) -> Result<Self> {
        check(record, own)?;
        if record.process != process_token() {
            return refuse(format!(
                "a peer's {} memory belongs to another process: its address means nothing here",
                K::NAME
            ));
        }
        let bytes = own.stride() as u64 * own.count() as u64;
        let fits = record
            .base
            .checked_add(bytes)
            .is_some_and(|_| record.base != 0 && record.base.is_multiple_of(ALIGN as u64));
        if !fits {
            return refuse(format!(
                "a peer's {} memory at {:#x} is no address",
                K::NAME,
                record.base
            ));
        }
        let mine = own.record();
        let apart = record.base >= mine.base + bytes || mine.base >= record.base + bytes;
        if !apart {
            return refuse(format!(
                "a peer's {} memory at {:#x} overlaps this rank's at {:#x}",
                K::NAME,
                record.base,
                mine.base
            ));
        }
        Ok(Self::at(record.base, own))
    }

    /// Maps the arena that a peer in another process gave a record and a descriptor of, and that corresponds to `own`:
    /// same kind, same cut. This rank's device gets the right that the kind allows to peers. The mapping must outlive
    /// every use of the result.
    pub(crate) fn import(
        record: &ArenaRecord,
        own: &Arena<K>,
        descriptor: OwnedFd,
    ) -> Result<(Self, Imported)> {
        let access = check(record, own)?;
        let bytes = own.stride() * own.count();
        let mapped = usize::try_from(record.mapped).ok();
        let Some((mapped, start)) =
            mapped.and_then(|mapped| Some((mapped, mapped.checked_sub(bytes)?)))
        else {
            return refuse(format!(
                "a peer's {} memory has {} bytes, which do not hold the ranges' {bytes}",
                K::NAME,
                record.mapped
            ));
        };
        let memory = GuardedMapping::import(own.device(), descriptor, mapped, access)?;
        let seen = Self::at(memory.base() + start as u64, own);
        Ok((seen, Imported { memory }))
    }

    fn at(base: u64, own: &Arena<K>) -> Self {
        Self {
            base,
            stride: own.stride(),
            count: own.count(),
            _kind: PhantomData,
        }
    }

    /// The peer's range `index`; an error past the last.
    pub fn range(&self, index: usize) -> Result<PeerRange<K>> {
        if index >= self.count {
            return Err(Error::Argument {
                operation: "PeerArena::range",
                what: format!(
                    "range {index}: there are {} of {} memory",
                    self.count,
                    K::NAME
                ),
            });
        }
        Ok(PeerRange {
            ptr: Ptr::new(self.base + (index * self.stride) as u64),
            bytes: self.stride,
        })
    }
}

/// Another process's memory, mapped here between guards. Dropping it unmaps it.
#[derive(Debug)]
pub(crate) struct Imported {
    memory: GuardedMapping,
}

impl Imported {
    /// Bytes that are mapped: none after a close.
    pub(crate) fn mapped(&self) -> usize {
        self.memory.held()
    }

    /// Whether it can be used.
    pub(crate) fn is_mapped(&self) -> bool {
        self.memory.is_mapped()
    }

    /// Unmaps it. After a failure what is left stays, and a later call goes on there. Afterwards no kernel may use an
    /// address of it.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.memory.close()
    }
}

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::Refused {
        operation: "PeerArena::accept",
        why,
    })
}

/// Compares kind and cut of a peer's arena with the own one's. What peers may do in memory of the kind.
fn check<K: Kind>(record: &ArenaRecord, own: &Arena<K>) -> Result<Access> {
    let Some(access) = K::PEERS else {
        return refuse(format!("{} memory is never shared", K::NAME));
    };
    if record.kind != K::CODE.0 {
        return refuse(format!(
            "a peer's record is of {:?} memory where {} memory was expected: ranks run different versions",
            RangeKind(record.kind),
            K::NAME
        ));
    }
    if (record.stride, record.count) != (own.stride() as u64, own.count() as u64) {
        return refuse(format!(
            "a peer has {} ranges of {} bytes of {} memory, this rank {} of {}: contracts differ",
            record.count,
            record.stride,
            K::NAME,
            own.count(),
            own.stride()
        ));
    }
    Ok(access)
}

/// A part of another rank's memory of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRange<K: Kind> {
    ptr: Ptr<K>,
    bytes: usize,
}

impl<K: Kind> PeerRange<K> {
    /// First address, as kernels of this rank use it.
    pub const fn ptr(&self) -> Ptr<K> {
        self.ptr
    }

    /// Length in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The part of `bytes` bytes at `offset`; an error where it does not lie inside.
    pub fn sub(&self, offset: usize, bytes: usize) -> Result<Self> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(Self {
                ptr: Ptr::new(self.ptr.get() + offset as u64),
                bytes,
            }),
            _ => Err(Error::Argument {
                operation: "PeerRange::sub",
                what: format!(
                    "{bytes} bytes at offset {offset} do not lie inside {} bytes of a peer's {} memory",
                    self.bytes,
                    K::NAME
                ),
            }),
        }
    }
}
