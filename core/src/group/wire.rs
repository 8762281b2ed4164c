//! Messages between ranks: little-endian words and length-prefixed texts, read with every bound checked.

/// Builds a message.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn word(mut self, word: u64) -> Self {
        self.0.extend_from_slice(&word.to_le_bytes());
        self
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.word(text.len() as u64).raw(text.as_bytes())
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a message of another rank. `None` from any method: the message is not what it should be.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn word(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.word()?).ok()?;
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        String::from_utf8(head.to_vec()).ok()
    }

    /// Everything that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// `value`, if the message ends here.
    pub(crate) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back_to_the_last_byte() {
        let message = Writer::new().word(7).text("é").raw(&[1, 2, 3, 4]).finish();
        assert_eq!(message.len(), 8 + 8 + 2 + 4);
        let mut reader = Reader::new(&message);
        assert_eq!(reader.word(), Some(7));
        assert_eq!(reader.text().as_deref(), Some("é"));
        assert_eq!(reader.array::<4>(), Some([1, 2, 3, 4]));
        assert_eq!(reader.end(()), Some(()));
    }

    #[test]
    fn short_long_and_malformed_messages_are_refused() {
        assert_eq!(Reader::new(&[0; 7]).word(), None);
        assert_eq!(Reader::new(&u64::MAX.to_le_bytes()).text(), None);
        let not_utf8 = Writer::new().word(1).raw(&[0xff]).finish();
        assert_eq!(Reader::new(&not_utf8).text(), None);
        assert_eq!(Reader::new(&[0]).end(()), None);
    }
}
