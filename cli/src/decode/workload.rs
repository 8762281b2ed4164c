//! The data of a run, whatever it came from.

use std::ops::Range;

use super::element::Element;

/// Attention data of one or more layers of equal shape.
#[derive(Debug, Clone)]
pub struct Workload {
    /// What it is, for the report.
    pub what: String,
    /// Element type of everything.
    pub element: Element,
    /// Attention heads.
    pub heads: usize,
    /// Elements of a query and of a key.
    pub key_dim: usize,
    /// Elements of a value and of an output.
    pub value_dim: usize,
    /// Keys, all ranks together.
    pub keys: usize,
    /// Query tokens.
    pub tokens: usize,
    /// Factor of the scores.
    pub scale: f64,
    /// Layers of the graph take these in turn. Never empty.
    pub layers: Vec<Layer>,
}

/// Data of one layer, as bytes of the workload's element type.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Where it came from.
    pub name: String,
    /// `[tokens, heads, key_dim]`.
    pub queries: Vec<u8>,
    /// Keys and values.
    pub cache: Cache,
    /// The attention output `[tokens, heads, value_dim]` where the data have it; else the reference is computed.
    pub context: Option<Vec<f32>>,
}

/// Keys and values of all ranks.
#[derive(Debug, Clone)]
pub enum Cache {
    /// Every head has its own: keys `[keys, heads, key_dim]`, values `[keys, heads, value_dim]`.
    PerHead {
        /// Keys.
        keys: Vec<u8>,
        /// Values.
        values: Vec<u8>,
    },
    /// All heads share `[keys, key_dim]`, of which the first `value_dim` elements of a row are the value.
    Shared(Vec<u8>),
}

/// The two sets of queries between which a run alternates, so that no replay can pass on what the one before it left.
pub const SETS: usize = 2;

impl Workload {
    /// Data of layer `index` of the graph.
    pub fn layer(&self, index: usize) -> &Layer {
        &self.layers[index % self.layers.len()]
    }

    /// The query tokens of a set: the last `batch` tokens, or the `batch` tokens before them as far as there are any.
    pub fn tokens_of(&self, set: usize, batch: usize) -> Range<usize> {
        let first = self.tokens.saturating_sub((set + 1) * batch);
        first..first + batch
    }

    /// Bytes of one head's query or key.
    pub fn query_row(&self) -> usize {
        self.key_dim * self.element.bytes()
    }

    /// Bytes of one head's output.
    pub fn value_row(&self) -> usize {
        self.value_dim * self.element.bytes()
    }

    /// Largest allowed absolute error of an output. To what 32-bit arithmetic may cost, 16-bit types add two roundings, of
    /// the partial outputs and of the result, neither of which is larger than the largest value.
    pub fn tolerance(&self) -> f64 {
        const ARITHMETIC: f64 = 1e-4;
        if self.element == Element::F32 {
            return ARITHMETIC;
        }
        ARITHMETIC + 2.0 * self.element.unit_roundoff() * self.largest_value()
    }

    fn largest_value(&self) -> f64 {
        let largest = |bytes: &[u8]| {
            let numbers = self.element.decode(bytes);
            numbers.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
        };
        let caches = self.layers.iter().map(|layer| match &layer.cache {
            Cache::PerHead { values, .. } => largest(values),
            Cache::Shared(rows) => largest(rows),
        });
        caches.fold(0.0, f64::max)
    }
}
