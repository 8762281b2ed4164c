//! What a run says at its end, as text and as JSON.

use std::fmt;

use serde::Serialize;

use super::rank::BatchResult;
use super::setup::Setup;
use super::time::Times;
use crate::driver::Opened;

/// The outcome of a run. The JSON object has these fields; times are there only when they were measured on a GPU.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    driver: String,
    emulated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    emulated_because: Option<String>,
    devices: Vec<String>,
    data: String,
    element: &'static str,
    ranks: usize,
    heads: usize,
    keys: usize,
    transport: &'static str,
    sharding: &'static str,
    layers: usize,
    operations: usize,
    replays: usize,
    kernel_nodes_per_operation: f64,
    gathered_exact: bool,
    bit_identical_eager_and_graph: bool,
    max_abs_error: f64,
    tolerance: f64,
    ok: bool,
    batches: Vec<Batch>,
    #[serde(skip)]
    shards: Vec<usize>,
    #[serde(skip)]
    time_asked: bool,
}

#[derive(Debug, Clone, Serialize)]
struct Batch {
    batch: usize,
    kernel_nodes_per_operation: f64,
    gathered_exact: bool,
    bit_identical_eager_and_graph: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
    max_abs_error: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_microseconds: Option<Microseconds>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Microseconds {
    gather: f64,
    reduce_scatter: f64,
    step: f64,
}

impl Report {
    /// Judges the results, `results[rank][batch]`.
    pub fn new(
        setup: &Setup<'_>,
        opened: &Opened,
        results: &[Vec<BatchResult>],
        time_asked: bool,
    ) -> Self {
        let batches: Vec<Batch> = setup
            .batches
            .iter()
            .enumerate()
            .map(|(index, &batch)| {
                let ranks: Vec<&BatchResult> = results.iter().map(|rank| &rank[index]).collect();
                judge(setup, batch, &ranks)
            })
            .collect();
        let data = setup.data;
        let tolerance = data.tolerance();
        let most = |of: fn(&Batch) -> f64| batches.iter().map(of).fold(0.0, f64::max);
        let max_abs_error = most(|batch| batch.max_abs_error);
        let kernel_nodes_per_operation = most(|batch| batch.kernel_nodes_per_operation);
        let gathered_exact = batches.iter().all(|batch| batch.gathered_exact);
        let identical = batches
            .iter()
            .all(|batch| batch.bit_identical_eager_and_graph);
        let one_node = batches
            .iter()
            .all(|batch| batch.kernel_nodes_per_operation == 1.0);
        let shards =
            (0..setup.ranks).map(|rank| setup.sharding.keys_of(rank, setup.ranks, data.keys).len());
        Self {
            driver: opened.describe(),
            emulated: opened.driver.is_emulated(),
            emulated_because: opened.instead.clone(),
            devices: opened.devices.clone(),
            data: data.what.clone(),
            element: data.element.name(),
            ranks: setup.ranks,
            heads: data.heads,
            keys: data.keys,
            transport: setup.transport_name(),
            sharding: setup.sharding.name(),
            layers: setup.layers,
            operations: setup.operations(),
            replays: setup.replays,
            kernel_nodes_per_operation,
            gathered_exact,
            bit_identical_eager_and_graph: identical,
            max_abs_error,
            tolerance,
            ok: gathered_exact && identical && one_node && max_abs_error <= tolerance,
            batches,
            shards: shards.collect(),
            time_asked,
        }
    }

    /// Whether every result is right.
    pub fn ok(&self) -> bool {
        self.ok
    }
}

fn judge(setup: &Setup<'_>, batch: usize, ranks: &[&BatchResult]) -> Batch {
    // Attention is no operation of ours; it has one node a layer.
    let of_operations = |rank: &&BatchResult| {
        (rank.kernel_nodes as f64 - setup.layers as f64) / setup.operations() as f64
    };
    let differences = ranks.iter().enumerate().filter_map(|(rank, result)| {
        let words = result.difference.as_ref()?;
        Some(format!("rank {rank}: {words}"))
    });
    let differences: Vec<String> = differences.collect();
    let times = ranks
        .iter()
        .filter_map(|rank| rank.times)
        .reduce(Times::slowest);
    Batch {
        batch,
        kernel_nodes_per_operation: ranks.iter().map(of_operations).fold(0.0, f64::max),
        gathered_exact: ranks.iter().all(|rank| rank.gathered_exact),
        bit_identical_eager_and_graph: differences.is_empty(),
        differences,
        max_abs_error: ranks
            .iter()
            .map(|rank| rank.max_abs_error)
            .fold(0.0, f64::max),
        gpu_microseconds: times.map(|times| Microseconds {
            gather: times.gather,
            reduce_scatter: times.reduce,
            step: times.step,
        }),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: String| writeln!(f, "{name:<12}{value}");
        line("driver", self.driver.clone())?;
        if self.emulated {
            let why = match &self.emulated_because {
                Some(why) => format!("no real driver was used: {why}"),
                None => "as asked".to_owned(),
            };
            line("", format!("EMULATED on the CPU, {why}"))?;
        }
        line(
            "devices",
            format!("{}: {}", self.devices.len(), grouped(&self.devices)),
        )?;
        let keys: Vec<String> = self.shards.iter().map(usize::to_string).collect();
        line(
            "ranks",
            format!(
                "{} threads, {} of {} heads each; {} keys, {}: {}",
                self.ranks,
                self.heads / self.ranks,
                self.heads,
                self.keys,
                self.sharding,
                keys.join(" + ")
            ),
        )?;
        line("data", format!("{}, {}", self.data, self.element))?;
        line(
            "operations",
            format!(
                "{} in a graph of {} ({}), {} kernel node each",
                self.operations,
                if self.layers == 1 {
                    "1 layer".to_owned()
                } else {
                    format!("{} layers", self.layers)
                },
                self.transport,
                self.kernel_nodes_per_operation
            ),
        )?;
        line(
            "replays",
            format!(
                "{} of each graph, every one compared with the eager pass",
                self.replays
            ),
        )?;
        for batch in &self.batches {
            line(
                &format!("batch {}", batch.batch),
                batch.words(self.tolerance),
            )?;
            for difference in &batch.differences {
                line("", difference.clone())?;
            }
            if let Some(times) = batch.gpu_microseconds {
                line(
                    "",
                    format!(
                        "GPU time in a graph, slowest rank: gather {:.2} us, reduce-scatter {:.2} us, whole step {:.2} us",
                        times.gather, times.reduce_scatter, times.step
                    ),
                )?;
            }
        }
        if self.time_asked && self.emulated {
            line("time", "not measured: the machine is EMULATED".to_owned())?;
        }
        line(
            "error",
            format!(
                "{:.3e} at most, {:.3e} allowed",
                self.max_abs_error, self.tolerance
            ),
        )?;
        write!(
            f,
            "{:<12}{}",
            "result",
            if self.ok { "ok" } else { "WRONG" }
        )
    }
}

impl Batch {
    fn words(&self, tolerance: f64) -> String {
        format!(
            "gathered heads {}, eager and graph {}, largest error {:.3e}{}",
            if self.gathered_exact {
                "exact"
            } else {
                "WRONG"
            },
            if self.bit_identical_eager_and_graph {
                "bit-identical"
            } else {
                "DIFFERENT"
            },
            self.max_abs_error,
            if self.max_abs_error <= tolerance {
                ""
            } else {
                ": TOO LARGE"
            }
        )
    }
}

/// Equal names once, with their number.
fn grouped(names: &[String]) -> String {
    let mut counts: Vec<(&String, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let parts = counts.iter().map(|(name, count)| match count {
        1 => (*name).clone(),
        _ => format!("{count} x {name}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_device_names_are_counted() {
        let names = ["a", "b", "a"].map(str::to_owned);
        assert_eq!(grouped(&names), "2 x a, b");
    }
}
