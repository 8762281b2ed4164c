//! Random inputs and what comes of them.

use half::bf16;

use crate::numbers::Numbers;

/// Largest relative and absolute error of a combined bf16 value against f64: two roundings to bf16 and some of f32.
const TOLERANCE: f64 = 1.0 / 128.0;

/// Shape of one operation.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Ranks.
    pub world: usize,
    /// Tokens.
    pub batch: usize,
    /// Heads of all ranks.
    pub heads: usize,
    /// Elements of a row.
    pub dim: usize,
}

impl Shape {
    /// Heads of one rank.
    pub const fn own_heads(&self) -> usize {
        self.heads / self.world
    }

    /// Elements of one rank's heads.
    pub const fn own(&self) -> usize {
        self.batch * self.own_heads() * self.dim
    }

    /// Elements of all heads.
    pub const fn all(&self) -> usize {
        self.batch * self.heads * self.dim
    }
}

/// bf16 values from −2 to 2, little-endian.
pub fn values(seed: u64, count: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let bytes = |_| bf16::from_f32(2.0 * numbers.next()).to_le_bytes();
    (0..count).flat_map(bytes).collect()
}

/// Log-sum-exp values from −8 to 8.
pub fn lse(seed: u64, count: usize) -> Vec<f32> {
    let mut numbers = Numbers::new(seed);
    (0..count).map(|_| 8.0 * numbers.next()).collect()
}

/// The seed of one rank's data.
pub const fn seed_of(seed: u64, rank: usize) -> u64 {
    seed.wrapping_mul(1000).wrapping_add(rank as u64)
}

/// The gathered bytes: heads of rank r behind those of rank r − 1, token by token.
pub fn gathered(inputs: &[Vec<u8>], shape: &Shape) -> Vec<u8> {
    let part = shape.own_heads() * shape.dim * 2;
    let tokens = 0..shape.batch;
    tokens
        .flat_map(|token| {
            inputs
                .iter()
                .flat_map(move |input| &input[token * part..][..part])
        })
        .copied()
        .collect()
}

/// Whether `output` is the combination for `rank` of the ranks' partial outputs, within the tolerance.
pub fn is_combined(
    output: &[u8],
    inputs: &[Vec<u8>],
    lses: &[Vec<f32>],
    shape: &Shape,
    rank: usize,
) -> bool {
    let at = |bytes: &[u8], index: usize| {
        f64::from(bf16::from_le_bytes([
            bytes[2 * index],
            bytes[2 * index + 1],
        ]))
    };
    let own = shape.own_heads();
    (0..shape.batch * own).all(|row| {
        let (token, head) = (row / own, rank * own + row % own);
        let full = token * shape.heads + head;
        let largest = lses
            .iter()
            .map(|lse| lse[full])
            .fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f64> = lses
            .iter()
            .map(|lse| f64::from(lse[full] - largest).exp())
            .collect();
        let sum: f64 = weights.iter().sum();
        (0..shape.dim).all(|i| {
            let terms = inputs.iter().zip(&weights);
            let expected = terms
                .map(|(input, w)| w * at(input, full * shape.dim + i))
                .sum::<f64>()
                / sum;
            let error = (at(output, row * shape.dim + i) - expected).abs();
            error <= TOLERANCE * expected.abs().max(1.0)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        world: 2,
        batch: 2,
        heads: 4,
        dim: 8,
    };

    #[test]
    fn gathered_heads_are_rank_major_within_a_token() {
        let inputs = [vec![1; SHAPE.own() * 2], vec![2; SHAPE.own() * 2]];
        let part = SHAPE.own_heads() * SHAPE.dim * 2;
        let expected = [vec![1; part], vec![2; part], vec![1; part], vec![2; part]].concat();
        assert_eq!(gathered(&inputs, &SHAPE), expected);
    }

    #[test]
    fn a_combination_is_told_from_one_part_and_from_another_ranks() {
        let inputs = [values(1, SHAPE.all()), values(2, SHAPE.all())];
        let lses = [vec![f32::NEG_INFINITY; 8], vec![0.5; 8]];
        // All weight is on rank 1, so the combination is its part.
        let rows = |input: &[u8], rank: usize| {
            let row = SHAPE.own_heads() * SHAPE.dim * 2;
            let token = |token: usize| input[(token * 2 + rank) * row..][..row].to_vec();
            [token(0), token(1)].concat()
        };
        assert!(is_combined(&rows(&inputs[1], 1), &inputs, &lses, &SHAPE, 1));
        assert!(!is_combined(
            &rows(&inputs[0], 1),
            &inputs,
            &lses,
            &SHAPE,
            1
        ));
        assert!(!is_combined(
            &rows(&inputs[1], 0),
            &inputs,
            &lses,
            &SHAPE,
            1
        ));
    }
}
