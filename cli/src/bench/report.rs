//! What a benchmark prints.

use std::fmt;

use serde::Serialize;

use super::peers::{Peer, Peers};
use super::series::Summary;

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// `gather`, `reduce` or `floor`.
    pub operation: &'static str,
    /// `push` or `pull`.
    pub transport: &'static str,
    /// Tokens.
    pub batch: usize,
    /// Bytes that one rank sends to one other.
    pub bytes: usize,
    /// Whether every result was right on every rank.
    pub right: bool,
    /// Microseconds of one operation in a graph; `None`: not timed.
    pub graph: Option<Summary>,
    /// The same of replays that each began at rest, of the rank that began last; `None`: not timed.
    pub alone: Option<Summary>,
    /// Microseconds of one operation that the host waits for; `None`: not timed.
    pub blocking: Option<Summary>,
}

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Version of this object.
    pub schema: u32,
    /// The driver, in words.
    pub driver: String,
    /// Whether it is the emulated one, which is not timed.
    pub emulated: bool,
    /// Names of the devices.
    pub devices: Vec<String>,
    /// Ranks.
    pub ranks: usize,
    /// Whether every rank was a process.
    pub processes: bool,
    /// Heads, and elements of a gathered and of a combined row; bf16.
    pub shape: [u32; 3],
    /// Operations in a graph.
    pub operations_in_graph: u32,
    /// Timed replays of each graph.
    pub replays: u32,
    /// The table.
    pub rows: Vec<Row>,
    /// Other libraries on the same tensors; empty where none was asked for.
    pub peers: Peers,
    /// Whether everything was right.
    pub ok: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [heads, query, value] = self.shape;
        writeln!(f, "driver      {}", self.driver)?;
        writeln!(f, "devices     {}", self.devices.join(", "))?;
        writeln!(
            f,
            "shape       {} ranks as {}, {heads} heads, rows of {query} (gather) and {value} (reduce), bf16",
            self.ranks,
            if self.processes {
                "processes"
            } else {
                "threads"
            }
        )?;
        if self.emulated {
            writeln!(
                f,
                "            EMULATED: results are checked, nothing is timed"
            )?;
        } else {
            writeln!(
                f,
                "times       µs, slowest rank; graph: one of {} operations, {} replays back to back; alone: the same, each replay from rest, of the rank that began last; blocking: call to end, one at a time",
                self.operations_in_graph, self.replays
            )?;
        }
        writeln!(
            f,
            "{:<8}{:<6}{:>5}{:>10}  {:<7}{:>8}{:>8}{:>8}{:>8}  {:>9}{:>8}{:>8}",
            "",
            "",
            "batch",
            "bytes",
            "result",
            "graph",
            "p99",
            "max",
            "alone",
            "blocking",
            "p99",
            "max"
        )?;
        for row in &self.rows {
            write!(
                f,
                "{:<8}{:<6}{:>5}{:>10}  {:<7}",
                row.operation,
                row.transport,
                row.batch,
                row.bytes,
                if row.right { "right" } else { "WRONG" }
            )?;
            if let (Some(graph), Some(alone), Some(blocking)) = (row.graph, row.alone, row.blocking)
            {
                write!(
                    f,
                    "{:>8.2}{:>8.2}{:>8.2}{:>8.2}  ",
                    graph.median, graph.p99, graph.max, alone.median
                )?;
                write!(
                    f,
                    "{:>9.2}{:>8.2}{:>8.2}",
                    blocking.median, blocking.p99, blocking.max
                )?;
            }
            writeln!(f)?;
        }
        self.compare(f)?;
        write!(f, "result      {}", if self.ok { "ok" } else { "WRONG" })
    }
}

impl Report {
    /// Our rows beside the peers': µs of one operation in a graph, and how many times ours that is; back to back,
    /// then alone, then of one that the host waits for.
    fn compare(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.peers.notes {
            writeln!(f, "peers       {note}")?;
        }
        for row in &self.rows {
            let (Some(own), Some(own_alone)) = (row.graph, row.alone) else {
                continue;
            };
            let same = |peer: &&Peer| peer.operation == row.operation && peer.batch == row.batch;
            for peer in self.peers.rows.iter().filter(same) {
                writeln!(
                    f,
                    "{:<8}{:<6}{:>5}{:>8.2}  {:<44}{:>8.2}{:>7.2}x  alone {:>6.2}{:>8.2}{:>7.2}x{}{}",
                    row.operation,
                    row.transport,
                    row.batch,
                    own.median,
                    peer.name,
                    peer.graph.median,
                    peer.graph.median / own.median,
                    own_alone.median,
                    peer.alone.median,
                    peer.alone.median / own_alone.median,
                    waited_for(row.blocking, peer.blocking),
                    if peer.right { "" } else { "  WRONG" }
                )?;
            }
        }
        Ok(())
    }
}

/// The end of a comparison: both times of an operation that the host waits for, and their ratio.
fn waited_for(own: Option<Summary>, peer: Option<Summary>) -> String {
    match (own, peer) {
        (Some(own), Some(peer)) => format!(
            "  blocking {:>6.2}{:>8.2}{:>7.2}x",
            own.median,
            peer.median,
            peer.median / own.median
        ),
        _ => String::new(),
    }
}
