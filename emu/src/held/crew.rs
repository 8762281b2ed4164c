//! Everything that can be chosen to go on, in canonical order.

use std::cell::Cell;

use super::name::Name;

/// What an agent is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// An operation that can start.
    Start,
    /// The next block of a grid becomes resident.
    Dispatch,
    /// A warp of the resident block with this number.
    Warp(usize),
}

/// Whether an agent can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It can.
    Ready,
    /// It polls, and nothing was written since.
    Parked,
    /// It waits at a barrier, or for room.
    Blocked,
}

/// An agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agent {
    /// Its name.
    pub(super) name: Name,
    /// What it is.
    pub(super) role: Role,
    /// Whether it can go on.
    pub(super) standing: Standing,
}

/// All agents by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Crew {
    agents: Vec<Agent>,
    /// How many there are of each standing.
    counts: [usize; 3],
    changes: u64,
    /// Where somebody was found last: whoever goes on is asked for before and after.
    recent: Cell<usize>,
}

impl Crew {
    /// The agents in canonical order.
    pub(super) fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Grows whenever an agent comes, goes or changes its standing.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    fn count(&mut self, standing: Standing) -> &mut usize {
        &mut self.counts[standing as usize]
    }

    /// Takes an agent in, ready.
    pub(super) fn add(&mut self, name: Name, role: Role) {
        let at = self.agents.partition_point(|agent| agent.name < name);
        let standing = Standing::Ready;
        self.agents.insert(
            at,
            Agent {
                name,
                role,
                standing,
            },
        );
        self.changes += 1;
        *self.count(standing) += 1;
    }

    fn at(&self, name: Name) -> Option<usize> {
        let recent = self.recent.get();
        if self
            .agents
            .get(recent)
            .is_some_and(|agent| agent.name == name)
        {
            return Some(recent);
        }
        let found = self.agents.binary_search_by_key(&name, |agent| agent.name);
        let at = found.ok()?;
        self.recent.set(at);
        Some(at)
    }

    /// An agent that is there.
    pub(super) fn get(&self, name: Name) -> Option<Agent> {
        self.at(name).map(|at| self.agents[at])
    }

    /// Takes an agent out.
    pub(super) fn remove(&mut self, name: Name) {
        if let Some(at) = self.at(name) {
            let agent = self.agents.remove(at);
            self.changes += 1;
            *self.count(agent.standing) -= 1;
        }
    }

    /// Takes out all that this holds for.
    pub(super) fn remove_all(&mut self, gone: impl Fn(&Agent) -> bool) {
        let counts = &mut self.counts;
        self.agents.retain(|agent| {
            let gone = gone(agent);
            counts[agent.standing as usize] -= usize::from(gone);
            !gone
        });
        self.changes += 1;
    }

    /// Says whether an agent can go on.
    pub(super) fn set(&mut self, name: Name, standing: Standing) {
        if let Some(at) = self.at(name)
            && self.agents[at].standing != standing
        {
            let old = std::mem::replace(&mut self.agents[at].standing, standing);
            self.changes += 1;
            *self.count(old) -= 1;
            *self.count(standing) += 1;
        }
    }

    /// Lets all of one standing that this holds for go on.
    pub(super) fn wake(&mut self, from: Standing, which: impl Fn(&Agent) -> bool) {
        if *self.count(from) == 0 {
            return;
        }
        let mut woken = 0;
        for agent in &mut self.agents {
            if agent.standing == from && which(agent) {
                agent.standing = Standing::Ready;
                woken += 1;
            }
        }
        self.changes += woken as u64;
        *self.count(from) -= woken;
        *self.count(Standing::Ready) += woken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_wherever_it_was_after_others_have_come_and_gone() {
        let name = |warp| Name {
            device: 0,
            op: 1,
            block: 0,
            warp,
        };
        let mut crew = Crew::default();
        for warp in [3, 5, 7] {
            crew.add(name(warp), Role::Warp(warp as usize));
        }
        let role = |crew: &Crew, warp| crew.get(name(warp)).map(|agent| agent.role);
        assert_eq!(role(&crew, 5), Some(Role::Warp(5)));
        crew.add(name(1), Role::Warp(1));
        assert_eq!(role(&crew, 5), Some(Role::Warp(5)));
        crew.remove(name(3));
        assert_eq!(role(&crew, 5), Some(Role::Warp(5)));
        crew.remove(name(5));
        assert_eq!(role(&crew, 5), None);
        crew.set(name(7), Standing::Parked);
        let standings: Vec<Standing> = crew.agents().iter().map(|agent| agent.standing).collect();
        assert_eq!(standings, [Standing::Ready, Standing::Parked]);
    }
}
