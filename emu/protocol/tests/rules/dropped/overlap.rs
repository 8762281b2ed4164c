//! What tells calls that run at once.

use slabfence_emu_protocol::Kind::{EpochFell, FalseReport, Hang, Silent};
use slabfence_emu_protocol::Transport::{Packet, Push};
use slabfence_emu_protocol::{Grain, Guard, Operation, Rules, Scenario, TicketSum};

use super::{both, case, without_early_look};
use crate::callers::{replays, two_streams};
use crate::{Case, check, narrow, wide};

/// Three replays of one graph, two of them at once, whose waits end.
fn bounded_replays() -> Scenario {
    Scenario {
        bounded: true,
        ..replays(narrow(Push).one_way(1, 0), 1, 2).coarse(Grain::Cta)
    }
}

#[test]
fn overlap_guard() {
    let two = replays(narrow(Push).one_way(1, 0), 1, 1).coarse(Grain::Cta);
    let three = bounded_replays();
    let rows = |grid| Operation::gather(Packet, grid, 2).one_way(1, 0);
    let two_grids = two_streams(rows(1), rows(2)).coarse(Grain::Cta);
    let wide = Scenario::list(vec![wide(Push)], 2, &[0])
        .unreduced()
        .coarse(Grain::Cta);
    check(vec![
        case(
            "the guard",
            Rules {
                guard: Guard::Off,
                ..without_early_look()
            },
            three,
            Silent,
            54,
        ),
        case(
            "the ticket's sum",
            Rules {
                ticket: TicketSum::Count,
                ..without_early_look()
            },
            two_grids,
            Silent,
            47,
        ),
        case(
            "the exchanged epoch is compared",
            Rules {
                epoch_checked: false,
                ..without_early_look()
            },
            two,
            Hang,
            34,
        ),
        case(
            "`<`, not `≠`",
            Rules {
                guard: Guard::Differs,
                ..without_early_look()
            },
            wide,
            FalseReport,
            9,
        ),
    ]);
}

/// A call that sees the new epoch and the old `started` would pass the guard; the kernels' two stores are in no order.
#[test]
fn started_names_its_epoch() {
    let rules = |started_named, started_first| Rules {
        started_named,
        started_first,
        ..without_early_look()
    };
    let three = bounded_replays();
    let unnamed = rules(false, false);
    let cases = both("in any order", unnamed, three.clone(), Silent, 60);
    let ordered = |name, rules| Case {
        name,
        rules,
        scenario: three.clone(),
        finds: None,
    };
    let mut all = Vec::from(cases);
    all.push(ordered("named, the epoch first", rules(true, false)));
    all.push(ordered("order alone", rules(false, true)));
    check(all);
}

/// One warp of a CTA reads the epoch before the call that it overlaps has advanced it, another after that call has
/// ended. The guard passes for both, the ticket sees the control warp's epoch only.
#[test]
fn warps_of_a_cta_compare_their_epochs() {
    let apart = Rules {
        warps_agree: false,
        ..without_early_look()
    };
    let call = narrow(Push).one_way(1, 0);
    let one_way = two_streams(call.clone(), call.tagged(99)).coarse(Grain::Warp);
    // The other rank waits for a flag of the new epoch: for ever, or up to its fail threshold.
    let ways = two_streams(narrow(Push), narrow(Push).tagged(99)).coarse(Grain::Warp);
    check(
        [
            both("one way", apart, one_way, Silent, 40),
            both("both ways", apart, ways, Hang, 46),
        ]
        .into_iter()
        .flatten()
        .collect(),
    );
}

/// The same between two CTAs: the one that arrives last has the new epoch, so that the exchange finds what it expects.
#[test]
fn the_ticket_adds_up_epochs() {
    let rules = Rules {
        ticket: TicketSum::Tag,
        ..without_early_look()
    };
    let calls = two_streams(
        Operation::gather(Packet, 1, 2).one_way(1, 0),
        Operation::gather(Packet, 2, 2).one_way(1, 0),
    )
    .coarse(Grain::Cta);
    check(both("the old row is there", rules, calls, Silent, 48).into());
}

/// A CTA knows of the overlap from the ticket, but would wait for entry lines first. A third call has let the peer go on by
/// two: its line of this epoch has been overwritten by the next in its slot.
#[test]
fn an_overlap_is_reported_before_the_entry_lines_are_polled() {
    let late = Rules {
        overlap_at_once: false,
        ..without_early_look()
    };
    let scenario = replays(narrow(Push).one_way(1, 0), 1, 2).coarse(Grain::Cta);
    check(both("three replays", late, scenario, Hang, 48).into());
}

/// A call that others have overtaken twice arrives with an epoch that is long over.
#[test]
fn the_epoch_never_falls() {
    let falls = Rules {
        epoch_rises: false,
        ..without_early_look()
    };
    let scenario = replays(narrow(Push).one_way(1, 0), 1, 2).coarse(Grain::Cta);
    check(both("overtaken", falls, scenario, EpochFell, 26).into());
}
