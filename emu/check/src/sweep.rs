//! Forgetting the warps that nothing refers to any more.
//!
//! A long run has more warps than can be kept: what reports need of a warp is kept only while memory that it accessed, or
//! a lane that heard of it, refers to it. Whoever does is looked for when the table of names has grown to twice what was
//! left the last time, so that the search costs no more than what filled the table.

use crate::{
    Checker,
    registry::{Occupant, Registry, Stamp, Synchronised},
    word::Head,
};

/// Warps that are remembered before they are looked through for the first time.
const FEW: usize = 4096;

/// How much a [`Checker`] remembers. None of it grows with the number of launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Warps, copies and fills that something refers to: memory that they accessed, say.
    pub warps: usize,
    /// The most of them there ever were at once, before those that nothing refers to were looked for.
    pub room: usize,
    /// Operations that run, or that others are still to begin behind.
    pub operations: usize,
}

/// What is referred to.
#[derive(Debug)]
pub(crate) struct Marks {
    sites: Vec<bool>,
    occupants: Vec<bool>,
    /// Pages of shadow memory that were looked through: what the search costs.
    pub(crate) pages: usize,
}

impl Marks {
    /// An access is remembered.
    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        if !stamp.is_none() {
            self.sites[stamp.site as usize] = true;
        }
    }

    /// A site is.
    pub(crate) fn site(&mut self, site: u32) {
        self.sites[site as usize] = true;
    }

    /// A warp, copy or fill is.
    pub(crate) fn occupant(&mut self, occupant: u32) {
        self.occupants[occupant as usize] = true;
    }

    /// What a release published is.
    pub(crate) fn head(&mut self, head: &Head) {
        self.occupant(head.occupant);
    }
}

/// How many names there are, and which are free.
#[derive(Debug)]
pub(crate) struct Room {
    sites: Vec<u32>,
    occupants: Vec<u32>,
    /// With so many occupants those that nothing refers to are looked for.
    full: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            sites: Vec::new(),
            occupants: Vec::new(),
            full: FEW,
        }
    }
}

impl Room {
    /// A free index of an occupant.
    pub(crate) fn occupant(&mut self) -> Option<u32> {
        self.occupants.pop()
    }

    /// A free index of a site.
    pub(crate) fn site(&mut self) -> Option<u32> {
        self.sites.pop()
    }
}

impl Registry {
    fn used(&self) -> usize {
        self.occupants.len() - self.room.occupants.len()
    }

    fn is_full(&self) -> bool {
        self.used() >= self.room.full
    }

    fn unmarked(&self) -> Marks {
        Marks {
            sites: vec![false; self.sites.len()],
            occupants: vec![false; self.occupants.len()],
            pages: 0,
        }
    }

    /// Keeps what is marked; the rest of the names are free.
    fn keep(&mut self, mut marks: Marks) {
        for (&(occupant, _), &marked) in self.sites.iter().zip(&marks.sites) {
            if marked {
                marks.occupants[occupant as usize] = true;
            }
        }
        let free = |marks: &[bool]| {
            let unmarked = (0..).zip(marks).filter(|&(_, marked)| !marked);
            unmarked.map(|(at, _)| at).collect()
        };
        let room = &mut self.room;
        (room.sites, room.occupants) = (free(&marks.sites), free(&marks.occupants));
        for &at in &room.occupants {
            // What it holds of others goes too.
            let gone = &mut self.occupants[at as usize];
            *gone = Occupant {
                warp: None,
                synchronised: Synchronised::Start,
                ..*gone
            };
        }
        self.room.full = 2 * self.used() + FEW + marks.pages;
    }
}

impl Checker {
    /// Makes room for new names if there are many. To be called before any is taken.
    pub(crate) fn make_room(&mut self) {
        if self.registry.is_full() {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let mut marks = self.registry.unmarked();
        self.map.mark(&mut marks);
        for block in self.blocks.values() {
            block.shared.mark(&mut marks);
            block.warps.iter().for_each(|warp| warp.mark(&mut marks));
        }
        self.strict.iter().for_each(|head| marks.head(head));
        self.registry.keep(marks);
    }

    /// Whether no operation runs, and none is remembered for others that are to begin behind it.
    pub fn is_idle(&self) -> bool {
        self.operations.is_empty()
    }

    /// How much this checker remembers now.
    pub fn remembered(&mut self) -> Remembered {
        self.sweep();
        Remembered {
            warps: self.registry.used(),
            room: self.registry.occupants.len(),
            operations: self.operations.len(),
        }
    }
}
