//! What is checked: operations, transports, and the shipped entries behind them.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;
use slabfence::layout::Transport;

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// `all_gather_heads`.
    Gather,
    /// `lse_reduce_scatter`.
    Reduce,
    /// The reference decode attention, of one rank.
    Attention,
    /// The reading of the clocks, of one rank.
    Clock,
}

/// An operation of several ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collective {
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

/// One collective by one transport, or an operation of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// Which.
    pub op: Op,
    /// How; `None`: nothing crosses.
    pub transport: Option<Way>,
}

impl Collective {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Gather => Self::Reduce,
            Self::Reduce => Self::Gather,
        }
    }
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

impl Op {
    /// Which collective; `None`: it has one rank.
    pub fn collective(self) -> Option<Collective> {
        match self {
            Self::Gather => Some(Collective::Gather),
            Self::Reduce => Some(Collective::Reduce),
            Self::Attention | Self::Clock => None,
        }
    }
}

impl Pair {
    /// The pairs of a choice; `None`: all. Who chooses a transport means the collectives, unless another operation is named.
    pub fn chosen(op: Option<Op>, way: Option<Way>) -> Vec<Self> {
        let ops = Op::value_variants()
            .iter()
            .filter(|one| op.is_none_or(|op| op == **one));
        let ways = Way::value_variants()
            .iter()
            .filter(|one| way.is_none_or(|way| way == **one));
        let of = |&of: &Op| -> Vec<Self> {
            let pair = |transport| Self { op: of, transport };
            match of.collective() {
                Some(_) => ways.clone().map(|&way| pair(Some(way))).collect(),
                None if op.is_some() || way.is_none() => vec![pair(None)],
                None => Vec::new(),
            }
        };
        ops.flat_map(of).collect()
    }

    /// The worlds in which the pair is run, where collectives are run in these.
    pub fn worlds(self, worlds: &[u32]) -> &[u32] {
        match self.transport {
            Some(_) => worlds,
            None => &[1],
        }
    }

    /// What chooses the pair, with ranks of this world, at the command line.
    pub fn arguments(self, world: u32) -> String {
        match self.transport {
            Some(way) => format!("--op {} --transport {way} --world {world}", self.op),
            None => format!("--op {}", self.op),
        }
    }

    /// Whether ranks of some of these worlds run the entry.
    pub fn runs(self, entry: &str, worlds: &[u32]) -> bool {
        let way = self
            .transport
            .map_or_else(String::new, |way| way.to_string());
        match self.op {
            Op::Attention => entry.starts_with("sf_attention_"),
            Op::Clock => entry == "sf_clock",
            Op::Gather => entry == format!("sf_gather_{way}"),
            Op::Reduce => {
                let stem = format!("sf_reduce_{way}_");
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
            Self::Attention => "attention",
            Self::Clock => "clock",
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
        match self.transport {
            Some(way) => write!(f, "{} {way}", self.op),
            None => self.op.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_entry_is_run_by_one_pair() {
        let pairs = Pair::chosen(None, None);
        assert_eq!(pairs.len(), 6);
        for image in slabfence_ptx::Image::all() {
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

    #[test]
    fn a_transport_means_the_collectives_unless_another_operation_is_named() {
        let ops = |op, way| -> Vec<Op> { Pair::chosen(op, way).iter().map(|p| p.op).collect() };
        assert_eq!(ops(None, Some(Way::Pull)), [Op::Gather, Op::Reduce]);
        let attention = Some(Op::Attention);
        assert_eq!(ops(attention, Some(Way::Pull)), [Op::Attention]);
        assert_eq!(ops(attention, None), [Op::Attention]);
    }
}
