//! What a call comes to once its arguments have been checked: kernel, launch shape, tag.

use std::fmt;

use crate::driver::DevicePtr;
use crate::layout::{DType, DeviceStruct, Header, OperationKind, Transport};

use super::geometry::PACK_BYTES;

/// What a pool allows, as operations see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub world: u32,
    /// Heads of one rank.
    pub heads: u32,
    pub query_head_dim: u32,
    pub value_head_dim: u32,
    pub max_batch: u32,
    pub max_grid: u32,
    pub transport: Transport,
    /// Bytes that one source may stage for one destination; whole slots when pulling.
    pub staging: u64,
}

impl Limits {
    /// Refuses an empty batch and one beyond the contract.
    pub(super) fn check_batch(&self, batch: u32) -> Result<(), String> {
        if batch == 0 {
            return Err("batch is 0; skip the call, on all ranks".to_owned());
        }
        if batch > self.max_batch {
            return Err(format!(
                "batch is {batch}, the contract's max_batch is {}",
                self.max_batch
            ));
        }
        Ok(())
    }

    /// What a reduce-scatter stages: one part in each peer's inbox, or one part for every rank in the outbox.
    pub(super) fn reduce_staging(&self, part_bytes: u64) -> u64 {
        match self.transport {
            Transport::Push => part_bytes,
            Transport::Pull => part_bytes * u64::from(self.world),
        }
    }

    /// Refuses what the staging slots cannot hold.
    pub(super) fn check_staging(&self, bytes: u64) -> Result<(), String> {
        if bytes > self.staging {
            return Err(format!(
                "the operation stages {bytes} bytes, the contract's slots hold {}; use smaller elements or rows, or a contract that states these",
                self.staging
            ));
        }
        Ok(())
    }
}

/// Which of the pool's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Gather,
    Reduce(DType),
}

/// A checked call.
#[derive(Debug, Clone)]
pub(crate) struct Plan<P> {
    pub entry: Entry,
    pub grid: u32,
    pub dtype: DType,
    /// Everything about the shape that decides which bytes go where, for the tag.
    pub shape: [u64; 8],
    /// Complete but for the header.
    pub params: P,
}

/// A parameter block that begins with a [`Header`].
pub(crate) trait Params: DeviceStruct {
    fn header_mut(&mut self) -> &mut Header;
}

/// A collective: everything that differs from one to the next.
pub(crate) trait Operation {
    const KIND: OperationKind;
    type Params: Params;

    /// Checks the arguments against the contract. The words say what is wrong, with its value.
    fn plan(&self, limits: &Limits, header: Header) -> Result<Plan<Self::Params>, String>;
}

/// Refuses null and unaligned addresses.
pub(super) fn check_pointer(name: &str, pointer: DevicePtr, alignment: u64) -> Result<(), String> {
    let address = pointer.raw();
    if address == 0 {
        return Err(format!("{name} is null"));
    }
    if !address.is_multiple_of(alignment) {
        return Err(format!(
            "{name} at {address:#x} is not aligned to {alignment} bytes"
        ));
    }
    Ok(())
}

/// Refuses an output that overlaps an input, and what wraps around the address space.
pub(super) fn check_apart(output: Extent<'_>, inputs: &[Extent<'_>]) -> Result<(), String> {
    let out_end = output.end()?;
    for input in inputs {
        let in_end = input.end()?;
        if input.start.raw() < out_end && output.start.raw() < in_end {
            return Err(format!("{output} overlaps {input}"));
        }
    }
    Ok(())
}

/// The bytes that an argument spans.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent<'a> {
    pub name: &'a str,
    pub start: DevicePtr,
    pub bytes: u64,
}

impl Extent<'_> {
    fn end(&self) -> Result<u64, String> {
        let end = self.start.raw().checked_add(self.bytes);
        end.ok_or_else(|| format!("{self} does not fit the address space"))
    }
}

impl fmt::Display for Extent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, start, bytes } = self;
        write!(f, "{name} ({bytes} bytes at {:#x})", start.raw())
    }
}

/// Bytes of a row of `dim` elements, checked to be whole packs.
pub(super) fn row_bytes(dim: u32, dtype: DType) -> Result<u64, String> {
    let bytes = u64::from(dim) * dtype.bytes() as u64;
    if bytes == 0 || !bytes.is_multiple_of(PACK_BYTES) {
        return Err(format!(
            "a row of {dim} {dtype:?} elements has {bytes} bytes, not a positive multiple of {PACK_BYTES}"
        ));
    }
    Ok(bytes)
}
