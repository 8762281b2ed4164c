//! Collectives as shapes: inputs that differ for every operation, and what must come out.

use std::fmt;
use std::ops::Range;

use slabfence::collective::{Layout, LseBase};
use slabfence::layout::DType;

use crate::arithmetic;

/// One element of one rank's input of one operation.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Whose input.
    pub rank: u32,
    /// Which operation of the test.
    pub operation: u32,
    /// Token.
    pub token: u32,
    /// Head: of the rank's own for a gather, of all heads for a reduce-scatter.
    pub head: u32,
    /// Element of the row.
    pub i: u32,
}

impl Place {
    /// A word that hardly any two places share.
    pub fn hash(self) -> u32 {
        let mut h = self.operation;
        for word in [self.rank, self.token, self.head, self.i] {
            h = (h ^ word).wrapping_mul(0x9e37_79b1);
            h = (h ^ (h >> 15)).wrapping_mul(0x85eb_ca6b);
            h ^= h >> 13;
        }
        h
    }
}

/// What inputs hold.
#[derive(Clone, Copy)]
pub struct Source {
    /// Bits of an element, of which the element type's low bytes count.
    pub element: fn(DType, Place) -> u32,
    /// Log-sum-exp of a row; `i` is 0.
    pub lse: fn(Place) -> f32,
}

// Addresses of functions say nothing to a reader of a failure.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl Source {
    /// Any bytes: payload of a gather.
    pub const BYTES: Self = Self {
        element: |_, place| place.hash(),
        lse: |_| 0.0,
    };
    /// No numbers, of every sign and payload that the element type has; any bytes where it has none.
    pub const NANS: Self = Self {
        element: nan,
        lse: |_| 0.0,
    };
    /// Numbers of magnitude 2^-4 to 2^4, and log-sum-exps of -6 to 6.
    pub const NUMBERS: Self = Self {
        element: |dtype, place| arithmetic::narrow(dtype, number(place.hash())),
        lse: |place| number(place.hash() ^ 0x5555) * 0.375,
    };
}

/// Bits that are no number, from the place's hash.
pub fn nan(dtype: DType, place: Place) -> u32 {
    let hash = place.hash();
    let of = |sign: u32, exponent: u32, mantissas: u32| {
        let sign = if hash >> 31 == 1 { sign } else { 0 };
        sign | exponent | (1 + hash % mantissas)
    };
    match dtype {
        DType::F32 => of(1 << 31, 0x7f80_0000, 0x7f_ffff),
        DType::F16 => of(0x8000, 0x7c00, 0x3ff),
        DType::Bf16 => of(0x8000, 0x7f80, 0x7f),
        DType::F8E4M3 => of(0x80, 0x7e, 1),
        DType::F8E5M2 => of(0x80, 0x7c, 3),
        _ => hash,
    }
}

/// A number of magnitude 2^-4 to 2^4 of either sign, from a word.
pub fn number(word: u32) -> f32 {
    let exponent = 123 + (word >> 23) % 8;
    f32::from_bits((word & 0x8000_0000) | (exponent << 23) | (word & 0x7f_ffff))
}

/// Which collective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `all_gather_heads`.
    Gather,
    /// `lse_reduce_scatter` with this base, from and to these layouts.
    Reduce(LseBase, Layout, Layout),
}

/// A collective without its buffers.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Which.
    pub kind: Kind,
    /// Element type.
    pub dtype: DType,
    /// Tokens.
    pub batch: u32,
    /// Heads of one rank.
    pub heads: u32,
    /// Elements of a head.
    pub dim: u32,
    /// What inputs hold.
    pub source: Source,
}

/// Bytes that nothing writes: outputs before their operation, and rows of a head-major array behind its batch.
pub(crate) const UNTOUCHED: u8 = 0x5a;

impl Shape {
    /// A gather of any bytes.
    pub const fn gather(dtype: DType, batch: u32, heads: u32, dim: u32) -> Self {
        Self {
            kind: Kind::Gather,
            dtype,
            batch,
            heads,
            dim,
            source: Source::BYTES,
        }
    }

    /// A token-major reduce-scatter of numbers with LSE in base e.
    pub const fn reduce(dtype: DType, batch: u32, heads: u32, dim: u32) -> Self {
        Self {
            kind: Kind::Reduce(LseBase::E, Layout::TokenMajor, Layout::TokenMajor),
            source: Source::NUMBERS,
            ..Self::gather(dtype, batch, heads, dim)
        }
    }

    fn row(&self) -> usize {
        self.dim as usize * self.dtype.bytes()
    }

    fn place(&self, rank: u32, operation: u32, token: u32, head: u32) -> Place {
        Place {
            rank,
            operation,
            token,
            head,
            i: 0,
        }
    }

    fn write_row(&self, to: &mut [u8], row: Place) {
        let bytes = self.dtype.bytes();
        for (i, element) in (0..).zip(to.chunks_exact_mut(bytes)) {
            let bits = (self.source.element)(self.dtype, Place { i, ..row });
            element.copy_from_slice(&bits.to_le_bytes()[..bytes]);
        }
    }

    /// Offset of a row in an array of `heads` heads, and its length, in bytes.
    fn row_at(&self, layout: Layout, heads: u32, token: u32, head: u32) -> Range<usize> {
        let row = match layout {
            Layout::TokenMajor => token * heads + head,
            Layout::HeadMajor { capacity } => head * capacity + token,
        };
        let start = row as usize * self.row();
        start..start + self.row()
    }

    /// Bytes of an array of `heads` heads.
    pub(crate) fn array(&self, layout: Layout, heads: u32) -> usize {
        let tokens = match layout {
            Layout::TokenMajor => self.batch,
            Layout::HeadMajor { capacity } => capacity,
        };
        (tokens * heads) as usize * self.row()
    }

    /// Rank `rank`'s input of operation `operation`: elements, then for a reduce-scatter the log-sum-exps.
    pub fn input(&self, world: u32, rank: u32, operation: u32) -> Vec<u8> {
        let (layout, heads) = match self.kind {
            Kind::Gather => (Layout::TokenMajor, self.heads),
            Kind::Reduce(_, from, _) => (from, self.heads * world),
        };
        // No number, where nothing should be read.
        let mut bytes = vec![0xff; self.array(layout, heads)];
        let rows = (0..self.batch).flat_map(|token| (0..heads).map(move |head| (token, head)));
        for (token, head) in rows.clone() {
            let to = &mut bytes[self.row_at(layout, heads, token, head)];
            self.write_row(to, self.place(rank, operation, token, head));
        }
        if self.kind != Kind::Gather {
            bytes.extend(rows.flat_map(|(token, head)| {
                (self.source.lse)(self.place(rank, operation, token, head)).to_le_bytes()
            }));
        }
        bytes
    }

    /// Rank `rank`'s output of operation `operation`.
    pub fn expected(&self, world: u32, rank: u32, operation: u32) -> Vec<u8> {
        match self.kind {
            Kind::Gather => self.gathered(world, operation),
            Kind::Reduce(base, _, to) => self.reduced(base, to, world, rank, operation),
        }
    }

    fn gathered(&self, world: u32, operation: u32) -> Vec<u8> {
        let total = self.heads * world;
        let mut bytes = vec![0; self.array(Layout::TokenMajor, total)];
        for token in 0..self.batch {
            for head in 0..total {
                let to = &mut bytes[self.row_at(Layout::TokenMajor, total, token, head)];
                let (rank, own) = (head / self.heads, head % self.heads);
                self.write_row(to, self.place(rank, operation, token, own));
            }
        }
        bytes
    }

    fn reduced(&self, base: LseBase, to: Layout, world: u32, rank: u32, operation: u32) -> Vec<u8> {
        let mut bytes = vec![UNTOUCHED; self.array(to, self.heads)];
        for row in self.rows(to, world, rank, operation) {
            let weights = arithmetic::weights(base, &row.lse);
            let elements = bytes[row.at].chunks_exact_mut(self.dtype.bytes());
            for (element, parts) in elements.zip(row.parts) {
                let bits = arithmetic::combine(self.dtype, &weights, &parts);
                element.copy_from_slice(&bits.to_le_bytes()[..element.len()]);
            }
        }
        bytes
    }

    /// What rank `rank`'s output of a reduce-scatter is made of, where the output has the layout `to`.
    pub fn rows(
        &self,
        to: Layout,
        world: u32,
        rank: u32,
        operation: u32,
    ) -> impl Iterator<Item = Row> {
        let heads = self.heads;
        let rows = (0..self.batch).flat_map(move |token| (0..heads).map(move |head| (token, head)));
        rows.map(move |(token, head)| {
            let of = |source| self.place(source, operation, token, rank * heads + head);
            let part = |i, source| (self.source.element)(self.dtype, Place { i, ..of(source) });
            Row {
                at: self.row_at(to, heads, token, head),
                lse: (0..world).map(|s| (self.source.lse)(of(s))).collect(),
                parts: (0..self.dim)
                    .map(|i| (0..world).map(|source| part(i, source)).collect())
                    .collect(),
            }
        })
    }
}

/// One row of a reduce-scatter's output, and what each rank contributes.
#[derive(Debug)]
pub struct Row {
    /// Its bytes in the output.
    pub at: Range<usize>,
    /// Log-sum-exp by rank.
    pub lse: Vec<f32>,
    /// Bits by element and rank.
    pub parts: Vec<Vec<u32>>,
}
