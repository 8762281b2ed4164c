//! One rule dropped at a time, and the shortest run to what it had prevented.

mod exchange;
mod failure;
mod overlap;
mod packets;

use slabfence_emu_protocol::{Caller, Kind, Operation, Rules, Scenario};

use crate::Case;

/// All rules, but that entry lines are polled behind the arrival alone. An early look only adds runs (one that finds nothing
/// changes nothing), so what fails without it fails with it; and there are far fewer states.
pub fn without_early_look() -> Rules {
    Rules {
        early_look: false,
        ..Rules::default()
    }
}

pub fn case(
    name: &'static str,
    rules: Rules,
    scenario: Scenario,
    kind: Kind,
    steps: usize,
) -> Case {
    Case {
        name,
        rules,
        scenario,
        finds: Some((kind, steps)),
    }
}

/// The same system without the rule and with it.
pub fn both(
    name: &'static str,
    rules: Rules,
    scenario: Scenario,
    kind: Kind,
    steps: usize,
) -> [Case; 2] {
    let kept = Case {
        name,
        rules: without_early_look(),
        scenario: scenario.clone(),
        finds: None,
    };
    [case(name, rules, scenario, kind, steps), kept]
}

/// Every interleaving of every sequence.
pub fn any<const N: usize>(operations: [Operation; N], length: u8) -> Scenario {
    Scenario::any(operations.into(), length).unreduced()
}

/// Two ranks that call different things where they mean the same.
pub fn different(here: Operation, there: Operation) -> Scenario {
    let lists = vec![vec![vec![(0, 0)]], vec![vec![(1, 1)]]];
    Scenario::broken(vec![here, there], Caller::BreaksAtOnce, lists)
}
