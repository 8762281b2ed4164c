//! Callers who break an assumption, and what they are told; the two cases in which they are told nothing.

use slabfence_emu_protocol::Transport::{self, Packet, Pull, Push};
use slabfence_emu_protocol::{
    Caller, Cause, End, Exploration, Grain, Kind, Operation, Rules, Scenario, explore,
};

use super::{LIMIT, narrow, wide};

fn explored(scenario: &Scenario, rules: Rules) -> Exploration {
    let found = explore(scenario, &rules, LIMIT);
    assert_eq!(found.found(), None, "{:#?}", found.failure);
    found
}

/// Every end has this cause, and no rank is left unaware.
fn always_told(scenario: &Scenario, cause: Cause) {
    let found = explored(scenario, Rules::default());
    let told = |end: &End| end.unaware == 0 && end.causes.contains(&cause);
    assert!(
        !found.ends.is_empty() && found.ends.keys().all(told),
        "{:#?}",
        found.ends
    );
}

/// Calls of one stream on each rank.
fn lists<const N: usize>(operations: Vec<Operation>, lists: [&[(u8, u8)]; N]) -> Scenario {
    let lists = lists.map(|list| vec![list.to_vec()]).into();
    Scenario::broken(operations, Caller::BreaksAtOnce, lists)
}

#[test]
fn ranks_in_different_operations_are_told_on_every_rank() {
    let kinds = [
        narrow(Push),
        narrow(Pull),
        narrow(Packet),
        wide(Push),
        wide(Packet),
        Operation::two_shot(Push, 1, 1),
    ];
    for (i, here) in kinds.iter().enumerate() {
        for there in &kinds[i + 1..] {
            let scenario =
                lists(vec![here.clone(), there.clone()], [&[(0, 0)], &[(1, 1)]]).coarse(Grain::Cta);
            always_told(&scenario, Cause::TagMismatch);
        }
    }
}

#[test]
fn different_shapes_are_told_on_every_rank() {
    for transport in [Push, Pull, Packet] {
        let operations = vec![
            Operation::gather(transport, 1, 1),
            Operation::gather(transport, 1, 2),
        ];
        always_told(
            &lists(operations, [&[(0, 0)], &[(1, 0)]]).coarse(Grain::Cta),
            Cause::TagMismatch,
        );
    }
}

#[test]
fn graphs_replayed_in_different_order_are_told_on_every_rank() {
    let graphs = vec![narrow(Push), narrow(Push).tagged(9)];
    always_told(
        &lists(graphs, [&[(0, 0), (1, 1)], &[(1, 1), (0, 0)]]),
        Cause::TagMismatch,
    );
}

#[test]
fn a_rank_that_leaves_a_call_out_is_told() {
    let calls = vec![narrow(Push), narrow(Push).tagged(9)];
    always_told(
        &lists(calls, [&[(0, 0), (1, 1)], &[(1, 1)]]),
        Cause::TagMismatch,
    );
}

#[test]
fn a_rank_that_never_comes_is_told_by_the_fail_threshold_alone() {
    let alone = |bounded| Scenario {
        bounded,
        ..lists(vec![narrow(Push)], [&[(0, 0)], &[]])
    };
    let hang = explore(&alone(false), &Rules::default(), LIMIT);
    assert_eq!(hang.found().map(|(kind, _)| kind), Some(Kind::Hang));
    let told = explored(&alone(true), Rules::default());
    let late = |end: &End| {
        end.causes
            .iter()
            .any(|c| [Cause::EntryTimeout, Cause::DataTimeout].contains(c))
    };
    assert!(
        told.ends.keys().all(|end| end.unaware == 0 && late(end)),
        "{:#?}",
        told.ends
    );
}

/// Rank 0 calls on two streams what rank 1 calls on one.
pub fn two_streams(first: Operation, second: Operation) -> Scenario {
    let lists = vec![vec![vec![(0, 0)], vec![(1, 1)]], vec![vec![(0, 0), (1, 1)]]];
    Scenario::broken(vec![first, second], Caller::BreaksInTheEnd, lists)
}

/// Rank 0 replays a graph of one call on two streams, rank 1 on one.
pub fn replays(operation: Operation, first: u8, second: u8) -> Scenario {
    let list = |numbers: std::ops::Range<u8>| numbers.map(|number| (0, number)).collect();
    let all = first + second;
    let lists = vec![vec![list(0..first), list(first..all)], vec![list(0..all)]];
    let scenario = Scenario::broken(vec![operation], Caller::BreaksInTheEnd, lists);
    Scenario {
        interchangeable: true,
        ..scenario
    }
}

/// Ends without a report have right rows, and some ends have this cause.
fn told_if_it_matters(scenario: &Scenario, cause: Cause) {
    for started_first in [false, true] {
        let rules = Rules {
            started_first,
            ..Rules::default()
        };
        let found = explored(scenario, rules);
        let right = |end: &End| !end.causes.is_empty() || !end.wrong;
        assert!(found.ends.keys().all(right), "{:#?}", found.ends);
        assert!(
            found.ends.keys().any(|end| end.causes.contains(&cause)),
            "{:#?}",
            found.ends
        );
    }
}

#[test]
fn two_streams_on_one_channel_are_told_apart_or_do_no_harm() {
    let one_way = |transport: Transport| narrow(transport).one_way(1, 0);
    for transport in [Push, Packet] {
        let call = one_way(transport);
        let scenario = two_streams(call.clone(), call.tagged(99)).coarse(Grain::Warp);
        told_if_it_matters(&scenario, Cause::Overlap);
    }
    told_if_it_matters(
        &two_streams(narrow(Push), narrow(Push).tagged(99)).coarse(Grain::Cta),
        Cause::TagMismatch,
    );
}

#[test]
fn a_replay_that_overlaps_a_replay_is_told_or_does_no_harm() {
    let one_way = narrow(Push).one_way(1, 0);
    told_if_it_matters(&replays(one_way.clone(), 1, 1), Cause::Overlap);
    let three = replays(one_way, 1, 2).coarse(Grain::Cta);
    told_if_it_matters(&three, Cause::Overlap);
    let both_ways = replays(narrow(Push), 1, 1).coarse(Grain::Cta);
    told_if_it_matters(&both_ways, Cause::Overlap);
}

/// Documented as undetected: nothing tells the calls apart.
#[test]
fn two_equal_eager_calls_in_swapped_order_are_not_told() {
    let swapped = lists(vec![narrow(Push)], [&[(0, 0), (0, 1)], &[(0, 1), (0, 0)]]);
    let found = explore(&swapped, &Rules::default(), LIMIT);
    assert_eq!(
        found.found(),
        Some((Kind::Silent, 35)),
        "{:?}",
        found.failure
    );
}
