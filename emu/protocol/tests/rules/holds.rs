//! With every rule in place and callers who keep to the assumptions: right rows, no hang, no false report.

use slabfence_emu_protocol::Transport::{Packet, Pull, Push};
use slabfence_emu_protocol::{
    Calls, Cause, Grain, Jump, Operation, Rules, Scenario, Seam, explore,
};

use super::{Case, LIMIT, check, narrow, wide};

/// Expects no failure in any of the systems.
fn holds<const N: usize>(systems: [(&'static str, Scenario); N]) {
    let case = |(name, scenario)| Case {
        name,
        rules: Rules::default(),
        scenario,
        finds: None,
    };
    check(systems.map(case).into());
}

#[test]
fn calls_of_all_transports_and_grids_follow_one_another_in_any_order() {
    let transports = || vec![narrow(Push), narrow(Pull), narrow(Packet)];
    holds([
        ("every sequence of three", Scenario::any(transports(), 3)),
        (
            "every interleaving of two",
            Scenario::any(vec![narrow(Push), narrow(Pull)], 2).unreduced(),
        ),
        (
            "narrow and wide",
            Scenario::any(vec![wide(Push), narrow(Pull), wide(Packet)], 2).coarse(Grain::Cta),
        ),
        (
            "a reduction between gathers",
            Scenario::list(
                vec![wide(Push), Operation::reduce(Pull, 2, 2)],
                2,
                &[0, 1, 0],
            )
            .coarse(Grain::Cta),
        ),
        (
            "one way only",
            Scenario::any(
                [Push, Pull, Packet].map(|t| narrow(t).one_way(0, 1)).into(),
                4,
            ),
        ),
        (
            "nothing but entry lines between rows",
            Scenario::any(vec![Operation::nothing(), narrow(Push)], 4),
        ),
    ]);
}

#[test]
fn three_ranks_stay_together() {
    let parts = vec![Operation::reduce(Pull, 1, 1), narrow(Push)];
    let line = |transport| narrow(transport).one_way(0, 1);
    holds([
        (
            "a reduction, then a gather",
            Scenario::list(parts, 3, &[0, 1]).coarse(Grain::Cta),
        ),
        (
            "from one rank to one other",
            Scenario {
                world: 3,
                ..Scenario::any(vec![line(Push), line(Pull)], 3).coarse(Grain::Cta)
            },
        ),
    ]);
}

#[test]
fn both_phases_of_a_two_shot_call_are_kept_apart() {
    let calls = vec![
        Operation::two_shot(Push, 1, 1),
        Operation::two_shot(Pull, 1, 1),
        narrow(Push),
    ];
    let wide = vec![Operation::two_shot(Push, 2, 2)];
    holds([
        ("every sequence of two", Scenario::any(calls, 2)),
        ("two CTAs", Scenario::list(wide, 2, &[0]).coarse(Grain::Cta)),
    ]);
}

#[test]
fn accesses_may_be_performed_late() {
    let late = |operations, length| Scenario {
        delayed: true,
        ..Scenario::any(operations, length).coarse(Grain::Cta)
    };
    let two_shot = vec![Operation::two_shot(Push, 1, 1)];
    let scrubbed = late(vec![narrow(Packet).one_way(0, 1), Operation::nothing()], 3);
    holds([
        ("push and pull", late(vec![narrow(Push), narrow(Pull)], 3)),
        (
            "packets",
            Scenario {
                stamp_bits: 3,
                scrub_period: 2,
                ..scrubbed
            },
        ),
        ("two phases", late(two_shot, 2)),
    ]);
}

#[test]
fn a_wait_that_gives_up_ends_every_rank_and_leaves_no_garbage() {
    let transports = vec![narrow(Push), narrow(Packet)];
    let systems = [
        Scenario {
            give_ups: 1,
            ..Scenario::any(transports, 2)
        },
        Scenario {
            give_ups: 2,
            ..Scenario::list(vec![narrow(Push)], 2, &[0, 0])
        },
        Scenario {
            give_ups: 1,
            ..Scenario::list(vec![wide(Pull)], 2, &[0]).coarse(Grain::Cta)
        },
        Scenario {
            give_ups: 1,
            ..Scenario::list(vec![narrow(Push).one_way(0, 1)], 3, &[0]).coarse(Grain::Cta)
        },
    ];
    for scenario in systems {
        let found = explore(&scenario, &Rules::default(), LIMIT);
        assert_eq!(found.found(), None, "{:?}", found.failure);
        for end in found.ends.keys().filter(|end| !end.causes.is_empty()) {
            assert_eq!(end.unaware, 0, "{end:?}");
            let first = [Cause::EntryTimeout, Cause::DataTimeout];
            assert!(
                end.causes.iter().any(|cause| first.contains(cause)),
                "{end:?}"
            );
        }
    }
}

#[test]
fn calls_behind_a_reset_are_right_whatever_was_left() {
    let after = |give_ups, list: &[u8], next| Scenario {
        give_ups,
        seam: Some((Seam::Reset, vec![vec![(0, 8), (next, 9)]; 2])),
        ..Scenario::list(vec![narrow(Push), narrow(Packet)], 2, list).coarse(Grain::Cta)
    };
    // One rank was told to call more than the other.
    let uneven = |list: Vec<Vec<Vec<(u8, u8)>>>| Scenario {
        calls: Calls::Listed(list),
        ..after(2, &[], 0)
    };
    holds([
        ("one wait gave up", after(1, &[0, 0], 0)),
        ("two gave up", after(2, &[0, 1], 1)),
        ("nothing happened", after(0, &[1, 0], 1)),
        (
            "ranks at different epochs",
            uneven(vec![vec![vec![(0, 0), (0, 1)]], vec![vec![(0, 0)]]]),
        ),
    ]);
}

#[test]
fn a_channel_in_reused_ranges_never_takes_what_the_one_before_left() {
    let reuse = |transport| Scenario {
        seam: Some((Seam::Reuse, vec![vec![(1, 8), (1, 9)]; 2])),
        ..Scenario::list(
            vec![narrow(transport), narrow(transport).tagged(77)],
            2,
            &[0, 0],
        )
    };
    holds([
        ("push", reuse(Push)),
        ("pull", reuse(Pull)),
        ("packets", reuse(Packet)),
    ]);
}

/// Packets, or none, from rank 0 to rank 1, for ever.
pub fn stamps(stamp_bits: u32, scrub_period: u8, capacity: u8, lap: u16) -> Scenario {
    let rows = [0, 1, capacity].map(|rows| Operation::gather(Packet, 1, rows).one_way(0, 1));
    let operations = rows
        .into_iter()
        .take(if capacity > 1 { 3 } else { 2 })
        .collect();
    Scenario {
        stamp_bits,
        scrub_period,
        capacity,
        lap,
        ..Scenario::new(operations, Calls::Any { length: None }).coarse(Grain::Cta)
    }
}

#[test]
fn no_old_stamp_passes_while_the_period_times_the_capacity_is_below_the_stamps_range() {
    holds([
        ("2 of 8", stamps(3, 2, 1, 32)),
        ("4 of 8", stamps(3, 2, 2, 32)),
        ("4 of 8, longer period", stamps(3, 4, 1, 32)),
    ]);
}

#[test]
fn resets_that_jump_over_scrubs_let_no_old_stamp_pass() {
    let jump = Jump {
        times: 2,
        farthest: 8,
    };
    holds([(
        "two jumps",
        Scenario {
            jump,
            ..stamps(3, 2, 1, 32)
        },
    )]);
}
