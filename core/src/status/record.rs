//! What a process tells of an operation that failed, or waits long.

use serde::{Deserialize, Serialize};

use crate::health::FaultReport;
use crate::layout::{Cause, split_verdict};

/// A [`FaultReport`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// All of it, in words, with what to do.
    pub words: String,
    /// What happened, as the variants of [`Cause`] are called (`EntryTimeout`); `null` for one that the process's version
    /// does not know.
    pub cause: Option<String>,
    /// The operation, as its function is called (`all_gather_heads`); `null` for one that the process's version does not know.
    pub operation: Option<String>,
    /// Epoch of the operation.
    pub epoch: u64,
    /// Rank that was waited for, or whose tag differs; `null` when it is nobody's.
    pub late_rank: Option<u32>,
    /// Ranks that were late.
    pub late_ranks: Vec<u32>,
    /// CTA that noticed.
    // Processes of the first build with this form say neither.
    #[serde(default)]
    pub cta: u32,
    /// Exchange inside the operation.
    #[serde(default)]
    pub phase: u32,
    /// What the operation expected; `null` for an unknown cause.
    pub expected: Option<Word>,
    /// What it saw last; `null` for an unknown cause, and for one of which nothing is seen.
    pub seen: Option<Word>,
    /// How long the operation had waited.
    pub waited_seconds: f64,
}

/// A word that an operation compared. It has what such a word says, and no other member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Word {
    /// Of an entry line, a data flag, or a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Of an operation: the 32 bits of it that ranks compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<u64>,
    /// Of another rank's verdict, as in [`Record::cause`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl From<&FaultReport> for Record {
    fn from(of: &FaultReport) -> Self {
        let (expected, seen) = Word::of(of);
        Self {
            words: of.to_string(),
            cause: of.cause.map(spell),
            operation: of.operation.map(|kind| kind.name().to_owned()),
            epoch: of.epoch,
            late_rank: of.late_rank.map(|rank| rank.0),
            late_ranks: of.late_ranks.iter().map(|rank| rank.0).collect(),
            cta: of.cta,
            phase: of.phase,
            expected,
            seen,
            waited_seconds: of.waited.as_secs_f64(),
        }
    }
}

impl Word {
    /// What a report's operation expected, and what it saw.
    fn of(report: &FaultReport) -> (Option<Self>, Option<Self>) {
        let epoch = |epoch| Self {
            epoch: Some(epoch),
            ..Self::default()
        };
        let tag = |tag| Self {
            tag: Some(tag),
            ..Self::default()
        };
        let (expected, seen) = (report.expected, report.seen);
        match report.cause {
            Some(Cause::EntryTimeout | Cause::DataTimeout) => {
                (Some(epoch(expected)), Some(epoch(seen)))
            }
            Some(Cause::TagMismatch) => (Some(tag(expected)), Some(tag(seen))),
            Some(Cause::PeerFailed) => {
                let verdict = split_verdict(seen).map(|(cause, of)| Self {
                    cause: Some(spell(cause)),
                    ..epoch(of)
                });
                (Some(epoch(expected)), verdict)
            }
            Some(Cause::Overlap | Cause::Skipped) => (Some(epoch(expected)), None),
            None => (None, None),
        }
    }
}

fn spell(cause: Cause) -> String {
    cause.variant().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::health::Clock;
    use crate::layout::{FaultRecord, OperationKind, verdict_word};

    /// What is told of a record, but for its words.
    fn told(record: &FaultRecord) -> Value {
        let report = FaultReport::new(1, "decode", record, false, Clock::GlobalTimer);
        let mut told = serde_json::to_value(Record::from(&report)).unwrap();
        let words = told.as_object_mut().unwrap().remove("words");
        assert_eq!(words, Some(json!(report.to_string())));
        told
    }

    #[test]
    fn a_record_of_the_first_build_with_this_form_is_read() {
        let told = json!({ "words": "late", "epoch": 7, "late_ranks": [1], "waited_seconds": 1.5 });
        let record: Record = serde_json::from_value(told).unwrap();
        assert_eq!((record.epoch, record.late_ranks), (7, vec![1]));
        assert_eq!((record.cause, record.cta, record.seen), (None, 0, None));
    }

    fn record(cause: u32) -> FaultRecord {
        FaultRecord {
            state: 7,
            cause,
            operation: OperationKind::LseReduceScatter.code(),
            rank: 0,
            late_rank: 3,
            cta: 5,
            phase: 1,
            expected: 7,
            seen: 6,
            waited: 1_500_000_000,
            tag: 0xabc,
            late_ranks: 0b1010,
            reserved: [0; 7],
        }
    }

    #[test]
    fn a_timeouts_record_is_told_member_by_member() {
        let wanted = json!({
            "cause": "DataTimeout",
            "operation": "lse_reduce_scatter",
            "epoch": 7,
            "late_rank": 3,
            "late_ranks": [1, 3],
            "cta": 5,
            "phase": 1,
            "expected": { "epoch": 7 },
            "seen": { "epoch": 6 },
            "waited_seconds": 1.5,
        });
        assert_eq!(told(&record(Cause::DataTimeout.code())), wanted);
        let read: Record = serde_json::from_value({
            let mut whole = wanted;
            whole["words"] = json!("words");
            whole
        })
        .unwrap();
        assert_eq!(read.seen.and_then(|word| word.epoch), Some(6));
    }

    #[test]
    fn what_was_compared_is_told_as_what_it_is() {
        let compared = |cause: Cause, seen: u64| {
            let told = told(&FaultRecord {
                seen,
                ..record(cause.code())
            });
            assert_eq!(told["cause"], cause.variant());
            [told["expected"].clone(), told["seen"].clone()]
        };
        let epoch = json!({ "epoch": 7 });
        for cause in [Cause::EntryTimeout, Cause::DataTimeout] {
            assert_eq!(compared(cause, 0), [epoch.clone(), json!({ "epoch": 0 })]);
        }
        let tags = [json!({ "tag": 7 }), json!({ "tag": 0xffff_ffff_u32 })];
        assert_eq!(compared(Cause::TagMismatch, 0xffff_ffff), tags);
        let verdict = json!({ "cause": "Overlap", "epoch": 8 });
        let seen = verdict_word(Cause::Overlap, 8);
        assert_eq!(compared(Cause::PeerFailed, seen), [epoch.clone(), verdict]);
        for cause in [Cause::Overlap, Cause::Skipped] {
            assert_eq!(compared(cause, 0), [epoch.clone(), Value::Null]);
        }
    }

    #[test]
    fn what_this_version_does_not_know_is_null() {
        let told = told(&FaultRecord {
            operation: 77,
            late_rank: 0,
            ..record(99)
        });
        for member in ["cause", "operation", "late_rank", "expected", "seen"] {
            assert_eq!(told[member], Value::Null, "{member}");
        }
    }
}
