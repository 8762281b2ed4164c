//! Every call that makes, hands over, imports or takes back memory between processes failed, and every exchange of set-up and
//! close, and every call of an abandonment: the ranks agree, the next attempt succeeds, and no process keeps a descriptor or
//! memory.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slabfence_emu::Live;
use slabfence_tests::exhaust::{Injected, SHARES, World};
use slabfence_tests::processes::{Ending, Folder, Ranks};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");

/// One test at a time starts its processes: all of them together would be late for one another.
static TURN: Mutex<()> = Mutex::new(());

/// What each rank maps: four arenas of its own, three of each peer.
fn mappings(world: World) -> usize {
    4 + 3 * (world.ranks as usize - 1)
}

/// What follows `what` in these words.
fn number_of(what: &str, words: &str) -> usize {
    let (_, after) = words.split_once(what).expect("what it is of");
    let number = after.split(|c: char| !c.is_ascii_digit()).next();
    number.and_then(|n| n.parse().ok()).expect("a number")
}

/// What a rank has left of which the release failed before it had an effect.
fn left(ending: &Ending) -> usize {
    let said = ending.out.last().expect("a last line");
    if said == "nothing left" {
        return 0;
    }
    let leaked = Live {
        physical: number_of("physical: ", said),
        reservations: number_of("reservations: ", said),
        ..Live::default()
    };
    assert!(said.ends_with(&format!("{leaked:?}")), "{said}");
    // Each memory's file.
    let files = said.split(['{', '}']).nth(1).expect("files");
    let files = files.split(',').filter(|file| !file.is_empty()).count();
    assert_eq!(files, leaked.physical, "{said}");
    leaked.physical + leaked.reservations
}

/// Ranks that live through a scenario again and again, in several worlds at once, and how many calls and exchanges they are to
/// fail at least.
fn injected(scenario: &str, world: World, calls: usize, exchanges: usize) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let begin = Instant::now();
    let ranks: Vec<u32> = (0..world.ranks).collect();
    let worlds: Vec<(Folder, Ranks)> = (0..SHARES)
        .map(|share| {
            let (folder, share) = (Folder::new(), format!("{scenario}:{share}"));
            let ranks = Ranks::start(PROGRAM, &share, folder.path(), &ranks, world.ranks);
            (folder, ranks)
        })
        .collect();
    let mut injected = Injected::default();
    let mut leaked = vec![0; ranks.len()];
    for (folder, ranks) in worlds {
        let endings = ranks.finish();
        for (ending, leaked) in endings.iter().zip(&mut leaked) {
            let ended = (ending.code, ending.errors.as_str());
            assert_eq!(ended, (Some(0), ""), "{ending:?}");
            let [numbers, done, _] = &ending.out[..] else {
                panic!("{ending:?}")
            };
            assert_eq!((numbers, done.as_str()), (&endings[0].out[0], "done"));
            *leaked += left(ending);
        }
        assert_eq!(folder.files(), 0);
        injected.calls += number_of("calls: ", &endings[0].out[0]);
        injected.exchanges += number_of("exchanges: ", &endings[0].out[0]);
    }
    // Memory and addresses of each mapping.
    assert_eq!(leaked, vec![2 * mappings(world); ranks.len()]);
    assert!(begin.elapsed() < Duration::from_secs(280));
    injected.tell(scenario, world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_between_2_processes_is_made_good_by_the_next_attempt() {
    injected("inject", World::pushing(2), 174, 450);
}

/// As many calls for each peer more, and what was imported of one goes when another's fails.
#[test]
fn what_fails_anywhere_between_3_processes_is_made_good_by_the_next_attempt() {
    injected("inject", World::pushing(3), 369, 675);
}

/// The exchanges are those of ranks that push.
#[test]
fn what_the_driver_fails_anywhere_between_processes_that_pull_is_made_good_by_the_next_attempt() {
    injected("inject:pull", World::pulling(2), 174, 0);
}

#[test]
fn what_fails_anywhere_in_an_abandonment_is_given_back_by_the_next_without_the_other_rank() {
    injected("inject-abandon", World::pushing(2), 260, 0);
}
