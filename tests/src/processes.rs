//! Ranks as processes: starting, watching and killing them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// No scenario takes nearly as long; one that does hangs.
const HANG: Duration = Duration::from_secs(100);
/// What a rank prints when it stands where the scenario wants it.
pub const READY: &str = "ready";

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
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
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

impl Ranks {
    /// Starts `program SCENARIO FOLDER RANK WORLD` for each of `ranks`.
    ///
    /// # Panics
    ///
    /// When a process cannot be started: these are tests.
    pub fn start(
        program: &str,
        scenario: &str,
        folder: &Folder,
        ranks: &[u32],
        world: u32,
    ) -> Self {
        let processes = ranks.iter().map(|rank| {
            let mut child = Command::new(program)
                .arg(scenario)
                .arg(folder.path())
                .args([rank.to_string(), world.to_string()])
                .stdin(Stdio::null())
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
                child,
                lines,
                errors: Some(errors),
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
        let left = self.until.saturating_duration_since(Instant::now());
        let line = self.processes[index].lines.recv_timeout(left);
        assert_eq!(line.as_deref(), Ok(READY), "process {index}");
    }

    /// Kills process `index` (SIGKILL).
    ///
    /// # Panics
    ///
    /// When it cannot be killed.
    pub fn kill(&mut self, index: usize) {
        let child = &mut self.processes[index].child;
        child.kill().expect("the child is ours");
    }

    /// Waits for all and tells how they ended.
    ///
    /// # Panics
    ///
    /// When one hangs.
    pub fn finish(mut self) -> Vec<Ending> {
        let until = self.until;
        let processes = self.processes.iter_mut().enumerate();
        processes
            .map(|(index, process)| {
                let mut out = Vec::new();
                loop {
                    let left = until.saturating_duration_since(Instant::now());
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
            })
            .collect()
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
