//! The log of a run whose ranks are processes.

use std::process::{Command, Stdio};

#[test]
fn every_line_of_a_pool_of_processes_names_rank_and_pool_and_a_hand_over_both_ranks() {
    let run = Command::new(env!("CARGO_BIN_EXE_slabfence"))
        .args(["decode", "--driver", "emulated"])
        .args(["--ranks", "2", "--replays", "1"])
        .env(
            "RUST_LOG",
            "slabfence::group=debug,slabfence::channel=debug",
        )
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let told = String::from_utf8(run.stderr).expect("text");
    assert_eq!(run.status.code(), Some(0), "{told}");
    let lines: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split_once("] "))
        .map(|(_, line)| line)
        .collect();
    for rank in [0, 1] {
        let begin = format!("rank {rank}, pool 1: ");
        let said: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.strip_prefix(&*begin))
            .collect();
        for step in [
            "create: pending",
            "create: self test, compare",
            "prepare: names",
            "close: free",
        ] {
            let words = format!("{step}: all ranks agree");
            assert!(said.contains(&&*words), "{words}: {said:?}");
        }
        let other = format!("create: hand over: memory for rank {}, process ", 1 - rank);
        let handed = said.iter().filter(|line| line.starts_with(&other));
        assert_eq!(handed.count(), 1, "{said:?}");
    }
    // What the run does besides its pool has ranks alone.
    for line in lines {
        let (begin, words) = line.split_once(": ").expect(line);
        let of_pool = [
            "create: ",
            "prepare: ",
            "prepared channel ",
            "capture scope ",
            "close: ",
        ];
        let pool = if of_pool.iter().any(|step| words.starts_with(step)) {
            ", pool 1"
        } else {
            ""
        };
        assert!(
            [0, 1]
                .map(|rank| format!("rank {rank}{pool}"))
                .contains(&begin.to_owned()),
            "{line}"
        );
    }
}
