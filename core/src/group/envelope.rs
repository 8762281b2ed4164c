//! What a message of a group says of itself.

use super::wire::{Reader, Writer};
use crate::hash::Fnv1a;

/// A message: step, pool, its own number, a digest of all of it, payload.
pub(super) fn envelope(step: &str, pool: u64, number: u64, payload: &[u8]) -> Vec<u8> {
    let start = Writer::new().text(step).word(pool).word(number);
    start
        .word(digest(step, pool, number, payload))
        .raw(payload)
        .finish()
}

fn digest(step: &str, pool: u64, number: u64, payload: &[u8]) -> u64 {
    let start = Fnv1a::new().text(step).word(pool).word(number);
    start.bytes(payload).finish()
}

/// Reads an [`envelope`] that has come as it was sent: step, pool and payload.
pub(super) fn open(message: &[u8]) -> Option<(String, u64, Vec<u8>)> {
    let mut reader = Reader::new(message);
    let (step, pool, number) = (reader.text()?, reader.word()?, reader.word()?);
    let said = reader.word()?;
    let payload = reader.rest();
    (said == digest(&step, pool, number, payload)).then(|| (step, pool, payload.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_changed_anywhere_or_cut_is_found_out() {
        let whole = envelope("step", 7, 3, b"payload");
        assert_eq!(
            open(&whole),
            Some(("step".to_owned(), 7, b"payload".to_vec()))
        );
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x10;
            assert_eq!(open(&other), None, "byte {at}");
            assert_eq!(open(&whole[..at]), None, "{at} bytes");
        }
    }
}
