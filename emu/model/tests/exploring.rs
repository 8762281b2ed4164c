//! What exploring says of a test: ends, bounds, deadlocks, races.

use std::path::PathBuf;

use slabfence_emu_model::Rules;
use slabfence_emu_model::litmus::{
    Bounds, Expectation, Judgement, Litmus, Outcomes, Reason, Suite, explore, judge,
};

fn run(text: &str, states: usize) -> (Litmus, Outcomes) {
    let litmus = Litmus::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let outcomes = explore(&litmus, Rules::ASSUMED, true, Bounds { states });
    (litmus, outcomes)
}

fn two(rows: &str, last: &str) -> String {
    format!("PTX t\n{{x=0; y=0;}}\nP0@cta 0,gpu 0 | P1@cta 0,gpu 1 ;\n{rows}\n{last}")
}

const RACY: &str = "st.weak x, 1 | ld.weak r0, x ;";

#[test]
fn ends_are_all_values_of_what_the_condition_asks_for() {
    let (_, outcomes) = run(&two(RACY, "exists (P1:r0 == 1 /\\ x == 1)"), 100);
    let ends: Vec<(Vec<i64>, bool)> = outcomes.finals.clone().into_iter().collect();
    assert_eq!(ends, [(vec![0, 1], false), (vec![1, 1], true)]);
    assert_eq!(
        (outcomes.holds(), outcomes.complete, outcomes.stuck),
        (Some(true), true, Some(false))
    );
}

#[test]
fn a_race_names_both_instructions_by_line() {
    let (litmus, outcomes) = run(&two(RACY, "exists (x == 1)"), 100);
    let races = outcomes.races.expect("races were looked for");
    let said: Vec<String> = races.iter().map(|race| litmus.describe(race)).collect();
    let expected = [
        "x: race: P0 line 4, then P1 line 4",
        "x: race: P1 line 4, then P0 line 4",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_bound_that_is_hit_leaves_the_verdict_open() {
    let (_, outcomes) = run(&two(RACY, "exists (P1:r0 == 7)"), 2);
    assert_eq!((outcomes.complete, outcomes.states), (false, 2));
    assert_eq!((outcomes.holds(), outcomes.stuck), (None, None));
    let expectation = Expectation {
        file: "t".into(),
        line: 1,
        condition: false,
        race: Some(true),
        stuck: Some(false),
    };
    assert_eq!(judge(&expectation, &outcomes), Judgement::Unknown);
    assert!(!Judgement::Unknown.is_accepted());
}

#[test]
fn what_was_reached_before_the_bound_counts() {
    // It may count for ever before it sees `y`.
    let counter = "L0: | ;\natom.relaxed.sys.add r1, x, 1 | ld.weak r0, x ;\nld.relaxed.sys r2, y | ;\n\
        beq r2, 0, L0 | st.relaxed.sys y, 1 ;";
    let (_, outcomes) = run(&two(counter, "exists (P0:r2 == 1)"), 1000);
    assert_eq!((outcomes.complete, outcomes.holds()), (false, Some(true)));
    assert_eq!((outcomes.states, outcomes.stuck), (1000, None));
}

#[test]
fn a_thread_that_loops_without_memory_is_stuck() {
    let (_, outcomes) = run(
        &two("L0: | st.weak x, 1 ;\ngoto L0 | ;", "exists (x == 1)"),
        100,
    );
    assert_eq!(
        (outcomes.stuck, outcomes.holds()),
        (Some(true), Some(false))
    );
}

#[test]
fn a_poll_that_nobody_answers_is_stuck_and_one_that_may_see_late_is_not() {
    let poll = "L0: | st.relaxed.sys y, 1 ;\nld.relaxed.sys r0, x | ;\nbne r0, 1, L0 | ;";
    assert_eq!(run(&two(poll, "exists (x == 0)"), 100).1.stuck, Some(true));
    let answered = poll.replace("st.relaxed.sys y, 1", "st.relaxed.sys x, 1");
    assert_eq!(
        run(&two(&answered, "exists (x == 0)"), 100).1.stuck,
        Some(false)
    );
}

#[test]
fn a_disagreement_is_unsound_or_missed_by_its_direction() {
    let said = |text: &str, condition: bool, file: &str| {
        let (_, outcomes) = run(text, 100);
        let file = file.to_owned();
        judge(
            &Expectation {
                file,
                line: 1,
                condition,
                race: None,
                stuck: None,
            },
            &outcomes,
        )
    };
    let exists = two(RACY, "exists (P1:r0 == 0)");
    assert_eq!(said(&exists, true, "t"), Judgement::Agrees);
    assert_eq!(said(&exists, false, "t"), Judgement::Unsound);
    let never = two(RACY, "exists (P1:r0 == 7)");
    assert_eq!(said(&never, true, "t"), Judgement::Misses(None));
    assert_eq!(
        said(&never, true, "shapes/lb.litmus"),
        Judgement::Misses(Some(Reason::LoadBuffering))
    );
    let all = two(RACY, "forall (P1:r0 == 1)");
    assert_eq!(said(&all, true, "t"), Judgement::Unsound);
    assert_eq!(
        said(&two(RACY, "~exists (P1:r0 == 1)"), true, "t"),
        Judgement::Unsound
    );
    assert_eq!(
        said(&two(RACY, "forall (x == 1)"), false, "t"),
        Judgement::Misses(None)
    );
}

/// Writes a file of expectations; what is said of it.
fn refused(name: &str, text: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("expectations");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    let error = Suite::read(&path).expect_err("it is refused").to_string();
    error.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn wrong_expectations_are_refused_with_their_line() {
    assert_eq!(
        refused("a.csv", "t.litmus,1\n\nu.litmus,2\n"),
        "a.csv:3: expected 0 or 1, found `2`"
    );
    assert_eq!(
        refused("b.csv", "t.litmus\n"),
        "b.csv:1: expected `file,condition[,race[,stuck]]`"
    );
    assert_eq!(
        refused("c.csv", "t,1,1,1,1\n"),
        "c.csv:1: expected `file,condition[,race[,stuck]]`"
    );
    assert_eq!(
        refused("d.csv", "t,1\n# t\nt,0\n"),
        "d.csv:3: `t` is in line 1 already"
    );
    assert_eq!(
        refused("e.csv", "# nothing\n"),
        "e.csv: no line names a litmus file"
    );
}
