//! Processes that end or leave with everything open: they end at once and well, leave nothing, and pull no memory from under
//! a peer.

use std::time::{Duration, Instant};

use slabfence_tests::processes::{Ending, Folder, Ranks, holders};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");
/// Far less than the kernels of the ranks would wait.
const AT_ONCE: Duration = Duration::from_secs(60);

/// Two processes that end so while their kernels wait, at the file that the hub may leave behind: what each has said.
fn ended(scenario: &str, folder: &Folder) -> Vec<Vec<String>> {
    let mut ranks = Ranks::start(PROGRAM, scenario, folder.path(), &[0, 1], 2);
    (0..2).for_each(|rank| ranks.ready(rank));
    let files: Vec<_> = (0..2).map(|rank| ranks.memory(rank)).collect();
    // Four arenas of its own, three of the peer.
    assert!(files.iter().all(|files| files.len() == 7), "{files:?}");
    let begin = Instant::now();
    (0..2).for_each(|rank| ranks.go(rank));
    let endings = ranks.finish();
    assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
    for files in &files {
        assert_eq!(holders(files), Vec::<u32>::new());
    }
    let out = endings.into_iter().map(|ending| {
        let end = (ending.code, ending.errors.as_str());
        assert_eq!(end, (Some(0), ""), "{ending:?}");
        ending.out
    });
    out.collect()
}

/// The same twice under one name: nobody drops the hub, which leaves its file as if it were killed, and the next job of the
/// name takes that.
fn ended_twice(scenario: &str, first_line: &str) {
    let folder = Folder::new();
    for _ in 0..2 {
        for out in ended(scenario, &folder) {
            assert_eq!(out[0], first_line);
        }
        assert_eq!(folder.files(), 1);
    }
}

#[test]
fn processes_that_exit_with_everything_open_end_well() {
    ended_twice("end-exit", "exit");
}

#[test]
fn processes_that_return_from_main_with_everything_in_a_static_end_well() {
    ended_twice("end-static", "done");
}

/// By the destructors of the main thread, when the driver has gone: it tells nobody any more that the graph has.
#[test]
fn processes_that_drop_everything_after_main_has_returned_end_well() {
    ended_twice("end-return", "done");
}

/// Rank 1 leaves so; what the ranks say.
fn left(scenario: &str) -> [Vec<String>; 2] {
    let folder = Folder::new();
    let mut ranks = Ranks::start(PROGRAM, scenario, folder.path(), &[0, 1], 2);
    (0..2).for_each(|rank| ranks.ready(rank));
    let begin = Instant::now();
    ranks.go(1);
    let in_operation = scenario.contains(":1");
    let mut exits = None;
    if scenario.starts_with("leave-exit") {
        exits = Some(ranks.ending(1));
    } else if !in_operation {
        let said = ranks.said(1);
        if scenario.starts_with("leave-abandon") {
            assert_eq!(said, "Abandoned { kept: 0 }");
            ranks.ready(1);
        } else {
            assert_eq!(said, "ready");
        }
    }
    ranks.go(0);
    let stays = ranks.ending(0);
    assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
    let leaves = exits.unwrap_or_else(|| {
        ranks.go(1);
        ranks.ending(1)
    });
    let out = [stays, leaves].map(|ending| {
        let Ending { code, out, errors } = ending;
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{out:?}");
        out
    });
    assert_eq!(folder.files(), 0);
    out
}

const LATE: &str = "Some(EntryTimeout) by Some(Rank(1))";
/// Its process ended when its kernel had entered, and before the last of its flags.
const LATE_WITH_DATA: &str = "Some(DataTimeout) by Some(Rank(1))";

/// How a rank ends that gives back everything alone.
const GONE: [&str; 3] = ["Abandoned { kept: 0 }", "done", "nothing left"];

/// Whether this is said of what a pool of two processes keeps that is dropped without close: four arenas of its own and three
/// of the peer, health page, kernels and stream.
fn is_kept(line: &str) -> bool {
    line.starts_with("left: ")
        && line.contains(
            "contexts: 1, allocations: 0, host_allocations: 1, physical: 7, mappings: 7, reservations: 7, streams: 1, events: 0, modules: 2,",
        )
}

fn while_the_other_waits(words: &str) {
    for how in ["exit", "drop", "abandon"] {
        let [stays, leaves] = left(&format!("leave-{how}{words}"));
        assert_eq!(stays, [&[LATE, LATE], &GONE[..]].concat(), "{how}");
        match how {
            "exit" => assert_eq!(leaves, ["exit"]),
            "drop" => assert!(leaves[0] == "done" && is_kept(&leaves[1]), "{leaves:?}"),
            _ => assert_eq!(leaves, GONE[1..]),
        }
    }
}

#[test]
fn a_rank_that_leaves_while_the_others_kernel_waits_after_pushing_to_it_is_late_and_no_more() {
    while_the_other_waits("");
}

#[test]
fn a_rank_that_leaves_while_the_others_kernel_waits_to_pull_from_it_is_late_and_no_more() {
    while_the_other_waits(":pull");
}

fn in_its_operation(words: &str) {
    for how in ["exit", "drop", "abandon"] {
        let [stays, leaves] = left(&format!("leave-{how}:1{words}"));
        match how {
            "exit" => {
                // What a process had sent before it ended counts, and may be all that was needed.
                let first = stays[0].as_str();
                assert!(
                    ["right", LATE, LATE_WITH_DATA].contains(&first),
                    "{stays:?}"
                );
                assert_eq!(stays[1..], [&[LATE], &GONE[..]].concat());
                assert_eq!(leaves, ["exit"]);
            }
            _ => {
                assert_eq!(stays, [&["right"], &GONE[..]].concat(), "{how}");
                let kept = &leaves[leaves.len() - 3..];
                assert_eq!(kept[..2], ["ready", "done"]);
                match how {
                    "drop" => assert!(is_kept(&kept[2]), "{leaves:?}"),
                    _ => assert_eq!([&leaves[0], &kept[2]], [GONE[0], GONE[2]]),
                }
            }
        }
    }
}

#[test]
fn a_rank_that_leaves_in_a_push_leaves_right_data_or_is_late() {
    in_its_operation("");
}

#[test]
fn a_rank_that_leaves_in_a_pull_leaves_right_data_or_is_late() {
    in_its_operation(":pull");
}
