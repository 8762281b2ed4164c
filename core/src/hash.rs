//! FNV-1a, 64 bits: the same digest on every rank, whatever the build.

/// Running digest of a sequence of fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv1a(u64);

impl Fnv1a {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    pub(crate) fn word(self, word: u64) -> Self {
        self.bytes(&word.to_le_bytes())
    }

    /// Text with its length, so that neighbouring texts cannot run into each other.
    pub(crate) fn text(self, text: &str) -> Self {
        self.word(text.len() as u64).bytes(text.as_bytes())
    }

    pub(crate) const fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_published_test_vectors() {
        let digest = |text: &str| Fnv1a::new().bytes(text.as_bytes()).finish();
        assert_eq!(digest(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(digest("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn neighbouring_texts_do_not_run_into_each_other() {
        let digest = |a: &str, b: &str| Fnv1a::new().text(a).text(b).finish();
        assert_ne!(digest("ab", "c"), digest("a", "bc"));
    }
}
