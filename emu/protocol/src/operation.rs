//! What one call does: who sends how many rows to whom, and how.

/// Ranks, at most.
pub(crate) const RANKS: usize = 3;
/// CTAs of a call, at most.
pub(crate) const CTAS: usize = 2;
/// Streams of a rank, at most.
pub(crate) const STREAMS: usize = 2;
/// Rows or packets from one source to one destination, at most.
pub(crate) const ROWS: usize = 3;
/// Exchanges of a call, at most.
pub(crate) const PHASES: usize = 2;
/// Staging slots.
pub(crate) const SLOTS: usize = 2;

/// How rows cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Stored into the destination's inbox, then a flag.
    Push,
    /// Stored into the own outbox, then a flag; the destination loads.
    Pull,
    /// Stored into the destination's inbox with a stamp in each; no flag.
    Packet,
}

/// An operation as ranks call it. CTA b moves the rows i with i mod grid = b.
#[derive(Debug, Clone)]
pub struct Operation {
    /// How rows cross.
    pub transport: Transport,
    /// CTAs.
    pub grid: u8,
    /// Rows from each source to each destination. Flags are sent, and waited for, only where there are rows, which is
    /// weaker than what symmetric collectives do: the entry lines alone must then keep the ranks together.
    pub rows: [[u8; RANKS]; RANKS],
    /// A second exchange, whose rows are made of those of the first.
    pub two_shot: bool,
    /// Every destination gets rows of its own (reduce-scatter); else all get the same (gather). Matters to pull.
    pub parts: bool,
    /// What the operation tag's hash comes to.
    pub tag: u8,
}

impl Operation {
    /// A gather of `rows` rows by `grid` CTAs, between all ranks. Its tag follows from its shape.
    pub fn gather(transport: Transport, grid: u8, rows: u8) -> Self {
        assert!((1..=CTAS as u8).contains(&grid) && rows <= ROWS as u8);
        Self {
            transport,
            grid,
            rows: [[rows; RANKS]; RANKS],
            two_shot: false,
            parts: false,
            tag: 1 + transport as u8 * 16 + grid * 4 + rows,
        }
    }

    /// A reduce-scatter.
    pub fn reduce(transport: Transport, grid: u8, rows: u8) -> Self {
        Self {
            parts: true,
            ..Self::gather(transport, grid, rows).tagged(128 + grid * 4 + rows)
        }
    }

    /// The same in two exchanges: a reduce-scatter, then a gather of its results.
    pub fn two_shot(transport: Transport, grid: u8, rows: u8) -> Self {
        Self {
            two_shot: true,
            ..Self::reduce(transport, grid, rows).tagged(192 + grid * 4 + rows)
        }
    }

    /// The same with another tag: another name or ordinal in its capture.
    pub fn tagged(self, tag: u8) -> Self {
        Self { tag, ..self }
    }

    /// The same with rows from `source` to `destination` only.
    pub fn one_way(mut self, source: usize, destination: usize) -> Self {
        for (from, row) in self.rows.iter_mut().enumerate() {
            for (to, rows) in row.iter_mut().enumerate() {
                if (from, to) != (source, destination) {
                    *rows = 0;
                }
            }
        }
        self
    }

    /// An operation that exchanges entry lines and nothing else.
    pub fn nothing() -> Self {
        Self::gather(Transport::Push, 1, 0)
    }

    pub(crate) fn phases(&self) -> u8 {
        1 + u8::from(self.two_shot)
    }

    /// The rows that CTA `cta` of `source` has for `destination`.
    pub(crate) fn rows_of(
        &self,
        source: usize,
        destination: usize,
        cta: usize,
    ) -> impl Iterator<Item = u8> + use<> {
        let grid = self.grid;
        (0..self.rows[source][destination]).filter(move |row| row % grid == cta as u8)
    }

    /// Which part of an outbox the rows for `destination` lie in.
    pub(crate) fn part(&self, destination: usize) -> usize {
        if self.parts { destination } else { 0 }
    }
}
