//! Reads scenario files: every name and number must fit.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use slabfence_emu_ptx::Module;
use toml::Spanned;

use super::file::{Address, At, Contents, File};
use super::plan::{Capture, Place, Plan};
use super::tags;
use crate::check::{case, replace};
use crate::failure::Failure;
use crate::plain;

/// Most ranks.
const MOST_RANKS: u32 = 16;
/// Most bytes of all buffers, and of all variables of the PTX.
const MOST_BYTES: u64 = 64 << 20;

/// Says where in a file something is wrong.
pub(super) struct Reader<'a> {
    path: &'a Path,
    pub(super) text: &'a str,
    names: BTreeMap<String, usize>,
    pub(super) sizes: Vec<u64>,
    pub(super) graphs: BTreeMap<String, (usize, u32)>,
    pub(super) events: BTreeMap<String, usize>,
    pub(super) event_ranks: Vec<u32>,
    pub(super) ptx: Module,
    pub(super) ranks: u32,
}

/// The line that a place of a text is in.
pub(super) fn line(text: &str, span: Range<usize>) -> usize {
    let before = text.bytes().take(span.start);
    1 + before.filter(|&b| b == b'\n').count()
}

/// Refuses variables of a module that are too large: each rank's device has its own.
fn variables(ptx: &Module, ranks: u32) -> Result<(), String> {
    let mut total = 0u64;
    for global in &ptx.globals {
        total = total.saturating_add(global.size.saturating_mul(ranks.into()));
        if total > MOST_BYTES {
            return Err(format!(
                "line {}: `{}`: variables have at most {MOST_BYTES} bytes together, on all ranks",
                global.line, global.name
            ));
        }
    }
    Ok(())
}

fn at(path: &Path, text: &str, span: Range<usize>, words: &str) -> Failure {
    let line = line(text, span);
    let words = plain::one_line(words);
    Failure::Use(format!("{}: line {line}: {words}", path.display()))
}

impl Plan {
    /// Reads a file and its PTX. The profile is asked for in place of the file's.
    pub fn read(path: &Path, profile: Option<&str>) -> Result<Self, Failure> {
        let text = replace::text(path)?;
        let file: File = toml::from_str(&text).map_err(|error| {
            let words = error.message().trim().replace('\n', "; ");
            at(path, &text, error.span().unwrap_or(0..0), &words)
        })?;
        let said = match &file.profile {
            Some(name) => {
                let known = case::profile(name.get_ref());
                let words = |error: Failure| at(path, &text, name.span(), &error.to_string());
                known.map_err(words)?
            }
            None => case::profile(case::PROFILE)?,
        };
        let profile = match profile {
            Some(name) => case::profile(name)?,
            None => said,
        };
        let beside = path
            .parent()
            .unwrap_or(Path::new(""))
            .join(file.ptx.get_ref());
        let ptx_text = replace::words(&beside).map_err(|error| {
            let words = format!("`{}`: {error}", beside.display());
            at(path, &text, file.ptx.span(), &words)
        })?;
        let refused = |error: &dyn Display| Failure::Use(format!("{}: {error}", beside.display()));
        let (machine, _driver) = case::machine(1, &profile)?;
        machine
            .accepts(&ptx_text)
            .map_err(|error| refused(&error))?;
        let ptx = slabfence_emu_ptx::parse(&ptx_text).map_err(|error| refused(&error))?;
        variables(&ptx, *file.ranks.get_ref()).map_err(|error| refused(&error))?;
        let mut reader = Reader {
            path,
            text: &text,
            names: BTreeMap::new(),
            sizes: Vec::new(),
            graphs: BTreeMap::new(),
            events: BTreeMap::new(),
            event_ranks: Vec::new(),
            ptx,
            ranks: *file.ranks.get_ref(),
        };
        let read = Self {
            text: ptx_text,
            profile,
            ranks: reader.ranks,
            time_passes: file.time_passes,
            buffers: Vec::new(),
            graphs: Vec::new(),
            events: Vec::new(),
            steps: Vec::new(),
            expected: Vec::new(),
        };
        reader.plan(&file, read)
    }
}

impl Reader<'_> {
    pub(super) fn wrong<T>(&self, at_what: &Spanned<T>, words: impl AsRef<str>) -> Failure {
        at(self.path, self.text, at_what.span(), words.as_ref())
    }

    fn plan(&mut self, file: &File, read: Plan) -> Result<Plan, Failure> {
        if !(1..=MOST_RANKS).contains(&self.ranks) {
            let words = format!("{} ranks; there can be 1 to {MOST_RANKS}", self.ranks);
            return Err(self.wrong(&file.ranks, words));
        }
        let buffers = self.buffers(file)?;
        let mut graphs = Vec::new();
        for graph in &file.graph {
            let rank = self.rank(&graph.rank)?;
            let launches = graph.launch.iter().map(|launch| self.launch(launch));
            let launches = launches.collect::<Result<Vec<_>, _>>()?;
            let name = graph.name.get_ref().clone();
            if self.graphs.insert(name, (graphs.len(), rank)).is_some() {
                return Err(self.wrong(&graph.name, "two graphs have this name"));
            }
            graphs.push(Capture { rank, launches });
        }
        let steps = file
            .step
            .get_ref()
            .iter()
            .map(|step| self.step(step, &buffers));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        self.amount(file, &steps, &graphs)?;
        let mut expected = Vec::new();
        for expect in &file.expect {
            let buffer = self.buffer(&expect.buffer)?;
            expected.push((buffer, self.contents(&expect.contents, self.sizes[buffer])?));
        }
        Ok(Plan {
            ranks: self.ranks,
            buffers,
            graphs,
            events: std::mem::take(&mut self.event_ranks),
            steps,
            expected,
            ..read
        })
    }

    fn buffers(&mut self, file: &File) -> Result<Vec<Place>, Failure> {
        let mut places = Vec::new();
        for buffer in &file.buffer {
            let size = *buffer.size.get_ref();
            let total: u64 = self.sizes.iter().sum();
            if size == 0 || size > MOST_BYTES - total {
                let words = format!("{size} bytes; buffers have 1 to {MOST_BYTES} bytes together");
                return Err(self.wrong(&buffer.size, words));
            }
            let name = buffer.name.get_ref().clone();
            if self.names.insert(name.clone(), places.len()).is_some() {
                return Err(self.wrong(&buffer.name, "two buffers have this name"));
            }
            let owner = self.rank(&buffer.owner)?;
            let mapped = buffer.mapped.iter().map(|rank| self.rank(rank));
            let mapped = mapped.collect::<Result<Vec<_>, _>>()?;
            let written = !buffer
                .initial
                .as_ref()
                .is_some_and(|contents| matches!(contents.get_ref(), Contents::Unwritten));
            let mut initial = match &buffer.initial {
                Some(contents) => match contents.get_ref() {
                    // What they are is known when all buffers are.
                    Contents::Unwritten | Contents::Addresses(_) => Vec::new(),
                    _ => self.contents(contents, size)?,
                },
                None => Vec::new(),
            };
            initial.resize(size as usize, 0);
            places.push(Place {
                name: plain::one_line(&name),
                spans: tags::spans(self, buffer, places.len(), owner, &mapped)?,
                owner,
                mapped,
                initial,
                addresses: Vec::new(),
                written,
            });
            self.sizes.push(size);
        }
        for (place, buffer) in places.iter_mut().zip(&file.buffer) {
            let Some(contents) = &buffer.initial else {
                continue;
            };
            if let Contents::Addresses(list) = contents.get_ref() {
                if list.len() as u64 > *buffer.size.get_ref() / 8 {
                    let size = buffer.size.get_ref();
                    let words = format!("{} addresses for a buffer of {size}", list.len());
                    return Err(self.wrong(contents, words));
                }
                let address = |(number, address)| -> Result<_, Failure> {
                    let (buffer, offset) = self.address(address)?;
                    Ok((8 * number, buffer, offset))
                };
                place.addresses = list
                    .iter()
                    .enumerate()
                    .map(address)
                    .collect::<Result<_, _>>()?;
            }
        }
        Ok(places)
    }

    fn address(&self, address: &Address) -> Result<(usize, u64), Failure> {
        match address {
            Address::Buffer(name) => Ok((self.buffer(name)?, 0)),
            Address::At(inside) => self.inside(inside, 0),
        }
    }

    /// A buffer and a place in it that is followed by so many bytes of it.
    pub(super) fn inside(&self, inside: &At, size: u64) -> Result<(usize, u64), Failure> {
        let buffer = self.buffer(&inside.buffer)?;
        let (offset, all) = (inside.offset, self.sizes[buffer]);
        if all.checked_sub(offset).is_some_and(|left| left >= size) {
            return Ok((buffer, offset));
        }
        let words = match size {
            0 => format!("offset {offset} in a buffer of {all} bytes"),
            _ => format!("{size} bytes from {offset} on in a buffer of {all}"),
        };
        Err(self.wrong(&inside.buffer, words))
    }

    pub(super) fn rank(&self, rank: &Spanned<u32>) -> Result<u32, Failure> {
        let (number, ranks) = (*rank.get_ref(), self.ranks);
        match number < ranks {
            true => Ok(number),
            false => Err(self.wrong(rank, format!("there is no rank {number} of {ranks}"))),
        }
    }

    pub(super) fn buffer(&self, name: &Spanned<String>) -> Result<usize, Failure> {
        let known = self.names.get(name.get_ref()).copied();
        known.ok_or_else(|| self.wrong(name, format!("there is no buffer `{}`", name.get_ref())))
    }

    /// The bytes that contents begin with.
    fn contents(&self, contents: &Spanned<Contents>, size: u64) -> Result<Vec<u8>, Failure> {
        let words =
            |words: &mut dyn Iterator<Item = u32>| words.flat_map(u32::to_le_bytes).collect();
        let bytes: Vec<u8> = match contents.get_ref() {
            Contents::Fill(byte) => vec![*byte; size as usize],
            Contents::Words(list) => words(&mut list.iter().copied()),
            Contents::Ascending(first) => {
                let end = u64::from(*first) + size / 4;
                if end > 1 << 32 {
                    let words = format!("words from {first} on in {size} bytes do not fit 32 bits");
                    return Err(self.wrong(contents, words));
                }
                words(&mut (u64::from(*first)..end).map(|word| word as u32))
            }
            Contents::Addresses(_) => {
                return Err(self.wrong(
                    contents,
                    "addresses are not known, so they cannot be expected",
                ));
            }
            Contents::Unwritten => {
                return Err(self.wrong(contents, "nothing can be expected of unwritten bytes"));
            }
        };
        match bytes.len() as u64 <= size {
            true => Ok(bytes),
            false => {
                let words = format!("{} bytes for a buffer of {size}", bytes.len());
                Err(self.wrong(contents, words))
            }
        }
    }
}
