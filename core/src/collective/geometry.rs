//! How an operation is cut into CTAs: the same on all ranks, because only shape and contract enter.

use crate::layout::align_up;

/// Threads that move data. One control warp, always the last, comes on top.
pub(crate) const WORKER_THREADS: u32 = 256;
/// Threads of a CTA of a collective.
pub(crate) const BLOCK_THREADS: u32 = WORKER_THREADS + 32;
/// Bytes of a pack, the unit of every load and store of payload.
pub(crate) const PACK_BYTES: u64 = 16;
/// What is best for operations of up to so many packs of one rank: of its heads in a gather, of its share in a
/// reduce-scatter.
struct Step {
    up_to: u64,
    best: u64,
}

const fn step(up_to: u64, best: u64) -> Step {
    Step { up_to, best }
}

/// CTAs of a gather, as far as each has a pack for every worker thread. The fastest of 4 to 128 between two H200s, for 1
/// to 64 tokens of 32 heads a rank, rows of 576 bf16; one table for push and pull, which differ little (docs/performance.md).
const GATHER_CTAS: [Step; 6] = [
    step(9_216, 20),
    step(18_432, 24),
    step(36_864, 52),
    step(73_728, 96),
    step(110_592, 112),
    step(u64::MAX, 96),
];
/// Packs of a row that a worker thread of a reduce-scatter moves. Measured in the same way, rows of 512 bf16, with 16, 32,
/// 64 and 128 threads a row. There are CTAs for all rows up to the contract's limit, beyond it as many as share them evenly.
const REDUCE_PACKS_PER_THREAD: [Step; 3] = [step(16_384, 1), step(98_304, 2), step(u64::MAX, 4)];

fn best(table: &[Step], packs: u64) -> u64 {
    let step = table.iter().find(|step| packs <= step.up_to);
    step.map_or(1, |step| step.best)
}

/// No operation has as many packs on one rank, nor rows: 4 GiB. A row then has bytes that 32 bits count, too.
const MOST_PACKS: u64 = 1 << 28;

/// A gather's shape in packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GatherGeometry {
    /// Packs of one rank.
    pub packs: u32,
    /// Packs of one rank in one token.
    pub token_packs: u32,
    /// CTAs.
    pub grid: u32,
}

impl GatherGeometry {
    /// `heads`: of one rank. `row_bytes`: of one head of one token.
    pub(crate) fn new(
        batch: u32,
        heads: u32,
        row_bytes: u64,
        max_grid: u32,
    ) -> Result<Self, String> {
        let row_packs = row_packs(row_bytes)?;
        let token_packs = fit(&[heads.into(), row_packs])?;
        let packs = fit(&[batch.into(), token_packs.into()])?;
        let most = best(&GATHER_CTAS, packs.into()).min(max_grid.into());
        Ok(Self {
            packs,
            token_packs,
            grid: u64::from(packs)
                .div_ceil(WORKER_THREADS.into())
                .clamp(1, most) as u32,
        })
    }

    /// Bytes that one rank stages, in its outbox or in each peer's inbox.
    pub(crate) fn staged_bytes(&self) -> u64 {
        u64::from(self.packs) * PACK_BYTES
    }
}

/// A reduce-scatter's shape in rows: one head of one token of one rank's share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReduceGeometry {
    /// Rows of one rank's share.
    pub rows: u32,
    /// Packs of a row.
    pub row_packs: u32,
    /// Base-2 logarithm of the threads that share a row.
    pub row_threads_log2: u32,
    /// CTAs.
    pub grid: u32,
    /// From the start of a staged part to its LSE values.
    pub lse_offset: u64,
    /// Bytes of a staged part: what one source has for one destination.
    pub part_bytes: u64,
}

impl ReduceGeometry {
    /// `heads`: of one rank's share. `row_bytes`: of one head of one token.
    pub(crate) fn new(
        batch: u32,
        heads: u32,
        row_bytes: u64,
        max_grid: u32,
    ) -> Result<Self, String> {
        let row_packs = row_packs(row_bytes)?;
        let rows = fit(&[batch.into(), heads.into()])?;
        let packs = fit(&[rows.into(), row_packs])?;
        let per_thread = best(&REDUCE_PACKS_PER_THREAD, packs.into());
        let row_threads = row_packs.div_ceil(per_thread).next_power_of_two();
        let row_threads = row_threads.min(u64::from(WORKER_THREADS)) as u32;
        let lse_offset = u64::from(packs) * PACK_BYTES;
        let part = lse_offset + u64::from(rows) * size_of::<f32>() as u64;
        let part_bytes = usize::try_from(part).ok().and_then(align_up);
        Ok(Self {
            rows,
            row_packs: fit(&[row_packs])?,
            row_threads_log2: row_threads.ilog2(),
            grid: evenly(
                rows.into(),
                (WORKER_THREADS / row_threads).into(),
                max_grid.into(),
            ),
            lse_offset,
            part_bytes: part_bytes.ok_or_else(too_large)? as u64,
        })
    }
}

/// The fewest CTAs, at most `most`, of which none has more turns at `per_cta` items than the others need.
fn evenly(items: u64, per_cta: u64, most: u64) -> u32 {
    let turns = items.div_ceil(per_cta).max(1);
    turns.div_ceil(turns.div_ceil(most)) as u32
}

/// Packs of a row, which is never cut inside a pack.
fn row_packs(row_bytes: u64) -> Result<u64, String> {
    if row_bytes == 0 || !row_bytes.is_multiple_of(PACK_BYTES) {
        return Err(format!(
            "a row of {row_bytes} bytes (head dimension × element size) is not a positive multiple of {PACK_BYTES}"
        ));
    }
    Ok(row_bytes / PACK_BYTES)
}

/// The product, if kernels can count it: their 32-bit counters go on for at most 2^19 behind the last pack or row, and a
/// row's LSE lies 4 bytes times its number behind the first.
fn fit(factors: &[u64]) -> Result<u32, String> {
    let product = factors
        .iter()
        .try_fold(1u64, |product, &factor| product.checked_mul(factor));
    product
        .filter(|&product| product < MOST_PACKS)
        .and_then(|product| u32::try_from(product).ok())
        .ok_or_else(too_large)
}

/// What kernels divide by `divisor` with; 0, which no shape has, gives 0.
pub(crate) fn reciprocal(divisor: u32) -> u32 {
    u32::MAX.checked_div(divisor).unwrap_or(0)
}

fn too_large() -> String {
    format!(
        "the shape has {MOST_PACKS} or more packs of {PACK_BYTES} bytes on one rank; split the batch"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grids of batches of 1, 2, 4, 8, 16, 32, 48 and 64 tokens.
    fn grids(of: impl Fn(u32) -> u32) -> [u32; 8] {
        [1, 2, 4, 8, 16, 32, 48, 64].map(of)
    }

    #[test]
    fn a_gather_has_the_ctas_that_were_fastest_on_two_h200s() {
        // 32 heads of 576 bf16: 2304 packs a token.
        let of = |batch| GatherGeometry::new(batch, 32, 1152, 128).unwrap().grid;
        assert_eq!(grids(of), [9, 18, 20, 24, 52, 96, 112, 96]);
    }

    #[test]
    fn a_reduce_scatter_has_the_ctas_and_threads_a_row_that_were_fastest_on_two_h200s() {
        // 32 heads of 512 bf16: 64 packs a row.
        let of = |batch| ReduceGeometry::new(batch, 32, 1024, 128).unwrap();
        assert_eq!(grids(|b| of(b).grid), [8, 16, 32, 64, 64, 128, 96, 128]);
        let threads = grids(|b| of(b).row_threads_log2);
        assert_eq!(threads, [6, 6, 6, 6, 5, 5, 5, 4]);
        // 192 turns on at most 96, and on at most 64 CTAs; one row each for 65 is two turns for some, so 33 do as well.
        let most = |batch, most| ReduceGeometry::new(batch, 32, 1024, most).unwrap().grid;
        assert_eq!((most(48, 95), most(48, 64)), (64, 64));
        let wide = |rows, most| ReduceGeometry::new(rows, 1, 4096, most).unwrap().grid;
        assert_eq!((wide(64, 64), wide(65, 64), wide(128, 64)), (64, 33, 64));
    }

    #[test]
    fn a_gather_counts_packs_and_has_no_cta_without_one() {
        // 8 tokens, 4 heads of 576 bf16: 72 packs a row.
        let g = GatherGeometry::new(8, 4, 1152, 32).unwrap();
        assert_eq!((g.packs, g.token_packs, g.grid), (2304, 288, 9));
        assert_eq!(g.staged_bytes(), 36864);
        let one = |packs: u32| GatherGeometry::new(packs, 1, 16, 32).unwrap().grid;
        assert_eq!((one(1), one(256), one(257)), (1, 1, 2));
        assert_eq!((one(4608), one(4609), one(1 << 20)), (18, 19, 32));
    }

    #[test]
    fn reduce_shares_a_row_among_a_power_of_two_of_threads() {
        // 8 tokens, 4 heads of 512 bf16: 64 packs a row, 4 rows a CTA.
        let r = ReduceGeometry::new(8, 4, 1024, 32).unwrap();
        let expected = ReduceGeometry {
            rows: 32,
            row_packs: 64,
            row_threads_log2: 6,
            grid: 8,
            lse_offset: 32768,
            part_bytes: 32896,
        };
        assert_eq!(r, expected);
        let threads = |bytes| {
            ReduceGeometry::new(1, 1, bytes, 32)
                .unwrap()
                .row_threads_log2
        };
        assert_eq!((threads(16), threads(32), threads(48)), (0, 1, 2));
        assert_eq!((threads(4096), threads(4112), threads(65536)), (8, 8, 8));
    }

    #[test]
    fn a_staged_part_holds_the_payload_the_lse_and_nothing_unaligned() {
        let part = |batch| ReduceGeometry::new(batch, 1, 16, 32).unwrap();
        assert_eq!((part(1).lse_offset, part(1).part_bytes), (16, 128));
        assert_eq!((part(6).lse_offset, part(6).part_bytes), (96, 128));
        assert_eq!((part(7).lse_offset, part(7).part_bytes), (112, 256));
    }

    /// `divide` in kernels/protocol.cuh, number for number.
    #[test]
    fn a_reciprocal_divides_right_or_one_too_small() {
        let divide = |dividend: u32, divisor: u32| {
            let product = u64::from(dividend) * u64::from(reciprocal(divisor));
            let estimate = (product >> 32) as u32;
            estimate + u32::from(dividend - estimate * divisor >= divisor)
        };
        let edges = [
            1,
            2,
            3,
            7,
            32,
            72,
            1000,
            65535,
            65536,
            MOST_PACKS as u32 - 1,
        ];
        for divisor in edges {
            let near = |n: u32| [n.saturating_sub(1), n, n.saturating_add(1)];
            let multiples = [1, 2, 3, 1000, u32::MAX / divisor].map(|n| divisor.saturating_mul(n));
            for dividend in multiples.into_iter().flat_map(near).chain([0, u32::MAX]) {
                assert_eq!(
                    divide(dividend, divisor),
                    dividend / divisor,
                    "{dividend} / {divisor}"
                );
            }
        }
    }

    #[test]
    fn rows_that_are_no_packs_and_shapes_that_kernels_cannot_count_are_refused() {
        for row in [0, 8, 24] {
            let words = GatherGeometry::new(1, 1, row, 32).unwrap_err();
            assert!(words.contains(&format!("a row of {row} bytes")), "{words}");
            assert_eq!(ReduceGeometry::new(1, 1, row, 32).unwrap_err(), words);
        }
        let most = MOST_PACKS as u32 - 1;
        assert_eq!(GatherGeometry::new(most, 1, 16, 32).unwrap().packs, most);
        assert_eq!(ReduceGeometry::new(most, 1, 16, 32).unwrap().rows, most);
        let words = GatherGeometry::new(most + 1, 1, 16, 32).unwrap_err();
        assert!(words.contains("268435456 or more packs"), "{words}");
        assert_eq!(ReduceGeometry::new(1, most + 1, 16, 32).unwrap_err(), words);
        assert_eq!(ReduceGeometry::new(1, 1, 1 << 32, 32).unwrap_err(), words);
        assert!(GatherGeometry::new(u32::MAX, u32::MAX, u64::MAX - 15, 32).is_err());
        assert!(ReduceGeometry::new(u32::MAX, u32::MAX, u64::MAX - 15, 32).is_err());
    }
}
