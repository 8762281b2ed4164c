//! Files of expected verdicts, and how the model's compare.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::{Error, ErrorKind};
use super::explore::{Bounds, Outcomes, explore};
use super::known::{Reason, known_reason};
use super::program::Litmus;
use crate::rules::Rules;

/// Largest file: far beyond any test, or list of tests.
const MOST_BYTES: u64 = 16 << 20;

/// A line of a file of expectations: `file,condition[,race[,stuck]]`, each 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The litmus file, as written: relative to the file of expectations.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// Whether the test's last line is true.
    pub condition: bool,
    /// Whether some execution has a race, if that is said.
    pub race: Option<bool>,
    /// Whether some execution cannot finish, if that is said.
    pub stuck: Option<bool>,
}

/// A file of expectations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// The folder that its files are relative to.
    pub folder: PathBuf,
    /// Its lines. Empty ones, and those that begin with `#`, are left out.
    pub expectations: Vec<Expectation>,
}

/// Why a file of expectations, or a litmus file, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteError {
    /// The file.
    pub path: PathBuf,
    /// Where in it, as `:line` or `:line:column`, if it is about a place.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

impl SuiteError {
    fn new(path: &Path, place: String, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            place,
            what: what.into(),
        }
    }

    fn litmus(path: &Path, error: &Error) -> Self {
        let place = format!(":{}:{}", error.line, error.column);
        Self::new(path, place, error.what.clone())
    }
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", self.path.display(), self.place, self.what)
    }
}

impl std::error::Error for SuiteError {}

/// How the model's verdict on a file compares with what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// They agree.
    Agrees,
    /// The model does not reach what PTX allows.
    Misses(Option<Reason>),
    /// The model reaches what PTX forbids.
    Unsound,
    /// Races are expected and none was found, or the reverse.
    RaceDiffers,
    /// An execution that cannot finish is expected and none was found, or the reverse.
    StuckDiffers,
    /// The bound was hit before the verdict was known.
    Unknown,
    /// The file asks for something that the model does not have.
    Skipped(String),
}

impl Judgement {
    /// Whether a run may succeed with it.
    pub fn is_accepted(&self) -> bool {
        matches!(
            self,
            Self::Agrees | Self::Misses(Some(_)) | Self::Skipped(_)
        )
    }
}

/// A file, what came of it and how that compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What was expected.
    pub expectation: Expectation,
    /// What came of it; `None` if it was skipped.
    pub outcomes: Option<Outcomes>,
    /// How that compares.
    pub judgement: Judgement,
}

impl Suite {
    /// Reads a file of expectations.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        let text = read(path)?;
        let mut expectations: Vec<Expectation> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = index as u32 + 1;
            let expectation = expectation(line, number);
            let expectation =
                expectation.map_err(|what| SuiteError::new(path, format!(":{number}"), what))?;
            if let Some(first) = expectations.iter().find(|e| e.file == expectation.file) {
                let what = format!("`{}` is in line {} already", first.file, first.line);
                return Err(SuiteError::new(path, format!(":{number}"), what));
            }
            expectations.push(expectation);
        }
        if expectations.is_empty() {
            return Err(SuiteError::new(
                path,
                String::new(),
                "no line names a litmus file",
            ));
        }
        Ok(Self {
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            expectations,
        })
    }

    /// Explores one of its files and judges it.
    pub fn judge(
        &self,
        expectation: &Expectation,
        rules: Rules,
        bounds: Bounds,
    ) -> Result<Judged, SuiteError> {
        let path = self.folder.join(&expectation.file);
        let done = |outcomes, judgement| Judged {
            expectation: expectation.clone(),
            outcomes,
            judgement,
        };
        let litmus = match Litmus::parse(&read(&path)?) {
            Ok(litmus) => litmus,
            Err(error) if error.kind == ErrorKind::Unsupported => {
                return Ok(done(None, Judgement::Skipped(error.what)));
            }
            Err(error) => return Err(SuiteError::litmus(&path, &error)),
        };
        let outcomes = explore(&litmus, rules, expectation.race.is_some(), bounds);
        let judgement = judge(expectation, &outcomes);
        Ok(done(Some(outcomes), judgement))
    }
}

impl Litmus {
    /// Reads a litmus file.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        Self::parse(&read(path)?).map_err(|error| SuiteError::litmus(path, &error))
    }
}

fn read(path: &Path) -> Result<String, SuiteError> {
    let failed = |what: String| SuiteError::new(path, String::new(), what);
    let io = |error: io::Error| failed(error.to_string());
    // Before it is opened, for to open a FIFO is to wait.
    if !path.metadata().map_err(io)?.is_file() {
        return Err(failed("that is no plain file".to_owned()));
    }
    let mut text = String::new();
    let mut file = File::open(path).map_err(io)?.take(MOST_BYTES + 1);
    match file.read_to_string(&mut text) {
        // What is cut at the limit may be cut within a character.
        Err(error) if file.limit() > 0 => Err(io(error)),
        Ok(bytes) if bytes as u64 <= MOST_BYTES => Ok(text),
        _ => Err(failed(format!("is larger than {} MiB", MOST_BYTES >> 20))),
    }
}

fn expectation(line: &str, number: u32) -> Result<Expectation, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let (file, values) = fields.split_first().ok_or("no file")?;
    if file.is_empty() || values.is_empty() || values.len() > 3 {
        return Err("expected `file,condition[,race[,stuck]]`".into());
    }
    let values = values.iter().map(|value| match *value {
        "0" => Ok(false),
        "1" => Ok(true),
        other => Err(format!("expected 0 or 1, found `{other}`")),
    });
    let values = values.collect::<Result<Vec<bool>, String>>()?;
    Ok(Expectation {
        file: (*file).to_owned(),
        line: number,
        condition: values[0],
        race: values.get(1).copied(),
        stuck: values.get(2).copied(),
    })
}

/// Compares what came of a test with what is expected.
pub fn judge(expectation: &Expectation, outcomes: &Outcomes) -> Judgement {
    let Some(holds) = outcomes.holds() else {
        return Judgement::Unknown;
    };
    let reached = outcomes.reached() == Some(true);
    if holds != expectation.condition {
        return match reached {
            true => Judgement::Unsound,
            false => Judgement::Misses(known_reason(&expectation.file)),
        };
    }
    if let (Some(expected), Some(races)) = (expectation.race, &outcomes.races) {
        match (expected, !races.is_empty()) {
            (false, true) => return Judgement::RaceDiffers,
            (true, false) if outcomes.complete => return Judgement::RaceDiffers,
            (true, true) => {}
            (_, false) if outcomes.complete => {}
            _ => return Judgement::Unknown,
        }
    }
    match (expectation.stuck, outcomes.stuck) {
        (Some(_), None) => Judgement::Unknown,
        (Some(expected), Some(stuck)) if expected != stuck => Judgement::StuckDiffers,
        _ => Judgement::Agrees,
    }
}
