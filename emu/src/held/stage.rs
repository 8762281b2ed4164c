//! One run of what was enqueued, as far as it has come: whoever drives it chooses which agent goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use slabfence_emu_check::{Finding, Touch};
use slabfence_emu_exec::Launch;

use crate::callback::Callback;
use crate::code::Code;
use crate::machine::State;
use crate::operations::{OpId, Operations, Source, Work};
use crate::taken::Stale;
use crate::task;

use super::crew::{Crew, Role, Standing};
use super::floor::Floor;
use super::name::{Name, Names};
use super::plan::Plan;
use super::random::Random;
use super::resident::{Block, Grid};
use super::waiting::Calm;
use super::watch::Watch;

/// What an agent did when it was chosen.
pub(super) enum Did {
    /// Something.
    Moved,
    /// A warp polled, and nothing else.
    Polled,
    /// A host function is due; [`Stage::returned`] when it has returned.
    Call(Callback, OpId),
    /// The run cannot go on.
    Fault(String),
}

/// A run.
pub(super) struct Stage {
    pub(super) ops: Operations,
    names: Arc<Names>,
    starts: BTreeMap<Name, OpId>,
    pub(super) floor: Floor,
    /// Grids by the name of their start.
    pub(super) grids: BTreeMap<Name, Grid>,
    /// Resident blocks by number; numbers are not used again.
    pub(super) blocks: BTreeMap<usize, Block>,
    pub(super) next_block: usize,
    /// Who can be chosen.
    pub(super) crew: Crew,
    /// What is seen of it.
    pub(super) watch: Watch,
    /// Draws the order of blocks and their multiprocessors, if they are to be drawn.
    pub(super) draw: Option<Random>,
    /// `%globaltimer`, virtual nanoseconds.
    pub(super) now: u64,
    /// Cycles that passed while nobody executed anything, for `%clock64`.
    pub(super) idle: u64,
    /// What came of everybody's waiting so far.
    pub(super) calm: Calm,
    pub(super) tick: u64,
    /// Warp-instructions executed.
    pub(super) executed: u64,
    /// Of which the run ends behind so many.
    pub(super) limit: u64,
    /// Operations that have completed and those that they waited for, for who follows the order of things.
    pub(super) ended: Vec<(Name, Vec<Name>)>,
    /// What the detector says of the fault that ended the run.
    pub(super) finding: Option<Finding>,
    /// Whether devices tell ranks.
    pub(super) ranks_are_devices: bool,
}

/// `%globaltimer` at the start of every run.
pub(super) const BEGINNING: u64 = 1_000_000_000;

impl Stage {
    /// The beginning of a run.
    pub(super) fn new(
        ops: Operations,
        names: Arc<Names>,
        floor: Floor,
        watch: Watch,
        draw: Option<Random>,
        plan: &Plan,
    ) -> Stage {
        Stage {
            ops,
            names,
            starts: BTreeMap::new(),
            floor,
            grids: BTreeMap::new(),
            blocks: BTreeMap::new(),
            next_block: 0,
            crew: Crew::default(),
            watch,
            draw,
            now: BEGINNING,
            idle: 0,
            calm: Calm::default(),
            tick: plan.tick,
            executed: 0,
            limit: plan.limit,
            ended: Vec::new(),
            finding: None,
            ranks_are_devices: plan.ranks_are_devices,
        }
    }

    /// Whether all operations have completed.
    pub(super) fn complete(&self) -> bool {
        self.ops.is_empty()
    }

    /// The operations that have not completed.
    pub(super) fn operations(&self) -> &Operations {
        &self.ops
    }

    /// The operations that an operation of this run waits for, as numbers.
    pub(super) fn after(&self, id: OpId) -> Vec<u64> {
        let op = self.ops.get(id);
        op.map_or_else(Vec::new, |op| self.names.numbers(&op.after))
    }

    /// The names of the operations that one waits for.
    pub(super) fn names_after(&self, id: OpId) -> Vec<Name> {
        let op = self.ops.get(id);
        let after = op.map_or(&[][..], |op| &op.after);
        after.iter().filter_map(|&id| self.names.get(id)).collect()
    }

    /// The name of an operation's start.
    pub(super) fn name_of(&self, id: OpId) -> Option<Name> {
        self.names.get(id)
    }

    /// Makes agents of the operations that can start. What has no effect that anyone could see is done at once.
    pub(super) fn open(&mut self, state: &mut State) -> Option<Did> {
        while let Some(id) = self.ops.take_ready() {
            let (Some(op), Some(name)) = (self.ops.get(id), self.names.get(id)) else {
                continue;
            };
            match op.work {
                Work::Marker | Work::Record(_) | Work::Retire(_) | Work::Free(_) => {
                    if let Some(did) = self.perform(id, name, state) {
                        return Some(did);
                    }
                }
                Work::Kernel(..) | Work::Copy { .. } | Work::Fill { .. } | Work::Host(_) => {
                    self.starts.insert(name, id);
                    self.crew.add(name, Role::Start);
                }
            }
        }
        None
    }

    /// Does an operation that is over at once.
    fn perform(&mut self, id: OpId, name: Name, state: &mut State) -> Option<Did> {
        let work = match &self.ops.get(id)?.work {
            // Memory stays the same through all runs; it goes when the machine goes on.
            Work::Free(_) => Work::Marker,
            work => work.clone(),
        };
        let touches = self.touches(&work);
        let mut world = state.world(self.now);
        if let Err((code, words)) = task::perform(work, id, name.device, &mut world) {
            return Some(self.fault(state, name.device, code, words));
        }
        self.watch.name = name;
        if !touches.is_empty() {
            self.watch.note(&[]);
            self.watch.writes += 1;
            self.crew.wake(Standing::Parked, |_| true);
        }
        let after = self.after(id);
        let number = name.op_number();
        let detector = &mut self.watch.detector;
        detector.task(number, name.device, &after, &touches);
        self.completed(id, name);
        None
    }

    fn touches(&mut self, work: &Work) -> Vec<Touch> {
        let mut touch = |address, len, write| {
            if write {
                self.watch.writes_to(address, len);
            }
            let address = self.watch.home(address);
            Touch {
                address,
                len,
                write,
                from: None,
            }
        };
        match *work {
            Work::Copy {
                to,
                ref from,
                len,
                checked,
            } => {
                let from = match from {
                    Source::Address(from) if checked.1 => Some(touch(*from, len, false)),
                    _ => None,
                };
                let to = checked.0.then(|| Touch {
                    from: from.map(|from| from.address),
                    ..touch(to, len, true)
                });
                from.into_iter().chain(to).collect()
            }
            Work::Fill {
                to, width, count, ..
            } => vec![touch(to, count * width as u64, true)],
            _ => Vec::new(),
        }
    }

    pub(super) fn fault(
        &mut self,
        state: &mut State,
        device: u32,
        code: Code,
        words: String,
    ) -> Did {
        log::info!("emulator: in a held run: {words}");
        state.devices[device as usize].error = Some(code);
        self.watch.broke_off();
        Did::Fault(words)
    }

    /// Lets an agent go on; a warp for at most `fuel` instructions.
    pub(super) fn advance(&mut self, name: Name, fuel: u32, state: &mut State) -> Did {
        let Some(agent) = self.crew.get(name) else {
            return Did::Moved;
        };
        let did = match agent.role {
            Role::Start => self.start(name, state),
            Role::Dispatch => self.dispatch(name),
            Role::Warp(block) => self.warp(agent, block, fuel, state),
        };
        if matches!(did, Did::Moved | Did::Polled)
            && let Some(other) = self.open(state)
        {
            return other;
        }
        did
    }

    fn start(&mut self, name: Name, state: &mut State) -> Did {
        self.crew.remove(name);
        let Some(id) = self.starts.remove(&name) else {
            return Did::Moved;
        };
        let Some(op) = self.ops.get(id) else {
            return Did::Moved;
        };
        match &op.work {
            Work::Kernel(launch, taken) => {
                let stale = state.memory.stale(taken);
                let launch = Launch {
                    tag: name.op_number(),
                    ..Launch::clone(launch)
                };
                self.admit(id, name, launch);
                for Stale { address, was } in stale {
                    let home = self.watch.home(address);
                    self.watch.detector.captured(name.op_number(), home, was);
                }
                Did::Moved
            }
            &Work::Host(callback) => Did::Call(callback, id),
            _ => self.perform(id, name, state).unwrap_or(Did::Moved),
        }
    }

    /// A host function has returned.
    pub(super) fn returned(&mut self, id: OpId, state: &mut State) -> Option<Did> {
        let name = self.names.get(id)?;
        let after = self.after(id);
        let detector = &mut self.watch.detector;
        detector.task(name.op_number(), name.device, &after, &[]);
        self.completed(id, name);
        self.open(state)
    }

    /// An operation has completed.
    pub(super) fn completed(&mut self, id: OpId, name: Name) {
        let after = self.names_after(id);
        let followers = self.ops.get(id).map_or(0, |op| op.dependents().len());
        self.watch.detector.followed(name.op_number(), followers);
        self.ops.complete(id);
        self.ended.push((name, after));
    }
}
