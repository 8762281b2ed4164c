//! The detector of held runs, if a plan wants it.

use slabfence_emu_check::{Checker, Options, Touch};
use slabfence_emu_exec::{Access, CtaBarrier, Fence, Hook, Site};

use crate::machine::State;

use super::places::Places;
use super::plan::Plan;
use super::regions::regions;

/// The detector of a run.
#[derive(Debug)]
pub(super) struct Detector(pub(super) Option<Box<Checker>>);

impl Detector {
    /// The detector that a plan wants, told of all memory as it is now, and of what was written there before.
    pub(super) fn of(plan: &Plan, state: &State, places: &Places) -> Detector {
        if !plan.detect {
            return Detector(None);
        }
        let mut checker = Checker::new(Options {
            native_atomics: state.profile.native_peer_atomics,
            kernel_boundary: plan.kernel_boundary,
            ranks_are_devices: plan.ranks_are_devices,
            ..Options::default()
        });
        for region in regions(&state.memory, places) {
            checker.region(region);
        }
        for place in places.homes() {
            for &(from, to) in place.written.iter().flat_map(|spans| spans.iter()) {
                checker.written(place.base + from, to - from);
            }
        }
        Detector(Some(Box::new(checker)))
    }

    /// A grid begins behind these operations.
    pub(super) fn begin(&mut self, op: u64, device: u32, after: &[u64]) {
        if let Some(checker) = &mut self.0 {
            checker.begin(op, device, after);
        }
    }

    /// The parameters of a grid hold an address that was taken when something else was there.
    pub(super) fn captured(&mut self, op: u64, address: u64, was: String) {
        if let Some(checker) = &mut self.0 {
            checker.captured(op, address, was);
        }
    }

    /// A grid has ended.
    pub(super) fn end(&mut self, op: u64) {
        if let Some(checker) = &mut self.0 {
            checker.end(op);
        }
    }

    /// An operation has ended, and so many others are behind it.
    pub(super) fn followed(&mut self, op: u64, by: usize) {
        if let Some(checker) = &mut self.0 {
            checker.followed(op, by);
        }
    }

    /// An operation that is over at once is done, behind these.
    pub(super) fn task(&mut self, op: u64, device: u32, after: &[u64], touches: &[Touch]) {
        if let Some(checker) = &mut self.0 {
            checker.task(op, device, after, touches);
        }
    }
}

impl Hook for Detector {
    const CHECKING: bool = true;

    fn access(&mut self, at: &Site<'_>, access: &Access<'_>) {
        if let Some(checker) = &mut self.0 {
            checker.access(at, access);
        }
    }

    fn fence(&mut self, at: &Site<'_>, lanes: u32, fence: Fence) {
        if let Some(checker) = &mut self.0 {
            checker.fence(at, lanes, fence);
        }
    }

    fn cta_barrier(&mut self, at: &Site<'_>, event: CtaBarrier<'_>) {
        if let Some(checker) = &mut self.0 {
            checker.cta_barrier(at, event);
        }
    }

    fn warp_barrier(&mut self, at: &Site<'_>, lanes: u32) {
        if let Some(checker) = &mut self.0 {
            checker.warp_barrier(at, lanes);
        }
    }

    fn exit(&mut self, at: &Site<'_>, lanes: u32) {
        if let Some(checker) = &mut self.0 {
            checker.exit(at, lanes);
        }
    }
}
