//! What is remembered of each word of memory: who wrote it last, who read it since, whether it holds anything.
//!
//! Sixteen bytes that are always accessed together share one cell; they part into words, or bytes, at the first
//! access that covers less, and become one again when all of them are stored at once.

use rustc_hash::FxHashMap;

use crate::{
    cell::{Cell, Met, Part, Visitor},
    registry::Stamp,
    sweep::Marks,
    word::Word,
};

const QUAD: u64 = 16;
const PAGE: u64 = 4096;

#[derive(Clone, Debug)]
enum Quad {
    Whole(Cell),
    Words(Box<[Cell; 4]>),
    Bytes(Box<[Cell; 16]>),
}

/// Memory of one region (or of a block), by offset.
#[derive(Debug)]
pub(crate) struct Shadow {
    initialised: bool,
    /// Spans that held something at first, where not all does.
    written: Vec<(u64, u64)>,
    pages: Vec<Option<Box<[Quad]>>>,
    /// Words that strong accesses used, by quad.
    words: FxHashMap<u64, Vec<Word>>,
}

impl Quad {
    /// The sixteen bytes at an offset, of which those in these spans hold something.
    fn new(offset: u64, written: &[(u64, u64)]) -> Self {
        let cell = |from, to| {
            let holds = |span: &(u64, u64)| span.0 <= from && to <= span.1;
            Cell::new(written.iter().any(holds))
        };
        let apart = |&(from, to): &(u64, u64)| to <= offset || from >= offset + QUAD;
        let whole = cell(offset, offset + QUAD);
        if whole.initialised || written.iter().all(apart) {
            return Self::Whole(whole);
        }
        let byte = |n| cell(offset + n as u64, offset + n as u64 + 1);
        Self::Bytes(Box::new(std::array::from_fn(byte)))
    }

    /// Parts it so that `len` bytes at `offset` are whole cells; gives those cells.
    fn cells(&mut self, offset: u64, len: u64) -> &mut [Cell] {
        let coarse = (offset | len).is_multiple_of(4);
        *self = match std::mem::replace(self, Quad::Whole(Cell::new(false))) {
            Quad::Whole(cell) if len == QUAD => Quad::Whole(cell),
            Quad::Whole(cell) if coarse => {
                Quad::Words(Box::new(std::array::from_fn(|_| cell.clone())))
            }
            Quad::Whole(cell) => Quad::Bytes(Box::new(std::array::from_fn(|_| cell.clone()))),
            Quad::Words(cells) if !coarse => {
                Quad::Bytes(Box::new(std::array::from_fn(|n| cells[n / 4].clone())))
            }
            parted => parted,
        };
        let (from, to) = (offset as usize, (offset + len) as usize);
        match self {
            Quad::Whole(cell) => std::slice::from_mut(cell),
            Quad::Words(cells) => &mut cells[from / 4..to / 4],
            Quad::Bytes(cells) => &mut cells[from..to],
        }
    }
}

impl Shadow {
    /// Of memory that holds something, or nothing, all over.
    pub(crate) fn new(initialised: bool) -> Self {
        Self {
            initialised,
            written: Vec::new(),
            pages: Vec::new(),
            words: FxHashMap::default(),
        }
    }

    /// These bytes held something before anybody accessed any.
    pub(crate) fn written(&mut self, from: u64, to: u64) {
        self.written.push((from, to));
    }

    fn quad(&mut self, offset: u64) -> &mut Quad {
        let page = (offset / PAGE) as usize;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let (initialised, written) = (self.initialised, &self.written);
        let quads = self.pages[page].get_or_insert_with(|| {
            let base = page as u64 * PAGE;
            if written.is_empty() {
                return vec![Quad::Whole(Cell::new(initialised)); (PAGE / QUAD) as usize].into();
            }
            let near = |&&(from, to): &&(u64, u64)| from < base + PAGE && to > base;
            let near: Vec<(u64, u64)> = written.iter().filter(near).copied().collect();
            let quads = (0..PAGE / QUAD).map(|n| Quad::new(base + n * QUAD, &near));
            quads.collect()
        });
        &mut quads[(offset % PAGE / QUAD) as usize]
    }

    /// Marks whom it remembers.
    pub(crate) fn mark(&self, marks: &mut Marks) {
        for page in self.pages.iter().flatten() {
            marks.pages += 1;
            for quad in page {
                let cells = match quad {
                    Quad::Whole(cell) => std::slice::from_ref(cell),
                    Quad::Words(cells) => &cells[..],
                    Quad::Bytes(cells) => &cells[..],
                };
                cells.iter().for_each(|cell| cell.mark(marks));
            }
        }
        let words = self.words.values().flatten();
        words.for_each(|word| word.mark(marks));
    }

    /// The bytes from one offset to another that hold nothing, in spans.
    pub(crate) fn unwritten(&mut self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        self.parts(from, to, |cell, from, to| match spans.last_mut() {
            _ if cell.initialised => {}
            Some(last) if last.1 == from => last.1 = to,
            _ => spans.push((from, to)),
        });
        spans
    }

    /// These bytes hold nothing, whoever has written them: what was copied there holds nothing.
    pub(crate) fn empty(&mut self, from: u64, to: u64) {
        self.parts(from, to, |cell, _, _| cell.initialised = false);
    }

    /// Looks at the cells of a range, each with the bytes that it stands for.
    fn parts(&mut self, from: u64, to: u64, mut look: impl FnMut(&mut Cell, u64, u64)) {
        let mut at = from;
        while at < to {
            let part = (QUAD - at % QUAD).min(to - at);
            let cells = self.quad(at).cells(at % QUAD, part);
            let each = part / cells.len() as u64;
            for (cell, n) in cells.iter_mut().zip(0..) {
                look(cell, at + n * each, at + (n + 1) * each);
            }
            at += part;
        }
    }

    /// The word of this size at an offset, and the writer of one of other extent that lay over it, which is no more.
    pub(crate) fn word(&mut self, offset: u64, size: u32) -> (&mut Word, Option<Stamp>) {
        let words = self.words.entry(offset / QUAD).or_default();
        let mut mixed = None;
        let (from, to) = (offset, offset + u64::from(size));
        words.retain(|word| {
            let same = (word.offset, word.size) == (offset, size);
            let apart = word.offset >= to || word.offset + u64::from(word.size) <= from;
            if !same && !apart {
                mixed = Some(word.write);
            }
            same || apart
        });
        let at = match words.iter().position(|word| word.offset == offset) {
            Some(at) => at,
            None => {
                words.push(Word::new(offset, size));
                words.len() - 1
            }
        };
        (&mut words[at], mixed)
    }

    /// The word of this size at an offset, if strong accesses used one.
    pub(crate) fn known_word(&mut self, offset: u64, size: u32) -> Option<&mut Word> {
        let words = self.words.get_mut(&(offset / QUAD))?;
        let same = |word: &&mut Word| (word.offset, word.size) == (offset, size);
        words.iter_mut().find(same)
    }

    /// Offset and writer of the words in a range that nobody has taken.
    pub(crate) fn unread(&self, offset: u64, len: u64) -> Vec<(u64, Stamp)> {
        let end = offset + len;
        let hit = |word: &&Word| word.offset < end && word.offset + u64::from(word.size) > offset;
        let words = self.words.values().flatten().filter(hit);
        let unread = words.filter(|word| word.unread);
        let mut unread: Vec<_> = unread.map(|word| (word.offset, word.write)).collect();
        unread.sort_unstable_by_key(|(offset, _)| *offset);
        unread
    }

    /// Weak stores cover a range: what strong ones published there is no more to be had.
    pub(crate) fn forget_words(&mut self, offset: u64, len: u64) {
        if self.words.is_empty() {
            return;
        }
        let end = offset + len;
        let hit = |word: &Word| word.offset < end && word.offset + u64::from(word.size) > offset;
        let quads = offset / QUAD..end.div_ceil(QUAD);
        if (quads.end - quads.start) as usize > self.words.len() {
            self.words
                .values_mut()
                .for_each(|words| words.retain(|word| !hit(word)));
        } else {
            for quad in quads {
                if let Some(words) = self.words.get_mut(&quad) {
                    words.retain(|word| !hit(word));
                }
            }
        }
    }

    /// Reads `len` bytes at `offset`. Gives how many readers were forgotten.
    pub(crate) fn read(
        &mut self,
        offset: u64,
        len: u64,
        by: &Visitor<'_>,
        mut met: impl FnMut(Met, u64),
    ) -> u64 {
        let end = offset + len;
        let mut at = offset;
        let mut forgotten = 0;
        while at < end {
            let part = (QUAD - at % QUAD).min(end - at);
            let met = &mut |what| met(what, at);
            match self.quad(at) {
                Quad::Whole(cell) if part == QUAD => forgotten += u64::from(cell.read(by, met)),
                quad => {
                    for cell in quad.cells(at % QUAD, part) {
                        forgotten += u64::from(cell.read(by, met));
                    }
                }
            }
            at += part;
        }
        forgotten
    }

    /// Writes `len` bytes at `offset`, or does one part of it. Gives how many readers were forgotten.
    pub(crate) fn write(
        &mut self,
        step: Part,
        (offset, len): (u64, u64),
        by: &Visitor<'_>,
        mut met: impl FnMut(Met, u64),
    ) -> u64 {
        let end = offset + len;
        let mut at = offset;
        let mut forgotten = 0;
        while at < end {
            let part = (QUAD - at % QUAD).min(end - at);
            let met = &mut |what| met(what, at);
            match self.quad(at) {
                Quad::Whole(cell) if part == QUAD => {
                    forgotten += u64::from(cell.write(step, by, met))
                }
                quad => {
                    let cells = quad.cells(at % QUAD, part);
                    for cell in cells.iter_mut() {
                        forgotten += u64::from(cell.write(step, by, met));
                    }
                    // What the write does not stand for may lie under some of them alone.
                    if part == QUAD && cells[1..].iter().all(|cell| cell.is_as(&cells[0])) {
                        let whole = cells[0].clone();
                        *quad = Quad::Whole(whole);
                    }
                }
            }
            at += part;
        }
        forgotten
    }
}
