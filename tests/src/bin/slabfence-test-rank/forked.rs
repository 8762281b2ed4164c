//! Forks, as hosts make them.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use slabfence::Error;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::Stream;
use slabfence::status;
use slabfence_tests::ranks::Member;

use super::Outcome;
use super::attempts::Stage;
use super::gate::{self, Gate};
use super::part::Part;

/// Seconds after which a child that hangs is killed.
const WATCHDOG: u32 = 60;

unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn alarm(seconds: u32) -> u32;
    safe fn _exit(code: i32) -> !;
}

/// Marks the way out of a forked child: everything is dropped on it, and nothing of it may reach the parent.
#[derive(Debug)]
pub struct Child {
    /// Whether all was as it should be.
    pub right: bool,
}

impl fmt::Display for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Child {}

/// Ends a forked child, without what the parent does at its exit.
pub fn leave(right: bool) -> ! {
    _exit(i32::from(!right))
}

/// Starts a child that does nothing, and holds whatever this process has open until the test closes its input.
pub fn companion() -> Outcome {
    match fork() {
        -1 => Err("no fork".into()),
        0 => {
            let waited = io::stdin().lock().read_to_end(&mut Vec::new());
            leave(waited.is_ok())
        }
        _ => Ok(()),
    }
}

/// Forks inside a capture scope; the child tries everything and ends, the parent goes on as if nothing had been.
pub fn try_everything(
    part: &Part,
    member: &Member,
    contract: &Contract,
    pool: &Pool,
    channel: &Channel,
) -> Outcome {
    let stream = Stream::new(&member.device)?;
    let mut stage = Stage::new(member, contract, pool, channel)?;
    // Whoever is killed leaves its socket, to go with the scenario's folder.
    let folder = Path::new(&part.folder);
    let server = status::serve(folder)?;
    let scope = pool.capture("decode", &stream)?;
    match fork_watched(&mut stage)? {
        Some(mut wrong) => {
            let left = scope.finish();
            if !matches!(left, Err(Error::Forked)) {
                wrong.push(format!("CaptureScope::finish in a forked child: {left:?}"));
            }
            Err(told(&wrong))
        }
        None => {
            scope.finish()?;
            // The child has dropped it too, and ended.
            if !server.path().exists() {
                return Err("a forked child has removed the socket of its parent's server".into());
            }
            let told = status::read(folder, process::id())?;
            let told = told.ok_or("the server does not answer behind a fork")?;
            if told.pools.len() != 1 {
                return Err(format!("behind a fork the server tells of {:?}", told.pools).into());
            }
            stage.unchanged()
        }
    }
}

/// Forks while another thread holds what a pool is guarded by: in an exchange that waits for the peers, then with the pool's
/// memory taken away in part. The pool is closed afterwards.
pub fn try_while_held(
    member: &Member,
    contract: &Contract,
    pool: &Arc<Pool>,
    channel: &Channel,
) -> Outcome {
    let mut stage = Stage::new(member, contract, pool, channel)?;
    let busy = |gate: &'static Gate, call: fn(&Pool) -> slabfence::Result<()>| {
        let pool = Arc::clone(pool);
        gate.shut();
        let thread = thread::spawn(move || call(&pool));
        gate.reached();
        thread
    };
    let preparing = busy(&gate::EXCHANGE, |pool| pool.prepare(&["late"]));
    try_beside(&mut stage, preparing, &gate::EXCHANGE)?;
    pool.channel("late")?;
    let closing = busy(&gate::UNMAP, Pool::close);
    try_beside(&mut stage, closing, &gate::UNMAP)
}

fn try_beside(
    stage: &mut Stage<'_>,
    thread: JoinHandle<slabfence::Result<()>>,
    gate: &Gate,
) -> Outcome {
    let tried = fork_watched(stage);
    if let Ok(Some(wrong)) = &tried {
        // The thread is the parent's.
        std::mem::forget(thread);
        return Err(told(wrong));
    }
    gate.open();
    let ended = thread.join().map_err(|_| "a thread panicked")?;
    tried?;
    ended?;
    stage.unchanged()
}

fn told(wrong: &[String]) -> Box<dyn std::error::Error> {
    for words in wrong {
        eprintln!("{words}");
    }
    let right = wrong.is_empty();
    Box::new(Child { right })
}

/// Forks. In the child: what it could do, or what failed otherwise than it should. In the parent: nothing, once the child
/// has ended well.
fn fork_watched(stage: &mut Stage<'_>) -> Result<Option<Vec<String>>, Box<dyn std::error::Error>> {
    match fork() {
        -1 => Err("no fork".into()),
        0 => {
            alarm(WATCHDOG);
            Ok(Some(stage.wrong()))
        }
        child => {
            let pid = rustix::process::Pid::from_raw(child);
            let options = rustix::process::WaitOptions::empty();
            let ended = rustix::process::waitpid(pid, options)?.ok_or("no child")?;
            match ended.1.exit_status() {
                Some(0) => Ok(None),
                _ => Err(format!("the child ended with {:?}", ended.1).into()),
            }
        }
    }
}
