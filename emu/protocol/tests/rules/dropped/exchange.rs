//! What keeps the rows of one call apart from those of the next.

use slabfence_emu_protocol::Kind::{FalseReport, Hang, Silent, WrongRow};
use slabfence_emu_protocol::Transport::{Packet, Pull, Push};
use slabfence_emu_protocol::{
    Boundary, Caller, EntryLine, EpochRule, FlagMatch, FlagOrder, Grain, Guard, Meeting, Operation,
    Rules, Scenario,
};

use super::{any, both, case, different, without_early_look};
use crate::{Case, check, narrow, wide};

#[test]
fn slots_and_entry_lines() {
    let one_way = |transport| narrow(transport).one_way(0, 1);
    let unread = Rules {
        entry: EntryLine::Unread,
        ..without_early_look()
    };
    let one_slot = Rules {
        two_slots: false,
        ..without_early_look()
    };
    let frozen = Scenario {
        capture: 1,
        ..Scenario::list(vec![narrow(Push)], 2, &[0, 0])
    };
    check(vec![
        case(
            "entry wait, push",
            unread,
            any([one_way(Push)], 3),
            WrongRow,
            59,
        ),
        case(
            "entry wait, pull",
            unread,
            any([one_way(Pull)], 3),
            WrongRow,
            59,
        ),
        case(
            "entry wait, packet",
            unread,
            any([one_way(Packet)], 3),
            Hang,
            73,
        ),
        case(
            "two slots, push",
            one_slot,
            any([narrow(Push)], 2),
            WrongRow,
            44,
        ),
        case(
            "two slots, pull",
            one_slot,
            any([narrow(Pull)], 2),
            WrongRow,
            44,
        ),
        case(
            "slot by the epoch: frozen in a graph of one",
            Rules {
                slot_by_epoch: false,
                ..without_early_look()
            },
            frozen,
            WrongRow,
            50,
        ),
        case(
            "two slots of entry lines",
            Rules {
                two_entry_slots: false,
                ..without_early_look()
            },
            any([Operation::nothing()], 2),
            Hang,
            52,
        ),
        case(
            "both words of an entry line",
            Rules {
                entry: EntryLine::FirstWord,
                ..without_early_look()
            },
            any([narrow(Push), narrow(Pull)], 3),
            FalseReport,
            24,
        ),
        case(
            "tag in the entry line",
            Rules {
                entry: EntryLine::NoTag,
                ..without_early_look()
            },
            different(narrow(Push), narrow(Push).tagged(9)),
            Silent,
            39,
        ),
        case(
            "entry lines beside the data",
            Rules {
                meeting: Meeting::BehindData,
                ..without_early_look()
            },
            different(narrow(Push), narrow(Packet)),
            Hang,
            35,
        ),
    ]);
}

#[test]
fn one_epoch_for_all_ctas() {
    // CTA 1 of the second call comes to rows that the first had left to CTA 0.
    let operations = vec![
        Operation::gather(Push, 1, 2).one_way(0, 1),
        wide(Push).one_way(0, 1),
    ];
    let widening = || {
        Scenario::list(operations.clone(), 2, &[0, 1])
            .unreduced()
            .coarse(Grain::Cta)
    };
    let rules = |epoch| Rules {
        epoch,
        guard: Guard::Off,
        ..without_early_look()
    };
    check(vec![
        case(
            "the last CTA to arrive advances the epoch, not the first",
            rules(EpochRule::FirstCta),
            widening(),
            WrongRow,
            20,
        ),
        case(
            "one epoch, not one for each CTA",
            rules(EpochRule::EachCta),
            widening(),
            WrongRow,
            16,
        ),
    ]);
}

#[test]
fn flags() {
    let ends = |between: usize| [&[1][..], &[0].repeat(between), &[1]].concat();
    let rare =
        |between| Scenario::list(vec![Operation::nothing(), narrow(Push)], 2, &ends(between));
    let flag = |flag| Rules {
        flag,
        ..without_early_look()
    };
    let order = |flag_order| Rules {
        flag_order,
        ..without_early_look()
    };
    check(vec![
        case(
            "a flag behind its rows",
            order(FlagOrder::StoredFirst),
            any([narrow(Push)], 1),
            WrongRow,
            21,
        ),
        case(
            "rows loaded behind the flag",
            order(FlagOrder::PolledLast),
            any([narrow(Pull)], 1),
            WrongRow,
            15,
        ),
        case(
            "a flag for each CTA",
            Rules {
                flag_each_cta: false,
                ..without_early_look()
            },
            Scenario::any(vec![wide(Push)], 1),
            WrongRow,
            45,
        ),
        case(
            "equality: at least, of 3 bits, 6 epochs later",
            flag(FlagMatch::AtLeast(3)),
            rare(5),
            WrongRow,
            241,
        ),
        case(
            "all bits: equality of 3 bits, 8 epochs later",
            flag(FlagMatch::EqualLow(3)),
            rare(7),
            WrongRow,
            313,
        ),
        Case {
            name: "equality of all bits",
            rules: without_early_look(),
            scenario: rare(7),
            finds: None,
        },
    ]);
}

#[test]
fn two_phases() {
    let two_shot = |transport| any([Operation::two_shot(transport, 1, 1)], 1);
    let staging = Rules {
        staging_each_phase: false,
        ..without_early_look()
    };
    check(vec![
        case(
            "flags of each phase",
            Rules {
                flag_each_phase: false,
                ..without_early_look()
            },
            two_shot(Push),
            WrongRow,
            33,
        ),
        case(
            "staging of each phase, push",
            staging,
            two_shot(Push),
            WrongRow,
            32,
        ),
        case(
            "staging of each phase, pull",
            staging,
            two_shot(Pull),
            WrongRow,
            32,
        ),
    ]);
}

/// Rank 2 does not come; ranks 0 and 1 know that they disagree.
#[test]
fn a_mismatch_is_reported_before_the_last_entry_line_has_come() {
    let late = Rules {
        meeting: Meeting::BesideLate,
        ..without_early_look()
    };
    let operations = vec![narrow(Push), narrow(Push).tagged(9)];
    let lists = vec![vec![vec![(0, 0)]], vec![vec![(1, 1)]], vec![vec![]]];
    let scenario = Scenario::broken(operations, Caller::BreaksAtOnce, lists).coarse(Grain::Cta);
    check(both("a silent third", late, scenario, Hang, 24).into());
}

#[test]
fn the_end_of_a_kernel() {
    let late = |operations: Vec<Operation>| Scenario {
        delayed: true,
        ..Scenario::any(operations, 3).coarse(Grain::Cta)
    };
    let open = Rules {
        boundary: Boundary::Open,
        ..without_early_look()
    };
    check(vec![
        case(
            "accesses are performed, push",
            open,
            late(vec![narrow(Push)]),
            WrongRow,
            59,
        ),
        case(
            "accesses are performed, pull",
            open,
            late(vec![narrow(Pull)]),
            WrongRow,
            59,
        ),
    ]);
}
