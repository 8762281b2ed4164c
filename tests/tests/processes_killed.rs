//! Ranks as processes of which one is killed: the others end by themselves and name it, and nothing is left.

use std::time::{Duration, Instant};

use slabfence_tests::exhaust::say;
use slabfence_tests::processes::{Ending, Folder, Ranks, holders};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");
/// Exchanges of a set-up after which a rank may believe in the others' memory: they keep it until they are told not to.
const COMMITTED: u32 = 11;
/// Less than half of what ranks wait for one another: a rank that hears of the end from nobody is later.
const AT_ONCE: Duration = Duration::from_secs(50);
/// Exchanges of a set-up after which every rank has a socket for its peers' descriptors.
const AT_THE_DOOR: [u32; 2] = [8, 9];
/// The limit of a wait in these scenarios.
const FAIL: Duration = Duration::from_secs(5);
/// What a busy machine may add to it by the kernel's own clock: what lies between two looks of a kernel that waits.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// Exchanges between joining and the first operation.
const SETUP: u32 = 16;

/// What a rank says that has left a pool behind whose other ranks are other processes.
const ABANDONED: &str = "abandoned: Abandoned { kept: 0 }";

/// The scenario's name with its victim: the last of three ranks, or the hub's.
fn named(scenario: &str, victim: usize) -> String {
    match victim {
        0 => format!("{scenario}:hub"),
        _ => scenario.to_owned(),
    }
}

/// What the other ranks do before one is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// They go on.
    GoOn,
    /// They tell that they have come to where it is, and go on.
    Pass,
    /// They stand there too, until it is dead.
    Stand,
}

/// Kills one of three ranks where the scenario has it stand, and gives what the others printed.
fn bereaved(scenario: &str, victim: usize, do_others: Others) -> Vec<Vec<String>> {
    let folder = Folder::new();
    let mut ranks = Ranks::start(
        PROGRAM,
        &named(scenario, victim),
        folder.path(),
        &[0, 1, 2],
        3,
    );
    let others: Vec<usize> = (0..3).filter(|&rank| rank != victim).collect();
    ranks.ready(victim);
    if do_others != Others::GoOn {
        others.iter().for_each(|&rank| ranks.ready(rank));
    }
    let files = ranks.memory(victim);
    let begin = Instant::now();
    ranks.kill(victim);
    let gives_back = scenario == "die-after" || scenario.starts_with("die-in-close:");
    if do_others != Others::GoOn && !gives_back {
        // The victim has at least its own three shared arenas and one of a peer.
        assert!(files.len() > 3, "{files:?}");
    }
    if do_others == Others::Stand {
        others.iter().for_each(|&rank| ranks.go(rank));
    }
    let mut endings = ranks.finish();
    assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
    let killed = endings.remove(victim);
    assert_eq!((killed.code, killed.errors.as_str()), (None, ""));
    assert_eq!(holders(&files), Vec::<u32>::new());
    // What sockets a killed rank had leave their files, which are in nobody's way, and go with the next run.
    let door = AT_THE_DOOR.map(|step| format!("die-in-setup:{step}"));
    let door = door.iter().any(|step| step == scenario);
    let left = usize::from(victim == 0) + usize::from(door);
    assert_eq!(folder.files(), left, "{scenario}");
    if left > 0 {
        let again = Ranks::start(PROGRAM, "paused", folder.path(), &[0, 1], 2);
        (0..2).for_each(|rank| again.ready(rank));
        assert_eq!(folder.files(), 1);
    }
    let out = endings.into_iter().map(|ending| {
        assert_eq!(
            (ending.code, ending.errors.as_str()),
            (Some(0), ""),
            "{ending:?}"
        );
        ending.out
    });
    out.collect()
}

fn in_setup(victim: usize) {
    say(&format!(
        "creation, 3 processes: {SETUP} kills of rank {victim}"
    ));
    for step in 0..SETUP {
        for out in bereaved(&format!("die-in-setup:{step}"), victim, Others::GoOn) {
            let (kept, line, left) = match &out[..] {
                [line, left] => (None, line, left),
                [kept, line, left] => (Some(kept.as_str()), line, left),
                _ => panic!("{out:?}"),
            };
            let words = format!("failed: rank {victim} left the group");
            assert!(line.starts_with(&words), "step {step}: {line}");
            match step {
                // A hub may die before it has told the others how this step ended.
                COMMITTED if victim == 0 => {}
                _ => assert_eq!(kept.is_some(), step >= COMMITTED, "step {step}: {out:?}"),
            }
            assert!(kept.is_none_or(|kept| kept == ABANDONED), "{kept:?}");
            assert_eq!(left, "nothing left", "step {step}");
        }
    }
}

#[test]
fn a_rank_that_is_killed_after_any_step_of_the_setup_ends_it_by_name() {
    in_setup(2);
}

#[test]
fn a_hub_that_is_killed_after_any_step_of_the_setup_ends_it_by_name() {
    in_setup(0);
}

/// Kills a rank before the first exchange of a call, of which there are so many, and after each. `ends` has how the call and a
/// close after it end on the others then, `true`: well.
fn in_call(call: &str, exchanges: usize, ends: impl Fn(usize) -> [bool; 2]) {
    for victim in [2, 0] {
        for step in 0..=exchanges {
            for out in bereaved(&format!("die-in-{call}:{step}"), victim, Others::Pass) {
                let [called, closed, abandoned, done, left] = &out[..] else {
                    panic!("{out:?}")
                };
                let words = format!("rank {victim} left the group");
                let ended = [(call, called), ("close", closed)].map(|(call, line)| {
                    let said = line.strip_prefix(&format!("{call}: "));
                    let said = said.unwrap_or_else(|| panic!("{call} {step}: {line}"));
                    assert!(
                        said == "done" || said.starts_with(&words),
                        "step {step}: {line}"
                    );
                    said == "done"
                });
                // A hub may die before it has told the others how this step ended.
                let before = (victim == 0 && step > 0).then(|| ends(step - 1));
                assert!(
                    ended == ends(step) || Some(ended) == before,
                    "step {step}: {out:?}"
                );
                let end = [abandoned, done, left].map(String::as_str);
                assert_eq!(end, [ABANDONED, "done", "nothing left"], "step {step}");
            }
        }
    }
    let kills = 2 * (exchanges + 1);
    say(&format!("{call}, 3 processes: {kills} kills"));
}

#[test]
fn a_rank_that_is_killed_anywhere_in_a_preparation_fails_it_by_name() {
    in_call("prepare", 3, |step| [step == 3, false]);
}

#[test]
fn a_rank_that_is_killed_anywhere_in_a_reset_fails_it_by_name() {
    in_call("reset", 4, |step| [step == 4, false]);
}

#[test]
fn a_rank_that_is_killed_anywhere_in_a_retirement_fails_it_by_name() {
    in_call("retire", 5, |step| [step == 5, false]);
}

/// Once all were at rest nobody is needed, and with the peers' memory unmapped nobody is missed.
#[test]
fn a_rank_that_is_killed_anywhere_in_a_close_fails_it_by_name_until_all_are_at_rest() {
    in_call("close", 4, |step| [step >= 3, step >= 2]);
}

fn in_run(scenario: &str) {
    for victim in [2, 0] {
        let mut late = 0;
        for out in bereaved(scenario, victim, Others::Stand) {
            let [fault, reset, close, abandoned, done, left] = &out[..] else {
                panic!("{out:?}")
            };
            // By the record, not by this test's clock, which counts what a busy machine does between all this.
            let waited = fault
                .strip_suffix(" ms")
                .and_then(|said| said.rsplit(' ').next());
            let waited: u64 = waited.and_then(|ms| ms.parse().ok()).expect("a time");
            let waited = Duration::from_millis(waited);
            assert!(waited < FAIL + BETWEEN_LOOKS, "{fault}");
            // Whoever did not see it first learns of it from who did, and has waited less.
            assert!(!fault.contains("Timeout") || waited >= FAIL, "{fault}");
            late += u32::from(fault.contains(&format!("late rank Some(Rank({victim}))")));
            let words = format!("reset: rank {victim} left the group");
            assert!(reset.starts_with(&words), "{reset}");
            let words = format!("close: rank {victim} left the group");
            assert!(close.starts_with(&words), "{close}");
            let end = [abandoned, done, left].map(String::as_str);
            assert_eq!(end, [ABANDONED, "done", "nothing left"]);
        }
        assert!(late > 0);
    }
}

#[test]
fn a_rank_that_is_killed_between_operations_fails_them_by_name() {
    in_run("die-mid-run");
}

#[test]
fn a_rank_that_is_killed_in_an_operation_fails_it_or_the_next_by_name() {
    in_run("die-in-operation");
}

#[test]
fn a_rank_that_is_killed_while_the_others_wait_for_it_by_push_fails_their_operation_by_name() {
    in_run("die-awaited");
}

#[test]
fn a_rank_that_is_killed_while_the_others_wait_for_it_by_pull_fails_their_operation_by_name() {
    in_run("die-awaited-pull");
}

#[test]
fn a_rank_that_is_killed_after_it_has_closed_is_missed_by_nobody() {
    for victim in [2, 0] {
        for out in bereaved("die-after", victim, Others::Stand) {
            assert_eq!(out, ["done", "nothing left"]);
        }
    }
}

/// The child holds the rank's sockets open: only the end of the process tells.
#[test]
fn a_killed_rank_whose_forked_child_lives_on_is_missed_at_once() {
    for victim in [2, 0] {
        for out in bereaved("die-with-child", victim, Others::GoOn) {
            let [line, left] = &out[..] else {
                panic!("{out:?}")
            };
            let words = format!("failed: rank {victim} left the group");
            assert!(line.starts_with(&words), "{line}");
            assert_eq!(left, "nothing left");
        }
    }
}

#[test]
fn a_socket_that_only_a_forked_child_of_a_killed_hub_holds_is_replaced() {
    let folder = Folder::new();
    let mut first = Ranks::start(PROGRAM, "die-with-child:hub", folder.path(), &[0, 1], 2);
    first.ready(0);
    first.kill(0);
    let second = Ranks::start(PROGRAM, "push", folder.path(), &[0, 1], 2).finish();
    for ending in second {
        let right = Ending::right();
        assert_eq!(ending, right);
    }
    assert_eq!(folder.files(), 0);
    let endings = first.finish();
    assert!(endings[1].out[0].starts_with("failed: rank 0 left the group"));
}
