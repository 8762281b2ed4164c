//! `slabfence bench` on the emulated machine: results are checked, nothing is timed.

use super::run::Run;

const SMALL: [&str; 10] = [
    "--ranks",
    "2",
    "--batch",
    "1,3",
    "--heads",
    "4",
    "--query-dim",
    "48",
    "--value-dim",
    "32",
];

#[test]
fn every_operation_transport_and_size_is_checked_and_not_timed() {
    let run = Run::of("bench", &[&SMALL[..], &["--json"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.err);
    let report: serde_json::Value = serde_json::from_str(&run.out).expect("one JSON object");
    assert_eq!(
        (&report["ok"], &report["emulated"]),
        (&true.into(), &true.into())
    );
    let rows = report["rows"].as_array().unwrap();
    let case = |row: &serde_json::Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        (
            text("operation"),
            text("transport"),
            row["batch"].as_u64().unwrap(),
            row["bytes"].as_u64().unwrap(),
        )
    };
    let of = |operation: &str, transport: &str, batch, bytes| {
        (operation.to_owned(), transport.to_owned(), batch, bytes)
    };
    assert_eq!(
        rows.iter().map(case).collect::<Vec<_>>(),
        [
            of("floor", "push", 1, 32),
            of("gather", "push", 1, 192),
            of("gather", "push", 3, 576),
            of("reduce", "push", 1, 128),
            of("reduce", "push", 3, 384),
            of("floor", "pull", 1, 32),
            of("gather", "pull", 1, 192),
            of("gather", "pull", 3, 576),
            of("reduce", "pull", 1, 128),
            of("reduce", "pull", 3, 384),
        ]
    );
    for row in rows {
        assert_eq!(row["right"], true);
        assert!(
            row["graph"].is_null() && row["alone"].is_null() && row["blocking"].is_null(),
            "an emulated time is no GPU time"
        );
    }
}

#[test]
fn a_picture_of_nothing_is_refused() {
    let run = Run::of("bench", &[&SMALL[..], &["--svg", "none.svg"]].concat());
    assert_eq!(run.code, Some(2));
    let words = "--svg: nothing is timed on the emulated machine";
    assert!(run.err.contains(words), "{}", run.err);
}

#[test]
fn peers_are_not_compared_with_emulated_times() {
    let run = Run::of("bench", &[&SMALL[..], &["--peers", "none.py"]].concat());
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("--peers"), "{}", run.err);
}

#[test]
fn ranks_as_threads_and_as_processes_check_the_same_cases() {
    let rows = |more: &[&str]| {
        let run = Run::of("bench", &[&SMALL[..], &["--json"], more].concat());
        let report: serde_json::Value = serde_json::from_str(&run.out).expect("one JSON object");
        (report["processes"].clone(), report["rows"].clone())
    };
    let (threads, processes) = (rows(&["--threads"]), rows(&[]));
    assert_eq!((&threads.0, &processes.0), (&false.into(), &true.into()));
    assert_eq!(threads.1, processes.1);
    // The emulated machine has a device for each.
    assert_eq!(rows(&["--threads", "--oversubscribe"]), threads);
}

#[test]
fn numbers_of_ranks_that_no_group_has_are_refused() {
    for ranks in ["0", "1", "17"] {
        let run = Run::of("bench", &["--ranks", ranks]);
        let words = format!("slabfence: --ranks {ranks}: a group has 2 to 16 ranks\n");
        assert_eq!((run.code, run.err), (Some(2), words));
    }
}
