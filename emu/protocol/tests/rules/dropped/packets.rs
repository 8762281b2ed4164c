//! What keeps old stamps from passing.

use slabfence_emu_protocol::Kind::{Hang, WrongRow};
use slabfence_emu_protocol::{Jump, Rules, Scenario, Scrub};

use super::{case, without_early_look};
use crate::holds::stamps;
use crate::{Case, check};

#[test]
fn scrub() {
    let scrub = |scrub| Rules {
        scrub,
        ..without_early_look()
    };
    let jump = |times| Scenario {
        jump: Jump { times, farthest: 8 },
        ..stamps(3, 2, 1, 32)
    };
    check(vec![
        case(
            "scrubbing",
            scrub(Scrub::Nobody),
            stamps(3, 2, 1, 32),
            WrongRow,
            143,
        ),
        case(
            "what the call writes is spared",
            scrub(Scrub::WriterAlways),
            stamps(3, 2, 1, 32),
            Hang,
            27,
        ),
        case(
            "the writer scrubs, not the owner",
            scrub(Scrub::OwnerAhead),
            stamps(3, 2, 1, 32),
            Hang,
            46,
        ),
        Case {
            name: "the other parity, without resets",
            rules: scrub(Scrub::WriterOwnStamp),
            scenario: stamps(3, 2, 1, 32),
            finds: None,
        },
        Case {
            name: "the other parity, ranges filled at resets",
            rules: scrub(Scrub::WriterOwnStamp),
            scenario: jump(2),
            finds: None,
        },
        case(
            "packet ranges are filled at a reset",
            Rules {
                fill: false,
                ..without_early_look()
            },
            jump(2),
            WrongRow,
            10,
        ),
        case(
            "period × capacity below the stamps' range",
            without_early_look(),
            stamps(3, 4, 2, 32),
            WrongRow,
            192,
        ),
    ]);
}
