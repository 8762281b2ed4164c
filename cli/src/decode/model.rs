//! Made data in the attention shapes of published models.

use clap::ValueEnum;

use super::element::Element;
use super::workload::{Cache, Layer, SETS, Workload};
use crate::numbers::Numbers;

/// Elements of a key in multi-head latent attention: 512 of the latent and 64 of the rotary part.
const KEY_DIM: usize = 576;
/// Elements of a value: the latent.
const VALUE_DIM: usize = 512;
/// Queries are this much larger than keys, so that a few keys have most of the weight and shards differ by much.
const QUERY_SIZE: f32 = 12.0;
/// Layers of different data; graphs with more layers take them in turn.
const DISTINCT_LAYERS: usize = 2;

/// A published model with multi-head latent attention: one key row of 576 elements for all heads, whose first 512 are
/// the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// GLM-5.2: 64 heads.
    #[value(name = "glm-5.2")]
    Glm52,
    /// Kimi K3: 96 heads.
    #[value(name = "kimi-k3")]
    KimiK3,
    /// DeepSeek-V3: 128 heads.
    #[value(name = "deepseek-v3")]
    DeepseekV3,
}

impl Model {
    /// As options and reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Glm52 => "glm-5.2",
            Self::KimiK3 => "kimi-k3",
            Self::DeepseekV3 => "deepseek-v3",
        }
    }

    /// Attention heads.
    pub const fn heads(self) -> usize {
        match self {
            Self::Glm52 => 64,
            Self::KimiK3 => 96,
            Self::DeepseekV3 => 128,
        }
    }

    /// Bytes of [`Self::workload`].
    pub fn bytes(self, element: Element, batch: usize, keys: usize, layers: usize) -> Option<u64> {
        let queries = SETS.checked_mul(batch)?.checked_mul(self.heads())?;
        let rows = queries
            .checked_add(keys)?
            .checked_mul(layers.min(DISTINCT_LAYERS))?;
        Some(rows.checked_mul(KEY_DIM * element.bytes())? as u64)
    }

    /// Data for batches up to `batch` tokens over `keys` keys, the same for the same seed.
    pub fn workload(
        self,
        element: Element,
        batch: usize,
        keys: usize,
        layers: usize,
        seed: u64,
    ) -> Workload {
        let (heads, tokens) = (self.heads(), SETS * batch);
        let layers = (0..layers.min(DISTINCT_LAYERS)).map(|index| {
            let mut numbers = Numbers::new(seed.wrapping_mul(0x1000).wrapping_add(index as u64));
            let mut array = |count: usize, size: f32| {
                element.encode(std::iter::repeat_with(|| numbers.next() * size).take(count))
            };
            Layer {
                name: format!("made {index}"),
                queries: array(tokens * heads * KEY_DIM, QUERY_SIZE),
                cache: Cache::Shared(array(keys * KEY_DIM, 1.0)),
                context: None,
            }
        });
        Workload {
            what: format!("made data (seed {seed}) in the shape of {}", self.name()),
            element,
            heads,
            key_dim: KEY_DIM,
            value_dim: VALUE_DIM,
            keys,
            tokens,
            scale: 1.0 / (KEY_DIM as f64).sqrt(),
            layers: layers.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_data() {
        let made = Model::Glm52.workload(Element::Bf16, 3, 5, 9, 1);
        let bytes = |layer: &Layer| match &layer.cache {
            Cache::Shared(rows) => layer.queries.len() + rows.len(),
            Cache::PerHead { .. } => 0,
        };
        let whole = made.layers.iter().map(bytes).sum::<usize>() as u64;
        assert_eq!(Model::Glm52.bytes(Element::Bf16, 3, 5, 9), Some(whole));
        assert_eq!(Model::Glm52.bytes(Element::Bf16, 1, usize::MAX, 1), None);
    }

    #[test]
    fn the_same_seed_makes_the_same_data_and_another_makes_other() {
        let made = |seed| Model::Glm52.workload(Element::Bf16, 1, 4, 3, seed);
        let (one, again, other) = (made(1), made(1), made(2));
        assert_eq!(one.layers.len(), 2);
        assert_eq!(one.layers[0].queries.len(), 2 * 64 * 576 * 2);
        assert_eq!(one.layers[1].queries, again.layers[1].queries);
        assert_ne!(one.layers[0].queries, one.layers[1].queries);
        assert_ne!(one.layers[0].queries, other.layers[0].queries);
        let Cache::Shared(rows) = &one.layers[0].cache else {
            panic!("keys are shared");
        };
        let keys = one.element.decode(rows);
        assert_eq!(keys.len(), 4 * 576);
        assert!(keys.iter().all(|x| (-1.0..=1.0).contains(x)));
        assert!(keys.iter().any(|&x| x < -0.9) && keys.iter().any(|&x| x > 0.9));
    }
}
