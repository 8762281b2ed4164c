//! What is checked: operations, transports, and the shipped entries behind them.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;
use slabfence::layout::Transport;

/// A collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// `all_gather_heads`.
    Gather,
    /// `lse_reduce_scatter`.
    Reduce,
}

/// How its data cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Stores at the peers.
    Push,
    /// Loads from the peers.
    Pull,
}

/// One collective by one transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// Which.
    pub op: Op,
    /// How.
    pub transport: Way,
}

impl Way {
    /// As a contract says it.
    pub fn transport(self) -> Transport {
        match self {
            Self::Push => Transport::Push,
            Self::Pull => Transport::Pull,
        }
    }
}

impl Pair {
    /// The pairs of a choice; `None`: all.
    pub fn chosen(op: Option<Op>, way: Option<Way>) -> Vec<Self> {
        let ops = Op::value_variants()
            .iter()
            .filter(|one| op.is_none_or(|op| op == **one));
        let ways = Way::value_variants()
            .iter()
            .filter(|one| way.is_none_or(|way| way == **one));
        ops.flat_map(|&op| ways.clone().map(move |&transport| Pair { op, transport }))
            .collect()
    }

    /// What chooses the pair, with ranks of this world, at the command line.
    pub fn arguments(self, world: u32) -> String {
        let Self { op, transport } = self;
        format!("--op {op} --transport {transport} --world {world}")
    }

    /// Whether ranks of some of these worlds run the entry.
    pub fn runs(self, entry: &str, worlds: &[u32]) -> bool {
        match self.op {
            Op::Gather => entry == format!("sf_gather_{}", self.transport),
            Op::Reduce => {
                let stem = format!("sf_reduce_{}_", self.transport);
                let unrolled = |world: u32| [2, 4, 16].into_iter().find(|&most| world <= most);
                let sources = entry
                    .strip_prefix(&stem)
                    .and_then(|rest| rest.rsplit_once("_w"));
                let sources = sources.and_then(|(_, sources)| sources.parse().ok());
                sources.is_some() && worlds.iter().any(|&world| unrolled(world) == sources)
            }
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gather => "gather",
            Self::Reduce => "reduce",
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Push => "push",
            Self::Pull => "pull",
        })
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op, self.transport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_entry_of_a_collective_is_run_by_one_pair() {
        let pairs = Pair::chosen(None, None);
        assert_eq!(pairs.len(), 4);
        for image in ["gather", "reduce"] {
            let image = slabfence_ptx::image(image).expect("a shipped image");
            for entry in image.entries {
                let by = |worlds: &[u32]| pairs.iter().filter(|p| p.runs(entry, worlds)).count();
                assert_eq!(by(&[2, 3, 4, 8]), 1, "{entry}");
                assert_eq!(
                    by(&[3]) > 0,
                    !entry.ends_with("_w2") && !entry.ends_with("_w16")
                );
            }
        }
    }
}
