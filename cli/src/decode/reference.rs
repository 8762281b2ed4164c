//! Attention in 64-bit floats on the host, as the published formula has it.

use std::ops::Range;

use super::workload::{Cache, Layer, Workload};

/// Attention output and log-sum-exp of one query over some keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Partial {
    /// The output row.
    pub output: Vec<f64>,
    /// Log-sum-exp of the scaled scores, natural; minus infinity for no keys.
    pub lse: f64,
}

/// One head's keys or values as numbers.
#[derive(Debug)]
pub struct Rows<'a> {
    /// All of them.
    pub numbers: &'a [f64],
    /// From one key to the next.
    pub stride: usize,
    /// Of the first key's row.
    pub offset: usize,
    /// Elements of a row.
    pub dim: usize,
}

impl Rows<'_> {
    fn row(&self, key: usize) -> &[f64] {
        let first = key * self.stride + self.offset;
        &self.numbers[first..first + self.dim]
    }
}

/// Attention of one query over the keys `over`.
pub fn attend(query: &[f64], keys: &Rows, values: &Rows, over: &[usize], scale: f64) -> Partial {
    let dot = |row: &[f64]| -> f64 { query.iter().zip(row).map(|(a, b)| a * b).sum() };
    let scores: Vec<f64> = over.iter().map(|&key| scale * dot(keys.row(key))).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut output = vec![0.0; values.dim];
    let mut total = 0.0;
    for (&key, score) in over.iter().zip(&scores) {
        let weight = (score - largest).exp();
        total += weight;
        for (sum, value) in output.iter_mut().zip(values.row(key)) {
            *sum += weight * value;
        }
    }
    if total > 0.0 {
        output.iter_mut().for_each(|sum| *sum /= total);
    }
    Partial {
        output,
        lse: largest + total.ln(),
    }
}

/// What the outputs of these tokens and heads should be, `[tokens, heads, value_dim]`: the data's own `context` where
/// there is one, else attention over all keys.
pub fn expected(
    data: &Workload,
    layer: &Layer,
    tokens: Range<usize>,
    heads: Range<usize>,
) -> Vec<f64> {
    match &layer.context {
        Some(context) => {
            let rows = tokens.flat_map(|token| {
                let first = token * data.heads;
                let row = data.value_dim;
                &context[(first + heads.start) * row..(first + heads.end) * row]
            });
            rows.map(|&x| x.into()).collect()
        }
        None => {
            let all: Vec<usize> = (0..data.keys).collect();
            let partials = attention(data, layer, tokens, heads, &all);
            partials.into_iter().flat_map(|p| p.output).collect()
        }
    }
}

/// Attention of these tokens and heads over the keys `over`, one partial for each token and head.
fn attention(
    data: &Workload,
    layer: &Layer,
    tokens: Range<usize>,
    heads: Range<usize>,
    over: &[usize],
) -> Vec<Partial> {
    let queries = data.element.decode(&layer.queries);
    let (keys, values) = match &layer.cache {
        Cache::PerHead { keys, values } => {
            (data.element.decode(keys), Some(data.element.decode(values)))
        }
        Cache::Shared(rows) => (data.element.decode(rows), None),
    };
    let mut partials = Vec::with_capacity(tokens.len() * heads.len());
    for token in tokens {
        for head in heads.clone() {
            let first = (token * data.heads + head) * data.key_dim;
            let query = &queries[first..first + data.key_dim];
            let (keys, values) = match &values {
                Some(values) => (
                    Rows {
                        numbers: &keys,
                        stride: data.heads * data.key_dim,
                        offset: head * data.key_dim,
                        dim: data.key_dim,
                    },
                    Rows {
                        numbers: values,
                        stride: data.heads * data.value_dim,
                        offset: head * data.value_dim,
                        dim: data.value_dim,
                    },
                ),
                None => {
                    let rows = |dim| Rows {
                        numbers: &keys,
                        stride: data.key_dim,
                        offset: 0,
                        dim,
                    };
                    (rows(data.key_dim), rows(data.value_dim))
                }
            };
            partials.push(attend(query, &keys, &values, over, data.scale));
        }
    }
    partials
}

/// Largest absolute difference. A NaN on either side counts as infinite.
pub fn largest_error(actual: &[f64], expected: &[f64]) -> f64 {
    if actual.len() != expected.len() {
        return f64::INFINITY;
    }
    let differences = actual.iter().zip(expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |most, d| {
        if d.is_nan() {
            f64::INFINITY
        } else {
            most.max(d)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::element::Element;
    use super::super::input;
    use super::super::model::Model;
    use super::super::shard::Sharding;
    use super::*;

    fn by_formula(data: &Workload, layer: &Layer, tokens: Range<usize>) -> Vec<f64> {
        let plain = Layer {
            context: None,
            ..layer.clone()
        };
        expected(data, &plain, tokens, 0..data.heads)
    }

    /// The shards' partial outputs, combined with weights from `weight(rank, log-sum-exps)`.
    fn combined(
        data: &Workload,
        layer: &Layer,
        tokens: Range<usize>,
        sharding: Sharding,
        ranks: usize,
        weight: impl Fn(usize, &[f64]) -> f64,
    ) -> Vec<f64> {
        let shards: Vec<Vec<Partial>> = (0..ranks)
            .map(|rank| {
                let over = sharding.keys_of(rank, ranks, data.keys);
                attention(data, layer, tokens.clone(), 0..data.heads, &over)
            })
            .collect();
        let mut all = Vec::new();
        for row in 0..shards[0].len() {
            let lse: Vec<f64> = shards.iter().map(|shard| shard[row].lse).collect();
            let total: f64 = (0..ranks).map(|rank| weight(rank, &lse)).sum();
            for dim in 0..data.value_dim {
                let parts = (0..ranks).map(|r| weight(r, &lse) * shards[r][row].output[dim]);
                all.push(parts.sum::<f64>() / total);
            }
        }
        all
    }

    /// What a rank's partial outputs count, by the log-sum-exps of all.
    type Weight<'a> = &'a dyn Fn(usize, &[f64]) -> f64;

    fn right(rank: usize, lse: &[f64]) -> f64 {
        let most = lse.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (lse[rank] - most).exp()
    }

    #[test]
    fn the_formula_gives_what_the_model_computed() {
        let data = input::built_in().unwrap();
        for layer in &data.layers {
            let error = largest_error(
                &by_formula(&data, layer, 152..160),
                &expected(&data, layer, 152..160, 0..12),
            );
            assert!(error < 2e-6 && error > 0.0, "{error}");
        }
    }

    #[test]
    fn heads_are_cut_out_of_the_context_at_their_place() {
        let data = input::built_in().unwrap();
        let layer = &data.layers[0];
        let context = layer.context.as_ref().unwrap();
        let some = expected(&data, layer, 158..160, 3..6);
        assert_eq!(some.len(), 2 * 3 * 32);
        let at = |token: usize, head: usize, dim: usize| context[(token * 12 + head) * 32 + dim];
        assert_eq!(some[0], f64::from(at(158, 3, 0)));
        assert_eq!(some[2 * 32 + 5], f64::from(at(158, 5, 5)));
        assert_eq!(some[3 * 32], f64::from(at(159, 3, 0)));
    }

    #[test]
    fn shards_weighted_by_their_lse_are_the_whole() {
        let data = input::built_in().unwrap();
        for (layer, sharding, ranks) in [
            (0, Sharding::Contiguous, 3),
            (1, Sharding::Contiguous, 6),
            (0, Sharding::Interleaved, 4),
            (1, Sharding::Interleaved, 2),
        ] {
            let layer = &data.layers[layer];
            let parts = combined(&data, layer, 156..160, sharding, ranks, right);
            assert!(largest_error(&parts, &by_formula(&data, layer, 156..160)) < 1e-12);
        }
    }

    #[test]
    fn wrong_weights_exceed_the_tolerance_of_every_data_set() {
        let made = |element| Model::Glm52.workload(element, 1, 96, 1, 1);
        for data in [
            input::built_in().unwrap(),
            made(Element::Bf16),
            made(Element::F16),
        ] {
            let tokens = data.tokens_of(0, 1);
            for layer in &data.layers {
                let whole = by_formula(&data, layer, tokens.clone());
                let wrong: [Weight; 3] = [
                    &|_, _| 1.0,
                    &|rank, lse| right((rank + 1) % lse.len(), lse),
                    &|rank, lse| right(rank, lse).powf(std::f64::consts::LN_2),
                ];
                for weight in wrong {
                    let tokens = tokens.clone();
                    let parts = combined(&data, layer, tokens, Sharding::Contiguous, 4, weight);
                    let error = largest_error(&parts, &whole);
                    assert!(
                        error > 3.0 * data.tolerance(),
                        "{error} {}",
                        data.tolerance()
                    );
                }
            }
        }
    }

    #[test]
    fn a_shared_row_is_key_and_value() {
        // Two keys of one element pair each would do, but the shape is fixed: compare with separate arrays instead.
        let shared = Model::Glm52.workload(Element::F32, 1, 7, 1, 3);
        let Cache::Shared(rows) = &shared.layers[0].cache else {
            panic!("keys are shared");
        };
        let numbers = shared.element.decode(rows);
        let spread = |dim: usize| {
            let rows = numbers
                .chunks(576)
                .flat_map(|row| std::iter::repeat_n(&row[..dim], 64).flatten());
            Element::F32.encode(rows.map(|&x| x as f32))
        };
        let cache = Cache::PerHead {
            keys: spread(576),
            values: spread(512),
        };
        let own = Layer {
            cache,
            ..shared.layers[0].clone()
        };
        let of = |layer| expected(&shared, layer, 0..1, 62..64);
        assert_eq!(of(&own), of(&shared.layers[0]));
    }

    #[test]
    fn not_a_number_and_missing_numbers_are_errors() {
        assert_eq!(largest_error(&[1.0, 2.5], &[1.0, 2.0]), 0.5);
        assert_eq!(largest_error(&[f64::NAN, 1.0], &[1.0, 1.0]), f64::INFINITY);
        assert_eq!(largest_error(&[1.0], &[1.0, 1.0]), f64::INFINITY);
    }
}
