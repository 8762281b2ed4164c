//! The protocol's rules, each for what it prevents. A change to a rule is tried here before kernels are touched.

mod callers;
mod dropped;
mod holds;

use slabfence_emu_protocol::{Kind, Operation, Rules, Scenario, Transport, explore};

/// States that an exploration may visit; each of these visits far fewer.
const LIMIT: usize = 2_000_000;

/// One row by one CTA to every rank.
fn narrow(transport: Transport) -> Operation {
    Operation::gather(transport, 1, 1)
}

/// Two rows by two CTAs to every rank.
fn wide(transport: Transport) -> Operation {
    Operation::gather(transport, 2, 2)
}

/// A system, rules, and what exploring it finds: the kind of failure and the steps of a shortest run to it.
struct Case {
    name: &'static str,
    rules: Rules,
    scenario: Scenario,
    finds: Option<(Kind, usize)>,
}

/// Explores every case and compares; a failure lists all cases that differ, with the run that was found.
fn check(cases: Vec<Case>) {
    let differing: Vec<String> = cases
        .into_iter()
        .filter_map(|case| {
            let found = explore(&case.scenario, &case.rules, LIMIT);
            let trace = found
                .failure
                .as_ref()
                .map_or(String::new(), |failure| failure.trace.join("\n    "));
            (found.found() != case.finds).then(|| {
                let (name, finds, kind, states) =
                    (case.name, case.finds, found.found(), found.states);
                format!(
                    "{name}: expected {finds:?}, found {kind:?} in {states} states\n    {trace}"
                )
            })
        })
        .collect();
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
}
