//! Folders and input files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// A folder that goes with the test.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one; `name` is the test's own, also where these tests run twice at a time.
    pub fn new(name: &str) -> Self {
        Self::within(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    /// One with a short path, wherever the checkout lies: a socket's name has 107 bytes at most.
    pub fn for_sockets(name: &str) -> Self {
        Self::within(&std::env::temp_dir(), &format!("slabfence-test-{name}"))
    }

    fn within(folder: &Path, name: &str) -> Self {
        let path = folder.join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> String {
        self.0
            .join(name)
            .to_str()
            .expect("a path of text")
            .to_owned()
    }

    /// Writes a file; its path.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.0.join(name), bytes).expect("a file in the test's folder");
        self.path(name)
    }

    /// Names of all files in it.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the test's folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Attention data of a small shape, with the right context unless it is spoiled.
#[derive(Debug, Clone)]
pub struct Data {
    pub tokens: usize,
    pub keys: usize,
    pub heads: usize,
    pub dim: usize,
    pub dtype: Dtype,
    /// Added to every element of the context.
    pub wrong_by: f32,
}

impl Data {
    /// Four heads of four elements, two tokens, six keys.
    pub fn small() -> Self {
        Self {
            tokens: 2,
            keys: 6,
            heads: 4,
            dim: 4,
            dtype: Dtype::F32,
            wrong_by: 0.0,
        }
    }

    /// As a safetensors file.
    pub fn bytes(&self) -> Vec<u8> {
        let wave = |count: usize, step: f32| -> Vec<f32> {
            (0..count).map(|i| 2.0 * (step * i as f32).sin()).collect()
        };
        let (row, dim) = (self.heads * self.dim, self.dim);
        let q = wave(self.tokens * row, 0.7);
        let k = wave(self.keys * row, 1.3);
        let v = wave(self.keys * row, 2.9);
        let mut context = Vec::new();
        for token in 0..self.tokens {
            for head in 0..self.heads {
                let at = |array: &[f32], i: usize| -> Vec<f64> {
                    let first = i * row + head * dim;
                    array[first..first + dim]
                        .iter()
                        .map(|&x| x.into())
                        .collect()
                };
                let cache: Vec<_> = (0..self.keys)
                    .map(|key| (at(&k, key), at(&v, key)))
                    .collect();
                let scale = 1.0 / (dim as f64).sqrt();
                let output = attention(&at(&q, token), &cache, scale);
                context.extend(output.iter().map(|&x| x as f32 + self.wrong_by));
            }
        }
        let tensor = |numbers: &[f32], rows: usize| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
            let bytes = bytes[..numbers.len() * self.dtype.bitsize() / 8].to_vec();
            (vec![rows, self.heads, dim], bytes)
        };
        let tensors = [
            ("q", tensor(&q, self.tokens)),
            ("k", tensor(&k, self.keys)),
            ("v", tensor(&v, self.keys)),
            ("context", tensor(&context, self.tokens)),
        ];
        let views = tensors.iter().map(|(name, (shape, bytes))| {
            (
                *name,
                TensorView::new(self.dtype, shape.clone(), bytes).expect("a sound view"),
            )
        });
        safetensors::serialize(views, None::<HashMap<String, String>>).expect("a sound file")
    }
}

/// Attention of one query over pairs of key and value.
pub fn attention(query: &[f64], cache: &[(Vec<f64>, Vec<f64>)], scale: f64) -> Vec<f64> {
    let dot = |key: &[f64]| -> f64 { query.iter().zip(key).map(|(a, b)| a * b).sum() };
    let scores: Vec<f64> = cache.iter().map(|(key, _)| scale * dot(key)).collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let total: f64 = weights.iter().sum();
    let dims = 0..cache[0].1.len();
    dims.map(|d| {
        cache
            .iter()
            .zip(&weights)
            .map(|((_, v), w)| w * v[d])
            .sum::<f64>()
            / total
    })
    .collect()
}
