//! `slabfence check --scenario`: kernels of others.

mod file;
mod launch;
mod memory;
mod plan;
mod play;
mod read;
mod tags;

use std::path::Path;
use std::time::Instant;

use super::finding::Found;
use super::report::{Line, Report, Subject};
use crate::failure::Failure;

/// Runs a scenario file, on the machine of this profile or the one that it says.
pub fn run(path: &Path, seeds: &[u64], profile: Option<&str>) -> Result<Report, Failure> {
    let plan = plan::Plan::read(path, profile)?;
    let begin = Instant::now();
    let played =
        play::run(&plan, seeds).map_err(|failure| failure.at(&path.display().to_string()))?;
    let subject = Subject::File {
        file: path.to_owned(),
    };
    let mut line = Line::new(subject, &[plan.ranks], &plan.profile, &plan.usual);
    line.cases = 1;
    line.runs = played.runs;
    for found in played.bad.iter().flat_map(Found::of) {
        line.add(plan.ranks, "scenario", found, None);
    }
    line.seconds = begin.elapsed().as_secs_f64();
    Ok(Report::new(seeds, vec![line]))
}
