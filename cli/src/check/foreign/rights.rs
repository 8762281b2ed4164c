//! Whether fills and copies may go where their addresses lead. All of it is known from the file: what an access of a kernel
//! is found for, a step is refused for.

use slabfence_emu::Description;
use slabfence_emu::held::RegionKind;

use super::file::At;
use super::plan::{Place, Span};
use super::read::Reader;
use crate::failure::Failure;

/// What a step does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Reads,
    Writes,
}

impl Reader<'_> {
    /// Where bytes of a step are, if its rank may do this with them.
    pub(super) fn permitted(
        &self,
        (inside, size): (&At, u64),
        rank: u32,
        deed: Deed,
        places: &[Place],
    ) -> Result<(usize, u64), Failure> {
        let (buffer, offset) = self.inside(inside, size)?;
        let place = &places[buffer];
        let wrong = match place.owner == rank || place.mapped.contains(&rank) {
            true => denied(place, (offset, offset + size), rank, deed),
            false => Some(format!(
                "buffer `{}` is not mapped for rank {rank}",
                place.name
            )),
        };
        match wrong {
            Some(words) => Err(self.wrong(&inside.buffer, words)),
            None => Ok((buffer, offset)),
        }
    }
}

/// Why a rank that has a buffer may not do this with bytes of it.
fn denied(place: &Place, (from, to): (u64, u64), rank: u32, deed: Deed) -> Option<String> {
    let mut at = from;
    let mut first: Option<&Description> = None;
    while at < to {
        let holds = |span: &&Span| at.wrapping_sub(span.offset) < span.len;
        let Some(span) = place.spans.iter().find(holds) else {
            return Some(format!(
                "byte {at} of buffer `{}` is in no part of it",
                place.name
            ));
        };
        let what = &span.description;
        let first = first.get_or_insert(what);
        if use_of(first) != use_of(what) {
            let (one, other) = (&first.name, &what.name);
            return Some(format!(
                "it begins in {one} and runs on into {other}, which is for something else: each needs a step of its own"
            ));
        }
        let end = to.min(span.offset + span.len);
        if deed == Deed::Writes {
            let mut bytes = at - span.offset..end - span.offset;
            let other = |&byte: &u64| what.writers.at(byte).is_some_and(|writer| writer != rank);
            if let Some(byte) = bytes.find(other)
                && let Some(writer) = what.writers.at(byte)
            {
                return Some(format!(
                    "rank {rank} writes to byte {byte} of {}, where rank {writer} alone may",
                    what.name
                ));
            }
        }
        at = end;
    }
    None
}

/// What one address leads to all of.
fn use_of(what: &Description) -> (RegionKind, Option<u32>) {
    let kind = match what.kind {
        RegionKind::Ticket => RegionKind::Epoch,
        kind => kind,
    };
    (kind, what.slot)
}
