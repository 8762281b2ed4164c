//! Every call that makes, hands over, imports or takes back memory between two processes failed, and every exchange of set-up
//! and close: the ranks agree, the next attempt succeeds, and no process keeps a descriptor or memory.

use std::time::{Duration, Instant};

use slabfence_emu::Live;
use slabfence_tests::processes::{Folder, Ranks};

/// What a rank of two maps: four arenas of its own, three of its peer.
const MAPPINGS: usize = 7;
const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");

#[test]
fn what_fails_anywhere_between_processes_is_made_good_by_the_next_attempt() {
    let folder = Folder::new();
    let begin = Instant::now();
    let endings = Ranks::start(PROGRAM, "inject", folder.path(), &[0, 1], 2).finish();
    for ending in &endings {
        assert_eq!(
            (ending.code, ending.errors.as_str()),
            (Some(0), ""),
            "{ending:?}"
        );
        let [injected, done, left] = &ending.out[..] else {
            panic!("{ending:?}")
        };
        println!("{injected}");
        assert_eq!(*injected, endings[0].out[0]);
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
    println!("{:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(280));
    assert_eq!(folder.files(), 0);
}
