//! The results as a file, so that anyone can compute the error again.
//!
//! For every layer l with data of its own: `layer{l}.k` and `layer{l}.v` as in the input, or `layer{l}.kv`
//! `[keys, key_dim]` where heads share keys and the first value_dim elements of a row are the value. For every batch size B
//! and layer l: `b{B}.layer{l}.q` `[B, heads, key_dim]`, `.output` and `.expected` (f64) `[B, heads, value_dim]`.
//! Metadata `scale` is the factor of the scores; layer l takes the data of layer l mod `distinct_layers`.

use std::collections::HashMap;
use std::path::Path;

use safetensors::Dtype;

use super::rank::BatchResult;
use super::setup::Setup;
use super::shard;
use super::workload::Cache;
use crate::failure::Failure;
use crate::files;
use crate::tensor::Tensor;

/// Writes the file, or nothing.
pub fn write(path: &Path, setup: &Setup<'_>, results: &[Vec<BatchResult>]) -> Result<(), Failure> {
    let tensors = tensors(setup, results);
    let metadata = HashMap::from([
        ("data".to_owned(), setup.data.what.clone()),
        ("scale".to_owned(), setup.data.scale.to_string()),
        (
            "distinct_layers".to_owned(),
            setup.data.layers.len().to_string(),
        ),
    ]);
    let failed = |what: String| Failure::Fault(format!("--output {}: {what}", path.display()));
    let bytes = safetensors::serialize(
        tensors.iter().map(|(name, tensor)| (name, tensor)),
        Some(metadata),
    )
    .map_err(|error| failed(error.to_string()))?;
    files::store(path, &bytes).map_err(|error| failed(error.to_string()))
}

fn tensors(setup: &Setup<'_>, results: &[Vec<BatchResult>]) -> Vec<(String, Tensor)> {
    let data = setup.data;
    let stored = data.element.stored();
    let mut tensors = Vec::new();
    for (index, layer) in data.layers.iter().enumerate().take(setup.layers) {
        let mut add = |name: &str, shape: Vec<usize>, bytes: &[u8]| {
            let tensor = Tensor {
                dtype: stored,
                shape,
                bytes: bytes.to_vec(),
            };
            tensors.push((format!("layer{index}.{name}"), tensor));
        };
        match &layer.cache {
            Cache::PerHead { keys, values } => {
                add("k", vec![data.keys, data.heads, data.key_dim], keys);
                add("v", vec![data.keys, data.heads, data.value_dim], values);
            }
            Cache::Shared(rows) => add("kv", vec![data.keys, data.key_dim], rows),
        }
    }
    for (index, &batch) in setup.batches.iter().enumerate() {
        for layer in 0..setup.layers {
            let mut add = |name: &str, dtype: Dtype, dim: usize, bytes: Vec<u8>| {
                let shape = vec![batch, data.heads, dim];
                let name = format!("b{batch}.layer{layer}.{name}");
                tensors.push((
                    name,
                    Tensor {
                        dtype,
                        shape,
                        bytes,
                    },
                ));
            };
            let queries = shard::heads(
                &data.layer(layer).queries,
                data.query_row(),
                data.heads,
                data.tokens_of(0, batch),
                0..data.heads,
            );
            let expected: Vec<Vec<u8>> = results
                .iter()
                .map(|rank| {
                    rank[index]
                        .expected
                        .iter()
                        .flat_map(|x| x.to_le_bytes())
                        .collect()
                })
                .collect();
            let outputs: Vec<&[u8]> = results
                .iter()
                .map(|rank| &rank[index].outputs[..])
                .collect();
            let expected: Vec<&[u8]> = expected.iter().map(Vec::as_slice).collect();
            let doubles = data.value_dim * size_of::<f64>();
            add("q", stored, data.key_dim, queries);
            add(
                "output",
                stored,
                data.value_dim,
                join(setup, batch, layer, &outputs, data.value_row()),
            );
            add(
                "expected",
                Dtype::F64,
                data.value_dim,
                join(setup, batch, layer, &expected, doubles),
            );
        }
    }
    tensors
}

/// Puts the ranks' heads of one layer side by side: `[batch, heads]` rows from every rank's `[layers, batch, own heads]`.
fn join(setup: &Setup<'_>, batch: usize, layer: usize, ranks: &[&[u8]], row: usize) -> Vec<u8> {
    let own = setup.own_heads() * row;
    let mut joined = Vec::with_capacity(batch * own * ranks.len());
    for token in 0..batch {
        let first = (layer * batch + token) * own;
        for rank in ranks {
            joined.extend_from_slice(&rank[first..first + own]);
        }
    }
    joined
}
