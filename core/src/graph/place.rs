//! What an address is.

use std::collections::BTreeMap;
use std::fmt;

use crate::channel::{Pool, PoolRange};
use crate::driver::{Allocation, Device};
use crate::error::Result;

/// What an address was when the graph was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Memory of a pool.
    Pool {
        /// The range.
        range: PoolRange,
        /// Bytes from its start.
        offset: u64,
    },
    /// Other live memory that the driver knows.
    Allocation {
        /// All of it.
        allocation: Allocation,
        /// Bytes from its start.
        offset: u64,
    },
    /// No memory that the driver knows: freed or unmapped, pageable host memory, or no address at all.
    Nothing,
    /// The driver refused to say, with these words.
    Unknown(String),
}

impl Place {
    /// Whether the address is memory that lived when the graph was read.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Pool { .. } | Self::Allocation { .. })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = match self {
            Self::Pool { range, offset } => {
                write!(f, "{range}")?;
                *offset
            }
            Self::Allocation { allocation, offset } => {
                let Allocation {
                    base,
                    bytes,
                    device,
                    host,
                } = *allocation;
                match (host, device) {
                    (true, _) => f.write_str("page-locked host memory")?,
                    (false, Some(device)) => write!(f, "memory of device {device}")?,
                    (false, None) => f.write_str("memory of no single device")?,
                }
                match bytes {
                    0 => write!(f, " of unknown extent")?,
                    bytes => write!(f, " at {base:#x}, {bytes} bytes")?,
                }
                *offset
            }
            Self::Nothing => return f.write_str("none: no live memory that the driver knows"),
            Self::Unknown(words) => return write!(f, "unknown: {words}"),
        };
        match offset {
            0 => Ok(()),
            offset => write!(f, ", +{offset}"),
        }
    }
}

/// The ranges of some pools, by address.
pub(super) struct Registry(BTreeMap<u64, PoolRange>);

impl Registry {
    pub(super) fn new(pools: &[&Pool]) -> Result<Self> {
        let mut ranges = BTreeMap::new();
        for pool in pools {
            ranges.extend(pool.ranges()?.into_iter().map(|range| (range.base, range)));
        }
        Ok(Self(ranges))
    }

    pub(super) fn find(&self, device: &Device, address: u64) -> Place {
        let at_or_before = self.0.range(..=address).next_back();
        if let Some((base, range)) = at_or_before
            && address - base < range.bytes
        {
            return Place::Pool {
                range: range.clone(),
                offset: address - base,
            };
        }
        match device.allocation(address) {
            Ok(Some(allocation)) => Place::Allocation {
                allocation,
                offset: address.wrapping_sub(allocation.base),
            },
            Ok(None) => Place::Nothing,
            Err(error) => Place::Unknown(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Part;
    use crate::driver::fake;
    use crate::group::Rank;
    use crate::layout::Slot;

    #[test]
    fn a_range_ends_before_its_end_and_what_a_driver_cannot_tell_is_unknown() {
        let range = PoolRange {
            part: Part::Outbox,
            channel: Some("a".to_owned()),
            slot: Some(Slot::B),
            owner: Rank(3),
            source: None,
            base: 0x10_0000,
            bytes: 256,
        };
        let registry = Registry(BTreeMap::from([(range.base, range)]));
        let device = fake::device();
        let words = |address| registry.find(&device, address).to_string();
        assert_eq!(words(0x10_0000), "outbox B of rank 3, channel a");
        assert_eq!(words(0x10_00ff), "outbox B of rank 3, channel a, +255");
        // The fake driver has no call that tells what an address is.
        for outside in [0x0f_ffff, 0x10_0100] {
            let words = words(outside);
            assert!(
                words.starts_with("unknown: cuPointerGetAttribute is missing"),
                "{words}"
            );
        }
    }
}
