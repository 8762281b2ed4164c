//! What a run has to tell, in data.

use std::fmt;

use serde::Serialize;
use slabfence_emu::held::{End, Finding, Rule, Run, Waiter};

use super::wait::Wait;

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// A rule of the detector, or `fault`, `unfinished` or `wrong-result`.
    pub rule: String,
    /// What is wrong in general.
    pub wrong: String,
    /// What is wrong in this case.
    pub detail: String,
    /// The usual repair.
    pub repair: String,
    /// Where in memory.
    pub region: Option<Region>,
    /// Who was there first, where two take part.
    pub earlier: Option<Side>,
    /// Who did it.
    pub later: Option<Side>,
    /// Who waits for what.
    pub waits: Vec<Wait>,
    /// The seed that replays it.
    pub seed: u64,
    #[serde(skip)]
    text: String,
}

/// Where in memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Region {
    name: String,
    offset: u64,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    access: String,
    /// Place among the operations of the device.
    operation: u32,
    kernel: Option<String>,
    rank: Option<u32>,
    device: u32,
    cta: Option<[u32; 3]>,
    warp: Option<usize>,
    lane: Option<u32>,
    ptx_line: Option<u32>,
    source: Option<String>,
    synchronised: String,
}

impl Found {
    /// All that a run has to tell.
    pub fn of(run: &Run) -> Vec<Self> {
        let mut all: Vec<Self> = run
            .findings
            .iter()
            .map(|finding| Self::by_rule(finding, run.seed))
            .collect();
        match &run.end {
            End::Complete => {}
            End::Deadlock(waiters) => all.push(Self::deadlock(waiters, run.seed)),
            End::Fault(_) if run.fault_is_found => {}
            End::Fault(_) => {
                let rule = "A kernel or copy did what a device refuses.";
                all.push(Self::plain("fault", rule, run.end.to_string(), run));
            }
            End::Unfinished(_) => {
                let rule = "The work did not end within the limit of instructions.";
                all.push(Self::plain("unfinished", rule, run.end.to_string(), run));
            }
        }
        if let Some(wrong) = &run.wrong {
            let rule = "What the work left is not what it must leave.";
            all.push(Self::plain("wrong-result", rule, wrong.clone(), run));
        }
        all
    }

    fn plain(rule: &str, wrong: &str, detail: String, run: &Run) -> Self {
        let repair = "Start from the first finding of the other rules, if there is one; else replay the seed and follow the values.";
        Self {
            text: format!("{rule}: {wrong}\n  {detail}\n  usual repair: {repair}"),
            rule: rule.to_owned(),
            wrong: wrong.to_owned(),
            detail,
            repair: repair.to_owned(),
            region: None,
            earlier: None,
            later: None,
            waits: Vec::new(),
            seed: run.seed,
        }
    }

    fn deadlock(waiters: &[Waiter], seed: u64) -> Self {
        let rule = Rule::Deadlock;
        let words: Vec<String> = waiters.iter().map(ToString::to_string).collect();
        let waits: Vec<Wait> = waiters.iter().map(Wait::of).collect();
        let detail = format!("{} wait", waits.len());
        Self {
            text: format!(
                "{rule}: {}\n  {}\n  usual repair: {}",
                rule.wrong(),
                words.join("\n  "),
                rule.repair()
            ),
            rule: rule.to_string(),
            wrong: rule.wrong().to_owned(),
            detail,
            repair: rule.repair().to_owned(),
            region: None,
            earlier: None,
            later: None,
            waits,
            seed,
        }
    }

    fn by_rule(finding: &Finding, seed: u64) -> Self {
        let side = |party: &slabfence_emu::held::Party| Side {
            access: party.access.clone(),
            operation: party.ordinal(),
            kernel: party.thread.as_ref().map(|thread| thread.kernel.clone()),
            rank: party.rank,
            device: party.device,
            cta: party.thread.as_ref().map(|thread| thread.ctaid),
            warp: party.thread.as_ref().map(|thread| thread.warp),
            lane: party.thread.as_ref().map(|thread| thread.lane),
            ptx_line: party.thread.as_ref().map(|thread| thread.line),
            source: party
                .thread
                .as_ref()
                .and_then(|thread| thread.source.as_ref())
                .map(ToString::to_string),
            synchronised: party.synchronised.clone(),
        };
        Self {
            text: finding.to_string(),
            rule: finding.rule.to_string(),
            wrong: finding.rule.wrong().to_owned(),
            detail: finding.detail.clone(),
            repair: finding.repair.to_owned(),
            region: finding.place.as_ref().map(|place| Region {
                name: place.region.clone(),
                offset: place.offset,
            }),
            earlier: finding.earlier.as_ref().map(side),
            later: finding.later.as_ref().map(side),
            waits: Vec::new(),
            seed,
        }
    }

    /// Whether two are the same thing found twice: the rule and the instructions.
    pub fn is_like(&self, other: &Self) -> bool {
        let place = |side: &Option<Side>| side.as_ref().map(|s| (s.kernel.clone(), s.ptx_line));
        self.rule == other.rule
            && place(&self.earlier) == place(&other.earlier)
            && place(&self.later) == place(&other.later)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
