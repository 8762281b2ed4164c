//! What a message of a group says of itself.

use super::Rank;
use super::wire::{Reader, Writer};
use crate::hash::Fnv1a;

/// First word of every message, whatever its form.
const MAGIC: u64 = u64::from_le_bytes(*b"slabfmsg");
/// Form of all that ranks tell one another before they have compared their builds: envelopes, verdicts, what earlier
/// creations have left, pool numbers, wishes for subgroups, and how terms are written. A build that reads or writes any of
/// it otherwise has another number.
pub(super) const FORM: u64 = 1;
/// Longest name of a version.
const MAX_VERSION: usize = 64;
// Every message would be taken for a damaged one.
const _: () = assert!(env!("CARGO_PKG_VERSION").len() <= MAX_VERSION);

/// What a message begins with, now and in every form to come: ranks of any two builds can tell each other's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The form of what follows.
    pub number: u64,
    /// The library's version.
    pub version: String,
}

impl Form {
    /// This build's.
    fn own() -> Self {
        Self {
            number: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// With a digest of its own: a message that came damaged is none of another build.
    fn write(&self) -> Writer {
        let start = Writer::new().word(MAGIC).word(self.number);
        start.text(&self.version).word(self.digest())
    }

    fn digest(&self) -> u64 {
        let start = Fnv1a::new().word(MAGIC).word(self.number);
        start.text(&self.version).finish()
    }

    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        let magic = reader.word()?;
        let (number, version) = (reader.word()?, reader.text()?);
        let form = Self { number, version };
        let right = magic == MAGIC && form.version.len() <= MAX_VERSION;
        (reader.word()? == form.digest() && right).then_some(form)
    }

    /// That of a message.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        Self::take(&mut Reader::new(message))
    }
}

/// A message: its form, step, pool, its sender, its own number, a digest of all but the form, payload.
pub(super) fn envelope(step: &str, pool: u64, from: Rank, number: u64, payload: &[u8]) -> Vec<u8> {
    let start = Form::own().write().text(step).word(pool);
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

/// Reads an [`envelope`] of this build's form that has come as this rank sent it: step, pool and payload.
pub(super) fn open(message: &[u8], from: Rank) -> Option<(String, u64, Vec<u8>)> {
    let mut reader = Reader::new(message);
    Form::take(&mut reader).filter(|form| form.number == FORM)?;
    let (step, pool, sender) = (reader.text()?, reader.word()?, reader.word()?);
    let (number, said) = (reader.word()?, reader.word()?);
    let payload = reader.rest();
    let right = sender == u64::from(from.0) && said == digest(&step, pool, from, number, payload);
    right.then(|| (step, pool, payload.to_vec()))
}

/// The message of a rank of another build, whose form has this number: nothing but its beginning can be read.
#[cfg(test)]
pub(super) fn of_form(number: u64, version: &str) -> Vec<u8> {
    let form = Form {
        number,
        version: version.to_owned(),
    };
    form.write().raw(b"whatever follows there").finish()
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
            let form = Form::of(&other);
            assert!(form.is_none_or(|form| form == Form::own()), "byte {at}");
            assert_eq!(open(&whole[..at], Rank(2)), None, "{at} bytes");
        }
    }

    #[test]
    fn a_message_of_another_form_tells_its_form_and_version_and_nothing_else() {
        let other = of_form(FORM + 1, "9.9.9");
        let form = Form::of(&other).unwrap();
        assert_eq!((form.number, &form.version[..]), (FORM + 1, "9.9.9"));
        assert_eq!(open(&other, Rank(0)), None);
        // Also where all the rest is as here.
        let mut whole = envelope("step", 7, Rank(2), 3, b"payload");
        let rest = whole.split_off(Form::own().write().finish().len());
        let mut other = Form {
            number: FORM + 1,
            ..Form::own()
        }
        .write()
        .finish();
        other.extend(rest);
        assert_eq!(open(&other, Rank(2)), None);
        assert_eq!(Form::of(&of_form(1, &"9".repeat(MAX_VERSION + 1))), None);
    }

    /// What a message begins with can never change. Where the other bytes do, `FORM` has to be raised, and they be put here.
    #[test]
    fn messages_of_this_form_are_to_the_byte_what_they_were() {
        let form = of_form(3, "1.2.3");
        let wanted = [
            &b"slabfmsg"[..],
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &[5, 0, 0, 0, 0, 0, 0, 0],
            b"1.2.3",
            &0xb9db_ccff_c62d_7f64_u64.to_le_bytes(),
            b"whatever follows there",
        ];
        assert_eq!(form, wanted.concat());
        let message = envelope("step", 7, Rank(2), 3, b"payload");
        let wanted = [
            &Form::own().write().finish()[..],
            &[4, 0, 0, 0, 0, 0, 0, 0],
            b"step",
            &[7, 0, 0, 0, 0, 0, 0, 0],
            &[2, 0, 0, 0, 0, 0, 0, 0],
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &0x4548_650d_9066_e2ed_u64.to_le_bytes(),
            b"payload",
        ];
        assert_eq!((FORM, message), (1, wanted.concat()));
    }
}
