//! The results as a file, so that anyone can compute the error again.
//!
//! For every layer l with data of its own: `layer{l}.k` and `layer{l}.v` as in the input, or `layer{l}.kv`
//! `[keys, key_dim]` where heads share keys and the first value_dim elements of a row are the value. For every batch size B
//! and layer l: `b{B}.layer{l}.q` `[B, heads, key_dim]`, `.output` and `.expected` (f64) `[B, heads, value_dim]`.
//! Metadata `scale` is the factor of the scores; layer l takes the data of layer l mod `distinct_layers`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::Dtype;

use super::rank::BatchResult;
use super::setup::Setup;
use super::shard;
use super::workload::Cache;
use crate::failure::Failure;
use crate::tensor::Tensor;

/// Refuses a path that cannot be written to, before anything runs.
pub fn check(option: &str, path: &Path) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    };
    if path.file_name().is_none() || path.is_dir() {
        return Err(Failure::Use(format!(
            "{option} {}: that is no file name",
            path.display()
        )));
    }
    // What is there is replaced: a device such as /dev/null would be gone.
    if path.exists() && !path.is_file() {
        return Err(Failure::Use(format!(
            "--output {}: that is no plain file",
            path.display()
        )));
    }
    if !folder.is_dir() {
        return Err(Failure::Use(format!(
            "{option} {}: there is no folder {}",
            path.display(),
            folder.display()
        )));
    }
    Ok(())
}

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
    store(path, &bytes).map_err(|error| failed(error.to_string()))
}

/// Writes a file whole, or not at all.
pub fn store(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    written.inspect_err(|_| {
        // It may not be there; the first error is the one to tell.
        let _ = std::fs::remove_file(&partial);
    })
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
