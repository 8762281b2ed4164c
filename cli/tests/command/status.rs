//! `slabfence status`.

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::health::FaultReport;
use slabfence::layout::{Cause, split_verdict};
use slabfence::status::{self, SCHEMA};
use slabfence_tests::late::FAIL;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_ranks};

use super::files::Folder;
use super::run::Run;

/// No look at a run takes nearly as long.
const HANG: Duration = Duration::from_secs(120);

fn run(folder: &Folder, more: &[&str]) -> Run {
    let path = folder.path("");
    let args = [&["status", "--folder", path.trim_end_matches('/')], more];
    Run::with(&args.concat())
}

fn pools(document: &Value) -> impl Iterator<Item = &Value> {
    document["pools"].as_array().expect("pools").iter()
}

/// Holds that a failure is told as its rank reads it.
fn is_told(told: &Value, fault: &FaultReport) {
    let cause = fault.cause.expect("a known cause");
    let epoch = json!({ "epoch": fault.expected });
    let (expected, seen) = match cause {
        Cause::TagMismatch => (
            json!({ "tag": fault.expected }),
            json!({ "tag": fault.seen }),
        ),
        // Of the rank that found the tags to differ, or was told of it in its turn.
        Cause::PeerFailed => {
            let (cause, of) = split_verdict(fault.seen).expect("a verdict");
            (epoch, json!({ "cause": format!("{cause:?}"), "epoch": of }))
        }
        _ => (epoch, Value::Null),
    };
    let wanted = json!({
        "words": fault.to_string(),
        "cause": format!("{cause:?}"),
        "operation": "all_gather_heads",
        "epoch": 2,
        "late_rank": fault.late_rank.map(|rank| rank.0),
        "late_ranks": fault.late_ranks.iter().map(|rank| rank.0).collect::<Vec<_>>(),
        "cta": fault.cta,
        "phase": fault.phase,
        "expected": expected,
        "seen": seen,
        "waited_seconds": fault.waited.as_secs_f64(),
    });
    assert_eq!(told, &wanted);
}

#[test]
fn a_running_processs_pools_are_told_as_text_and_json() {
    let folder = Folder::for_sockets("status-told");
    let server = status::serve(folder.path("").as_ref()).unwrap();
    let process = std::process::id().to_string();
    let (_machine, driver) = machine(2);
    let contract = Contract {
        fail: FAIL,
        ..Contract::new(4, 64, 64, 8)
    };
    let faults = Mutex::new(BTreeMap::new());
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "a\u{1b}[31m").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        // Tags differ.
        let gather = Gather::new(member, &contract, 1 + member.rank()).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        stream.synchronize().unwrap();
        let fault = channel.fault().unwrap().expect("a fault");
        faults
            .lock()
            .unwrap()
            .insert(u64::from(member.rank()), fault);
        member.meet();
        if member.rank() == 0 {
            let json = run(&folder, &["--json", &process]);
            assert_eq!(json.code, Some(0), "{}", json.err);
            let report: Value = serde_json::from_str(&json.out).expect("one JSON object");
            assert_eq!(report["ok"], true);
            assert_eq!(report["schema"], SCHEMA);
            assert_eq!(report["processes"][0]["process"], std::process::id());
            let mut causes = Vec::new();
            let ranks: Vec<_> = pools(&report["processes"][0])
                .map(|pool| {
                    assert_eq!(pool["health"], "failed");
                    let channel = &pool["channels"][0];
                    assert_eq!(channel["name"], "a\u{1b}[31m");
                    assert_eq!(channel["launched"], 1);
                    let rank = pool["rank"].as_u64().expect("a rank");
                    is_told(&channel["fault"], &faults.lock().unwrap()[&rank]);
                    causes.push(channel["fault"]["cause"].clone());
                    pool["rank"].as_u64()
                })
                .collect();
            assert_eq!(ranks.len(), 2);
            assert!(causes.contains(&"TagMismatch".into()), "{causes:?}");
            assert!(ranks.contains(&Some(0)) && ranks.contains(&Some(1)));

            let text = run(&folder, &[]);
            assert_eq!(text.code, Some(0), "{}", text.err);
            let said = |words: &str| assert!(text.out.contains(words), "{words}: {}", text.out);
            said(&format!("process {process}, slabfence "));
            said(": rank 1 of 2, device 1 (");
            said(", push: open, failed\n");
            // What a channel costs: one number, of which the local block, which never changes, is told apart.
            let pool = pools(&report["processes"][0]).next().expect("a pool");
            let bytes = &pool["channels"][0]["bytes"];
            let [total, local, signal, inbox] = ["total", "local", "signal", "inbox"]
                .map(|kind| bytes[kind].as_u64().expect("bytes"));
            assert_eq!((local, total), (8704, local + signal + inbox));
            let total = total as f64 / 1024.0;
            said(&format!(
                "    channels: 1 of 4, each {total:.1} KiB (local 8.5 KiB, signal "
            ));
            said("      a\\u{1b}[31m: eager; ");
            said("1 launched, 0 recorded\n        FAULT: rank ");
            assert!(!text.out.contains('\u{1b}'), "{}", text.out);
        }
        member.meet();
        pool.close().unwrap();
    });
    drop(server);
    let (gone, all) = (run(&folder, &[&process]), run(&folder, &[]));
    let path = folder.path("");
    let path = path.trim_end_matches('/');
    let words = format!("slabfence: process {process} tells nothing in {path}\n");
    assert_eq!((gone.code, gone.err), (Some(1), words));
    let words = format!("slabfence: no process tells anything in {path}\n");
    assert_eq!((all.code, all.err), (Some(1), words));
}

#[test]
fn wrong_use_has_a_status_of_its_own() {
    let folder = Folder::for_sockets("status-wrong");
    let absent = folder.path("absent");
    let run = Run::with(&["status", "--folder", &absent, "--json"]);
    let words = format!("--folder {absent}: No such file or directory (os error 2)");
    assert_eq!(
        (run.code, run.err),
        (Some(2), format!("slabfence: {words}\n"))
    );
    let report: Value = serde_json::from_str(&run.out).expect("one JSON object");
    assert_eq!(report, json!({ "ok": false, "error": words }));
    assert_eq!(Run::with(&["status", "one"]).code, Some(2));
}

#[test]
fn a_socket_of_another_kind_is_told_as_no_answer() {
    let folder = Folder::for_sockets("status-odd");
    let process = std::process::id().to_string();
    let path = folder.path(&format!("slabfence-{process}.status"));
    let _other = UnixDatagram::bind(path).unwrap();
    let run = run(&folder, &[]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    let words = format!("slabfence: process {process}: ");
    assert!(run.err.starts_with(&words), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
}

#[test]
fn ranks_of_a_decode_step_that_opted_in_are_seen_while_it_runs() {
    let folder = Folder::for_sockets("status-decode");
    let path = folder.path("");
    // Far longer than this test looks; the ranks end with the process that started them.
    let mut decode = Command::new(env!("CARGO_BIN_EXE_slabfence"))
        .args(["decode", "--driver", "emulated", "--ranks", "2"])
        .args(["--replays", "100000000", "--status", &path])
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let until = Instant::now() + HANG;
    let seen = loop {
        let run = run(&folder, &["--json"]);
        let report: Value = serde_json::from_str(&run.out).expect("one JSON object");
        let processes = report["processes"].as_array().cloned().unwrap_or_default();
        let ready = |process: &Value| {
            let mut pools = pools(process);
            pools.any(|pool| {
                pool["channels"]
                    .as_array()
                    .is_some_and(|all| !all.is_empty())
            })
        };
        if processes.len() == 2 && processes.iter().all(ready) {
            break processes;
        }
        assert_eq!(decode.try_wait().unwrap(), None, "it ended: {report}");
        if Instant::now() >= until {
            decode.kill().unwrap();
            panic!("not seen within {HANG:?}: {report}");
        }
    };
    decode.kill().unwrap();
    decode.wait().unwrap();
    let ranks = seen
        .iter()
        .map(|process| &pools(process).next().expect("a pool")["rank"]);
    let mut ranks: Vec<_> = ranks.filter_map(Value::as_u64).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [0, 1]);
}

#[test]
fn decode_refuses_a_folder_that_is_not_there() {
    let folder = Folder::for_sockets("status-absent");
    let absent = folder.path("absent");
    let args = [
        "--ranks",
        "2",
        "--threads",
        "--replays",
        "1",
        "--status",
        &absent,
    ];
    let run = Run::decode(&args);
    assert_eq!(run.code, Some(2), "{}\n{}", run.out, run.err);
    assert!(run.err.contains(&absent), "{}", run.err);
}
