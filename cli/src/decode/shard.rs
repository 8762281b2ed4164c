//! Which keys a rank holds, and which heads are its own.

use std::ops::Range;

use clap::ValueEnum;

/// How keys are dealt to ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sharding {
    /// Each rank holds a stretch; the first ranks hold one key more where it does not divide.
    Contiguous,
    /// Key j is on rank j mod ranks.
    Interleaved,
}

impl Sharding {
    /// As options and reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous",
            Self::Interleaved => "interleaved",
        }
    }

    /// The keys of `rank`, of `keys` keys over `ranks` ranks.
    pub fn keys_of(self, rank: usize, ranks: usize, keys: usize) -> Vec<usize> {
        match self {
            Self::Contiguous => {
                let (each, more) = (keys / ranks, keys % ranks);
                let first = rank * each + rank.min(more);
                let count = each + usize::from(rank < more);
                (first..first + count).collect()
            }
            Self::Interleaved => (rank..keys).step_by(ranks).collect(),
        }
    }
}

/// The rows of `bytes`, each `row` bytes, with these indices.
pub fn rows(bytes: &[u8], row: usize, indices: &[usize]) -> Vec<u8> {
    let mut picked = Vec::with_capacity(indices.len() * row);
    for &index in indices {
        picked.extend_from_slice(&bytes[index * row..(index + 1) * row]);
    }
    picked
}

/// Heads of one rank out of `[tokens, heads, dim]`, for these tokens; `row` is the bytes of one head's row.
pub fn heads(
    bytes: &[u8],
    row: usize,
    of: usize,
    tokens: Range<usize>,
    wanted: Range<usize>,
) -> Vec<u8> {
    let mut picked = Vec::with_capacity(tokens.len() * wanted.len() * row);
    for token in tokens {
        let first = token * of;
        picked.extend_from_slice(&bytes[(first + wanted.start) * row..(first + wanted.end) * row]);
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_shards_are_uneven_at_the_front() {
        let counts = |ranks| -> Vec<usize> {
            (0..ranks)
                .map(|r| Sharding::Contiguous.keys_of(r, ranks, 160).len())
                .collect()
        };
        assert_eq!(counts(3), [54, 53, 53]);
        assert_eq!(counts(6), [27, 27, 27, 27, 26, 26]);
        assert_eq!(Sharding::Contiguous.keys_of(1, 3, 8), [3, 4, 5]);
        assert_eq!(Sharding::Contiguous.keys_of(2, 3, 8), [6, 7]);
        assert_eq!(Sharding::Interleaved.keys_of(1, 3, 8), [1, 4, 7]);
    }

    #[test]
    fn every_key_is_on_exactly_one_rank() {
        for sharding in [Sharding::Contiguous, Sharding::Interleaved] {
            for ranks in 2..=16 {
                for keys in [1, 5, 160] {
                    let mut all: Vec<usize> = (0..ranks)
                        .flat_map(|rank| sharding.keys_of(rank, ranks, keys))
                        .collect();
                    all.sort_unstable();
                    assert_eq!(all, (0..keys).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn rows_and_heads_are_cut_out_in_order() {
        // [3 tokens, 4 heads, 2 bytes]
        let bytes: Vec<u8> = (0..24).collect();
        assert_eq!(
            rows(&bytes, 8, &[2, 0]),
            [16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7]
        );
        assert_eq!(
            heads(&bytes, 2, 4, 1..3, 2..4),
            [12, 13, 14, 15, 20, 21, 22, 23]
        );
    }
}
