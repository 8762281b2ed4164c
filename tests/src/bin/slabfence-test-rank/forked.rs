//! Forks, as hosts make them.

use std::fmt;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::Stream;
use slabfence::{Error, Result};
use slabfence_tests::ranks::{Gather, Member};

use super::Outcome;

unsafe extern "C" {
    safe fn fork() -> i32;
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

/// Forks; the child tries everything and ends, the parent goes on as if nothing had been.
pub fn try_everything(
    member: &Member,
    contract: &Contract,
    pool: &Pool,
    channel: &Channel,
    stream: &Stream,
) -> Outcome {
    let gather = Gather::new(member, contract, 2)?;
    match fork() {
        -1 => Err("no fork".into()),
        0 => {
            let soon = Instant::now() + Duration::from_secs(1);
            let exchange = member.bootstrap.all_gather(b"child", soon);
            let results: Vec<(&str, Result<()>)> = vec![
                ("buffer", Gather::new(member, contract, 2).map(|_| ())),
                ("input", gather.fill(0, 7)),
                ("enqueue", gather.enqueue(channel, stream)),
                ("capture", pool.capture("decode", stream).map(|_| ())),
                ("wait", stream.synchronize()),
                ("prepare", pool.prepare(&["x"])),
                ("reset", pool.reset()),
                ("close", pool.close()),
                ("group", member.group.verdict("x", &Ok(()))),
                ("pool", member.pool(contract).map(|_| ())),
                ("bootstrap", exchange.map(|_| ()).map_err(Error::from)),
            ];
            let words = Error::Forked.to_string();
            let mut right = true;
            for (what, result) in results {
                let said = result.as_ref().err().map(Error::to_string);
                if !said.as_ref().is_some_and(|said| said.contains(&words)) {
                    eprintln!("{what} in a forked child: {said:?}");
                    right = false;
                }
            }
            Err(Box::new(Child { right }))
        }
        child => {
            let pid = rustix::process::Pid::from_raw(child);
            let options = rustix::process::WaitOptions::empty();
            let ended = rustix::process::waitpid(pid, options)?.ok_or("no child")?;
            match ended.1.exit_status() {
                Some(0) => Ok(()),
                _ => Err(format!("the child ended with {:?}", ended.1).into()),
            }
        }
    }
}
