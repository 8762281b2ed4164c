//! Other libraries, timed by a program of theirs on the same tensors, in the same run.
//!
//! The program is `bench/peers.py`, or one that keeps to its terms: it is started as `python3 PROGRAM --inputs FILE --ranks N
//! --operations N --replays N` (see [`inputs`](super::inputs) for the file), and writes one JSON object a line to its standard output:
//! a [`Line::Times`] for each operation of a library and batch size, and a [`Line::Note`] for whatever a reader must know.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::series::{Summary, of_the_last, over_ranks};
use crate::failure::Failure;

/// What the program tells.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    /// Times of one operation.
    Times {
        /// `gather` or `reduce`.
        operation: String,
        /// The library and its operation.
        name: String,
        /// Tokens.
        batch: usize,
        /// Whether the results were right on every rank.
        right: bool,
        /// Microseconds of one operation in a graph: by rank, by replay.
        graph: Vec<Vec<f64>>,
        /// The same of replays that each began at rest.
        alone: Vec<Vec<f64>>,
        /// Microseconds of one operation that the host waits for: by rank, by operation.
        blocking: Vec<Vec<f64>>,
    },
    /// Something in words, such as a version.
    Note {
        /// The words.
        note: String,
    },
}

/// Times of another library.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peer {
    /// `gather` or `reduce`.
    pub operation: String,
    /// The library and its operation.
    pub name: String,
    /// Tokens.
    pub batch: usize,
    /// Whether its results were right on every rank.
    pub right: bool,
    /// Microseconds of one operation in a graph.
    pub graph: Summary,
    /// The same of replays that each began at rest, of the rank that began last.
    pub alone: Summary,
    /// Microseconds of one operation that the host waits for.
    pub blocking: Option<Summary>,
}

/// Everything that the program told.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Peers {
    /// Its remarks.
    pub notes: Vec<String>,
    /// The times.
    pub rows: Vec<Peer>,
}

/// How to run the program.
#[derive(Debug)]
pub struct Call<'a> {
    /// The program.
    pub program: &'a Path,
    /// The tensors.
    pub inputs: &'a Path,
    /// Ranks.
    pub ranks: usize,
    /// Operations in a graph.
    pub operations: u32,
    /// Timed replays of a graph.
    pub replays: u32,
}

/// Runs the program.
pub fn run(call: &Call<'_>) -> Result<Peers, Failure> {
    let failed = |why: String| Failure::Fault(format!("--peers {}: {why}", call.program.display()));
    let output = Command::new("python3")
        .arg(call.program)
        .arg("--inputs")
        .arg(call.inputs)
        .args(["--ranks", &call.ranks.to_string()])
        .args(["--operations", &call.operations.to_string()])
        .args(["--replays", &call.replays.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(format!("python3: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("it ended with {}", output.status)));
    }
    told(&String::from_utf8_lossy(&output.stdout)).map_err(failed)
}

fn told(text: &str) -> Result<Peers, String> {
    let mut peers = Peers::default();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let line: Line =
            serde_json::from_str(line).map_err(|error| format!("it said {line:?}: {error}"))?;
        match line {
            Line::Note { note } => peers.notes.push(note),
            Line::Times {
                operation,
                name,
                batch,
                right,
                graph,
                alone,
                blocking,
            } => {
                let none = || format!("{name} at batch {batch}: no time in a graph");
                let graph = over_ranks(&graph).ok_or_else(none)?;
                let alone = of_the_last(&alone).ok_or_else(none)?;
                peers.rows.push(Peer {
                    operation,
                    name,
                    batch,
                    right,
                    graph,
                    alone,
                    blocking: over_ranks(&blocking),
                });
            }
        }
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_counts_as_its_slowest_rank() {
        let text = r#"
library chatter
{"note": "NCCL 2.28.9"}
{"operation": "gather", "name": "NCCL all_gather", "batch": 8, "right": true, "graph": [[9.0, 10.0, 11.0], [9.5, 9.0, 12.0]], "alone": [[8.0], [7.0]], "blocking": [[], []]}
"#;
        let peers = told(text).unwrap();
        assert_eq!(peers.notes, ["NCCL 2.28.9"]);
        let graph = Summary {
            median: 10.0,
            p99: 12.0,
            max: 12.0,
        };
        let row = Peer {
            operation: "gather".to_owned(),
            name: "NCCL all_gather".to_owned(),
            batch: 8,
            right: true,
            graph,
            alone: Summary {
                median: 7.0,
                p99: 7.0,
                max: 7.0,
            },
            blocking: None,
        };
        assert_eq!(peers.rows, [row]);
    }

    #[test]
    fn a_line_that_is_none_of_the_terms_is_refused() {
        assert!(
            told(r#"{"operation": "gather"}"#)
                .unwrap_err()
                .contains("gather")
        );
        let empty = r#"{"operation": "gather", "name": "x", "batch": 8, "right": true, "graph": [], "alone": [], "blocking": []}"#;
        assert_eq!(told(empty).unwrap_err(), "x at batch 8: no time in a graph");
    }

    #[test]
    fn a_program_that_fails_is_named() {
        let call = Call {
            program: Path::new("no-such-program.py"),
            inputs: Path::new("none"),
            ranks: 2,
            operations: 1,
            replays: 1,
        };
        let words = run(&call).unwrap_err().to_string();
        assert!(words.starts_with("--peers no-such-program.py: "), "{words}");
    }
}
