//! The choices of a run, and where they have to go otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::crew::Agent;
use super::name::Name;
use super::order::Order;
use super::seen::Strong;

/// A place of a run at which somebody was chosen.
pub(super) struct Node {
    /// Who could be.
    pub(super) enabled: Vec<Name>,
    /// Who polls a word that was not written since, and so has nothing to do here.
    pub(super) awaiting: BTreeSet<Name>,
    /// Who must be chosen here in some run.
    pub(super) due: BTreeSet<Name>,
    /// Who was, and what it did.
    pub(super) done: BTreeMap<Name, Strong>,
    /// Who was, and saw nothing new.
    pub(super) polls: BTreeSet<Name>,
    /// Whose next access need not be tried: a run in which it comes first is known.
    pub(super) sleep: BTreeMap<Name, Strong>,
    /// Who is, in this run.
    pub(super) chosen: Name,
    /// Which event of the chosen one this is.
    pub(super) count: u32,
}

/// The search through all schedules.
#[derive(Default)]
pub(super) struct Search {
    /// The choices of the run.
    pub(super) nodes: Vec<Node>,
    /// What lies before what in it.
    pub(super) order: Order,
    /// Whether a run was left to time.
    pub(super) blind: bool,
    /// Choices in the longest run.
    pub(super) longest: usize,
    /// Words whose order is not varied, by home address.
    pub(super) unvaried: Vec<Range<u64>>,
}

impl Search {
    /// A new place of the run. False when whoever can be chosen need not be.
    pub(super) fn enter(
        &mut self,
        enabled: &[Agent],
        loads: impl Fn(&Agent) -> bool,
        awaiting: &BTreeMap<Name, Strong>,
    ) -> bool {
        let sleep = match self.nodes.last() {
            None => BTreeMap::new(),
            Some(last) => {
                let did = &last.done[&last.chosen];
                let others = last.sleep.iter().chain(&last.done);
                let asleep =
                    others.filter(|&(&name, access)| name != last.chosen && !access.conflicts(did));
                asleep
                    .map(|(&name, access)| (name, access.clone()))
                    .collect()
            }
        };
        let awake = |agent: &&Agent| !sleep.contains_key(&agent.name);
        // Polls first: those that wait are known to wait when the word is written.
        let first = enabled.iter().filter(awake).find(|&agent| loads(agent));
        let Some(chosen) = first.or_else(|| enabled.iter().find(awake)) else {
            return false;
        };
        self.nodes.push(Node {
            enabled: enabled.iter().map(|agent| agent.name).collect(),
            awaiting: awaiting.keys().copied().collect(),
            due: BTreeSet::from([chosen.name]),
            done: BTreeMap::new(),
            polls: BTreeSet::new(),
            sleep,
            chosen: chosen.name,
            count: 0,
        });
        true
    }

    /// Where an access could have come first: it is due there.
    pub(super) fn race(&mut self, name: Name, access: &Strong, here: usize) {
        for at in self.order.races(name, access) {
            if self.nodes[at].awaiting.contains(&name) {
                continue;
            }
            let leads = |search: &mut Search, other: Name| {
                other == name
                    || (at + 1..here).any(|later| {
                        let node = &search.nodes[later];
                        let (chosen, count) = (node.chosen, node.count);
                        chosen == other && search.order.before(chosen, count, name)
                    })
            };
            let enabled = self.nodes[at].enabled.clone();
            let mut leading: Vec<Name> = Vec::new();
            for &other in &enabled {
                if leads(self, other) {
                    leading.push(other);
                }
            }
            let node = &mut self.nodes[at];
            if leading.iter().any(|other| node.due.contains(other)) {
                continue;
            }
            match leading.iter().find(|&&other| other == name) {
                Some(&own) => _ = node.due.insert(own),
                None if !leading.is_empty() => _ = node.due.insert(leading[0]),
                None => node.due.extend(enabled),
            }
        }
    }

    /// Goes back to the last place at which another is due. False when there is none: all is done.
    pub(super) fn next(&mut self) -> bool {
        while let Some(node) = self.nodes.last_mut() {
            let open = |name: &&Name| {
                let tried = node.done.contains_key(name) || node.polls.contains(name);
                !tried && !node.sleep.contains_key(name)
            };
            if let Some(&name) = node.due.iter().find(open) {
                node.chosen = name;
                return true;
            }
            self.nodes.pop();
        }
        false
    }
}
