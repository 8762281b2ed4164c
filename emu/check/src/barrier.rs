//! Barriers and ends: lanes that tell each other, or the grid, all that they know.

use std::sync::Arc;

use slabfence_emu_exec::lanes_of;

use crate::{
    clock::{Clock, joined},
    warp::Warp,
};

impl Warp {
    /// What these lanes know together, themselves included. A lane that has ended holds no barrier up, and nothing says of
    /// what it did that it is performed then: PTX says so of the accesses of the threads that execute the barrier.
    pub(crate) fn gather(&self, lanes: u32, into: &mut Clock) {
        if let Some(all) = &self.threads {
            for lane in lanes_of(lanes) {
                if let Some(view) = &all[lane].view {
                    into.join(view);
                }
            }
        }
        if lanes & self.live == self.live && self.ended == 0 {
            into.learn_slot(self.slot, self.time);
        } else {
            for lane in lanes_of(lanes) {
                into.learn_lane(self.lane(lane), self.time);
            }
        }
    }

    /// From here on these lanes know this.
    pub(crate) fn enlighten(&mut self, lanes: u32, clock: &Arc<Clock>) {
        if lanes & self.live == self.live {
            self.view = Arc::clone(clock);
            for thread in self.threads.iter_mut().flat_map(|all| all.iter_mut()) {
                thread.view = None;
            }
        } else {
            for lane in lanes_of(lanes) {
                self.thread(lane).view = Some(Arc::clone(clock));
            }
        }
    }

    /// These lanes met in a barrier of the warp.
    pub(crate) fn meet(&mut self, lanes: u32) {
        let mut clock = Clock::clone(&self.view);
        self.gather(lanes, &mut clock);
        self.enlighten(lanes, &Arc::new(clock));
        self.time += 1;
    }

    /// These lanes ended: what they knew goes to the grid.
    pub(crate) fn end(&mut self, lanes: u32, grid: &mut Clock) {
        for lane in lanes_of(lanes) {
            if let Some(view) = self
                .threads
                .as_ref()
                .and_then(|all| all[lane].view.as_ref())
            {
                grid.join(view);
            }
        }
        self.live &= !lanes;
        self.ended |= lanes;
        if self.live == 0 {
            grid.join(&self.view);
            grid.learn_slot(self.slot, self.time);
        }
    }
}

/// Joins clocks of whole warps, most of which are the same.
pub(crate) fn join_views<'a>(views: impl Iterator<Item = &'a Arc<Clock>>) -> Clock {
    let mut all: Option<Arc<Clock>> = None;
    let mut last: Option<&Arc<Clock>> = None;
    for view in views {
        if last.is_some_and(|last| Arc::ptr_eq(last, view)) {
            continue;
        }
        last = Some(view);
        all = Some(match &all {
            None => Arc::clone(view),
            Some(all) => joined(all, view),
        });
    }
    all.map_or_else(Clock::default, |all| Clock::clone(&all))
}
