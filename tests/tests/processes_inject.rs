//! Every call that makes, hands over, imports or takes back memory between two processes failed, and every exchange of set-up
//! and close, and every call of an abandonment: the ranks agree, the next attempt succeeds, and no process keeps a descriptor
//! or memory.

use std::time::{Duration, Instant};

use slabfence_emu::Live;
use slabfence_tests::exhaust::{Injected, World};
use slabfence_tests::processes::{Folder, Ranks};

/// What a rank of two maps: four arenas of its own, three of its peer.
const MAPPINGS: usize = 7;
const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");

/// Two ranks that live through a scenario again and again, and how many calls and exchanges they are to fail at least.
fn injected(scenario: &str, calls: usize, exchanges: usize) {
    let folder = Folder::new();
    let begin = Instant::now();
    let endings = Ranks::start(PROGRAM, scenario, folder.path(), &[0, 1], 2).finish();
    for ending in &endings {
        assert_eq!(
            (ending.code, ending.errors.as_str()),
            (Some(0), ""),
            "{ending:?}"
        );
        let [numbers, done, left] = &ending.out[..] else {
            panic!("{ending:?}")
        };
        assert_eq!(*numbers, endings[0].out[0]);
        assert_eq!(done, "done");
        // Each mapping's memory and addresses, of the rounds in which their release failed before it had an effect.
        let leaked = Live {
            physical: MAPPINGS,
            reservations: MAPPINGS,
            ..Live::default()
        };
        let files = left
            .split(['{', '}'])
            .nth(1)
            .map(|files| files.split(',').count());
        assert_eq!(files, Some(MAPPINGS), "{left}");
        assert!(left.ends_with(&format!("{leaked:?}")), "{left}");
    }
    assert!(begin.elapsed() < Duration::from_secs(280));
    assert_eq!(folder.files(), 0);
    let numbers = endings[0].out[0].split(' ').map(|number| number.parse());
    let [tried, met] = numbers.collect::<Result<Vec<_>, _>>().expect("numbers")[..] else {
        panic!("{endings:?}")
    };
    let injected = Injected {
        calls: tried,
        exchanges: met,
    };
    let world = match scenario.ends_with(":pull") {
        true => World::pulling(2),
        false => World::pushing(2),
    };
    injected.tell(scenario, world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_between_processes_is_made_good_by_the_next_attempt() {
    injected("inject", 174, 450);
}

/// The exchanges are those of ranks that push.
#[test]
fn what_the_driver_fails_anywhere_between_processes_that_pull_is_made_good_by_the_next_attempt() {
    injected("inject:pull", 174, 0);
}

#[test]
fn what_fails_anywhere_in_an_abandonment_is_given_back_by_the_next_without_the_other_rank() {
    injected("inject-abandon", 260, 0);
}
