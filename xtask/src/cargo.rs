//! What cargo builds, as it tells programs.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::output::{Result, root};
use crate::toolchain::run;

/// Files that `cargo build` made of what these arguments select.
pub fn built(arguments: &[&str]) -> Result<Vec<PathBuf>> {
    files(&[&["build"], arguments].concat(), |message| {
        message["filenames"].as_array().cloned()
    })
}

/// Every file that a command of cargo's built or would have built anew, of dependencies and build scripts too.
pub fn artefacts(arguments: &[&str]) -> Result<Vec<PathBuf>> {
    files(arguments, |message| {
        let mut files = message["filenames"].as_array().cloned().unwrap_or_default();
        files.extend(message.get("executable").cloned());
        Some(files)
    })
}

/// Programs that a command of cargo's built.
pub fn programs(arguments: &[&str]) -> Result<Vec<PathBuf>> {
    files(arguments, |message| {
        Some(vec![message.get("executable")?.clone()])
    })
}

fn files(arguments: &[&str], of: fn(&Value) -> Option<Vec<Value>>) -> Result<Vec<PathBuf>> {
    let made = made(arguments)?;
    let files = made.iter().filter_map(of).flatten();
    Ok(files
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .collect())
}

/// What cargo says of each target that a command of its built or would have built anew.
pub fn made(arguments: &[&str]) -> Result<Vec<Value>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(arguments).args([
        "--quiet",
        "--locked",
        "--message-format",
        "json-render-diagnostics",
    ]);
    let output = run(&mut cargo)?;
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let made = messages.filter(|message| message["reason"] == "compiler-artifact");
    Ok(made.collect())
}
