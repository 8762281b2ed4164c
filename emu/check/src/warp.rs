//! What the lanes of a warp know, and what they have published.
//!
//! All lanes of a warp share one clock until one of them acquires something on its own; from then to the next barrier
//! it has a clock of its own. (Had the warp but one clock, a missing acquire in the lanes that read would be hidden.)

use std::sync::Arc;

use slabfence_emu_exec::Scope;

use crate::{
    clock::{Clock, Lane},
    registry::{Registry, Stamp, Synchronised},
    shadow::Shadow,
    sweep::Marks,
    word::{Head, publish},
};

/// A resident block.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) warps: Vec<Warp>,
    pub(crate) shared: Shadow,
    /// What was known to those who arrived at a barrier and went on.
    pub(crate) arrived: [Option<Clock>; 16],
}

/// A resident warp.
#[derive(Debug)]
pub(crate) struct Warp {
    pub(crate) slot: u16,
    /// The slot's time now.
    pub(crate) time: u32,
    /// The slot's time when it began.
    started: u32,
    pub(crate) occupant: u32,
    /// What was known when the grid began.
    pub(crate) begin: Arc<Clock>,
    /// What all lanes know. Of their own slot: up to their last common barrier.
    pub(crate) view: Arc<Clock>,
    /// Lanes that have not ended.
    pub(crate) live: u32,
    /// Lanes that have. They meet nobody any more, so what they did since they last met is in no later barrier.
    pub(crate) ended: u32,
    pub(crate) threads: Option<Box<[Thread; 32]>>,
    sites: Vec<Executed>,
    /// The epoch that it read last.
    pub(crate) epoch: Option<u64>,
    /// Whether it saw a poison word set: then its waits may end without what they waited for.
    pub(crate) poisoned: bool,
}

/// An instruction that a warp has executed.
#[derive(Clone, Copy, Debug)]
struct Executed {
    pc: u32,
    /// The registry's index.
    site: u32,
    /// The time at which these lanes stored by it.
    time: u32,
    lanes: u32,
}

/// What one lane has beyond its warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) view: Option<Arc<Clock>>,
    /// What it read with strong loads and has not acquired: the word and what its value published.
    pending: Vec<(u64, Head)>,
    /// Its release fences, wider scopes of earlier times and narrower of later.
    fences: Vec<Head>,
    /// Its releases of each word, wider scopes of earlier times and narrower of later.
    released: Vec<(u64, Head)>,
    /// Its last look at each word that waits end on.
    pub(crate) looks: Vec<Look>,
}

/// What a lane saw at its last look at a word.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) address: u64,
    pub(crate) size: u32,
    pub(crate) message: u32,
    pub(crate) number: Option<u64>,
    pub(crate) write: Stamp,
    pub(crate) stamp: Stamp,
    /// Whether it saw this value for the first time. A value that it has seen and gone on polling is not what it waits
    /// for.
    pub(crate) fresh: bool,
}

impl Warp {
    pub(crate) fn new(
        slot: u16,
        started: u32,
        occupant: u32,
        begin: Arc<Clock>,
        live: u32,
    ) -> Self {
        Self {
            slot,
            time: started + 1,
            started,
            occupant,
            view: Arc::clone(&begin),
            begin,
            live,
            ended: 0,
            threads: None,
            sites: Vec::new(),
            epoch: None,
            poisoned: false,
        }
    }

    pub(crate) fn lane(&self, lane: usize) -> Lane {
        Lane {
            slot: self.slot,
            lane: lane as u8,
        }
    }

    /// The registry's index of one of its instructions.
    pub(crate) fn site(&mut self, registry: &mut Registry, pc: u32) -> u32 {
        if let Some(known) = self.sites.iter().find(|known| known.pc == pc) {
            return known.site;
        }
        let site = registry.site(self.occupant, pc);
        let (time, lanes) = (0, 0);
        self.sites.push(Executed {
            pc,
            site,
            time,
            lanes,
        });
        site
    }

    /// Lanes store by an instruction. Time passes if one of them does so again, so that the two executions differ; lanes
    /// that come to it one after another execute it once.
    pub(crate) fn stores(&mut self, pc: u32, lanes: u32) {
        let now = self.time;
        let Some(known) = self.sites.iter_mut().find(|known| known.pc == pc) else {
            return;
        };
        if known.time != now {
            (known.time, known.lanes) = (now, lanes);
        } else if known.lanes & lanes == 0 {
            known.lanes |= lanes;
        } else {
            self.time += 1;
            (known.time, known.lanes) = (self.time, lanes);
        }
    }

    /// Whether all 32 lanes are there and know the same.
    pub(crate) fn is_uniform(&self) -> bool {
        let own = |thread: &Thread| thread.view.is_some();
        self.live == u32::MAX && !self.threads.as_ref().is_some_and(|all| all.iter().any(own))
    }

    /// What a lane knows.
    pub(crate) fn view(&self, lane: usize) -> &Arc<Clock> {
        let own = self
            .threads
            .as_ref()
            .and_then(|all| all[lane].view.as_ref());
        own.unwrap_or(&self.view)
    }

    pub(crate) fn thread(&mut self, lane: usize) -> &mut Thread {
        let fresh = || Box::new(std::array::from_fn(|_| Thread::default()));
        &mut self.threads.get_or_insert_with(fresh)[lane]
    }

    /// The looks of a lane.
    pub(crate) fn looks(&self, lane: usize) -> &[Look] {
        self.threads.as_ref().map_or(&[], |all| &all[lane].looks)
    }

    /// Takes the looks of a lane, without making room for any.
    pub(crate) fn take_looks(&mut self, lane: usize) -> Vec<Look> {
        match &mut self.threads {
            Some(all) => std::mem::take(&mut all[lane].looks),
            None => Vec::new(),
        }
    }

    /// A lane stores to a word: its last look at it was not the end of a wait.
    pub(crate) fn forget_look(&mut self, lane: usize, address: u64) {
        if let Some(all) = &mut self.threads {
            all[lane].looks.retain(|look| look.address != address);
        }
    }

    /// A release of a lane now.
    pub(crate) fn head(&self, lane: usize, scope: Scope) -> Head {
        Head {
            lane: self.lane(lane),
            time: self.time,
            scope,
            knows: Arc::clone(self.view(lane)),
            occupant: self.occupant,
            beginning: false,
        }
    }

    /// What a strong store of a lane to a word publishes, its own release included.
    pub(crate) fn publishes(
        &mut self,
        lane: usize,
        address: u64,
        release: Option<Scope>,
        boundary: bool,
    ) -> Vec<Head> {
        let mut heads = Vec::new();
        if let Some(scope) = release {
            heads.push(self.head(lane, scope));
        }
        if let Some(all) = &self.threads {
            let thread = &all[lane];
            thread
                .fences
                .iter()
                .for_each(|head| publish(&mut heads, head));
            let same = thread.released.iter().filter(|entry| entry.0 == address);
            same.for_each(|(_, head)| publish(&mut heads, head));
        }
        if boundary {
            let began = Head {
                lane: self.lane(lane),
                time: self.started,
                scope: Scope::Sys,
                knows: Arc::clone(&self.begin),
                occupant: self.occupant,
                beginning: true,
            };
            publish(&mut heads, &began);
        }
        if let Some(scope) = release {
            let own = heads[0].clone();
            let released = &mut self.thread(lane).released;
            released.retain(|entry| entry.0 != address || entry.1.scope > scope);
            released.push((address, own));
        }
        heads
    }

    /// A lane read a value that published these heads; with `acquire` it takes those that are morally strong with it.
    pub(crate) fn reads(
        &mut self,
        lane: usize,
        address: u64,
        heads: &[Head],
        acquire: Option<Scope>,
        registry: &Registry,
    ) -> bool {
        let mut took = false;
        // Most have not looked at the word before.
        let again = |thread: &Thread| thread.pending.iter().any(|entry| entry.0 == address);
        let again = self.threads.as_ref().is_some_and(|all| again(&all[lane]));
        for head in heads {
            if head.is_beginning(&self.begin) || self.view(lane).covers(head.lane, head.time) {
                continue;
            }
            if acquire.is_some_and(|scope| self.mutual(head, scope, registry)) {
                self.learn(lane, head);
                took = true;
            } else {
                let pending = &mut self.thread(lane).pending;
                if again {
                    pending.retain(|(at, old)| {
                        (*at, old.lane, old.scope) != (address, head.lane, head.scope)
                    });
                }
                pending.push((address, head.clone()));
            }
        }
        // An acquire also takes what earlier relaxed loads of the word saw.
        if let Some(scope) = acquire {
            took |= self.take_pending(lane, Some(address), scope, registry);
        }
        took
    }

    /// Takes what earlier loads of a lane saw (of one word, or all) and is morally strong with it.
    fn take_pending(
        &mut self,
        lane: usize,
        address: Option<u64>,
        scope: Scope,
        registry: &Registry,
    ) -> bool {
        if self
            .threads
            .as_ref()
            .is_none_or(|all| all[lane].pending.is_empty())
        {
            return false;
        }
        let mut took = false;
        for (at, head) in std::mem::take(&mut self.thread(lane).pending) {
            if address.is_none_or(|address| address == at) && self.mutual(&head, scope, registry) {
                self.learn(lane, &head);
                took = true;
            } else {
                self.thread(lane).pending.push((at, head));
            }
        }
        took
    }

    fn mutual(&self, head: &Head, scope: Scope, registry: &Registry) -> bool {
        let me = &registry.occupants[self.occupant as usize];
        let them = &registry.occupants[head.occupant as usize];
        Registry::includes(Some(head.scope), them, me) && Registry::includes(Some(scope), me, them)
    }

    fn learn(&mut self, lane: usize, head: &Head) {
        if self.view(lane).covers(head.lane, head.time) {
            return;
        }
        let mut clock = Clock::clone(self.view(lane));
        clock.join(&head.knows);
        clock.learn_lane(head.lane, head.time);
        self.thread(lane).view = Some(Arc::new(clock));
    }

    /// A fence of a lane: its acquiring part, then its releasing part. `strict` holds the fences of `.sc`.
    pub(crate) fn fence(
        &mut self,
        lane: usize,
        scope: Scope,
        (acquires, releases): (bool, bool),
        strict: Option<&mut Vec<Head>>,
        registry: &Registry,
    ) {
        if acquires {
            self.take_pending(lane, None, scope, registry);
        }
        if let Some(strict) = strict {
            for head in strict.iter() {
                if self.mutual(head, scope, registry) {
                    self.learn(lane, head);
                }
            }
            let own = self.head(lane, scope);
            strict.retain(|old| {
                let known = own.lane == old.lane && own.time >= old.time
                    || own.knows.covers(old.lane, old.time);
                !(known && old.scope <= scope && own.same_block(old, registry))
            });
            strict.push(own);
        }
        if releases {
            let head = self.head(lane, scope);
            let fences = &mut self.thread(lane).fences;
            fences.retain(|old| old.scope > scope);
            fences.push(head);
        }
    }

    /// Marks whom it remembers, and itself.
    pub(crate) fn mark(&self, marks: &mut Marks) {
        marks.occupant(self.occupant);
        self.sites.iter().for_each(|known| marks.site(known.site));
        for thread in self.threads.iter().flat_map(|all| all.iter()) {
            let words = thread.pending.iter().chain(&thread.released);
            let heads = words.map(|(_, head)| head).chain(&thread.fences);
            heads.for_each(|head| marks.head(head));
            for look in &thread.looks {
                marks.stamp(look.write);
                marks.stamp(look.stamp);
            }
        }
    }

    pub(crate) fn synchronised(&self, registry: &mut Registry, on: Synchronised) {
        registry.occupants[self.occupant as usize].synchronised = on;
    }
}
