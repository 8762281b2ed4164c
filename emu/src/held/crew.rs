//! Everything that can be chosen to go on, in canonical order.

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
pub(super) struct Crew(Vec<Agent>);

impl Crew {
    /// The agents in canonical order.
    pub(super) fn agents(&self) -> &[Agent] {
        &self.0
    }

    /// Takes an agent in, ready.
    pub(super) fn add(&mut self, name: Name, role: Role) {
        let at = self.0.partition_point(|agent| agent.name < name);
        let standing = Standing::Ready;
        self.0.insert(
            at,
            Agent {
                name,
                role,
                standing,
            },
        );
    }

    fn at(&self, name: Name) -> Option<usize> {
        self.0.binary_search_by_key(&name, |agent| agent.name).ok()
    }

    /// An agent that is there.
    pub(super) fn get(&self, name: Name) -> Option<Agent> {
        self.at(name).map(|at| self.0[at])
    }

    /// Takes an agent out.
    pub(super) fn remove(&mut self, name: Name) {
        if let Some(at) = self.at(name) {
            self.0.remove(at);
        }
    }

    /// Takes out all that this holds for.
    pub(super) fn remove_all(&mut self, gone: impl Fn(&Agent) -> bool) {
        self.0.retain(|agent| !gone(agent));
    }

    /// Says whether an agent can go on.
    pub(super) fn set(&mut self, name: Name, standing: Standing) {
        if let Some(at) = self.at(name) {
            self.0[at].standing = standing;
        }
    }

    /// Lets all of one standing that this holds for go on.
    pub(super) fn wake(&mut self, from: Standing, which: impl Fn(&Agent) -> bool) {
        for agent in &mut self.0 {
            if agent.standing == from && which(agent) {
                agent.standing = Standing::Ready;
            }
        }
    }
}
