//! The messages of a group as they go through its bootstrap, for bootstraps that give others in their place.

/// A message, whose digest is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The step that its sender is in.
    pub step: String,
    /// The pool that it is about.
    pub pool: u64,
    /// Its sender.
    pub from: u64,
    /// Its number.
    pub number: u64,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// Takes a word off the front.
pub fn word(bytes: &mut &[u8]) -> Option<u64> {
    let (head, tail) = bytes.split_first_chunk::<8>()?;
    *bytes = tail;
    Some(u64::from_le_bytes(*head))
}

/// Takes a text with its length off the front.
pub fn text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(word(bytes)?).ok()?;
    let (head, tail) = bytes.split_at_checked(length)?;
    *bytes = tail;
    String::from_utf8(head.to_vec()).ok()
}

/// Puts a text with its length at the end.
pub fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

impl Envelope {
    /// Reads a message as it was sent.
    pub fn read(mut message: &[u8]) -> Option<Self> {
        let bytes = &mut message;
        let (step, pool) = (text(bytes)?, word(bytes)?);
        let (from, number, digest) = (word(bytes)?, word(bytes)?, word(bytes)?);
        let read = Self {
            step,
            pool,
            from,
            number,
            payload: bytes.to_vec(),
        };
        (digest == read.digest()).then_some(read)
    }

    /// The message.
    pub fn write(&self) -> Vec<u8> {
        let mut message = self.head();
        message.extend(self.digest().to_le_bytes());
        message.extend(&self.payload);
        message
    }

    fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        put_text(&mut head, &self.step);
        head.extend(
            [self.pool, self.from, self.number]
                .map(u64::to_le_bytes)
                .concat(),
        );
        head
    }

    /// FNV-1a of everything else.
    fn digest(&self) -> u64 {
        let bytes = self.head().into_iter().chain(self.payload.iter().copied());
        bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}
