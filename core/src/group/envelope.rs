//! What a message of a group says of itself.

use super::Rank;
use super::wire::{Reader, Writer};
use crate::hash::Fnv1a;

/// A message: step, pool, its sender, its own number, a digest of all of it, payload.
pub(super) fn envelope(step: &str, pool: u64, from: Rank, number: u64, payload: &[u8]) -> Vec<u8> {
    let start = Writer::new().text(step).word(pool);
    let start = start.word(from.0.into()).word(number);
    start
        .word(digest(step, pool, from, number, payload))
        .raw(payload)
        .finish()
}

fn digest(step: &str, pool: u64, from: Rank, number: u64, payload: &[u8]) -> u64 {
    let start = Fnv1a::new().text(step).word(pool);
    let start = start.word(from.0.into()).word(number);
    start.bytes(payload).finish()
}

/// Reads an [`envelope`] that has come as this rank sent it: step, pool and payload.
pub(super) fn open(message: &[u8], from: Rank) -> Option<(String, u64, Vec<u8>)> {
    let mut reader = Reader::new(message);
    let (step, pool, sender) = (reader.text()?, reader.word()?, reader.word()?);
    let (number, said) = (reader.word()?, reader.word()?);
    let payload = reader.rest();
    let right = sender == u64::from(from.0) && said == digest(&step, pool, from, number, payload);
    right.then(|| (step, pool, payload.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_changed_anywhere_or_cut_is_found_out() {
        let whole = envelope("step", 7, Rank(2), 3, b"payload");
        assert_eq!(
            open(&whole, Rank(2)),
            Some(("step".to_owned(), 7, b"payload".to_vec()))
        );
        assert_eq!(open(&whole, Rank(1)), None);
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x10;
            assert_eq!(open(&other, Rank(2)), None, "byte {at}");
            assert_eq!(open(&whole[..at], Rank(2)), None, "{at} bytes");
        }
    }
}
