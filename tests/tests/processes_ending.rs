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
fn ended_twice(scenario: &str, is_said: fn(&[String]) -> bool) {
    let folder = Folder::new();
    for _ in 0..2 {
        for out in ended(scenario, &folder) {
            assert!(is_said(&out), "{out:?}");
        }
        assert_eq!(folder.files(), 1);
    }
}

/// Whether a process said that it has done all and what is alive, and nothing else, such as a fault.
fn has_all(out: &[String], live: &str) -> bool {
    let [done, left] = out else {
        return false;
    };
    let left = left.strip_prefix("left: memory files {");
    let left = left.and_then(|left| left.split_once("}, Live { "));
    done == "done" && left.is_some_and(|(_, words)| words.starts_with(live))
}

/// Whether a process that has everything still has it when it ends.
fn everything(out: &[String]) -> bool {
    let live = "contexts: 1, allocations: 4, host_allocations: 2, physical: 7, mappings: 7, reservations: 7, streams: 4, \
                events: 0, modules: 2, captures: 0, graphs: 1, execs: 1, user_objects: 1,";
    has_all(out, live)
}

#[test]
fn processes_that_exit_with_everything_open_end_well() {
    ended_twice("end-exit", |out| out == ["exit"]);
}

#[test]
fn processes_that_return_from_main_with_everything_in_a_static_end_well() {
    ended_twice("end-static", everything);
}

/// By the destructors of the main thread, when the driver has gone: it tells nobody any more that the graph has. Nor does it
/// tell of memory that they pull from under somebody; that a rank which stays ends late or right where another returns so
/// from `main` is seen below (`leave-return`).
#[test]
fn processes_that_drop_everything_after_main_has_returned_end_well() {
    ended_twice("end-return", everything);
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
    if ["leave-exit", "leave-return"]
        .iter()
        .any(|how| scenario.starts_with(how))
    {
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

/// Whether a process said that it still has the pool with a gather and its stream.
fn has_returned(out: &[String]) -> bool {
    let live = "contexts: 1, allocations: 2, host_allocations: 2, physical: 7, mappings: 7, reservations: 7, streams: 3,";
    has_all(out, live)
}

fn while_the_other_waits(words: &str) {
    for how in ["exit", "drop", "abandon"] {
        let [stays, leaves] = left(&format!("leave-{how}{words}"));
        assert_eq!(stays, [&[LATE, LATE], &GONE[..]].concat(), "{how}");
        match how {
            "exit" => assert_eq!(leaves, ["exit"]),
            "drop" => {
                let [done, left] = &leaves[..] else {
                    panic!("{leaves:?}");
                };
                assert!(done == "done" && is_kept(left), "{leaves:?}");
            }
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

fn in_its_operation(words: &str, hows: &[&str]) {
    for &how in hows {
        let [stays, leaves] = left(&format!("leave-{how}:1{words}"));
        match how {
            "exit" | "return" => {
                // What a process had sent before it ended counts, and may be all that was needed.
                let first = stays[0].as_str();
                assert!(
                    ["right", LATE, LATE_WITH_DATA].contains(&first),
                    "{stays:?}"
                );
                assert_eq!(stays[1..], [&[LATE], &GONE[..]].concat());
                match how {
                    "exit" => assert_eq!(leaves, ["exit"]),
                    _ => assert!(has_returned(&leaves), "{leaves:?}"),
                }
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
    in_its_operation("", &["exit", "return", "drop", "abandon"]);
}

#[test]
fn a_rank_that_leaves_in_a_pull_leaves_right_data_or_is_late() {
    in_its_operation(":pull", &["exit", "drop", "abandon"]);
}
