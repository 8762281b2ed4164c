//! What ranks and their hub say to one another: one frame a message, every bound checked by the reader.

use std::fmt;

use crate::group::wire::{Reader, Writer};

/// First word of every frame: the protocol and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"slabgrp1");
/// Bytes of that word which are the protocol's in every version.
const NAME: usize = 7;
/// Bytes of a part that one frame carries.
pub(super) const PIECE: usize = 32 << 10;
/// Longest frame: the pieces' header is the longest.
pub(super) const MAX_FRAME: usize = PIECE + 128;
/// Longest part of a rank in one exchange.
pub(super) const MAX_PART: usize = 4 << 20;
/// Serial number of an answer to whichever attempt comes next.
pub(super) const ANY_ATTEMPT: u64 = u64::MAX;
/// Longest words of a refusal.
const MAX_WORDS: usize = 1024;

/// A stretch of a part. Pieces of a part come in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// Bytes of the whole part.
    pub total: u64,
    /// Where the piece begins.
    pub offset: u64,
    /// The piece.
    pub bytes: Vec<u8>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// A rank introduces itself.
    Hello { rank: u64, world: u64, job: String },
    /// The hub has taken the rank in; the frame's token is the job's.
    Welcome,
    /// The hub will have nothing to do with the sender.
    Refused { why: String },
    /// A piece of a rank's part of a round. Every attempt of a rank has a serial number of its own.
    Part {
        round: u64,
        serial: u64,
        piece: Piece,
    },
    /// A rank's deadline has passed: it takes its part back, unless the round is complete, and wants to know who is missing.
    Withdraw { round: u64, serial: u64 },
    /// A piece of `rank`'s part of a complete round.
    Result { round: u64, rank: u64, piece: Piece },
    /// The attempt is withdrawn; a bit for each rank without a part.
    Missing { serial: u64, ranks: u64 },
    /// The attempt has failed; a bit for each rank that has left and whose part is missing.
    Left { serial: u64, ranks: u64 },
}

impl Frame {
    /// The form that travels.
    pub(super) fn encode(&self, token: u64) -> Vec<u8> {
        let start = |kind: u64| Writer::new().word(MAGIC).word(token).word(kind);
        let piece = |message: Writer, piece: &Piece| {
            message
                .word(piece.total)
                .word(piece.offset)
                .raw(&piece.bytes)
        };
        let message = match self {
            Self::Hello { rank, world, job } => start(1).word(*rank).word(*world).text(job),
            Self::Welcome => start(2),
            Self::Refused { why } => start(3).text(why),
            Self::Part {
                round,
                serial,
                piece: part,
            } => piece(start(4).word(*round).word(*serial), part),
            Self::Withdraw { round, serial } => start(5).word(*round).word(*serial),
            Self::Result {
                round,
                rank,
                piece: part,
            } => piece(start(6).word(*round).word(*rank), part),
            Self::Missing { serial, ranks } => start(7).word(*serial).word(*ranks),
            Self::Left { serial, ranks } => start(8).word(*serial).word(*ranks),
        };
        message.finish()
    }

    /// Reads what came: `(token, frame)`. `None` for anything that is not exactly one frame.
    pub(super) fn decode(bytes: &[u8]) -> Option<(u64, Self)> {
        let mut reader = Reader::new(bytes);
        if reader.word()? != MAGIC {
            return None;
        }
        let (token, kind) = (reader.word()?, reader.word()?);
        let frame = match kind {
            1 => {
                let frame = Self::Hello {
                    rank: reader.word()?,
                    world: reader.word()?,
                    job: reader.text()?,
                };
                reader.end(frame)?
            }
            2 => reader.end(Self::Welcome)?,
            3 => {
                let why = reader.text().filter(|why| why.len() <= MAX_WORDS)?;
                reader.end(Self::Refused { why })?
            }
            4 => {
                let (round, serial) = (reader.word()?, reader.word()?);
                let piece = read_piece(reader)?;
                Self::Part {
                    round,
                    serial,
                    piece,
                }
            }
            6 => {
                let (round, rank) = (reader.word()?, reader.word()?);
                let piece = read_piece(reader)?;
                Self::Result { round, rank, piece }
            }
            5 | 7 | 8 => {
                let (first, second) = (reader.word()?, reader.word()?);
                reader.end(match kind {
                    5 => Self::Withdraw {
                        round: first,
                        serial: second,
                    },
                    7 => Self::Missing {
                        serial: first,
                        ranks: second,
                    },
                    _ => Self::Left {
                        serial: first,
                        ranks: second,
                    },
                })?
            }
            _ => return None,
        };
        Some((token, frame))
    }
}

/// Two versions of the protocol by which ranks meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Versions {
    there: char,
    here: char,
}

impl Versions {
    /// That of a first message that is no frame, where it is one of another version, and this process's.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let here = MAGIC.to_le_bytes();
        let there: &[u8; 8] = message.first_chunk()?;
        let same_name = there[..NAME] == here[..NAME] && there[NAME].is_ascii_graphic();
        (same_name && *there != here).then(|| Self {
            there: char::from(there[NAME]),
            here: char::from(here[NAME]),
        })
    }

    /// What a hub says to whom it cannot understand.
    pub(super) fn refusal(&self) -> String {
        format!(
            "your version of the meeting's protocol is {}, mine is {}; {SAME_BUILD}",
            self.there, self.here
        )
    }
}

/// What a rank says of a hub that it cannot understand.
impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its version of the meeting's protocol is {}, this rank's is {}; {SAME_BUILD}",
            self.there, self.here
        )
    }
}

const SAME_BUILD: &str = "run the same build of slabfence on all ranks";

fn read_piece(mut reader: Reader<'_>) -> Option<Piece> {
    let (total, offset) = (reader.word()?, reader.word()?);
    let bytes = reader.rest();
    let end = offset.checked_add(bytes.len() as u64)?;
    // Only an empty part has an empty piece: every piece brings its part nearer to its end.
    let advances = !bytes.is_empty() || total == 0;
    let fits = end <= total && total <= MAX_PART as u64 && bytes.len() <= PIECE;
    (advances && fits).then(|| Piece {
        total,
        offset,
        bytes: bytes.to_vec(),
    })
}

/// The pieces of a part.
pub(super) fn pieces(part: &[u8]) -> impl Iterator<Item = Piece> {
    let total = part.len() as u64;
    let empty = part.is_empty().then_some(&[][..]);
    let mut offset = 0;
    part.chunks(PIECE).chain(empty).map(move |bytes| {
        let piece = Piece {
            total,
            offset,
            bytes: bytes.to_vec(),
        };
        offset += bytes.len() as u64;
        piece
    })
}

/// A part that is being put together.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    bytes: Vec<u8>,
}

impl Assembly {
    /// Adds a piece; the part, once it is whole. A piece that begins the part begins it anew.
    ///
    /// # Errors
    ///
    /// When the piece is not the next.
    pub(super) fn add(&mut self, piece: &Piece) -> Result<Option<Vec<u8>>, ()> {
        if piece.offset == 0 {
            self.bytes.clear();
        }
        if piece.offset != self.bytes.len() as u64 {
            return Err(());
        }
        self.bytes.extend_from_slice(&piece.bytes);
        let whole = self.bytes.len() as u64 == piece.total;
        Ok(whole.then(|| std::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod tests;
