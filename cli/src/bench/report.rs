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
    /// Whether ranks were on one device, so that paths between devices were not timed, or not all.
    pub shared: bool,
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
    /// Whether everything was right, the other libraries' results too.
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
            if self.shared {
                writeln!(
                    f,
                    "            SHARED DEVICES: not times of paths between devices; every replay from rest"
                )?;
            }
            writeln!(
                f,
                "times       µs, slowest rank; graph: one of {} operations, {} replays{}; alone: the same, each replay from rest, of the rank that began last; blocking: call to end, one at a time",
                self.operations_in_graph,
                self.replays,
                if self.shared { "" } else { " back to back" }
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
    /// Puts other libraries beside ours. With a wrong result among theirs, nothing was compared.
    pub fn compare_with(&mut self, peers: Peers) {
        self.ok &= peers.rows.iter().all(|peer| peer.right);
        self.peers = peers;
    }

    /// Our rows beside the peers': µs of one operation in a graph, and how many times ours that is; back to back,
    /// then alone, then of one that the host waits for.
    fn compare(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.peers.notes {
            writeln!(f, "peers       {note}")?;
        }
        if !self.peers.rows.is_empty() {
            writeln!(
                f,
                "{:<8}{:<6}{:>5}{:>8}  {:<44}{:>8}{:>8}  and of replays from rest, and of one call: ours, theirs, theirs over ours",
                "", "", "batch", "ours", "beside", "theirs", "ratio"
            )?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn all(micros: f64) -> Summary {
        Summary {
            median: micros,
            p99: micros,
            max: micros,
        }
    }

    fn report() -> Report {
        let row = Row {
            operation: "gather",
            transport: "push",
            batch: 8,
            bytes: 512,
            right: true,
            graph: Some(all(4.0)),
            alone: Some(all(5.0)),
            blocking: Some(all(10.0)),
        };
        Report {
            schema: 1,
            driver: "a driver".to_owned(),
            emulated: false,
            devices: vec!["a device".to_owned()],
            ranks: 2,
            processes: true,
            shared: false,
            shape: [64, 576, 512],
            operations_in_graph: 40,
            replays: 200,
            rows: vec![row],
            peers: Peers::default(),
            ok: true,
        }
    }

    fn peers(right: bool, batch: usize) -> Peers {
        let peer = Peer {
            operation: "gather".to_owned(),
            name: "another".to_owned(),
            batch,
            right,
            graph: all(10.0),
            alone: all(15.0),
            blocking: Some(all(40.0)),
        };
        Peers {
            notes: vec!["a note".to_owned()],
            rows: vec![peer],
        }
    }

    #[test]
    fn a_ratio_is_their_time_over_ours_in_each_way_of_measuring() {
        let mut report = report();
        report.compare_with(peers(true, 8));
        let text = report.to_string();
        let line = text.lines().find(|line| line.contains("another")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "gather", "push", "8", "4.00", "another", "10.00", "2.50x", "alone", "5.00",
                "15.00", "3.00x", "blocking", "10.00", "40.00", "4.00x"
            ]
        );
        assert!(text.ends_with("result      ok"), "{text}");
        assert!(text.contains("ours, theirs, theirs over ours"), "{text}");
    }

    #[test]
    fn only_rows_of_the_same_operation_and_batch_are_compared() {
        let mut report = report();
        report.compare_with(peers(true, 16));
        assert!(!report.to_string().contains("another"));
    }

    #[test]
    fn a_wrong_result_of_another_library_is_no_comparison() {
        let mut report = report();
        report.compare_with(peers(false, 8));
        assert!(!report.ok);
        let text = report.to_string();
        assert!(text.ends_with("result      WRONG"), "{text}");
    }

    #[test]
    fn times_of_ranks_on_one_device_say_so() {
        let shared = Report {
            shared: true,
            ..report()
        };
        let words = "SHARED DEVICES: not times of paths between devices; every replay from rest";
        assert!(shared.to_string().contains(words));
        assert!(!report().to_string().contains(words));
    }
}
