//! Made numbers.

/// SplitMix64 as numbers from -1 up to 1.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// The same numbers for the same seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First output for seed 0 is 0xe220a8397b1dcdaf.
        let expected = f64::from(0xe220a8u32) / f64::from(1u32 << 23) - 1.0;
        assert_eq!(f64::from(Numbers::new(0).next()), expected);
    }
}
