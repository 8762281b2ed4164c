//! A litmus test as a machine: programs over the model, in steps.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::gates::{Gate, Gates};
use super::program::{Arithmetic, Instruction, Litmus, Operand};
use super::reach::{Ahead, ahead};
use super::settle::private;
use crate::head::Knowledge;
use crate::model::{Access, Model};
use crate::race::Race;
use crate::rules::Rules;
use crate::scope::Place;
use crate::state::State;

/// A thread between two steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) pc: usize,
    pub(super) registers: Vec<i64>,
    /// What it waits at; `pc` is what comes then.
    pub(super) waits: Option<Gate>,
    /// It loops without memory.
    pub(super) loops: bool,
}

/// A state of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) state: State,
    pub(super) processes: Vec<Rc<Process>>,
    pub(super) gates: Rc<Gates>,
    /// What was signalled, by edge.
    edges: Rc<BTreeMap<usize, Knowledge>>,
}

/// The machine of one test.
pub(super) struct Machine<'a> {
    pub(super) litmus: &'a Litmus,
    pub(super) model: Model,
    pub(super) ahead: Vec<Vec<Ahead>>,
    /// The one thread that accesses a location.
    pub(super) private: Vec<Option<usize>>,
    /// Registers that the condition asks for.
    pub(super) asked: BTreeSet<(usize, usize)>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(litmus: &'a Litmus, rules: Rules, races: bool) -> Self {
        let places = litmus.threads.iter().map(|thread| thread.place).collect();
        let mut model = Model::new(places, rules);
        if races {
            model = model.with_races(litmus.ordered.clone());
        }
        let asked = litmus.condition.terms().into_iter();
        Self {
            litmus,
            model,
            ahead: litmus.threads.iter().map(ahead).collect(),
            private: private(litmus),
            asked: asked
                .filter_map(|term| match term {
                    super::Term::Register { thread, register } => Some((thread, register)),
                    _ => None,
                })
                .collect(),
        }
    }

    /// The state at the start.
    pub(super) fn start(&self, races: &mut BTreeSet<Race>) -> World {
        let process = |thread: &super::Thread| {
            Rc::new(Process {
                pc: 0,
                registers: thread.initial.clone(),
                waits: None,
                loops: false,
            })
        };
        let mut world = World {
            state: self.model.start(&self.litmus.initial),
            processes: self.litmus.threads.iter().map(process).collect(),
            gates: Rc::default(),
            edges: Rc::default(),
        };
        self.settle(&mut world, races);
        world
    }

    /// Whether all threads have ended.
    pub(super) fn is_over(&self, world: &World) -> bool {
        (0..world.processes.len()).all(|t| self.has_ended(world, t))
    }

    pub(super) fn has_ended(&self, world: &World, t: usize) -> bool {
        let process = &world.processes[t];
        process.waits.is_none() && process.pc == self.litmus.threads[t].code.len()
    }

    pub(super) fn place(&self, t: usize) -> Place {
        self.litmus.threads[t].place
    }

    /// What can still come for a thread.
    pub(super) fn ahead(&self, world: &World, t: usize) -> &Ahead {
        &self.ahead[t][world.processes[t].pc]
    }

    /// All states that one step leads to.
    pub(super) fn successors(&self, world: &World, races: &mut BTreeSet<Race>) -> Vec<World> {
        let mut next = Vec::new();
        for t in 0..world.processes.len() {
            let process = &world.processes[t];
            let code = &self.litmus.threads[t].code;
            if process.waits.is_some() || process.loops || process.pc == code.len() {
                continue;
            }
            for choice in self.choices(world, t, &code[process.pc].0) {
                let mut after = world.clone();
                self.execute(&mut after, t, choice, races);
                self.settle(&mut after, races);
                next.push(after);
            }
        }
        for mut after in self.counted_openings(world) {
            self.settle(&mut after, races);
            next.push(after);
        }
        next
    }

    /// How an instruction can go: the numbers of messages that it may read, or one number if it reads nothing.
    fn choices(&self, world: &World, t: usize, instruction: &Instruction) -> Vec<u32> {
        match instruction {
            Instruction::Load { location, .. } => {
                self.model.readable(&world.state, t, *location).collect()
            }
            Instruction::Update { .. } => {
                let access = self.access(world, t).expect("an update accesses memory");
                self.model.updatable(&world.state, &access)
            }
            // A wait that could go on went on when the state settled.
            Instruction::Wait { .. } => Vec::new(),
            _ => vec![0],
        }
    }

    fn access(&self, world: &World, t: usize) -> Option<Access> {
        let pc = world.processes[t].pc;
        let (order, scope, location) = match self.litmus.threads[t].code.get(pc)?.0 {
            Instruction::Load {
                order,
                scope,
                location,
                ..
            }
            | Instruction::Store {
                order,
                scope,
                location,
                ..
            } => (order, scope, location),
            Instruction::Update {
                order,
                scope,
                location,
                ..
            } => (order, Some(scope), location),
            _ => return None,
        };
        Some(Access {
            seat: t,
            location,
            order,
            scope,
            pc: pc as u32,
        })
    }

    /// Executes a thread's next instruction.
    pub(super) fn execute(
        &self,
        world: &mut World,
        t: usize,
        choice: u32,
        races: &mut BTreeSet<Race>,
    ) {
        let access = self.access(world, t);
        let process = Rc::make_mut(&mut world.processes[t]);
        let instruction = &self.litmus.threads[t].code[process.pc].0;
        let read = |operand: Operand, process: &Process| match operand {
            Operand::Number(number) => number,
            Operand::Register(register) => process.registers[register],
        };
        process.pc += 1;
        match (instruction, access) {
            (Instruction::Move { to, value }, _) => process.registers[*to] = read(*value, process),
            (Instruction::Compute { what, to, a, b }, _) => {
                process.registers[*to] = what.apply(read(*a, process), read(*b, process));
            }
            (Instruction::Branch { on, a, b, target }, _) => {
                if on.holds(read(*a, process), read(*b, process)) {
                    process.pc = *target;
                }
            }
            (Instruction::Jump { target }, _) => process.pc = *target,
            (Instruction::Load { to, .. }, Some(access)) => {
                process.registers[*to] = self.model.load(&mut world.state, &access, choice, races);
            }
            (Instruction::Store { value, .. }, Some(access)) => {
                let value = read(*value, process);
                self.model.store(&mut world.state, &access, value, races);
            }
            (
                Instruction::Update {
                    to,
                    compare,
                    what,
                    value,
                    ..
                },
                Some(access),
            ) => {
                let (compare, value) = (compare.map(|c| read(c, process)), read(*value, process));
                let new = |old| new_value(*what, compare, old, value);
                let old =
                    self.model
                        .update(&mut world.state, &access, choice, to.is_some(), new, races);
                if let Some(to) = to {
                    process.registers[*to] = old;
                }
            }
            (Instruction::Fence { order, sc, scope }, _) => {
                self.model.fence(&mut world.state, t, *order, *sc, *scope);
            }
            (Instruction::Barrier { waits, id, count }, _) => {
                let gate = Gate::Barrier {
                    place: self.place(t),
                    id: read(*id, process),
                    count: count.map(|count| read(count, process)),
                };
                if *waits {
                    process.waits = Some(gate);
                } else {
                    let knows = self.model.publish(&mut world.state, t);
                    Rc::make_mut(&mut world.gates).arrive(gate, t, &knows);
                }
            }
            (Instruction::Kernel, _) => process.waits = Some(Gate::kernel(self.place(t))),
            (Instruction::Signal { edge }, _) => {
                let knows = self.model.publish(&mut world.state, t);
                Rc::make_mut(&mut world.edges)
                    .entry(*edge)
                    .or_default()
                    .join(&knows);
            }
            (Instruction::Wait { edge }, _) => {
                if let Some(knows) = world.edges.get(edge) {
                    self.model.learn(&mut world.state, t, knows);
                }
            }
            (
                Instruction::Load { .. } | Instruction::Store { .. } | Instruction::Update { .. },
                None,
            ) => {
                unreachable!("{instruction:?} accesses memory")
            }
        }
    }
}

fn new_value(what: Arithmetic, compare: Option<i64>, old: i64, value: i64) -> Option<i64> {
    match compare {
        Some(expected) if expected != old => None,
        _ => Some(what.apply(old, value)),
    }
}
