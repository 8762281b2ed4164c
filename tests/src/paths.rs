//! Paths between ranks that do not work, in one direction: what is lost where, and what set-up has to say of it.

use std::time::Duration;

use slabfence::layout::{Slot, Transport};
use slabfence_emu::Lost;

/// Where no wait is to fail.
const PATIENT: Duration = Duration::from_secs(60);

/// How a path does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Nothing that is written to flags and entry lines arrives.
    Flags,
    /// Flags arrive, and the data of this slot do not.
    Data(Slot),
}

/// A path: how `reader` gets what `writer` has, and how it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Whose data it carries.
    pub writer: u32,
    /// Who is to get them.
    pub reader: u32,
    /// What it does not carry.
    pub broken: Broken,
    /// Who moves the data.
    pub transport: Transport,
}

/// What the device of `user` loses at one of the mappings of `owner`'s memory.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// Whose memory it is.
    pub owner: u32,
    /// Whose kernels lose what they do there.
    pub user: u32,
    /// Which of the mappings that the user is let reach: signal memory, then both slots' staging memory.
    pub mapping: usize,
    /// What they lose.
    pub lost: Lost,
}

impl Path {
    /// What is lost where it does not work.
    pub fn loss(self) -> Loss {
        let mapping = match self.broken {
            Broken::Flags => 0,
            Broken::Data(slot) => 1 + slot as usize,
        };
        match (self.broken, self.transport) {
            // The reader has to fetch them.
            (Broken::Data(_), Transport::Pull) => Loss {
                owner: self.writer,
                user: self.reader,
                mapping,
                lost: Lost::Loads,
            },
            _ => Loss {
                owner: self.reader,
                user: self.writer,
                mapping,
                lost: Lost::Stores,
            },
        }
    }

    /// The contract's fail limit: `soon` where a wait is to fail.
    pub fn limit(self, soon: Duration) -> Duration {
        match self.broken {
            Broken::Flags => soon,
            Broken::Data(_) => PATIENT,
        }
    }

    /// Holds what all ranks were told of a creation to what has to be said.
    ///
    /// # Panics
    ///
    /// When anything else was said, or not to all.
    pub fn told<'a>(self, errors: impl IntoIterator<Item = &'a str>) {
        let (writer, reader) = (self.writer, self.reader);
        let (step, path) = match self.broken {
            Broken::Flags => (
                "exchange",
                format!("what rank {writer} writes to rank {reader} does not arrive: "),
            ),
            Broken::Data(slot) => (
                "compare",
                format!(
                    "what rank {writer} sent to rank {reader} by way of slot {slot:?} is not what came: "
                ),
            ),
        };
        // One rank finds it, and no other path is suspected.
        let begin = format!("create: self test, {step} failed on rank {reader}: rank {reader}: ");
        let mut first = None;
        for error in errors {
            assert!(error.starts_with(&begin), "{self:?}: {error}");
            assert_eq!(error, *first.get_or_insert(error), "{self:?}");
            assert_eq!(error.matches(&path).count(), 1, "{self:?}: {error}");
            for cause in ["ACS", "IOMMU", "MIG", "peer access", "container"] {
                assert!(error.contains(cause), "{self:?}, {cause}: {error}");
            }
        }
        assert!(first.is_some(), "{self:?}: nobody was told");
    }
}

/// Every pair of ranks.
pub fn pairs(world: u32) -> impl Iterator<Item = (u32, u32)> {
    let all = (0..world).flat_map(move |writer| (0..world).map(move |reader| (writer, reader)));
    all.filter(|(writer, reader)| writer != reader)
}

/// Every path of three ranks once, and every way in which one does not work by either transport once.
pub fn one_of_each() -> impl Iterator<Item = Path> {
    let broken = [Broken::Flags, Broken::Data(Slot::A), Broken::Data(Slot::B)];
    let ways = [Transport::Push, Transport::Pull]
        .into_iter()
        .flat_map(move |transport| broken.map(|broken| (transport, broken)));
    ways.zip(pairs(3))
        .map(|((transport, broken), (writer, reader))| Path {
            writer,
            reader,
            broken,
            transport,
        })
}
