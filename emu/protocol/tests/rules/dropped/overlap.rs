//! What tells calls that run at once.

use slabfence_emu_protocol::Kind::{FalseReport, Hang, Silent};
use slabfence_emu_protocol::Transport::{Packet, Push};
use slabfence_emu_protocol::{Caller, Grain, Guard, Operation, Rules, Scenario, TicketSum};

use super::{ALL, case};
use crate::callers::two_streams;
use crate::{check, narrow, wide};

#[test]
fn overlap_guard() {
    let replays = |here: &[&[(u8, u8)]], there: &[(u8, u8)]| {
        let here = here.iter().map(|list| list.to_vec()).collect();
        let lists = vec![here, vec![there.to_vec()]];
        let operations = vec![narrow(Push).one_way(1, 0)];
        let scenario = Scenario::broken(operations, Caller::BreaksInTheEnd, lists);
        Scenario {
            interchangeable: true,
            ..scenario.coarse(Grain::Cta)
        }
    };
    let two = replays(&[&[(0, 0)], &[(0, 1)]], &[(0, 0), (0, 1)]);
    let three = Scenario {
        bounded: true,
        ..replays(&[&[(0, 0)], &[(0, 1), (0, 2)]], &[(0, 0), (0, 1), (0, 2)])
    };
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
                ..ALL()
            },
            three.clone(),
            Silent,
            54,
        ),
        case(
            "the ticket's sum",
            Rules {
                warps_agree: true,
                ticket: TicketSum::Count,
                ..ALL()
            },
            two_grids,
            Silent,
            47,
        ),
        case(
            "`started` before the epoch",
            Rules {
                started_first: false,
                ..ALL()
            },
            three.clone(),
            Silent,
            60,
        ),
        case(
            "the exchanged epoch is compared",
            Rules {
                epoch_checked: false,
                ..ALL()
            },
            two,
            Hang,
            34,
        ),
        case(
            "`<`, not `≠`",
            Rules {
                guard: Guard::Differs,
                ..ALL()
            },
            wide,
            FalseReport,
            9,
        ),
    ]);
}
