//! A scenario file whose every name and number is known to fit.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use slabfence_emu::{Description, Profile};
use slabfence_emu_ptx::Module;
use toml::Spanned;

use super::file::{Argument, Contents, File, Launch, Step};
use super::tags;
use crate::check::{case, replace};
use crate::failure::Failure;

/// Most ranks.
const MOST_RANKS: u32 = 16;
/// Most bytes of all buffers, operations of all ranks, and bytes of a parameter.
const MOST_BYTES: u64 = 64 << 20;
const MOST_OPERATIONS: u64 = 4096;
const MOST_PARAMETER: usize = 4096;
/// Most shared memory of a block, bytes: what it can have without opting in to more.
const MOST_SHARED: u64 = 48 << 10;

/// What is run.
#[derive(Debug)]
pub struct Plan {
    pub text: String,
    pub profile: Profile,
    /// Name of the profile that the file asks for.
    pub usual: String,
    pub ranks: u32,
    pub buffers: Vec<Place>,
    pub graphs: Vec<Capture>,
    /// Ranks of the events.
    pub events: Vec<u32>,
    pub steps: Vec<Task>,
    /// Buffer, and bytes at its start.
    pub expected: Vec<(usize, Vec<u8>)>,
}

/// Memory.
#[derive(Debug)]
pub struct Place {
    pub name: String,
    pub spans: Vec<Span>,
    pub owner: u32,
    pub mapped: Vec<u32>,
    /// As many bytes as it has.
    pub initial: Vec<u8>,
    /// Whether they are written before the ranks begin.
    pub written: bool,
}

/// A range of a buffer that is for something: the whole or a part.
#[derive(Debug)]
pub struct Span {
    pub offset: u64,
    pub len: u64,
    pub description: Description,
}

/// Launches of a graph.
#[derive(Debug)]
pub struct Capture {
    pub rank: u32,
    pub launches: Vec<Grid>,
}

/// A launch.
#[derive(Debug)]
pub struct Grid {
    /// Line of the file.
    pub line: usize,
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    /// Bytes of each parameter, and the places in it that get the address of a buffer and an offset.
    pub parameters: Vec<Parameter>,
}

/// Bytes with addresses in them.
#[derive(Debug, Default)]
pub struct Parameter {
    pub bytes: Vec<u8>,
    /// Where, which buffer, and how far in.
    pub addresses: Vec<(usize, usize, u64)>,
}

/// A step.
#[derive(Debug)]
pub struct Task {
    pub rank: u32,
    pub stream: u32,
    pub times: u32,
    pub work: Work,
}

/// What a step enqueues.
#[derive(Debug)]
pub enum Work {
    Launch(Grid),
    Replay(usize),
    /// Records an event, by number.
    Record(usize),
    /// Waits for one.
    Wait(usize),
}

/// Says where in a file something is wrong.
pub(super) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    names: BTreeMap<String, usize>,
    sizes: Vec<u64>,
    graphs: BTreeMap<String, (usize, u32)>,
    events: BTreeMap<String, usize>,
    event_ranks: Vec<u32>,
    ptx: Module,
    pub(super) ranks: u32,
}

/// The line that a place of a text is in.
fn line(text: &str, span: Range<usize>) -> usize {
    let before = text.bytes().take(span.start);
    1 + before.filter(|&b| b == b'\n').count()
}

fn at(path: &Path, text: &str, span: Range<usize>, words: &str) -> Failure {
    let line = line(text, span);
    let words = words.trim().replace('\n', "; ");
    Failure::Use(format!("{}: line {line}: {words}", path.display()))
}

impl Plan {
    /// Reads a file and its PTX. The profile is asked for in place of the file's.
    pub fn read(path: &Path, profile: Option<&str>) -> Result<Self, Failure> {
        let text = replace::text(path)?;
        let file: File = toml::from_str(&text)
            .map_err(|error| at(path, &text, error.span().unwrap_or(0..0), error.message()))?;
        let usual = match &file.profile {
            Some(name) => {
                let known = case::profile(name.get_ref());
                let words = |error: Failure| at(path, &text, name.span(), &error.to_string());
                known.map_err(words)?
            }
            None => case::profile(case::PROFILE)?,
        };
        let profile = match profile {
            Some(name) => case::profile(name)?,
            None => usual.clone(),
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
            usual: usual.name.to_owned(),
            ranks: reader.ranks,
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
        let steps = file.step.get_ref().iter().map(|step| self.step(step));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let length = |task: &Task| match task.work {
            Work::Launch(_) => u64::from(task.times),
            Work::Replay(graph) => u64::from(task.times) * graphs[graph].launches.len() as u64,
            Work::Record(_) | Work::Wait(_) => 0,
        };
        let operations: u64 = steps.iter().map(length).sum();
        if operations == 0 || operations > MOST_OPERATIONS {
            let words = format!("{operations} operations; there can be 1 to {MOST_OPERATIONS}");
            return Err(self.wrong(&file.step, words));
        }
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
                Some(contents) if written => self.contents(contents, size)?,
                _ => Vec::new(),
            };
            initial.resize(size as usize, 0);
            places.push(Place {
                name,
                spans: tags::spans(self, buffer, places.len(), owner, &mapped)?,
                owner,
                mapped,
                initial,
                written,
            });
            self.sizes.push(size);
        }
        Ok(places)
    }

    pub(super) fn rank(&self, rank: &Spanned<u32>) -> Result<u32, Failure> {
        let (number, ranks) = (*rank.get_ref(), self.ranks);
        match number < ranks {
            true => Ok(number),
            false => Err(self.wrong(rank, format!("there is no rank {number} of {ranks}"))),
        }
    }

    fn buffer(&self, name: &Spanned<String>) -> Result<usize, Failure> {
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
                words(&mut (0..(size / 4) as u32).map(|i| first.wrapping_add(i)))
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

    /// The number of an event that a step of a rank names.
    fn event(
        &mut self,
        name: &Spanned<String>,
        rank: u32,
        records: bool,
    ) -> Result<usize, Failure> {
        let (word, next) = (name.get_ref(), self.event_ranks.len());
        match self.events.get(word) {
            Some(&event) if self.event_ranks[event] == rank => Ok(event),
            Some(&event) => {
                let words = format!("event `{word}` is of rank {}", self.event_ranks[event]);
                Err(self.wrong(name, words))
            }
            None if records => {
                self.events.insert(word.clone(), next);
                self.event_ranks.push(rank);
                Ok(next)
            }
            None => {
                let words = format!("no step before this one records event `{word}`");
                Err(self.wrong(name, words))
            }
        }
    }

    fn step(&mut self, step: &Step) -> Result<Task, Failure> {
        let rank = self.rank(&step.rank)?;
        if let (Some(times), None, None) = (&step.times, &step.launch, &step.replay) {
            return Err(self.wrong(times, "`times` goes with a `launch` or a `replay`"));
        }
        let work = match (&step.launch, &step.replay, &step.record, &step.wait) {
            (Some(launch), None, None, None) => Work::Launch(self.launch(launch)?),
            (None, None, Some(name), None) => Work::Record(self.event(name, rank, true)?),
            (None, None, None, Some(name)) => Work::Wait(self.event(name, rank, false)?),
            (None, Some(name), None, None) => match self.graphs.get(name.get_ref()) {
                Some(&(graph, of)) if of == rank => Work::Replay(graph),
                Some((_, of)) => {
                    let words = format!("graph `{}` is of rank {of}", name.get_ref());
                    return Err(self.wrong(name, words));
                }
                None => {
                    let words = format!("there is no graph `{}`", name.get_ref());
                    return Err(self.wrong(name, words));
                }
            },
            _ => {
                let words = "a step has one of `launch`, `replay`, `record` and `wait`";
                return Err(self.wrong(&step.rank, words));
            }
        };
        Ok(Task {
            rank,
            stream: step.stream,
            times: step.times.as_ref().map_or(1, |times| *times.get_ref()),
            work,
        })
    }

    fn launch(&self, launch: &Launch) -> Result<Grid, Failure> {
        let name = launch.kernel.get_ref();
        let mut entries = self.ptx.entries.iter();
        let Some(entry) = entries.find(|entry| entry.name == *name) else {
            return Err(self.wrong(&launch.kernel, format!("the PTX has no kernel `{name}`")));
        };
        let threads = launch.block.get_ref().three();
        let count = threads.iter().map(|&t| u64::from(t)).product::<u64>();
        if !(1..=1024).contains(&count) {
            return Err(self.wrong(&launch.block, "a block has 1 to 1024 threads"));
        }
        let blocks = launch.grid.get_ref().three();
        let count = blocks.iter().map(|&b| u64::from(b)).product::<u64>();
        if !(1..=65_536).contains(&count) {
            return Err(self.wrong(&launch.grid, "a grid has 1 to 65536 blocks here"));
        }
        let shared = launch.shared.as_ref().map_or(0, |shared| *shared.get_ref());
        let own: u64 = entry.shared.iter().map(|variable| variable.size).sum();
        if let Some(given) = &launch.shared
            && u64::from(shared) + own > MOST_SHARED
        {
            let words = format!(
                "{shared} bytes of shared memory, and {own} that kernel `{name}` has itself; a block has at most {MOST_SHARED} here"
            );
            return Err(self.wrong(given, words));
        }
        let (given, wanted) = (launch.arguments.get_ref(), &entry.params);
        if given.len() != wanted.len() {
            let words = format!(
                "{} arguments for the {} parameters of kernel `{name}`",
                given.len(),
                wanted.len()
            );
            return Err(self.wrong(&launch.arguments, words));
        }
        let mut parameters = Vec::new();
        for (argument, wanted) in given.iter().zip(wanted) {
            let mut parameter = Parameter::default();
            self.argument(argument, &mut parameter)?;
            if parameter.bytes.len() != wanted.size as usize {
                let words = format!(
                    "{} bytes for parameter `{}` of kernel `{name}`, which has {}",
                    parameter.bytes.len(),
                    wanted.name,
                    wanted.size
                );
                return Err(self.wrong(argument, words));
            }
            parameters.push(parameter);
        }
        Ok(Grid {
            line: line(self.text, launch.kernel.span()),
            kernel: name.clone(),
            grid: blocks,
            block: threads,
            shared,
            parameters,
        })
    }

    /// Appends a value.
    fn argument(&self, value: &Spanned<Argument>, to: &mut Parameter) -> Result<(), Failure> {
        if to.bytes.len() > MOST_PARAMETER {
            let words = format!("parameters have at most {MOST_PARAMETER} bytes");
            return Err(self.wrong(value, words));
        }
        let address = |to: &mut Parameter, buffer, offset| {
            put(&mut to.bytes, &[0; 8]);
            to.addresses.push((to.bytes.len() - 8, buffer, offset));
        };
        match value.get_ref() {
            Argument::Buffer(name) => address(to, self.buffer(name)?, 0),
            Argument::At(inside) => {
                let buffer = self.buffer(&inside.buffer)?;
                if inside.offset > self.sizes[buffer] {
                    let words = format!(
                        "offset {} in a buffer of {} bytes",
                        inside.offset, self.sizes[buffer]
                    );
                    return Err(self.wrong(&inside.buffer, words));
                }
                address(to, buffer, inside.offset);
            }
            Argument::U32(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::S32(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::U64(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::S64(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::F32(word) => put(&mut to.bytes, &word.to_le_bytes()),
            Argument::Block(fields) => {
                for field in fields {
                    if let Argument::Block(_) = field.get_ref() {
                        return Err(self.wrong(field, "a block has no blocks in it"));
                    }
                    self.argument(field, to)?;
                }
            }
        }
        Ok(())
    }
}

/// Appends a field at a multiple of its size.
fn put(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.resize(bytes.len().next_multiple_of(field.len()), 0);
    bytes.extend_from_slice(field);
}
