//! What `slabfence litmus` prints.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use slabfence_emu_model::litmus::{Judged, Judgement, Litmus, Outcomes, Term};

/// What came of a run.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Report {
    /// Of a file of expected verdicts.
    Suite(SuiteReport),
    /// Of one test.
    Test(TestReport),
}

impl Report {
    /// Whether the run succeeded.
    pub fn ok(&self) -> bool {
        match self {
            Self::Suite(suite) => suite.ok,
            Self::Test(test) => test.ok,
        }
    }
}

/// A file whose verdict is not simply as expected.
#[derive(Debug, Serialize)]
pub struct Difference {
    file: String,
    /// One of the other counts' names.
    judgement: &'static str,
    /// Why, or what was expected.
    reason: String,
    known: bool,
}

/// What came of a file of expected verdicts.
#[derive(Debug, Serialize)]
pub struct SuiteReport {
    ok: bool,
    file: PathBuf,
    tests: usize,
    agree: usize,
    unsound: usize,
    missed: usize,
    race_differs: usize,
    stuck_differs: usize,
    unknown: usize,
    skipped: usize,
    states: usize,
    differences: Vec<Difference>,
}

/// What came of one test.
#[derive(Debug, Serialize)]
pub struct TestReport {
    ok: bool,
    file: PathBuf,
    name: String,
    quantifier: String,
    /// Whether the condition holds; absent if the bound was hit first.
    holds: Option<bool>,
    states: usize,
    complete: bool,
    /// Whether some execution cannot finish; absent if the bound was hit first.
    stuck: Option<bool>,
    races: Vec<String>,
    ends: Vec<End>,
}

/// How some executions end.
#[derive(Debug, Serialize)]
pub struct End {
    values: Vec<String>,
    fulfils: bool,
}

/// Sums up a file of expected verdicts.
pub fn suite_report(path: &Path, judged: &[Judged]) -> SuiteReport {
    let count = |wanted: &str| {
        judged
            .iter()
            .filter(|j| name(&j.judgement) == wanted)
            .count()
    };
    let states = judged.iter().filter_map(|j| j.outcomes.as_ref());
    SuiteReport {
        ok: judged.iter().all(|j| j.judgement.is_accepted()),
        file: path.to_owned(),
        tests: judged.len(),
        agree: count("agree"),
        unsound: count("unsound"),
        missed: count("missed"),
        race_differs: count("race differs"),
        stuck_differs: count("stuck differs"),
        unknown: count("unknown"),
        skipped: count("skipped"),
        states: states.map(|outcomes| outcomes.states).sum(),
        differences: judged.iter().filter_map(difference).collect(),
    }
}

fn name(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::Agrees => "agree",
        Judgement::Unsound => "unsound",
        Judgement::Misses(_) => "missed",
        Judgement::RaceDiffers => "race differs",
        Judgement::StuckDiffers => "stuck differs",
        Judgement::Unknown => "unknown",
        Judgement::Skipped(_) => "skipped",
    }
}

fn difference(judged: &Judged) -> Option<Difference> {
    let expected = |value: Option<bool>, what: &str| match value {
        Some(true) => format!("some execution should {what}, and none does"),
        _ => format!("no execution should {what}, and some does"),
    };
    let reason = match &judged.judgement {
        Judgement::Agrees => return None,
        Judgement::Unsound => "reaches what is forbidden".to_owned(),
        Judgement::Misses(Some(reason)) => reason.to_string(),
        Judgement::Misses(None) => "does not reach what is allowed, for no known reason".to_owned(),
        Judgement::RaceDiffers => expected(judged.expectation.race, "have a race"),
        Judgement::StuckDiffers => expected(judged.expectation.stuck, "be stuck"),
        Judgement::Unknown => "has more states than the bound".to_owned(),
        Judgement::Skipped(why) => why.clone(),
    };
    Some(Difference {
        file: judged.expectation.file.clone(),
        judgement: name(&judged.judgement),
        reason,
        known: judged.judgement.is_accepted(),
    })
}

/// Sums up one test.
pub fn test_report(path: &Path, litmus: &Litmus, outcomes: &Outcomes) -> TestReport {
    let term = |term: &Term| match *term {
        Term::Number(number) => number.to_string(),
        Term::Register { thread, register } => {
            let thread = &litmus.threads[thread];
            format!("P{}:{}", thread.number, thread.registers[register])
        }
        Term::Location(location) => litmus.locations[location].clone(),
    };
    let ends = outcomes.finals.iter().map(|(values, &fulfils)| End {
        values: outcomes
            .terms
            .iter()
            .zip(values)
            .map(|(t, value)| format!("{}={value}", term(t)))
            .collect(),
        fulfils,
    });
    let races = outcomes.races.iter().flatten();
    TestReport {
        ok: outcomes.holds().is_some() && outcomes.complete,
        file: path.to_owned(),
        name: litmus.name.clone(),
        quantifier: outcomes.quantifier.to_string(),
        holds: outcomes.holds(),
        states: outcomes.states,
        complete: outcomes.complete,
        stuck: outcomes.stuck,
        races: races.map(|race| litmus.describe(race)).collect(),
        ends: ends.collect(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suite(suite) => suite.fmt(f),
            Self::Test(test) => test.fmt(f),
        }
    }
}

impl fmt::Display for SuiteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} tests, {} states",
            self.file.display(),
            self.tests,
            self.states
        )?;
        let counts = [
            ("agree", self.agree, "as expected"),
            (
                "unsound",
                self.unsound,
                "the model reaches what is forbidden",
            ),
            (
                "missed",
                self.missed,
                "the model does not reach what is allowed",
            ),
            (
                "race differs",
                self.race_differs,
                "a race too many, or none where one is",
            ),
            (
                "stuck differs",
                self.stuck_differs,
                "an execution that cannot finish too many, or none where one is",
            ),
            ("unknown", self.unknown, "more states than the bound"),
            ("skipped", self.skipped, "beyond the model"),
        ];
        for (name, count, meaning) in counts {
            writeln!(f, "  {name:<13} {count:>5}  {meaning}")?;
        }
        for difference in &self.differences {
            let mark = if difference.known {
                "known"
            } else {
                "NOT KNOWN"
            };
            let Difference {
                file,
                judgement,
                reason,
                ..
            } = difference;
            writeln!(f, "{judgement}, {mark}: {file}: {reason}")?;
        }
        write!(f, "{}", if self.ok { "ok" } else { "FAILED" })
    }
}

impl fmt::Display for TestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |known: Option<bool>, yes: &'static str, no: &'static str| match known {
            Some(true) => yes,
            Some(false) => no,
            None => "unknown: more states than the bound",
        };
        writeln!(f, "{} ({})", self.file.display(), self.name)?;
        writeln!(
            f,
            "  {}: {}",
            self.quantifier,
            word(self.holds, "true", "false")
        )?;
        let explored = if self.complete { "all" } else { "NOT all" };
        writeln!(f, "  states: {}, {explored} explored", self.states)?;
        writeln!(
            f,
            "  stuck: {}",
            word(self.stuck, "some execution cannot finish", "no")
        )?;
        writeln!(f, "  races: {}", self.races.len())?;
        for race in &self.races {
            writeln!(f, "    {race}")?;
        }
        write!(f, "  ends:")?;
        for end in &self.ends {
            let mark = if end.fulfils { "fulfils" } else { "-" };
            write!(f, "\n    {mark:<8} {}", end.values.join(" "))?;
        }
        if self.ends.is_empty() {
            write!(f, " none")?;
        }
        Ok(())
    }
}
