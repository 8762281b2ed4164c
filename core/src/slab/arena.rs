//! A mapping cut into equal ranges, one a channel.

use std::os::fd::OwnedFd;

use super::kind::Kind;
use super::mapping::Mapping;
use super::peer::ArenaRecord;
use super::range::Range;
use crate::driver::Device;
use crate::error::{Error, Result};
use crate::layout::align_up;

/// One mapping of one kind, cut into equal ranges. The last range ends where the mapping ends, so that what runs past the
/// array meets the guard.
#[derive(Debug)]
pub struct Arena<K: Kind> {
    mapping: Mapping<K>,
    stride: usize,
    count: usize,
    start: usize,
}

impl<K: Kind> Arena<K> {
    /// Allocates `count` ranges of at least `bytes` bytes each, all zero. Ranges are multiples of the layouts' alignment.
    pub fn create(device: &Device, bytes: usize, count: usize) -> Result<Self> {
        let stride = align_up(bytes).filter(|&stride| stride > 0);
        let sizes = stride.and_then(|stride| {
            let total = stride.checked_mul(count).filter(|&total| total > 0)?;
            Some((stride, total))
        });
        let Some((stride, total)) = sizes else {
            return Err(Error::Argument {
                operation: "Arena::create",
                what: format!(
                    "{count} ranges of {bytes} bytes of {} memory cannot be allocated",
                    K::NAME
                ),
            });
        };
        let mapping = Mapping::<K>::create(device, total)?;
        let start = mapping.range().bytes() - total;
        Ok(Self {
            mapping,
            stride,
            count,
            start,
        })
    }

    /// Range `index`; an error past the last.
    pub fn range(&self, index: usize) -> Result<Range<K>> {
        self.mapping
            .range()
            .sub(self.offset(index, 0, self.stride)?, self.stride)
    }

    /// Bytes of each range.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// How many ranges there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes that are mapped: none after a close.
    pub fn mapped(&self) -> usize {
        self.mapping.held()
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &Device {
        self.mapping.device()
    }

    /// Gives peers' devices what the kind allows them; see [`Mapping::grant`].
    pub fn grant(&self, ordinals: &[u32]) -> Result<()> {
        self.mapping.grant(ordinals)
    }

    /// What peers are told of this arena.
    pub fn record(&self) -> ArenaRecord {
        ArenaRecord::new::<K>(
            self.mapping.range().ptr().get() + self.start as u64,
            self.stride,
            self.count,
            self.mapping.range().bytes(),
        )
    }

    /// A descriptor of the memory, for a peer in another process to import.
    pub(crate) fn export(&self) -> Result<OwnedFd> {
        self.mapping.export()
    }

    /// Copies host memory into range `index` at `offset` and waits. Not ordered with what streams do.
    pub fn write(&self, index: usize, offset: usize, from: &[u8]) -> Result<()> {
        let offset = self.offset(index, offset, from.len())?;
        self.mapping.write(offset, from)
    }

    /// Copies out of range `index` at `offset` and waits. Not ordered with what streams do.
    pub fn read(&self, index: usize, offset: usize, to: &mut [u8]) -> Result<()> {
        let offset = self.offset(index, offset, to.len())?;
        self.mapping.read(offset, to)
    }

    /// Sets `bytes` bytes of range `index` at `offset` to `value` and waits. Not ordered with what streams do.
    pub fn fill(&self, index: usize, offset: usize, value: u8, bytes: usize) -> Result<()> {
        let offset = self.offset(index, offset, bytes)?;
        self.mapping.fill(offset, value, bytes)
    }

    /// Whether it can be used: not after a close, also one that failed.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapping.is_mapped()
    }

    /// Unmaps and frees everything; see [`Mapping::close`].
    pub fn close(&mut self) -> Result<()> {
        self.mapping.close()
    }

    /// Offset inside the mapping of a part of range `index`.
    fn offset(&self, index: usize, offset: usize, bytes: usize) -> Result<usize> {
        let inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.stride);
        if index >= self.count || !inside {
            return Err(Error::Argument {
                operation: "Arena",
                what: format!(
                    "{bytes} bytes at offset {offset} of range {index}: there are {} ranges of {} bytes of {} memory",
                    self.count,
                    self.stride,
                    K::NAME
                ),
            });
        }
        Ok(self.start + index * self.stride + offset)
    }
}
