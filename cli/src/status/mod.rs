//! `slabfence status`: what the pools of running processes are doing.

mod text;

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use slabfence::status::{Document, SCHEMA, processes, read};

use crate::failure::Failure;

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
    let report = ask(&folder, &asked);
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

fn ask(folder: &Path, processes: &[u32]) -> Report {
    let (mut answers, mut failures) = (Vec::new(), Vec::new());
    for &process in processes {
        match read(folder, process) {
            Ok(document) => answers.extend(document),
            Err(why) => failures.push(why),
        }
    }
    Report {
        ok: !answers.is_empty(),
        schema: SCHEMA,
        processes: answers,
        failures,
    }
}
