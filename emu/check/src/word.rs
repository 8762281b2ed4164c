//! Words that strong accesses use: the value's writer, what it published, and who took it.

use std::sync::Arc;

use slabfence_emu_exec::Scope;

use crate::{
    clock::{Clock, Lane},
    registry::{Registry, Stamp},
    sweep::Marks,
};

/// What a release pattern publishes: all that its thread knew.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The thread whose release it is.
    pub(crate) lane: Lane,
    /// Its own accesses up to this time.
    pub(crate) time: u32,
    pub(crate) scope: Scope,
    /// What it knew of others.
    pub(crate) knows: Arc<Clock>,
    /// Its entry in the registry.
    pub(crate) occupant: u32,
    /// Whether it is what every thread of a kernel knows when that begins, and nothing of its own.
    pub(crate) beginning: bool,
}

impl Head {
    /// Whether another says all that this one does, to no fewer.
    fn within(&self, other: &Head) -> bool {
        let same_thread = other.lane == self.lane && other.time >= self.time;
        other.scope >= self.scope && (same_thread || self.begins_with(other))
    }

    /// Whether both are the beginning of one kernel, whoever's.
    fn begins_with(&self, other: &Head) -> bool {
        self.beginning && other.beginning && Arc::ptr_eq(&self.knows, &other.knows)
    }

    /// Whether both are of threads of one block.
    pub(crate) fn same_block(&self, other: &Head, registry: &Registry) -> bool {
        let [one, two] = [self, other].map(|head| &registry.occupants[head.occupant as usize]);
        one.block == two.block
    }

    /// Whether it is the beginning of the kernel that began with this.
    pub(crate) fn is_beginning(&self, knows: &Arc<Clock>) -> bool {
        self.beginning && Arc::ptr_eq(&self.knows, knows)
    }
}

/// A word of one size at one address.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// Offset in its region.
    pub(crate) offset: u64,
    pub(crate) size: u32,
    /// Distinguishes the values that it has held.
    pub(crate) message: u32,
    /// Who stored the value; none: it was there before.
    pub(crate) write: Stamp,
    /// Who last stored or modified the word, whether the value changed or not.
    pub(crate) link: Stamp,
    /// Whether it was stored as one element of several.
    pub(crate) vector: bool,
    /// What the value's store published.
    pub(crate) heads: Vec<Head>,
    /// The number of the operation that stored it, if it is one's: a scrubbed packet is not.
    pub(crate) number: Option<u64>,
    /// Whether it is a packet that nobody has taken.
    pub(crate) unread: bool,
    /// Those who used the value: what must be ordered before the next store.
    pub(crate) users: Vec<Stamp>,
    /// How many of them there was no room for.
    pub(crate) forgotten: u64,
}

impl Word {
    /// A word that nobody has accessed.
    pub(crate) fn new(offset: u64, size: u32) -> Self {
        Self {
            offset,
            size,
            message: 0,
            write: Stamp::NONE,
            link: Stamp::NONE,
            vector: false,
            heads: Vec::new(),
            number: None,
            unread: false,
            users: Vec::new(),
            forgotten: 0,
        }
    }

    /// Marks whom it remembers.
    pub(crate) fn mark(&self, marks: &mut Marks) {
        let stamps = self.users.iter().chain([&self.write, &self.link]);
        stamps.for_each(|stamp| marks.stamp(*stamp));
        self.heads.iter().for_each(|head| marks.head(head));
    }

    /// What the value's store published, for one that is `linked` with it.
    pub(crate) fn published(&self, linked: bool) -> &[Head] {
        if linked { &self.heads } else { &[] }
    }
}

/// Adds to what a store publishes, unless something there says as much to no fewer.
pub(crate) fn publish(heads: &mut Vec<Head>, head: &Head) {
    if !heads.iter().any(|old| head.within(old)) {
        heads.push(head.clone());
    }
}

/// Adds what a link of a chain published, each thing once, to the next one's heads. What `own`, the first of them where the
/// link releases, already knows and tells to no fewer is left out: of one block, since an acquire of `.cta` is none of others.
pub(crate) fn chain(
    heads: &mut Vec<Head>,
    mut before: Vec<Head>,
    releases: bool,
    registry: &Registry,
) {
    before.retain(|head| {
        let known = releases
            && heads.first().is_some_and(|own| {
                own.knows.covers(head.lane, head.time)
                    && own.scope >= head.scope
                    && own.same_block(head, registry)
            });
        !known && !heads.iter().any(|old| head.within(old))
    });
    heads.append(&mut before);
}
