//! States by their hash.

use std::hash::Hasher;

/// A fast hash of 64 bits. Two states that share it are taken for one: some 10^6 states a run make that a chance of 10^-7.
#[derive(Debug, Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        let x = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^ (x >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x2545_f491_4f6c_dd1d) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product as u64)
            ^ ((product >> 64) as u64)
                .rotate_left(17)
                .wrapping_add(self.0.rotate_left(5));
    }
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }
    fn write_usize(&mut self, _: usize) {}
    fn write_isize(&mut self, discriminant: isize) {
        self.write_u64(discriminant as u64);
    }
}
