//! `slabfence graph`: dumps of graphs that were written down.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use slabfence::graph::Dump;

use crate::failure::Failure;
use crate::files;

/// Largest file: far beyond the dump of any graph that can be captured.
const MOST_BYTES: u64 = 1 << 30;

/// Looks at graphs that were written down as JSON, by `decode --dump-graph FILE.json` or by a host with `Dump::to_json`.
///
/// A graph lives in the process that captured it: no other process can read it, but every process can write it down.
#[derive(Debug, Args)]
pub struct GraphArgs {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Prints a dump in another form.
    Dump(DumpArgs),
}

#[derive(Debug, Args)]
struct DumpArgs {
    /// The dump, as JSON.
    file: PathBuf,

    /// What to print.
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// For reading.
    Text,
    /// With all that follows from the rest, and of this version's schema.
    Json,
    /// For Graphviz.
    Dot,
}

/// Runs the command.
pub fn run(args: &GraphArgs) -> ExitCode {
    let Task::Dump(args) = &args.task;
    match dump(args) {
        Ok(text) => crate::print(text.trim_end(), ExitCode::SUCCESS),
        Err(failure) => {
            crate::complain(&failure.to_string());
            failure.exit_code()
        }
    }
}

fn dump(args: &DumpArgs) -> Result<String, Failure> {
    let refuse = |why: String| Failure::Use(format!("{}: {why}", args.file.display()));
    let bytes = files::read(&args.file, MOST_BYTES).map_err(refuse)?;
    let text = String::from_utf8(bytes).map_err(|error| refuse(error.to_string()))?;
    let dump = Dump::from_json(&text).map_err(|error| refuse(error.to_string()))?;
    Ok(match args.format {
        Form::Text => dump.to_string(),
        Form::Json => dump.to_json(),
        Form::Dot => dump.to_dot(),
    })
}
