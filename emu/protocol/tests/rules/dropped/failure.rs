//! What ends a failed call on all ranks, and what begins anew.

use slabfence_emu_protocol::Kind::{FalseReport, Hang, Silent, StaleSuccess, WrongRow};
use slabfence_emu_protocol::Transport::{Packet, Push};
use slabfence_emu_protocol::{Calls, Grain, ResetEpoch, Rules, Scenario, Seam};

use super::{case, without_early_look};
use crate::{check, narrow, wide};

#[test]
fn poison() {
    let gives_up = |operation| Scenario {
        give_ups: 1,
        ..Scenario::list(vec![operation], 2, &[0, 0])
    };
    let drop = |rules: Rules| (rules, gives_up(narrow(Push)));
    let (blind, waiting) = drop(Rules {
        poison_in_waits: false,
        ..without_early_look()
    });
    let (careless, starting) = drop(Rules {
        poison_at_start: false,
        ..without_early_look()
    });
    let (mute, skipping) = drop(Rules {
        skipped_report: false,
        ..without_early_look()
    });
    check(vec![
        case("poison in every wait", blind, waiting, Hang, 53),
        case("poison at the start", careless, starting, StaleSuccess, 76),
        case("a skipped call reports", mute, skipping, Silent, 35),
    ]);
}

#[test]
fn reset() {
    let after = |give_ups| Scenario {
        give_ups,
        seam: Some((Seam::Reset, vec![vec![(0, 8), (0, 9)]; 2])),
        ..Scenario::list(vec![narrow(Push)], 2, &[0, 0]).coarse(Grain::Cta)
    };
    let lists = vec![vec![vec![(0, 0), (0, 1)]], vec![vec![(0, 0)]]];
    let uneven = Scenario {
        calls: Calls::Listed(lists),
        ..after(2)
    };
    let operations = vec![wide(Push).one_way(1, 0)];
    let wide_after = Scenario {
        operations,
        ..after(1)
    };
    let epoch = |reset_epoch| Rules {
        reset_epoch,
        ..without_early_look()
    };
    let still = Rules {
        skipped_arrive: false,
        ..epoch(ResetEpoch::AboveAll(0))
    };
    check(vec![
        case(
            "skipped calls count in `retired`, or a reset sets it",
            Rules {
                skipped_retire: false,
                reset_guard: false,
                ..without_early_look()
            },
            after(1),
            FalseReport,
            41,
        ),
        case(
            "the epoch is agreed",
            epoch(ResetEpoch::AboveOwn),
            uneven,
            Hang,
            43,
        ),
        case(
            "above what all have seen",
            epoch(ResetEpoch::AboveAll(-1)),
            after(1),
            WrongRow,
            54,
        ),
        case(
            "every CTA arrives, when the margin is 0",
            still,
            wide_after,
            WrongRow,
            45,
        ),
        case(
            "poison is cleared when all rest",
            Rules {
                reset_agrees_first: false,
                ..without_early_look()
            },
            after(1),
            FalseReport,
            43,
        ),
    ]);
}

#[test]
fn reuse() {
    let reuse = |transport| Scenario {
        seam: Some((Seam::Reuse, vec![vec![(1, 8), (1, 9)]; 2])),
        ..Scenario::list(
            vec![narrow(transport), narrow(transport).tagged(77)],
            2,
            &[0, 0],
        )
    };
    let first = Rules {
        reset_epoch: ResetEpoch::First,
        ..without_early_look()
    };
    let unfilled = Rules {
        fill: false,
        ..first
    };
    check(vec![
        case(
            "an epoch above all that the ranges have seen, push",
            first,
            reuse(Push),
            FalseReport,
            120,
        ),
        case("a fill, packets", unfilled, reuse(Packet), WrongRow, 111),
    ]);
}
