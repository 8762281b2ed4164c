//! Ranks as processes: memory that crosses from one to the other, and what the others meet when one is killed.

use slabfence_tests::processes::{Ending, Folder, Ranks};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");

/// Runs a scenario that nothing disturbs.
fn undisturbed(scenario: &str, world: u32) {
    let folder = Folder::new();
    let ranks: Vec<u32> = (0..world).collect();
    let endings = Ranks::start(PROGRAM, scenario, &folder, &ranks, world).finish();
    for (rank, ending) in endings.iter().enumerate() {
        let right = Ending {
            code: Some(0),
            out: vec!["done".to_owned()],
            errors: String::new(),
        };
        assert_eq!(*ending, right, "rank {rank}");
    }
    assert_eq!(folder.files(), 0);
}

#[test]
fn processes_push_into_each_others_memory_and_leave_nothing() {
    undisturbed("push", 2);
    undisturbed("push", 3);
}

#[test]
fn processes_pull_from_each_others_memory_and_leave_nothing() {
    undisturbed("pull", 2);
}

#[test]
fn a_forked_child_gets_errors_and_its_parent_goes_on() {
    undisturbed("fork", 2);
}

/// Kills one of three ranks where the scenario has it stand; what the others printed.
fn bereaved(scenario: &str, victim: usize) -> Vec<Vec<String>> {
    let folder = Folder::new();
    let mut ranks = Ranks::start(PROGRAM, scenario, &folder, &[0, 1, 2], 3);
    ranks.ready(victim);
    ranks.kill(victim);
    let mut endings = ranks.finish();
    let killed = endings.remove(victim);
    assert_eq!((killed.code, killed.errors.as_str()), (None, ""));
    // A killed hub leaves its file, which is in nobody's way.
    assert_eq!(folder.files(), usize::from(victim == 0));
    let again = Ranks::start(PROGRAM, "push", &folder, &[0, 1], 2).finish();
    assert!(again.iter().all(|end| end.out == ["done"]), "{again:?}");
    assert_eq!(folder.files(), 0);
    let out = endings.into_iter().map(|ending| {
        assert_eq!(ending.code, Some(0), "{ending:?}");
        ending.out
    });
    out.collect()
}

#[test]
fn a_rank_that_is_killed_in_the_setup_ends_it_by_name() {
    for (scenario, victim) in [("die-in-setup", 2), ("die-in-setup-hub", 0)] {
        for out in bereaved(scenario, victim) {
            let [line] = &out[..] else { panic!("{out:?}") };
            let words = format!("failed: rank {victim} left the group");
            assert!(line.starts_with(&words), "{line}");
        }
    }
}

#[test]
fn a_rank_that_is_killed_between_operations_fails_them_by_name() {
    for (scenario, victim) in [("die-mid-run", 2), ("die-mid-run-hub", 0)] {
        let mut late = 0;
        for out in bereaved(scenario, victim) {
            let [fault, reset, close] = &out[..] else {
                panic!("{out:?}")
            };
            // Whoever did not see it first learns of it from who did.
            late += u32::from(fault.contains(&format!("late rank Some(Rank({victim}))")));
            let words = format!("reset: rank {victim} left the group");
            assert!(reset.starts_with(&words), "{reset}");
            // By now the other may have ended too, and the hub with it.
            assert!(close.contains("left the group"), "{close}");
        }
        assert!(late > 0);
    }
}

#[test]
fn a_second_job_of_the_same_name_is_refused_and_the_first_lives_on() {
    let folder = Folder::new();
    let mut first = Ranks::start(PROGRAM, "die-in-setup", &folder, &[0, 1], 2);
    first.ready(1);
    let second = Ranks::start(PROGRAM, "push", &folder, &[0, 1], 2).finish();
    for (ending, words) in second.iter().zip([
        "join: UnixBootstrap::join refused: a job of this name is running (process ",
        "join: UnixBootstrap::join refused: the hub of job 'job' says: rank 1 is there already (process ",
    ]) {
        assert!(ending.out[0].starts_with(words), "{ending:?}");
    }
    first.kill(1);
    let endings = first.finish();
    assert!(endings[0].out[0].starts_with("failed: rank 1 left the group"));
    assert_eq!(folder.files(), 0);
}
