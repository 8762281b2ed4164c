//! Moral strength: which pairs of operations PTX lets synchronise, and exempts from being a race.

use crate::scope::{Place, Scope};

/// A thread of one kernel. The thread of a later kernel in the same seat is another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Agent {
    /// Its seat: a column of a litmus file, a thread of a resident grid. Clocks have one entry a seat.
    pub seat: u32,
    /// How many kernels ran in this seat before.
    pub life: u32,
}

/// What moral strength asks of an operation: whose it is, and how strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Party {
    /// The thread.
    pub agent: Agent,
    /// Where it runs.
    pub place: Place,
    /// The scope; `None` for a weak operation.
    pub scope: Option<Scope>,
}

/// Whether two operations are morally strong (PTX ISA 8.7): of one thread, or both strong with scopes that include each
/// other's thread. Memory operations must overlap completely too (`same_bytes`); fences have no bytes.
pub fn morally_strong(a: &Party, b: &Party, same_bytes: bool) -> bool {
    if a.agent == b.agent {
        return true;
    }
    let (Some(of_a), Some(of_b)) = (a.scope, b.scope) else {
        return false;
    };
    same_bytes && of_a.includes(a.place, b.place) && of_b.includes(b.place, a.place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(seat: u32, gpu: u32, scope: Option<Scope>) -> Party {
        Party {
            agent: Agent { seat, life: 0 },
            place: Place::Device { gpu, cta: 0 },
            scope,
        }
    }

    #[test]
    fn both_scopes_must_reach_the_other_thread() {
        let sys = party(0, 0, Some(Scope::Sys));
        let gpu = party(1, 1, Some(Scope::Gpu));
        assert!(!morally_strong(&sys, &gpu, true));
        assert!(!morally_strong(&gpu, &sys, true));
        assert!(morally_strong(&sys, &party(1, 1, Some(Scope::Sys)), true));
        assert!(morally_strong(&sys, &party(1, 0, Some(Scope::Gpu)), true));
    }

    #[test]
    fn weak_or_mixed_sizes_are_never_morally_strong_between_threads() {
        let sys = party(0, 0, Some(Scope::Sys));
        assert!(!morally_strong(&sys, &party(1, 0, None), true));
        assert!(!morally_strong(&sys, &party(1, 0, Some(Scope::Sys)), false));
    }

    #[test]
    fn a_thread_is_morally_strong_with_itself_and_not_with_its_successor() {
        let weak = party(0, 0, None);
        assert!(morally_strong(&weak, &weak, true));
        let mut successor = weak;
        successor.agent.life = 1;
        assert!(!morally_strong(&weak, &successor, true));
    }
}
