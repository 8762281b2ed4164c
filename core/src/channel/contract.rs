//! What all ranks of a pool agree on before any of them allocates.

use std::time::Duration;

use crate::collective::geometry::{GatherGeometry, ReduceGeometry};
use crate::hash::Fnv1a;
use crate::layout::{MAX_GRID, Transport};

/// Largest accepted time limit. Far beyond use, and 64-bit nanoseconds cannot overflow.
const MAX_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);
/// Largest accepted number of channels.
const MAX_CHANNELS: u32 = 4096;

/// The shapes, limits and policy of a pool. Must be equal on all ranks; creation prints every field that is not.
///
/// `Contract { max_channels: 8, ..Contract::new(32, 576, 512, 64) }` sets what differs from the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// Attention heads of all ranks together; a multiple of the world size.
    pub total_heads: u32,
    /// Largest query head dimension, in elements: rows of `all_gather_heads`.
    pub query_head_dim: u32,
    /// Largest value head dimension, in elements: rows of `lse_reduce_scatter`.
    pub value_head_dim: u32,
    /// Largest element of a gather, in bytes (1, 2 or 4).
    pub gather_element_bytes: u32,
    /// Largest element of a reduce-scatter, in bytes (2 or 4).
    pub reduce_element_bytes: u32,
    /// Largest number of tokens of one operation.
    pub max_batch: u32,
    /// Channels that the pool has room for.
    pub max_channels: u32,
    /// Largest grid of an operation, in CTAs (1 to 128). More than the default of 64 pays from about 32 tokens on, by up to a
    /// tenth (docs/performance.md), and takes more of the device: all of them must be resident at once.
    pub max_grid: u32,
    /// Operations of this pool that may run on one device at the same time, on different channels.
    pub concurrent_operations: u32,
    /// A wait this long leaves a warning record and goes on; zero: never.
    pub warn: Duration,
    /// A wait this long fails the operation and poisons its channel; zero: never.
    ///
    /// Calls of the host that need a device at rest (`prepare`, `reset`, `retire`, `rollback`, `close`, `abandon`, and those of a `Ticket`) wait for it for at most
    /// half of the group's timeout ([`Group::with_timeout`](crate::group::Group::with_timeout)), which by default is far less
    /// than this limit. Who wants to leave, or reset, soon after a rank has died sets a limit below that half; with zero, an
    /// operation that waits for a dead rank never lets go.
    pub fail: Duration,
    /// How data cross.
    pub transport: Transport,
    /// Whether several ranks may share one device. For tests: the ranks wait for one another on the same multiprocessors.
    pub oversubscribe: bool,
}

impl Contract {
    /// 16-bit elements, four channels, grids up to 64, one operation at a time, warning after 5 s, failure after 600 s, push.
    pub const fn new(
        total_heads: u32,
        query_head_dim: u32,
        value_head_dim: u32,
        max_batch: u32,
    ) -> Self {
        Self {
            total_heads,
            query_head_dim,
            value_head_dim,
            gather_element_bytes: 2,
            reduce_element_bytes: 2,
            max_batch,
            max_channels: 4,
            max_grid: 64,
            concurrent_operations: 1,
            warn: Duration::from_secs(5),
            fail: Duration::from_secs(600),
            transport: Transport::Push,
            oversubscribe: false,
        }
    }

    /// Digest of every field.
    pub fn hash(&self) -> u64 {
        let fields = self.fields();
        let digest = fields
            .iter()
            .fold(Fnv1a::new(), |h, (name, value)| h.text(name).text(value));
        digest.finish()
    }

    /// Name and value of every field, in the order of declaration.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        // Without `..`: a field that is added and not agreed on does not compile.
        let Self {
            total_heads,
            query_head_dim,
            value_head_dim,
            gather_element_bytes,
            reduce_element_bytes,
            max_batch,
            max_channels,
            max_grid,
            concurrent_operations,
            warn,
            fail,
            transport,
            oversubscribe,
        } = self;
        vec![
            ("total_heads", total_heads.to_string()),
            ("query_head_dim", query_head_dim.to_string()),
            ("value_head_dim", value_head_dim.to_string()),
            ("gather_element_bytes", gather_element_bytes.to_string()),
            ("reduce_element_bytes", reduce_element_bytes.to_string()),
            ("max_batch", max_batch.to_string()),
            ("max_channels", max_channels.to_string()),
            ("max_grid", max_grid.to_string()),
            ("concurrent_operations", concurrent_operations.to_string()),
            ("warn", format!("{warn:?}")),
            ("fail", format!("{fail:?}")),
            ("transport", format!("{transport:?}")),
            ("oversubscribe", oversubscribe.to_string()),
        ]
    }

    /// Heads of one rank.
    pub(crate) fn heads(&self, world: u32) -> u32 {
        self.total_heads / world
    }

    /// Checks every field and sizes the staging slots for a world of this size.
    pub(super) fn staging(&self, world: u32) -> Result<Staging, String> {
        self.check(world)?;
        let heads = self.heads(world);
        let row = |dim: u32, bytes: u32| u64::from(dim) * u64::from(bytes);
        let query = row(self.query_head_dim, self.gather_element_bytes);
        let value = row(self.value_head_dim, self.reduce_element_bytes);
        let gather = GatherGeometry::new(self.max_batch, heads, query, self.max_grid)
            .map_err(|what| format!("largest gather: {what}"))?;
        let reduce = ReduceGeometry::new(self.max_batch, heads, value, self.max_grid)
            .map_err(|what| format!("largest reduce-scatter: {what}"))?;
        let parts = u64::from(world) * reduce.part_bytes;
        Ok(match self.transport {
            Transport::Push => Staging {
                inbox: gather.staged_bytes().max(reduce.part_bytes),
                outbox: 0,
            },
            Transport::Pull => Staging {
                inbox: 0,
                outbox: gather.staged_bytes().max(parts),
            },
        })
    }

    fn check(&self, world: u32) -> Result<(), String> {
        let positive = [
            ("total_heads", self.total_heads),
            ("query_head_dim", self.query_head_dim),
            ("value_head_dim", self.value_head_dim),
            ("max_batch", self.max_batch),
            ("concurrent_operations", self.concurrent_operations),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("{name} is 0; it must be at least 1"));
        }
        if !self.total_heads.is_multiple_of(world) {
            return Err(format!(
                "total_heads is {}, not a multiple of the world size {world}: every rank owns equally many heads",
                self.total_heads
            ));
        }
        let choices: [(&str, u32, &[u32]); 2] = [
            (
                "gather_element_bytes",
                self.gather_element_bytes,
                &[1, 2, 4],
            ),
            ("reduce_element_bytes", self.reduce_element_bytes, &[2, 4]),
        ];
        for (name, value, allowed) in choices {
            if !allowed.contains(&value) {
                return Err(format!("{name} is {value}; it must be one of {allowed:?}"));
            }
        }
        for (name, value, most) in [
            ("max_grid", self.max_grid, MAX_GRID as u32),
            ("max_channels", self.max_channels, MAX_CHANNELS),
        ] {
            if value == 0 || value > most {
                return Err(format!("{name} is {value}; it must be 1 to {most}"));
            }
        }
        for (name, limit) in [("warn", self.warn), ("fail", self.fail)] {
            if limit > MAX_LIMIT {
                return Err(format!(
                    "{name} is {limit:?}; the longest limit is {MAX_LIMIT:?}, and zero means never"
                ));
            }
        }
        Ok(())
    }
}

/// Bytes of one channel's staging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Staging {
    /// What one source may push into one slot; zero when nothing is pushed.
    pub inbox: u64,
    /// One outbox slot; zero when nothing is pulled.
    pub outbox: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract() -> Contract {
        Contract::new(32, 576, 512, 8)
    }

    #[test]
    fn every_field_enters_the_hash() {
        let base = contract();
        let changed = [
            Contract {
                total_heads: 64,
                ..base.clone()
            },
            Contract {
                query_head_dim: 512,
                ..base.clone()
            },
            Contract {
                value_head_dim: 576,
                ..base.clone()
            },
            Contract {
                gather_element_bytes: 1,
                ..base.clone()
            },
            Contract {
                reduce_element_bytes: 4,
                ..base.clone()
            },
            Contract {
                max_batch: 9,
                ..base.clone()
            },
            Contract {
                max_channels: 5,
                ..base.clone()
            },
            Contract {
                max_grid: 31,
                ..base.clone()
            },
            Contract {
                concurrent_operations: 2,
                ..base.clone()
            },
            Contract {
                warn: Duration::ZERO,
                ..base.clone()
            },
            Contract {
                fail: Duration::from_nanos(1),
                ..base.clone()
            },
            Contract {
                transport: Transport::Pull,
                ..base.clone()
            },
            Contract {
                oversubscribe: true,
                ..base.clone()
            },
        ];
        assert_eq!(changed.len(), base.fields().len());
        let mut digests: Vec<u64> = changed.iter().map(Contract::hash).collect();
        digests.push(base.hash());
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), changed.len() + 1);
        assert_eq!(base.hash(), contract().hash());
    }

    #[test]
    fn waits_are_warned_of_after_5_seconds_and_fail_after_600() {
        let limits = [contract().warn, contract().fail];
        assert_eq!(limits, [5, 600].map(Duration::from_secs));
    }

    #[test]
    fn staging_holds_the_larger_of_both_operations() {
        // Gather: 8 × 8 heads × 576 × 2 = 73728. Part: 8 × 8 × 512 × 2 + 256 = 65792.
        assert_eq!(
            contract().staging(4).unwrap(),
            Staging {
                inbox: 73728,
                outbox: 0
            }
        );
        let pull = Contract {
            transport: Transport::Pull,
            ..contract()
        };
        assert_eq!(
            pull.staging(4).unwrap(),
            Staging {
                inbox: 0,
                outbox: 4 * 65792
            }
        );
        let wide = Contract {
            query_head_dim: 16,
            ..contract()
        };
        assert_eq!(wide.staging(4).unwrap().inbox, 65792);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value() {
        let refused = |contract: Contract, words: &str| {
            let said = contract.staging(3).unwrap_err();
            assert!(said.contains(words), "{said}");
        };
        let base = Contract::new(33, 576, 512, 8);
        assert!(base.staging(3).is_ok());
        refused(
            contract(),
            "total_heads is 32, not a multiple of the world size 3",
        );
        refused(
            Contract {
                max_batch: 0,
                ..base.clone()
            },
            "max_batch is 0",
        );
        refused(
            Contract {
                max_grid: 129,
                ..base.clone()
            },
            "max_grid is 129; it must be 1 to 128",
        );
        refused(
            Contract {
                max_grid: 0,
                ..base.clone()
            },
            "max_grid is 0",
        );
        refused(
            Contract {
                max_channels: 0,
                ..base.clone()
            },
            "max_channels is 0",
        );
        refused(
            Contract {
                reduce_element_bytes: 1,
                ..base.clone()
            },
            "reduce_element_bytes is 1",
        );
        refused(
            Contract {
                gather_element_bytes: 3,
                ..base.clone()
            },
            "gather_element_bytes is 3",
        );
        refused(
            Contract {
                query_head_dim: 20,
                ..base.clone()
            },
            "largest gather: a row of 40 bytes",
        );
        refused(
            Contract {
                value_head_dim: 4,
                ..base.clone()
            },
            "largest reduce-scatter: a row of 8 bytes",
        );
        refused(
            Contract {
                fail: Duration::MAX,
                ..base.clone()
            },
            "the longest limit",
        );
        refused(
            Contract {
                max_batch: u32::MAX,
                ..base
            },
            "split the batch",
        );
    }
}
