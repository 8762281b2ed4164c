//! `slabfence status`: what the pools of running processes are doing.

mod text;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use slabfence::status::{Document, SCHEMA, processes, read_until};

use crate::failure::Failure;

/// How long all processes together may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Processes that are asked at once, so that those that do not answer keep the others from it no longer than need be.
const AT_ONCE: usize = 16;

/// Prints what the pools of running processes are doing: channels and what holds them, epochs and operations, long waits and
/// failures, bytes. Of processes of this user that opted in, by `decode --status FOLDER` or by a host with `status::serve`.
///
/// Exit status: 0 some process answered, 1 none did, 2 wrong use.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// The process to ask (default: all in the folder).
    pub process: Option<u32>,

    /// Where processes tell their state (default: the folder for temporary files).
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// What the processes tell.
#[derive(Debug, Serialize)]
pub struct Report {
    ok: bool,
    schema: &'static str,
    processes: Vec<Document>,
    /// Those that did not answer, and why.
    failures: Vec<String>,
}

/// Runs the command.
pub fn run(args: &StatusArgs) -> Result<Report, Failure> {
    let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let there = processes(&folder)
        .map_err(|error| Failure::Use(format!("--folder {}: {error}", folder.display())))?;
    let asked = match args.process {
        Some(process) => vec![process],
        None => there,
    };
    let report = ask(&folder, &asked, Instant::now() + PATIENCE);
    if report.ok {
        return Ok(report);
    }
    let folder = folder.display();
    Err(Failure::Fault(
        match (report.failures.as_slice(), args.process) {
            ([], Some(process)) => format!("process {process} tells nothing in {folder}"),
            ([], None) => format!("no process tells anything in {folder}"),
            (failures, _) => failures.join("; "),
        },
    ))
}

fn ask(folder: &Path, processes: &[u32], deadline: Instant) -> Report {
    let left = Mutex::new(processes.iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let answers = Mutex::new(Vec::new());
    let work = || {
        while let Some(&process) = next() {
            let answer = read_until(folder, process, deadline);
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.push((process, answer));
        }
    };
    thread::scope(|threads| {
        for _ in 1..processes.len().min(AT_ONCE) {
            // Without one more the others do its work.
            let _ = thread::Builder::new().spawn_scoped(threads, work);
        }
        work();
    });
    let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.sort_unstable_by_key(|(process, _)| *process);
    let (mut documents, mut failures) = (Vec::new(), Vec::new());
    for (_, answer) in answers {
        match answer {
            Ok(document) => documents.extend(document),
            Err(why) => failures.push(why),
        }
    }
    Report {
        ok: !documents.is_empty(),
        schema: SCHEMA,
        processes: documents,
        failures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    #[test]
    fn processes_that_do_not_answer_keep_the_others_from_it_for_one_deadline_together() {
        let folder = tempfile::tempdir().unwrap();
        let server = slabfence::status::serve(folder.path()).unwrap();
        let own = std::process::id();
        let silent = (1..).filter(|process| *process != own).take(4 * AT_ONCE);
        let silent: Vec<u32> = silent.collect();
        let sockets: Vec<_> = silent
            .iter()
            .map(|process| {
                let path = folder.path().join(format!("slabfence-{process}.status"));
                let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
                bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
                listen(&socket, 1).unwrap();
                socket
            })
            .collect();
        let (begin, patience) = (Instant::now(), Duration::from_secs(2));
        let mut asked = silent.clone();
        asked.insert(AT_ONCE / 2, own);
        let report = ask(folder.path(), &asked, begin + patience);
        assert!(begin.elapsed() < 3 * patience, "{:?}", begin.elapsed());
        let told: Vec<u32> = report.processes.iter().map(|one| one.process).collect();
        assert_eq!(told, [own]);
        let first = format!("process {}: no answer in time", silent[0]);
        assert_eq!(
            (report.failures.len(), &report.failures[0]),
            (silent.len(), &first)
        );
        drop((sockets, server));
    }
}
