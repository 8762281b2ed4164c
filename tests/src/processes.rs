//! Ranks as processes: starting, watching and killing them, and what they leave.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// No scenario takes nearly as long; one that does hangs.
const HANG: Duration = Duration::from_secs(300);
/// What a rank prints when it stands where the scenario wants it.
pub const READY: &str = "ready";
/// What a rank prints that could get no network namespace of its own, before it goes on in that of the others.
pub const TOGETHER: &str = "no namespace of its own";
/// How the emulated machine's memory files are called.
const MEMORY: &str = "/memfd:slabfence-emu-device-";

/// A folder of its own for a test, removed at its end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new, empty folder.
    ///
    /// # Panics
    ///
    /// When it cannot be made: these are tests.
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("slabfence-tests-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Files in it.
    ///
    /// # Panics
    ///
    /// When it cannot be read: these are tests.
    pub fn files(&self) -> usize {
        fs::read_dir(&self.0).expect("the folder").count()
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A test that fails meanwhile must not hide behind this.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A rank's process.
#[derive(Debug)]
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
    killed: bool,
}

/// The ranks of one scenario. What still runs at the drop is killed.
#[derive(Debug)]
pub struct Ranks {
    processes: Vec<Process>,
    until: Instant,
}

/// How a rank ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Its exit code; `None`: it was killed.
    pub code: Option<i32>,
    /// What it printed.
    pub out: Vec<String>,
    /// What it printed as errors.
    pub errors: String,
}

impl Ending {
    /// Of a rank that did all, and left nothing.
    pub fn right() -> Self {
        Self {
            code: Some(0),
            out: vec!["done".to_owned(), "nothing left".to_owned()],
            errors: String::new(),
        }
    }
}

impl Ranks {
    /// Starts `program SCENARIO FOLDER RANK WORLD` for each of `ranks`.
    ///
    /// # Panics
    ///
    /// When a process cannot be started: these are tests.
    pub fn start(program: &str, scenario: &str, folder: &Path, ranks: &[u32], world: u32) -> Self {
        Self::start_in(&[], program, scenario, folder, ranks, world)
    }

    /// [`start`](Self::start) with variables in the environment.
    ///
    /// # Panics
    ///
    /// As that.
    pub fn start_in(
        variables: &[(&str, &str)],
        program: &str,
        scenario: &str,
        folder: &Path,
        ranks: &[u32],
        world: u32,
    ) -> Self {
        let processes = ranks.iter().map(|rank| {
            let mut child = Command::new(program)
                .envs(variables.iter().copied())
                .arg(scenario)
                .arg(folder)
                .args([rank.to_string(), world.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program runs");
            let out = child.stdout.take().expect("a pipe");
            let mut errors = child.stderr.take().expect("a pipe");
            let (sender, lines) = mpsc::channel();
            thread::spawn(move || {
                let mut lines = BufReader::new(out).lines().map_while(Result::ok);
                lines.all(|line| sender.send(line).is_ok())
            });
            let errors = thread::spawn(move || {
                let mut text = String::new();
                errors.read_to_string(&mut text).expect("text");
                text
            });
            Process {
                input: child.stdin.take(),
                child,
                lines,
                errors: Some(errors),
                killed: false,
            }
        });
        Self {
            processes: processes.collect(),
            until: Instant::now() + HANG,
        }
    }

    /// Waits until process `index` stands where the scenario wants it.
    ///
    /// # Panics
    ///
    /// When it does not come there.
    pub fn ready(&self, index: usize) {
        assert_eq!(self.said(index), READY, "process {index}");
    }

    /// The next line that process `index` prints.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn said(&self, index: usize) -> String {
        let left = self.until.saturating_duration_since(Instant::now());
        let line = self.processes[index].lines.recv_timeout(left);
        line.unwrap_or_else(|error| panic!("process {index}: {error}"))
    }

    /// Lets process `index` go on from where it stands.
    ///
    /// # Panics
    ///
    /// When it is not there any more.
    pub fn go(&mut self, index: usize) {
        let input = self.processes[index].input.as_mut();
        let told = input.map(|input| input.write_all(b"go\n"));
        told.expect("a pipe").expect("a process that reads");
    }

    /// Kills process `index` (SIGKILL), and waits until it is dead: the signal alone takes its time on a busy machine.
    ///
    /// # Panics
    ///
    /// When it cannot be killed.
    pub fn kill(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.child.kill().expect("the child is ours");
        process.child.wait().expect("the child is ours");
        process.killed = true;
    }

    /// Whether process `index` is stopped (SIGSTOP).
    ///
    /// # Panics
    ///
    /// When that cannot be read.
    pub fn is_stopped(&self, index: usize) -> bool {
        let stat = format!("/proc/{}/stat", self.processes[index].child.id());
        let stat = fs::read_to_string(stat).expect("a process of this user");
        // Number, name in brackets, state.
        let state = stat.rsplit(") ").next().expect("a state");
        state.starts_with('T')
    }

    /// Continues process `index` (SIGCONT).
    ///
    /// # Panics
    ///
    /// When it cannot be continued.
    pub fn resume(&self, index: usize) {
        let pid = Pid::from_child(&self.processes[index].child);
        kill_process(pid, Signal::CONT).expect("the child is ours");
    }

    /// Numbers of the memory files that process `index` holds or maps.
    ///
    /// # Panics
    ///
    /// When that cannot be read.
    pub fn memory(&self, index: usize) -> BTreeSet<u64> {
        memory_of(self.processes[index].child.id()).expect("a process of this user")
    }

    /// Waits for process `index`. Its input is closed before.
    ///
    /// # Panics
    ///
    /// When it hangs.
    pub fn ending(&mut self, index: usize) -> Ending {
        let process = &mut self.processes[index];
        process.input = None;
        let mut out = Vec::new();
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            match process.lines.recv_timeout(left) {
                Ok(line) => out.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("process {index} hangs: {out:?}"),
            }
        }
        let code = process.child.wait().expect("the child is ours").code();
        let errors = process.errors.take().map(JoinHandle::join);
        let errors = errors.expect("asked once").expect("text");
        Ending { code, out, errors }
    }

    /// Waits for all, last for those that were killed, whose own children may outlive them, and tells how they ended.
    ///
    /// # Panics
    ///
    /// When one hangs.
    pub fn finish(mut self) -> Vec<Ending> {
        let mut order: Vec<usize> = (0..self.processes.len()).collect();
        order.sort_by_key(|&index| self.processes[index].killed);
        let mut endings: Vec<(usize, Ending)> = order
            .into_iter()
            .map(|index| (index, self.ending(index)))
            .collect();
        endings.sort_by_key(|(index, _)| *index);
        endings.into_iter().map(|(_, ending)| ending).collect()
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // Whoever has ended need not be killed.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

/// Numbers of the memory files that a process holds or maps; `None` where that cannot be read, or it has ended.
pub fn memory_of(process: u32) -> Option<BTreeSet<u64>> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{process}/fd")).ok()? {
        // A descriptor may be closed meanwhile.
        let Ok(path) = entry.map(|entry| entry.path()) else {
            continue;
        };
        let is_memory =
            fs::read_link(&path).is_ok_and(|to| to.to_string_lossy().starts_with(MEMORY));
        if let Ok(file) = fs::metadata(&path)
            && is_memory
        {
            files.insert(file.ino());
        }
    }
    for line in fs::read_to_string(format!("/proc/{process}/maps"))
        .ok()?
        .lines()
    {
        // Addresses, rights, offset, device, number of the file, name.
        let mut words = line.split_whitespace().skip(4);
        let number: Option<u64> = words.next().and_then(|number| number.parse().ok());
        if words.next().is_some_and(|name| name.starts_with(MEMORY)) {
            files.extend(number);
        }
    }
    Some(files)
}

/// Processes that hold or map one of these memory files.
///
/// # Panics
///
/// When the list of processes cannot be read.
pub fn holders(files: &BTreeSet<u64>) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("the list of processes");
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|&process| memory_of(process).is_some_and(|held| !held.is_disjoint(files)))
        .collect()
}
