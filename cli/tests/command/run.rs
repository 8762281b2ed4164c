//! Running the binary.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// No run of these tests takes nearly as long; one that does hangs.
const HANG: Duration = Duration::from_secs(300);

/// What a run left.
#[derive(Debug)]
pub struct Run {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Run {
    /// Runs `slabfence decode` on the emulated machine.
    pub fn decode(args: &[&str]) -> Self {
        Self::of("decode", args)
    }

    /// Runs a command of `slabfence` on the emulated machine.
    pub fn of(name: &str, args: &[&str]) -> Self {
        Self::with(&[&[name, "--driver", "emulated"], args].concat())
    }

    /// Runs `slabfence` with exactly these arguments.
    pub fn with(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slabfence"));
        command.args(args);
        command.env_remove("RUST_LOG");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
        let status = wait(&mut child);
        let text = |reader: thread::JoinHandle<String>| reader.join().expect("output is text");
        let (out, err) = (text(out), text(err));
        match status {
            Some(status) => Self {
                code: status.code(),
                out,
                err,
            },
            None => panic!("{args:?} did not end within {HANG:?}\n{out}\n{err}"),
        }
    }

    /// Runs with `--json`; the object.
    pub fn json(args: &[&str]) -> serde_json::Value {
        let run = Self::decode(&[args, &["--json"]].concat());
        assert_eq!(run.code, Some(0), "{args:?}\n{}\n{}", run.out, run.err);
        serde_json::from_str(&run.out).expect("one JSON object")
    }

    /// Runs what must be refused: status 2, one error that says this, and nothing on standard output.
    pub fn refused(args: &[&str], words: &str) {
        let run = Self::decode(args);
        assert_eq!(run.code, Some(2), "{args:?}\n{}\n{}", run.out, run.err);
        assert!(run.err.contains(words), "{args:?}: {}", run.err);
        assert_eq!(run.out, "", "{args:?}");
        assert_eq!(run.err.trim().lines().count(), 1, "{args:?}: {}", run.err);
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_string(&mut text).expect("output is text");
        }
        text
    })
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let begin = Instant::now();
    while begin.elapsed() < HANG {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
    None
}
