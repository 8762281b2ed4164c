//! What a fault or warning record means, in words.

use std::fmt;
use std::time::Duration;

use crate::group::{Rank, Speaker, list};
use crate::health::Clock;
use crate::layout::{Cause, FaultRecord, OperationKind};

/// What happened to an operation, as the kernel recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultReport {
    /// Number of the pool in this process, as in its status.
    pub pool: u64,
    /// Name of the channel.
    pub channel: String,
    /// Kind of the operation; `None` for one that this version does not know.
    pub operation: Option<OperationKind>,
    /// Epoch of the operation on its channel.
    pub epoch: u64,
    /// Rank that recorded it.
    pub rank: Rank,
    /// Rank that was waited for, or whose tag differs; `None` when it is nobody's.
    pub late_rank: Option<Rank>,
    /// All ranks that had not come when this was recorded, `late_rank` among them, in rank order.
    pub late_ranks: Vec<Rank>,
    /// CTA that noticed.
    pub cta: u32,
    /// Exchange inside the operation.
    pub phase: u32,
    /// What happened; `None` for a cause that this version does not know.
    pub cause: Option<Cause>,
    /// Value waited for: an epoch, or the own operation tag.
    pub expected: u64,
    /// Value seen last.
    pub seen: u64,
    /// How long the kernel had waited.
    pub waited: Duration,
    /// The operation's tag.
    pub tag: u64,
    /// Whether the wait went on: a warning, no fault.
    pub warning: bool,
}

impl FaultReport {
    /// Reads a record that is complete, of a pool with this clock.
    pub(crate) fn new(
        pool: u64,
        channel: &str,
        record: &FaultRecord,
        warning: bool,
        clock: Clock,
    ) -> Self {
        Self {
            pool,
            channel: channel.to_owned(),
            operation: OperationKind::from_code(record.operation),
            epoch: record.state,
            rank: Rank(record.rank),
            late_rank: (record.late_rank != record.rank).then_some(Rank(record.late_rank)),
            late_ranks: (0..u64::BITS)
                .filter(|rank| record.late_ranks >> rank & 1 != 0)
                .map(Rank)
                .collect(),
            cta: record.cta,
            phase: record.phase,
            cause: Cause::from_code(record.cause),
            expected: record.expected,
            seen: record.seen,
            waited: clock.duration(record.waited),
            tag: record.tag,
            warning,
        }
    }

    /// The ranks that had not come, in words.
    pub(crate) fn late(&self) -> String {
        match (self.late_ranks.as_slice(), self.late_rank) {
            (ranks @ [_, _, ..], _) => list(ranks),
            (_, Some(rank)) => rank.to_string(),
            (_, None) => "a peer".to_owned(),
        }
    }

    /// What the kernel saw.
    fn finding(&self) -> String {
        let (late, waited) = (self.late(), self.waited);
        match self.cause {
            Some(Cause::EntryTimeout) => {
                format!("{late} did not enter the operation within {waited:?}")
            }
            Some(Cause::DataTimeout) => format!(
                "{late} entered, but the data for CTA {} did not come within {waited:?}",
                self.cta
            ),
            Some(Cause::TagMismatch) => format!(
                "{late} is in another operation: its tag is {:#x}, this rank's {:#x}",
                self.seen, self.expected
            ),
            Some(Cause::Overlap) => {
                "it ran at the same time as another operation of its channel".to_owned()
            }
            Some(Cause::PeerFailed) => {
                format!("{late} reported a failure, which ended it here too")
            }
            Some(Cause::Skipped) => {
                "it did nothing, since an earlier operation of its channel had failed".to_owned()
            }
            None => "it failed for a reason that this version does not know".to_owned(),
        }
    }

    /// What to do.
    fn advice(&self) -> String {
        let late = self.late();
        if self.warning {
            return format!("the wait goes on; see what keeps {late}");
        }
        let act = match self.cause {
            Some(Cause::EntryTimeout) => format!("see what keeps {late}"),
            Some(Cause::DataTimeout) => {
                format!("see what keeps the device of {late}, and whether peer access works")
            }
            Some(Cause::TagMismatch) => {
                "issue the same operations with the same shapes, and replay the same graphs in the same order, on all ranks".to_owned()
            }
            Some(Cause::Overlap) => {
                "keep a channel's operations in one stream order, or use a channel for each".to_owned()
            }
            Some(Cause::PeerFailed) => format!("read the report of {late}"),
            Some(Cause::Skipped) => "read the reports of the other ranks".to_owned(),
            None => "use one version of the library on all ranks".to_owned(),
        };
        format!("{act}; then reset the pool on all ranks")
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.operation.map(OperationKind::name);
        let operation = operation.unwrap_or("an unknown operation");
        let speaker = Speaker {
            rank: self.rank,
            pool: Some(self.pool),
        };
        write!(
            f,
            "{}, channel '{}', {operation}, epoch {}: {} (expected {:#x}, seen {:#x}, CTA {}); {}",
            speaker,
            self.channel,
            self.epoch,
            self.finding(),
            self.expected,
            self.seen,
            self.cta,
            self.advice()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock::GlobalTimer;

    fn record(cause: u32) -> FaultRecord {
        FaultRecord {
            state: 7,
            cause,
            operation: 1,
            rank: 0,
            late_rank: 3,
            cta: 5,
            phase: 0,
            expected: 7,
            seen: 6,
            waited: 1_500_000_000,
            tag: 0xabc,
            late_ranks: 1 << 3,
            reserved: [0; 7],
        }
    }

    #[test]
    fn a_timeout_names_the_late_rank_the_wait_and_the_remedy() {
        let report = FaultReport::new(4, "decode", &record(1), false, CLOCK);
        assert_eq!(report.late_rank, Some(Rank(3)));
        assert_eq!(report.cause, Some(Cause::EntryTimeout));
        assert_eq!(
            report.to_string(),
            "rank 0, pool 4, channel 'decode', all_gather_heads, epoch 7: rank 3 did not enter the operation within 1.5s \
             (expected 0x7, seen 0x6, CTA 5); see what keeps rank 3; then reset the pool on all ranks"
        );
    }

    #[test]
    fn all_late_ranks_are_named() {
        let mut late = record(1);
        let said = |record: &FaultRecord| FaultReport::new(4, "c", record, false, CLOCK);
        late.late_ranks = 0b1001;
        assert_eq!(said(&late).late_ranks, [Rank(0), Rank(3)]);
        assert!(
            said(&late)
                .to_string()
                .contains(": ranks 0, 3 did not enter")
        );
        late.late_ranks = 1 << 15 | 0b1010;
        assert_eq!(said(&late).late(), "ranks 1, 3, 15");
    }

    #[test]
    fn a_warning_says_that_the_wait_goes_on() {
        let said = FaultReport::new(4, "decode", &record(2), true, CLOCK).to_string();
        assert!(
            said.ends_with("the wait goes on; see what keeps rank 3"),
            "{said}"
        );
    }

    #[test]
    fn unknown_codes_and_no_late_rank_are_said_not_invented() {
        let mut unknown = record(99);
        unknown.operation = 77;
        unknown.late_rank = unknown.rank;
        let report = FaultReport::new(4, "decode", &unknown, false, CLOCK);
        assert_eq!(
            (report.cause, report.operation, report.late_rank),
            (None, None, None)
        );
        assert!(report.to_string().contains("an unknown operation, epoch 7"));
    }

    #[test]
    fn every_cause_has_its_own_finding_and_advice() {
        let said: Vec<String> = (1..=6)
            .map(|cause| FaultReport::new(4, "c", &record(cause), false, CLOCK))
            .map(|report| format!("{} {}", report.finding(), report.advice()))
            .collect();
        for (i, one) in said.iter().enumerate() {
            assert!(said[i + 1..].iter().all(|other| other != one));
        }
    }
}
