//! The `slabfence` command.

mod bench;
mod check;
mod decode;
mod driver;
mod failure;
mod files;
mod graph;
mod litmus;
mod numbers;
mod plain;
mod processes;
mod ranks;
mod status;
mod tensor;

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;
use serde::Serialize;

#[derive(Debug, Parser)]
#[command(
    name = "slabfence",
    version,
    about = "Peer-to-peer collectives of an LLM decode step."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Decode(Box<decode::DecodeArgs>),
    Bench(Box<bench::BenchArgs>),
    Graph(graph::GraphArgs),
    Check(Box<check::CheckArgs>),
    Litmus(litmus::LitmusArgs),
    Status(status::StatusArgs),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // What a wrong kernel leaves behind cannot be given back: only consequences of what `check` reports itself.
    let level = match &command {
        Command::Check(_) => "off",
        _ => "warn",
    };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level)).init();
    match command {
        Command::Decode(args) => {
            if let Some(role) = &args.role {
                return processes::become_rank(role, |meeting| decode::take_part(&args, meeting));
            }
            let outcome = decode::run(&args).map(|report| (report.ok(), report));
            finish(outcome, args.json)
        }
        Command::Check(args) => {
            let outcome = check::run(&args).map(|report| (report.ok, report));
            finish(outcome, args.json)
        }
        Command::Bench(args) => {
            if let Some(role) = &args.role {
                return processes::become_rank(role, |meeting| bench::take_part(&args, meeting));
            }
            let outcome = bench::run(&args).map(|report| (report.ok, report));
            finish(outcome, args.json)
        }
        Command::Graph(args) => graph::run(&args),
        Command::Litmus(args) => {
            let outcome = litmus::run(&args).map(|report| (report.ok(), report));
            finish(outcome, args.json)
        }
        Command::Status(args) => {
            let outcome = status::run(&args).map(|report| (true, report));
            finish(outcome, args.json)
        }
    }
}

/// Says something on standard error. Not by `eprintln!`, which panics where nobody can be told.
fn complain(words: &str) {
    let _ = writeln!(std::io::stderr(), "slabfence: {}", plain::lines(words));
}

/// Prints what came of a command, and gives its exit status.
fn finish<R: Serialize + Display>(outcome: Result<(bool, R), Failure>, json: bool) -> ExitCode {
    let (text, code) = match &outcome {
        Ok((ok, report)) => {
            let text = match json {
                true => serde_json::json!(report).to_string(),
                false => plain::lines(&report.to_string()),
            };
            (Some(text), ExitCode::from(u8::from(!ok)))
        }
        Err(failure) => {
            complain(&failure.to_string());
            let object = || serde_json::json!({ "ok": false, "error": failure.to_string() });
            (json.then(|| object().to_string()), failure.exit_code())
        }
    };
    match text {
        Some(text) => print(&text, code),
        None => code,
    }
}

/// Prints, and gives the exit status, which is another one where nothing can be printed. Not `println!`, which panics on a
/// full disk or a closed pipe.
fn print(text: &str, code: ExitCode) -> ExitCode {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => code,
        Err(error) => {
            complain(&format!("standard output cannot be written: {error}"));
            ExitCode::FAILURE
        }
    }
}
