//! The operation tag: by it, two ranks in different operations find out.

use crate::hash::Fnv1a;
use crate::layout::{ABI, DType, OperationKind, Transport};

/// What both sides of an exchange must have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TagFields<'a> {
    pub kind: OperationKind,
    pub dtype: DType,
    /// Everything about the shape that decides which bytes go where.
    pub shape: &'a [u64],
    pub grid: u32,
    pub block: u32,
    pub transport: Transport,
    /// Of the capture scope, or of the channel outside one.
    pub name: &'a str,
    /// Position in the capture, from 1; 0 for an eager operation.
    pub ordinal: u64,
}

impl TagFields<'_> {
    /// The digest. Neither its low 32 bits nor the 16 above are zero: a zeroed line never agrees, and every CTA's
    /// arrival shows in the ticket's sum.
    pub(crate) fn tag(&self) -> u64 {
        let digest = Fnv1a::new()
            .word(ABI.into())
            .word(self.kind.code().into())
            .word(self.dtype.code().into())
            .word(self.transport.code().into())
            .word(self.grid.into())
            .word(self.block.into())
            .word(self.shape.len() as u64);
        let digest = self.shape.iter().fold(digest, |h, &number| h.word(number));
        nonzero(digest.text(self.name).word(self.ordinal).finish())
    }
}

const fn nonzero(mut tag: u64) -> u64 {
    if tag as u32 == 0 {
        tag |= 1;
    }
    if (tag >> 32) as u16 == 0 {
        tag |= 1 << 32;
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: TagFields<'_> = TagFields {
        kind: OperationKind::AllGatherHeads,
        dtype: DType::Bf16,
        shape: &[8, 4, 576],
        grid: 5,
        block: 288,
        transport: Transport::Push,
        name: "decode",
        ordinal: 0,
    };

    #[test]
    fn every_field_changes_both_the_line_tag_and_the_ticket_tag() {
        let variants = [
            BASE,
            TagFields {
                kind: OperationKind::LseReduceScatter,
                ..BASE
            },
            TagFields {
                dtype: DType::F16,
                ..BASE
            },
            TagFields {
                shape: &[8, 4, 512],
                ..BASE
            },
            TagFields {
                shape: &[8, 4],
                ..BASE
            },
            TagFields { grid: 6, ..BASE },
            TagFields { block: 256, ..BASE },
            TagFields {
                transport: Transport::Pull,
                ..BASE
            },
            TagFields {
                name: "decode.2",
                ..BASE
            },
            TagFields { ordinal: 1, ..BASE },
        ];
        let tags: Vec<u64> = variants.iter().map(TagFields::tag).collect();
        for (i, a) in tags.iter().enumerate() {
            for b in &tags[i + 1..] {
                assert_ne!(*a as u32, *b as u32);
                assert_ne!((a >> 32) as u16, (b >> 32) as u16);
            }
        }
        assert_eq!(BASE.tag(), tags[0]);
    }

    #[test]
    fn neither_half_that_the_device_uses_is_ever_zero() {
        assert_eq!(nonzero(0), 0x1_0000_0001);
        assert_eq!(nonzero(0xabcd_0000_0000_0000), 0xabcd_0001_0000_0001);
        assert_eq!(nonzero(0x0001_0000_0000), 0x0001_0000_0001);
        assert_eq!(nonzero(0x0000_1234), 0x1_0000_1234);
        assert_eq!(nonzero(0x0002_0000_0003), 0x0002_0000_0003);
    }
}
