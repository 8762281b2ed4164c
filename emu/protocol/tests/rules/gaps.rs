//! What the rules as the kernels have them do not tell, and the rule that would. `docs/protocol.md` lists these.

use slabfence_emu_protocol::Kind::{Hang, Silent};
use slabfence_emu_protocol::Transport::{Packet, Push};
use slabfence_emu_protocol::{Caller, Grain, Kind, Meeting, Operation, Rules, Scenario, TicketSum};

use super::callers::{CLOSED, replays, two_streams};
use super::{Case, check, narrow};

/// The same system, with the rule missing and with it.
fn closes(
    name: &'static str,
    scenario: Scenario,
    open: Rules,
    found: (Kind, usize),
    closed: Rules,
) {
    let case = |rules, finds| Case {
        name,
        rules,
        scenario: scenario.clone(),
        finds,
    };
    check(vec![case(open, Some(found)), case(closed, None)]);
}

/// One warp of a CTA reads the epoch before the call that it overlaps has advanced it, another after that call has
/// ended. The guard passes for both, the ticket sees the control warp's epoch only.
#[test]
fn warps_of_a_cta_that_read_different_epochs_are_not_told() {
    let open = Rules::default();
    let closed = Rules {
        warps_agree: true,
        ..open
    };
    let call = narrow(Push).one_way(1, 0);
    let one_way = two_streams(call.clone(), call.tagged(99)).coarse(Grain::Warp);
    closes("one way", one_way, open, (Silent, 40), closed);
    // The other rank waits for a flag of the new epoch: for ever, or up to its fail threshold.
    let both = two_streams(narrow(Push), narrow(Push).tagged(99)).coarse(Grain::Warp);
    closes("both ways", both, open, (Hang, 46), closed);
}

/// The same between two CTAs: the one that arrives last has the new epoch, so that the exchange finds what it expects.
#[test]
fn ctas_that_read_different_epochs_are_not_told() {
    let open = Rules {
        warps_agree: true,
        ..Rules::default()
    };
    let closed = Rules {
        ticket: TicketSum::TagAndEpoch,
        ..open
    };
    let calls = |rows| {
        two_streams(
            Operation::gather(Packet, 1, rows).one_way(1, 0),
            Operation::gather(Packet, 2, 2).one_way(1, 0),
        )
        .coarse(Grain::Cta)
    };
    closes("the old row is there", calls(2), open, (Silent, 48), closed);
}

/// Rank 2 does not come; ranks 0 and 1 know that they disagree, but wait for its line before they say so.
#[test]
fn a_mismatch_is_not_told_before_the_last_entry_line_has_come() {
    let operations = vec![narrow(Push), narrow(Push).tagged(9)];
    let lists = vec![vec![vec![(0, 0)]], vec![vec![(1, 1)]], vec![vec![]]];
    let scenario = Scenario::broken(operations, Caller::BreaksAtOnce, lists).coarse(Grain::Cta);
    let closed = Rules {
        meeting: Meeting::BesideAtOnce,
        ..Rules::default()
    };
    closes(
        "a silent third",
        scenario,
        Rules::default(),
        (Hang, 24),
        closed,
    );
}

/// A CTA knows of the overlap from the ticket, but waits for entry lines first. A third call has let the peer go on by
/// two: its line of this epoch has been overwritten by the next in its slot.
#[test]
fn an_overlap_is_not_told_before_the_entry_lines_have_come() {
    let closed = CLOSED();
    let open = Rules {
        overlap_at_once: false,
        ..closed
    };
    let scenario = replays(narrow(Push).one_way(1, 0), 1, 2).coarse(Grain::Cta);
    closes("three replays", scenario, open, (Hang, 48), closed);
}
