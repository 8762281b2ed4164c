//! The messages of a group as they go through its bootstrap, for bootstraps that give others in their place.

/// A message, whose digests are right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The form of what follows.
    pub form: u64,
    /// The version of its sender's library.
    pub version: String,
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

/// What every message begins with.
const MAGIC: &[u8; 8] = b"slabfmsg";
/// Bytes of it that are no version: magic, form, length of the version, digest.
const FORM_BYTES: usize = 4 * 8;

/// Where the name of its step begins, with its length.
pub fn step_at(mut message: &[u8]) -> Option<usize> {
    let bytes = &mut message;
    let (_, _, version) = (word(bytes)?, word(bytes)?, text(bytes)?);
    Some(FORM_BYTES + version.len())
}

/// Whether it is a message of this step.
pub fn is_of(message: &[u8], step: &str) -> bool {
    let name = step_at(message).and_then(|at| message.get(at..));
    name.and_then(|mut name| text(&mut name))
        .is_some_and(|name| name == step)
}

/// FNV-1a.
fn digest(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |digest: u64, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl Envelope {
    /// Reads a message as it was sent.
    pub fn read(mut message: &[u8]) -> Option<Self> {
        let bytes = &mut message;
        let (_, form, version) = (word(bytes)?, word(bytes)?, text(bytes)?);
        let of_form = word(bytes)?;
        let (step, pool) = (text(bytes)?, word(bytes)?);
        let (from, number, said) = (word(bytes)?, word(bytes)?, word(bytes)?);
        let read = Self {
            form,
            version,
            step,
            pool,
            from,
            number,
            payload: bytes.to_vec(),
        };
        let digests = (digest(read.form_head()), read.digest());
        (digests == (of_form, said)).then_some(read)
    }

    /// The message.
    pub fn write(&self) -> Vec<u8> {
        let mut message = self.form_head();
        message.extend(digest(self.form_head()).to_le_bytes());
        message.extend(self.head());
        message.extend(self.digest().to_le_bytes());
        message.extend(&self.payload);
        message
    }

    /// What it begins with, but for the digest.
    fn form_head(&self) -> Vec<u8> {
        let mut head = [&MAGIC[..], &self.form.to_le_bytes()].concat();
        put_text(&mut head, &self.version);
        head
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

    /// Of head and payload.
    fn digest(&self) -> u64 {
        digest(self.head().into_iter().chain(self.payload.iter().copied()))
    }
}
