//! Programs whose results tell when operations mix up their slots: on a held machine, where seeds make slow readers of ranks
//! whom nothing on a free one slows down.

use std::ops::Range;

use slabfence::channel::Contract;
use slabfence::layout::Transport;
use slabfence_emu::held::{End, Plan, Policy, Run};
use slabfence_emu_mutants::{Entry, Mutation, shipped};

use crate::held::{close, compare, seats_behind};
use crate::probe::machine;
use crate::shape::Shape;

/// What every rank enqueues.
#[derive(Debug)]
pub struct Program<'a> {
    /// Number of ranks, 3 or 4: their reductions share entries.
    pub world: u32,
    /// The pool's contract.
    pub contract: Contract,
    /// The operations of a round.
    pub shapes: &'a [Shape],
    /// Rounds without a host between them; every other one, from the second on, is a replay of one graph.
    pub rounds: u32,
    /// Whether all rounds are replays.
    pub replays: bool,
    /// How often all that comes again, each time after all hosts have waited for all streams.
    pub stretches: u32,
}

impl Program<'_> {
    /// Makes runs by these seeds, and compares outputs alone: nothing watches accesses. Gives the first run that went wrong. With
    /// a mutation, every entry that can run has it.
    ///
    /// # Panics
    ///
    /// When the library or the driver refuses something, or the mutation has no place: these are tests.
    pub fn explore(&self, mutation: Option<&Mutation>, seeds: Range<u64>) -> Option<Run> {
        let (machine, driver) = machine(self.world);
        let all = self.rounds * self.stretches;
        let plant = || {
            let entries = shipped().expect("the shipped entries").into_iter();
            for entry in entries.filter(|entry| self.uses(entry)) {
                if let Some(mutation) = mutation {
                    let text = mutation.plant(&entry).expect("a place for the bug");
                    machine.replace_entries(&text).expect("an entry to replace");
                }
            }
        };
        let (contract, shapes) = (&self.contract, self.shapes);
        let mut seats = seats_behind(&driver, self.world, contract, shapes, all, 2, plant);
        let blind = Plan {
            detect: false,
            ..Plan::new(Policy::Random)
        };
        let mut bad = None;
        for stretch in 0..self.stretches {
            let mut held = machine.hold().expect("a machine at rest");
            for seat in &mut seats {
                for round in 0..self.rounds {
                    let number = stretch * self.rounds + round;
                    if self.replays || round % 2 == 1 {
                        seat.replay(number);
                    } else {
                        (0..shapes.len()).for_each(|index| seat.eager(number, index));
                    }
                }
            }
            let found = held.explore(&blind, seeds.clone(), |_| compare(&seats));
            bad = found.expect("held work").bad;
            if bad.is_some() {
                break;
            }
        }
        // A device that is lost takes the machine's place in this process with it.
        if bad.as_ref().is_none_or(|bad| bad.end == End::Complete) {
            close(seats);
        }
        bad
    }

    fn uses(&self, entry: &Entry) -> bool {
        let pushes = self.contract.transport == Transport::Push;
        let reduces = entry.name.starts_with("sf_reduce");
        let types = ["_bf16_w4", "_f32_w4"];
        let fits = !reduces || types.iter().any(|end| entry.name.ends_with(end));
        entry.family.pushes() == pushes && fits
    }
}
