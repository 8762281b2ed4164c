//! What `slabfence check` prints.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::finding::Found;
use super::kernels::Pair;
use super::settings::Settings;
use crate::plain;

/// Version of the JSON object.
const SCHEMA: u32 = 1;

/// What came of a check.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: u32,
    /// Whether nothing was found.
    pub ok: bool,
    seeds: Vec<u64>,
    checks: Vec<Line>,
}

/// What was checked.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Subject {
    /// A collective by a transport, or an operation of one rank.
    Pair(Pair),
    /// A scenario file.
    File {
        /// Its path.
        file: PathBuf,
    },
}

/// What came of one subject.
#[derive(Debug, Serialize)]
pub struct Line {
    #[serde(flatten)]
    subject: Subject,
    /// Name of the machine's profile.
    profile: &'static str,
    worlds: Vec<u32>,
    /// Scenarios by worlds that were run.
    pub cases: u64,
    /// Those that were left out since enough others had failed.
    pub left_out: u64,
    /// Runs.
    pub runs: u64,
    /// Readers of words that the detector had no room to remember, in all runs.
    pub forgotten: u64,
    /// Warps that there were at once beyond those that the detector tells apart, in all runs.
    pub crowded: u64,
    /// How long it took.
    pub seconds: f64,
    findings: Vec<Entry>,
}

/// A finding with its place in the matrix.
#[derive(Debug, Serialize)]
struct Entry {
    world: u32,
    scenario: &'static str,
    #[serde(flatten)]
    found: Found,
    /// How to see it again.
    replay: String,
    /// In how many scenarios and worlds it was found.
    cases: u64,
}

impl Report {
    /// Of all pairs.
    pub fn new(seeds: &[u64], checks: Vec<Line>) -> Self {
        Self {
            schema: SCHEMA,
            ok: checks
                .iter()
                .all(|line| line.findings.is_empty() && line.left_out == 0),
            seeds: seeds.to_vec(),
            checks,
        }
    }
}

impl Line {
    /// Nothing yet.
    pub fn new(subject: Subject, worlds: &[u32], profile: &'static str) -> Self {
        Self {
            subject,
            profile,
            worlds: worlds.to_vec(),
            cases: 0,
            left_out: 0,
            runs: 0,
            forgotten: 0,
            crowded: 0,
            seconds: 0.0,
            findings: Vec::new(),
        }
    }

    /// Takes a finding in; the same again only counts.
    pub fn add(&mut self, world: u32, scenario: &'static str, found: Found, settings: &Settings) {
        if let Some(known) = self.findings.iter_mut().find(|e| e.found.is_like(&found)) {
            known.cases += 1;
            return;
        }
        let seed = found.seed;
        let replay = match &self.subject {
            Subject::Pair(pair) => pair.arguments(world),
            Subject::File { file } => format!("--scenario {}", plain::shell(file)),
        };
        let more = settings.arguments();
        let replay = format!("slabfence check {replay} --seed {seed}{more}");
        self.findings.push(Entry {
            world,
            scenario,
            found,
            replay,
            cases: 1,
        });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.checks {
            line.fmt(f)?;
        }
        f.write_str(if self.ok { "clean" } else { "FOUND" })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pair(pair) => pair.fmt(f),
            Self::File { file } => file.display().fmt(f),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worlds: Vec<String> = self.worlds.iter().map(u32::to_string).collect();
        write!(
            f,
            "{:<12} {}, ranks {}: {} scenarios, {} runs, {:.1} s: ",
            self.subject.to_string(),
            self.profile,
            worlds.join(", "),
            self.cases,
            self.runs,
            self.seconds
        )?;
        match self.findings.len() {
            0 if self.left_out > 0 => writeln!(f, "not all were run")?,
            0 => writeln!(f, "clean")?,
            count => writeln!(f, "{count} findings")?,
        }
        if self.left_out > 0 {
            writeln!(
                f,
                "  {} scenarios were left out after others failed",
                self.left_out
            )?;
        }
        let limits = [
            (self.forgotten, "readers of words", "the checker remembers"),
            (self.crowded, "warps at once", "the checker tells apart"),
        ];
        for (count, what, room) in limits.into_iter().filter(|(count, ..)| *count > 0) {
            writeln!(
                f,
                "  {count} {what} were more than {room} (see its limits in docs/checker.md): what races with those was not found"
            )?;
        }
        for entry in &self.findings {
            entry.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\nworld {}, {}, seed {}",
            self.world, self.scenario, self.found.seed
        )?;
        if self.cases > 1 {
            write!(f, ", and {} more", self.cases - 1)?;
        }
        writeln!(f, "\n{}\n  replay: {}\n", self.found, self.replay)
    }
}
