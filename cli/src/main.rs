//! The `slabfence` command.

mod decode;
mod driver;
mod failure;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
}

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let Cli {
        command: Command::Decode(args),
    } = Cli::parse();
    if decode::is_rank(&args) {
        return decode::become_rank(&args);
    }
    match decode::run(&args) {
        Ok(report) => {
            if args.json {
                println!("{}", serde_json::json!(report));
            } else {
                println!("{report}");
            }
            if report.ok() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(1)
            }
        }
        Err(failure) => {
            if args.json {
                println!(
                    "{}",
                    serde_json::json!({ "ok": false, "error": failure.to_string() })
                );
            }
            eprintln!("slabfence: {failure}");
            failure.exit_code()
        }
    }
}
