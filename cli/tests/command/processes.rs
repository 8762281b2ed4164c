//! Ranks as processes: what ends when something is killed, and what is left.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use safetensors::SafeTensors;

use super::files::Folder;
use super::run::Run;

/// Nothing here takes nearly as long.
const HANG: Duration = Duration::from_secs(300);

/// Waits until `done` gives something.
fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        match done() {
            Some(value) => return value,
            None => assert!(begin.elapsed() < HANG, "never {what}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Process of rank `rank` of this run, once it is there.
fn process_of(run: &Child, rank: u32) -> Pid {
    until("started", || {
        let list = format!("/proc/{0}/task/{0}/children", run.id());
        let children = fs::read_to_string(list).ok()?;
        children.split_whitespace().find_map(|child| {
            let line = fs::read_to_string(format!("/proc/{child}/cmdline")).ok()?;
            let words: Vec<&str> = line.split('\0').collect();
            let at = words.iter().position(|word| *word == "--as-rank")?;
            let found = words.get(at + 1) == Some(&rank.to_string().as_str());
            found.then(|| Pid::from_raw(child.parse().ok()?))?
        })
    })
}

fn is_alive(process: Pid) -> bool {
    // One that has ended and was not waited for has no memory any more.
    let path = format!("/proc/{}/statm", process.as_raw_nonzero());
    fs::read_to_string(path).is_ok_and(|sizes| !sizes.starts_with("0 "))
}

/// A run that would take hours. Its folders: that of the ranks, and that of the graph which they write down just before
/// they replay it.
struct Endless {
    ranks: Folder,
    graph: Folder,
}

impl Endless {
    fn new(name: &str) -> Self {
        Self {
            ranks: Folder::for_sockets(name),
            graph: Folder::new(&format!("{name}-graph")),
        }
    }

    fn start(&self) -> Child {
        // The signals that end it would else stay ignored where these tests run in the background or under `nohup`.
        self.start_with("--default-signal=HUP,INT,TERM")
    }

    /// Starts it with signals as this option of `env` says.
    fn start_with(&self, signals: &str) -> Child {
        Command::new("env")
            .args([signals, env!("CARGO_BIN_EXE_slabfence")])
            .args(["decode", "--driver", "emulated", "--replays", "10000000"])
            .args(["--dump-graph", &self.graph.path("graph.txt")])
            .env("TMPDIR", self.ranks.path(""))
            .env("RUST_LOG", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs")
    }

    /// Waits until the ranks replay their graphs.
    fn replays(&self) {
        let path = self.graph.path("graph.txt");
        until("replayed", || Path::new(&path).exists().then_some(()));
        until("met", || self.ranks.names().is_empty().then_some(()));
    }
}

/// Kills a rank and checks that the run ends as it should.
fn killed(endless: &Endless, run: Child, all: &[Pid], victim: u32) {
    kill_process(all[victim as usize], Signal::KILL).unwrap();
    let begin = Instant::now();
    let ended = run.wait_with_output().unwrap();
    assert!(begin.elapsed() < HANG);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let words = format!("rank {victim}: it was killed by signal 9");
    assert!(said.contains(&words), "{said}");
    assert_eq!(ended.stdout, b"");
    assert!(!all.iter().any(|&rank| is_alive(rank)));
    assert_eq!(endless.ranks.names(), [""; 0]);
}

fn processes_of(run: &Child) -> Vec<Pid> {
    (0..4).map(|rank| process_of(run, rank)).collect()
}

#[test]
fn a_rank_that_is_killed_at_its_start_ends_the_run_by_name() {
    let endless = Endless::new("killed-early");
    let run = endless.start();
    let all = processes_of(&run);
    killed(&endless, run, &all, 3);
}

#[test]
fn a_rank_that_is_killed_between_replays_ends_the_run_by_name() {
    for victim in [0, 2] {
        let endless = Endless::new(&format!("killed-{victim}"));
        let run = endless.start();
        let all = processes_of(&run);
        endless.replays();
        killed(&endless, run, &all, victim);
    }
}

#[test]
fn ranks_die_with_the_command() {
    let endless = Endless::new("orphans");
    let mut run = endless.start();
    let all = processes_of(&run);
    endless.replays();
    run.kill().unwrap();
    run.wait().unwrap();
    until("gone", || {
        (!all.iter().any(|&process| is_alive(process))).then_some(())
    });
    assert_eq!(endless.ranks.names(), [""; 0]);
}

#[test]
fn what_a_killed_command_has_left_goes_at_the_next_start_and_nothing_else() {
    let endless = Endless::new("killed-command");
    let mut run = endless.start();
    // They have not met, and will not.
    kill_process(process_of(&run, 3), Signal::STOP).unwrap();
    until("met at", || {
        (!endless.ranks.names().is_empty()).then_some(())
    });
    run.kill().unwrap();
    run.wait().unwrap();
    let left = endless.ranks.names();
    assert_eq!(left.len(), 1, "{left:?}");

    let at = |name: &str| endless.ranks.path(name);
    let make = |name: &str, mode| {
        DirBuilder::new().mode(mode).create(at(name)).unwrap();
        name.to_owned()
    };
    let mut stay = vec![
        make("slabfence-00000000000000a0", 0o750),
        make("slabfence-00000000000000a1", 0o700),
        make("slabfence-00000000000000a2", 0o700),
        make("slabfence-a3", 0o700),
        make("another", 0o700),
        "slabfence-00000000000000a4".to_owned(),
    ];
    for file in [
        format!("{}/lock", stay[0]),
        format!("{}/lock", stay[1]),
        format!("{}/slabfence-own", stay[1]),
        format!("{}/lock", stay[2]),
        format!("{}/lock", stay[3]),
        "another/lock".to_owned(),
    ] {
        fs::write(at(&file), b"").unwrap();
    }
    let held = fs::File::open(at(&format!("{}/lock", stay[2]))).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    symlink(at("another"), at(&stay[5])).unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_slabfence"))
        .args(["decode", "--driver", "emulated", "--replays", "1"])
        .env("TMPDIR", at(""))
        .output()
        .expect("the binary runs");
    assert!(ended.status.success(), "{ended:?}");
    let mut names = endless.ranks.names();
    names.sort();
    stay.sort();
    assert_eq!(names, stay);
}

/// Runs a short decode with these arguments and this standard output; status and words.
fn short(args: &[&str], out: Stdio) -> (Option<i32>, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_slabfence"))
        .args(["decode", "--driver", "emulated", "--replays", "1"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let ended = run.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    (ended.status.code(), said)
}

#[test]
fn results_that_cannot_be_written_down_end_the_run_in_words() {
    // Every write to it is to a full disk.
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let (code, said) = short(&["--json"], full.unwrap().into());
    assert_eq!(code, Some(1), "{said}");
    let words = "slabfence: standard output cannot be written: No space left on device";
    assert!(said.starts_with(words), "{said}");
}

#[test]
fn an_error_that_cannot_be_told_leaves_its_status() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let run = Command::new(env!("CARGO_BIN_EXE_slabfence"))
        .args(["decode", "--ranks", "1"])
        .stderr(full.unwrap())
        .status();
    assert_eq!(run.expect("the binary runs").code(), Some(2));
}

#[test]
fn a_signal_before_the_ranks_have_met_leaves_no_folder() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let endless = Endless::new(&format!("signal-{}", signal.as_raw()));
        let (mut run, stopped) = until("held before its ranks met", || {
            let mut run = endless.start();
            // Nobody meets a rank that is stopped. It may have been too fast.
            let second = process_of(&run, 1);
            kill_process(second, Signal::STOP).unwrap();
            if !endless.ranks.names().is_empty() {
                return Some((run, second));
            }
            kill_process(second, Signal::CONT).unwrap();
            run.kill().unwrap();
            run.wait().unwrap();
            None
        });
        let all = processes_of(&run);
        kill_process(Pid::from_child(&run), signal).unwrap();
        let ended = until("ended", || run.try_wait().unwrap());
        assert_eq!(ended.signal(), Some(signal.as_raw()));
        assert_eq!(endless.ranks.names(), [""; 0]);
        // It may have been stopped before it was tied to the run; then it finds the run ended. Else it has gone already.
        let _ = kill_process(stopped, Signal::CONT);
        until("gone", || {
            (!all.iter().any(|&process| is_alive(process))).then_some(())
        });
    }
}

#[test]
fn a_signal_that_the_caller_has_ignored_ends_no_run() {
    let endless = Endless::new("ignored");
    let mut run = endless.start_with("--ignore-signal=HUP,INT");
    let all = processes_of(&run);
    for signal in [Signal::HUP, Signal::INT] {
        for &process in [Pid::from_child(&run)].iter().chain(&all) {
            kill_process(process, signal).unwrap();
        }
    }
    endless.replays();
    assert!(all.iter().all(|&process| is_alive(process)));
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let ended = until("ended", || run.try_wait().unwrap());
    assert_eq!(ended.signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn a_folder_in_which_the_ranks_cannot_meet_is_refused() {
    let folder = Folder::new("nowhere");
    for there in [&folder.path("absent")[..], "/proc/self/task"] {
        let run = Command::new(env!("CARGO_BIN_EXE_slabfence"))
            .args(["decode", "--driver", "emulated"])
            .env("TMPDIR", there)
            .output()
            .expect("the binary runs");
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{said}");
        let words = format!("no folder for the ranks to meet in: {there}");
        assert!(said.contains(&words), "{said}");
        assert!(said.contains("set TMPDIR"), "{said}");
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn threads_and_processes_give_the_same_bits() {
    let folder = Folder::new("roles");
    let output = |role: &[&str], processes: bool| {
        let path = folder.path("output");
        let args = ["--replays", "2", "--batch", "2", "--output", &path];
        let report = Run::json(&[&args[..], role].concat());
        assert_eq!(report["processes"], processes);
        let file = fs::read(&path).unwrap();
        let tensors = SafeTensors::deserialize(&file).unwrap();
        let bytes = |name: &str| tensors.tensor(name).unwrap().data().to_vec();
        [bytes("b2.layer0.output"), bytes("b2.layer0.expected")]
    };
    // Not `assert_eq`, which would print all of it.
    assert!(output(&[], true) == output(&["--threads"], false));
}
