//! What each warp of a call does, step by step: the order in which `kernels/protocol.cuh` makes its accesses.

use crate::operation::{Operation, Transport};
use crate::rules::{EntryLine, EpochRule, FlagOrder, Meeting, Rules, Scrub};
use crate::scenario::Scenario;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Control,
    Worker,
}

impl Role {
    pub const BOTH: [Self; 2] = [Self::Control, Self::Worker];
}

/// One access, or one decision. Steps before the CTA barrier are left out by a warp that has a cause, those of a
/// worker behind it in a CTA that is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    ReadEpoch,
    ReadStarted,
    ReadRetired,
    ReadPoison,
    EnterEpoch {
        to: u8,
    },
    EnterCheck {
        to: u8,
    },
    Stage {
        phase: u8,
        to: u8,
        row: u8,
    },
    StagePacket {
        to: u8,
        row: u8,
    },
    Scrub {
        to: u8,
    },
    /// Both warps; what one found holds for both.
    Barrier,
    Arrive,
    /// The last CTA's three stores.
    ZeroTicket,
    CountStarted,
    Advance,
    /// Reports the cause found so far, if there is one.
    Conclude,
    /// All entry lines, in any order.
    Meet,
    Signal {
        phase: u8,
        to: u8,
    },
    Await {
        phase: u8,
        from: u8,
    },
    Read {
        phase: u8,
        from: u8,
        row: u8,
    },
    AwaitPacket {
        from: u8,
        row: u8,
    },
    Retire,
    /// From here on only by a warp that reports.
    Report,
    Poison {
        at: u8,
    },
}

impl Step {
    /// Is `next` one step with this one in [`Grain::Warp`](crate::Grain::Warp)?
    pub fn joins(self, next: Self) -> bool {
        match next {
            Self::ReadStarted | Self::ReadRetired | Self::ReadPoison => true,
            Self::EnterEpoch { .. } => matches!(self, Self::EnterCheck { .. }),
            Self::EnterCheck { .. } => true,
            Self::CountStarted => self == Self::ZeroTicket,
            Self::Advance => true,
            Self::Poison { .. } | Self::Retire => true,
            _ => false,
        }
    }
}

/// The steps, and where the CTA barrier and those of a report are.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub steps: Vec<Step>,
    pub barrier: u8,
    pub report: u8,
}

impl Program {
    pub fn new(
        scenario: &Scenario,
        rules: &Rules,
        op: &Operation,
        rank: usize,
        cta: usize,
        role: Role,
    ) -> Self {
        let peers: Vec<usize> = (0..scenario.world).filter(|&peer| peer != rank).collect();
        let mut steps = vec![Step::ReadEpoch, Step::ReadStarted, Step::ReadRetired];
        if rules.poison_at_start {
            steps.push(Step::ReadPoison);
        }
        let builder = Builder {
            scenario,
            rules,
            op,
            rank,
            cta,
            peers: &peers,
        };
        match role {
            Role::Control => builder.control(&mut steps),
            Role::Worker => builder.worker(&mut steps),
        }
        steps.push(Step::Retire);
        let report = steps.len() as u8;
        steps.push(Step::Report);
        steps.extend(peers.iter().map(|&peer| Step::Poison { at: peer as u8 }));
        steps.push(Step::Retire);
        let barrier = steps.iter().position(|step| *step == Step::Barrier);
        let barrier = barrier.expect("both roles meet at the barrier") as u8;
        Self {
            steps,
            barrier,
            report,
        }
    }
}

struct Builder<'a> {
    scenario: &'a Scenario,
    rules: &'a Rules,
    op: &'a Operation,
    rank: usize,
    cta: usize,
    peers: &'a [usize],
}

impl Builder<'_> {
    fn control(&self, steps: &mut Vec<Step>) {
        if self.cta == 0 {
            for &peer in self.peers {
                let to = peer as u8;
                steps.extend([Step::EnterEpoch { to }, Step::EnterCheck { to }]);
            }
        }
        steps.push(Step::Barrier);
        match self.rules.epoch {
            EpochRule::LastArrival => {
                steps.extend([Step::Arrive, Step::ZeroTicket]);
                let mut stores = [Step::CountStarted, Step::Advance];
                if !self.rules.started_first {
                    stores.reverse();
                }
                steps.extend(stores);
            }
            EpochRule::EachCta => steps.push(Step::Advance),
            EpochRule::FirstCta => {}
        }
        if self.rules.overlap_at_once {
            steps.push(Step::Conclude);
        }
        if self.rules.meeting != Meeting::BehindData {
            self.meet(steps);
        }
        steps.push(Step::Conclude);
    }

    fn meet(&self, steps: &mut Vec<Step>) {
        if self.cta == 0 && self.rules.entry != EntryLine::Unread {
            steps.push(Step::Meet);
        }
    }

    fn worker(&self, steps: &mut Vec<Step>) {
        for phase in 0..self.op.phases() {
            let early = self.rules.flag_order == FlagOrder::StoredFirst;
            if early {
                self.signal(steps, phase);
            }
            self.stage(steps, phase);
            if phase == 0 {
                steps.push(Step::Barrier);
            }
            if !early {
                self.signal(steps, phase);
            }
            self.receive(steps, phase);
        }
        if self.rules.meeting == Meeting::BehindData {
            self.meet(steps);
            steps.push(Step::Conclude);
        }
    }

    fn stage(&self, steps: &mut Vec<Step>, phase: u8) {
        if self.op.transport == Transport::Pull && self.op.part(1) == 0 {
            // One copy for everybody: that of the peer which gets most.
            let most = self
                .peers
                .iter()
                .max_by_key(|&&peer| self.op.rows[self.rank][peer]);
            let rows = most.map(|&peer| self.op.rows_of(self.rank, peer, self.cta));
            steps.extend(
                rows.into_iter()
                    .flatten()
                    .map(|row| Step::Stage { phase, to: 0, row }),
            );
        } else {
            for &peer in self.peers {
                let to = peer as u8;
                steps.extend(self.op.rows_of(self.rank, peer, self.cta).map(|row| {
                    match self.op.transport {
                        Transport::Packet => Step::StagePacket { to, row },
                        Transport::Push | Transport::Pull => Step::Stage { phase, to, row },
                    }
                }));
            }
        }
        let scrubs = self.scenario.scrub_period > 0 && self.rules.scrub != Scrub::Nobody;
        if scrubs && self.cta == 0 && phase == 0 {
            steps.extend(
                self.peers
                    .iter()
                    .map(|&peer| Step::Scrub { to: peer as u8 }),
            );
        }
    }

    fn signal(&self, steps: &mut Vec<Step>, phase: u8) {
        if self.op.transport == Transport::Packet || (!self.rules.flag_each_cta && self.cta != 0) {
            return;
        }
        let has_rows = |peer: &&usize| {
            self.op
                .rows_of(self.rank, **peer, self.cta)
                .next()
                .is_some()
        };
        steps.extend(
            self.peers
                .iter()
                .filter(has_rows)
                .map(|&peer| Step::Signal {
                    phase,
                    to: peer as u8,
                }),
        );
    }

    fn receive(&self, steps: &mut Vec<Step>, phase: u8) {
        for &peer in self.peers {
            let from = peer as u8;
            let mut rows = self.op.rows_of(peer, self.rank, self.cta).peekable();
            if rows.peek().is_none() {
                continue;
            }
            if self.op.transport == Transport::Packet {
                steps.extend(rows.map(|row| Step::AwaitPacket { from, row }));
                continue;
            }
            let wait = Step::Await { phase, from };
            let last = self.rules.flag_order == FlagOrder::PolledLast;
            steps.extend((!last).then_some(wait));
            steps.extend(rows.map(|row| Step::Read { phase, from, row }));
            steps.extend(last.then_some(wait));
        }
    }
}
