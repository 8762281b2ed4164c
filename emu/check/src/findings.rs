//! The findings of a run, each once.

use std::collections::HashMap;

use crate::{
    Finding, Place, Region, RegionKind, Rule,
    registry::{Registry, Stamp},
};

/// How a race of strong accesses is repaired, whose order is as it may be.
const WIDER: &str = "Give both accesses a scope that includes the other thread: `.sys` between devices (`atomicAdd_system`), `.gpu` between CTAs of one; plain `atomicAdd` is `.relaxed.gpu`.";

/// Where something was found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Where<'a> {
    Region(&'a Region, u64),
    Shared(u64),
    Nowhere(u64),
}

/// What makes two findings the same: the rule, the instructions, and what the memory is for.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    rule: Rule,
    sides: [Option<(String, u32)>; 2],
    kind: Option<RegionKind>,
}

/// The findings.
#[derive(Debug)]
pub(crate) struct Findings {
    most: usize,
    known: HashMap<Key, usize>,
    found: Vec<Finding>,
    /// Findings that were not kept.
    pub(crate) dropped: u64,
    /// Readers of words, and users of signals, that were forgotten, though what comes may race with them.
    pub(crate) forgotten: u64,
}

impl Where<'_> {
    pub(crate) fn place(self) -> Place {
        match self {
            Self::Region(region, address) => region.place(address),
            Self::Shared(offset) => Place {
                address: offset,
                region: "shared memory".to_owned(),
                kind: None,
                offset,
            },
            Self::Nowhere(address) => Place {
                address,
                region: "no memory".to_owned(),
                kind: None,
                offset: 0,
            },
        }
    }
}

impl Findings {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            known: HashMap::new(),
            found: Vec::new(),
            dropped: 0,
            forgotten: 0,
        }
    }

    /// Reports what `later` did, to `earlier` where two take part.
    pub(crate) fn report(
        &mut self,
        rule: Rule,
        registry: &Registry,
        (earlier, later): (Option<Stamp>, Stamp),
        at: Where<'_>,
        detail: impl FnOnce() -> String,
    ) {
        let side = |stamp: Stamp| match &registry.of(stamp).warp {
            Some((launch, ..)) => (launch.kernel.name().to_owned(), registry.pc(stamp)),
            None => (String::new(), 0),
        };
        let kind = match at {
            Where::Region(region, _) => Some(region.kind),
            _ => None,
        };
        let key = Key {
            rule,
            sides: [earlier.map(side), Some(side(later))],
            kind,
        };
        let strong = |stamp: Stamp| stamp.how().is_strong();
        let repair = match earlier {
            Some(earlier) if rule == Rule::Race && strong(earlier) && strong(later) => WIDER,
            _ => rule.repair(),
        };
        let make = || Finding {
            repair,
            rule,
            earlier: earlier.map(|stamp| registry.party(stamp.beside(later))),
            later: Some(registry.party(later)),
            place: Some(at.place()),
            detail: detail(),
            count: 1,
        };
        self.add(key, make);
    }

    fn add(&mut self, key: Key, make: impl FnOnce() -> Finding) {
        if let Some(&at) = self.known.get(&key) {
            self.found[at].count += 1;
        } else if self.found.len() < self.most {
            self.known.insert(key, self.found.len());
            self.found.push(make());
        } else {
            self.dropped += 1;
        }
    }

    /// All of them, in the order in which they were first seen.
    pub(crate) fn take(&mut self) -> Vec<Finding> {
        self.known.clear();
        std::mem::take(&mut self.found)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}
