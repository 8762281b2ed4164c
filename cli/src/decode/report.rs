//! The outcome of a run, judged. As JSON it is one object; as text see [`text`](super::text).

use serde::Serialize;

use super::args::DecodeArgs;
use super::rank::BatchResult;
use super::setup::Setup;
use super::time::Times;
use crate::driver::Opened;

/// The outcome of a run. The JSON object has these fields; times are there only when they were measured on a GPU.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub(super) driver: String,
    pub(super) emulated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) emulated_because: Option<String>,
    pub(super) devices: Vec<String>,
    pub(super) data: String,
    pub(super) element: &'static str,
    pub(super) ranks: usize,
    pub(super) heads: usize,
    pub(super) keys: usize,
    pub(super) transport: &'static str,
    pub(super) sharding: &'static str,
    pub(super) layers: usize,
    pub(super) operations: usize,
    pub(super) replays: usize,
    pub(super) kernel_nodes_per_operation: f64,
    pub(super) gathered_exact: bool,
    pub(super) bit_identical_eager_and_graph: bool,
    pub(super) max_abs_error: f64,
    pub(super) tolerance: f64,
    pub(super) ok: bool,
    pub(super) batches: Vec<Batch>,
    #[serde(skip)]
    pub(super) shards: Vec<usize>,
    #[serde(skip)]
    pub(super) time_asked: bool,
    pub(super) processes: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Batch {
    pub(super) batch: usize,
    pub(super) kernel_nodes_per_operation: f64,
    pub(super) gathered_exact: bool,
    pub(super) bit_identical_eager_and_graph: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) differences: Vec<String>,
    pub(super) max_abs_error: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gpu_microseconds: Option<Microseconds>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Microseconds {
    pub(super) gather: f64,
    pub(super) reduce_scatter: f64,
    pub(super) step: f64,
}

impl Report {
    /// Judges the results, `results[rank][batch]`.
    pub fn new(
        setup: &Setup<'_>,
        opened: &Opened,
        results: &[Vec<BatchResult>],
        args: &DecodeArgs,
    ) -> Self {
        let batches: Vec<Batch> = setup
            .batches
            .iter()
            .enumerate()
            .map(|(index, &batch)| {
                let ranks: Vec<&BatchResult> = results.iter().map(|rank| &rank[index]).collect();
                judge(setup.layers, setup.operations(), batch, &ranks)
            })
            .collect();
        let data = setup.data;
        let tolerance = data.tolerance();
        let most = |of: fn(&Batch) -> f64| batches.iter().map(of).fold(0.0, f64::max);
        let max_abs_error = most(|batch| batch.max_abs_error);
        let nodes = batches.iter().map(|batch| batch.kernel_nodes_per_operation);
        let kernel_nodes_per_operation = farthest_from_one(nodes);
        let gathered_exact = batches.iter().all(|batch| batch.gathered_exact);
        let identical = batches
            .iter()
            .all(|batch| batch.bit_identical_eager_and_graph);
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
            ok: batches.iter().all(|batch| batch.right(tolerance)),
            batches,
            shards: shards.collect(),
            time_asked: args.time,
            processes: !args.threads,
        }
    }

    /// Whether every result is right.
    pub fn ok(&self) -> bool {
        self.ok
    }
}

fn judge(layers: usize, operations: usize, batch: usize, ranks: &[&BatchResult]) -> Batch {
    // Attention is no operation of ours; it has one node a layer.
    let of_operations =
        |rank: &&BatchResult| (rank.kernel_nodes as f64 - layers as f64) / operations as f64;
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
        kernel_nodes_per_operation: farthest_from_one(ranks.iter().map(of_operations)),
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

/// The number that is most wrong, where one is right.
fn farthest_from_one(numbers: impl Iterator<Item = f64>) -> f64 {
    let wrong = |x: &f64| (x - 1.0).abs();
    let most = numbers.max_by(|a, b| wrong(a).total_cmp(&wrong(b)));
    most.unwrap_or(0.0)
}

impl Batch {
    fn right(&self, tolerance: f64) -> bool {
        self.gathered_exact
            && self.bit_identical_eager_and_graph
            && self.kernel_nodes_per_operation == 1.0
            && self.max_abs_error <= tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> BatchResult {
        BatchResult {
            kernel_nodes: 7,
            gathered_exact: true,
            difference: None,
            max_abs_error: 5e-5,
            outputs: Vec::new(),
            expected: Vec::new(),
            times: None,
        }
    }

    /// Two layers: five operations and two attention nodes.
    fn judged(other: BatchResult) -> Batch {
        judge(2, 5, 1, &[&result(), &other])
    }

    #[test]
    fn right_results_on_all_ranks_are_right() {
        let batch = judged(result());
        assert_eq!(batch.kernel_nodes_per_operation, 1.0);
        assert!(batch.right(1e-4));
    }

    #[test]
    fn anything_wrong_on_one_rank_is_wrong() {
        let words = "replay 3 differs".to_owned();
        for other in [
            BatchResult {
                kernel_nodes: 8,
                ..result()
            },
            BatchResult {
                kernel_nodes: 6,
                ..result()
            },
            BatchResult {
                gathered_exact: false,
                ..result()
            },
            BatchResult {
                difference: Some(words.clone()),
                ..result()
            },
            BatchResult {
                max_abs_error: 2e-4,
                ..result()
            },
            BatchResult {
                max_abs_error: f64::INFINITY,
                ..result()
            },
        ] {
            assert!(!judged(other).right(1e-4));
        }
        let batch = judged(BatchResult {
            difference: Some(words),
            ..result()
        });
        assert_eq!(batch.differences, ["rank 1: replay 3 differs"]);
    }
}
