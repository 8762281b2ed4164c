//! `slabfence check --scenario`: kernels of others.

mod amount;
mod file;
mod launch;
mod memory;
mod plan;
mod play;
mod read;
mod rights;
mod steps;
mod tags;
mod told;

use std::path::Path;
use std::time::Instant;

use super::finding::Found;
use super::report::{Line, Report, Subject};
use super::settings::Settings;
use crate::failure::Failure;

/// Runs a scenario file, on the machine of the profile that was asked for or the one that it says.
pub fn run(path: &Path, settings: &Settings) -> Result<Report, Failure> {
    let plan = plan::Plan::read(path, settings.profile.as_deref())?;
    let begin = Instant::now();
    let played =
        play::run(&plan, settings).map_err(|failure| failure.at(&path.display().to_string()))?;
    let subject = Subject::File {
        file: path.to_owned(),
    };
    let mut line = Line::new(subject, &[plan.ranks], plan.profile.name);
    line.cases = 1;
    line.runs = played.runs;
    line.forgotten = played.forgotten;
    line.crowded = played.crowded;
    for found in played.bad.iter().flat_map(Found::of) {
        line.add(plan.ranks, "scenario", found, settings);
    }
    line.seconds = begin.elapsed().as_secs_f64();
    Ok(Report::new(&settings.seeds, vec![line]))
}
