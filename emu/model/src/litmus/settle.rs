//! What needs no interleaving.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::machine::{Machine, World};
use super::program::{Instruction, Litmus};
use crate::race::Race;

/// Steps without memory after which a thread is taken to loop forever.
const LONGEST: u32 = 10_000;

impl Machine<'_> {
    /// Runs all that needs no interleaving: what touches nothing that another thread can touch, and meetings that all have
    /// come to. Doing it first loses no outcome, because it commutes with every step of the others.
    pub(super) fn settle(&self, world: &mut World, races: &mut BTreeSet<Race>) {
        let mut again = true;
        while again {
            again = false;
            for t in 0..world.processes.len() {
                // What one thread signals may let another one go on.
                again |= self.run_alone(world, t, races);
            }
            again |= self.open_gates(world);
        }
        let ended: Vec<bool> = (0..world.processes.len())
            .map(|t| self.has_ended(world, t))
            .collect();
        for (t, _) in ended.iter().enumerate().filter(|(_, ended)| **ended) {
            let kept = |register: usize| self.asked.contains(&(t, register));
            let registers = world.processes[t].registers.iter().enumerate();
            if registers
                .clone()
                .any(|(register, &value)| value != 0 && !kept(register))
            {
                let cleared =
                    registers.map(|(register, &value)| if kept(register) { value } else { 0 });
                Rc::make_mut(&mut world.processes[t]).registers = cleared.collect();
            }
        }
        world.state.forget(|t| !ended[t]);
    }

    /// Runs a thread up to its next step that others can see or that waits. Whether it did anything.
    fn run_alone(&self, world: &mut World, t: usize, races: &mut BTreeSet<Race>) -> bool {
        for steps in 0..LONGEST {
            let Some(choice) = self.choice_alone(world, t) else {
                return steps > 0;
            };
            self.execute(world, t, choice, races);
        }
        Rc::make_mut(&mut world.processes[t]).loops = true;
        true
    }

    /// What a thread's next instruction reads, if it can run alone.
    fn choice_alone(&self, world: &World, t: usize) -> Option<u32> {
        let process = &world.processes[t];
        let code = &self.litmus.threads[t].code;
        if process.waits.is_some() || process.loops || process.pc == code.len() {
            return None;
        }
        match &code[process.pc].0 {
            Instruction::Load { location, .. }
            | Instruction::Store { location, .. }
            | Instruction::Update { location, .. } => {
                // Nobody else writes a private location: the newest message is all there is.
                let newest = self.model.readable(&world.state, t, *location).last();
                newest.filter(|_| self.private[*location] == Some(t))
            }
            Instruction::Fence { sc: true, .. } => None,
            Instruction::Wait { edge } => {
                let comes = |u: usize| self.ahead(world, u).signal(*edge);
                (!(0..world.processes.len()).any(comes)).then_some(0)
            }
            _ => Some(0),
        }
    }
}

/// By location, the one thread that accesses it.
pub(super) fn private(litmus: &Litmus) -> Vec<Option<usize>> {
    let mut users = vec![BTreeSet::new(); litmus.locations.len()];
    for (t, thread) in litmus.threads.iter().enumerate() {
        for (instruction, _) in &thread.code {
            if let Instruction::Load { location, .. }
            | Instruction::Store { location, .. }
            | Instruction::Update { location, .. } = instruction
            {
                users[*location].insert(t);
            }
        }
    }
    let only =
        |users: BTreeSet<usize>| (users.len() == 1).then(|| users.first().copied()).flatten();
    users.into_iter().map(only).collect()
}
