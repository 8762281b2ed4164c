//! The protocol of `docs/protocol.md` as a model: its rules, not its PTX, explored exhaustively at small sizes.
//!
//! A [`Scenario`] says what the ranks' streams call and what goes wrong; [`Rules`] has one switch for each rule of the
//! protocol, as the kernels have it in [`Rules::default`]. [`explore`] visits every state that any interleaving reaches
//! and returns the shortest run to a failure, or none. A changed rule is tried here before it is coded.
//!
//! # What is modelled
//!
//! Up to 3 ranks, 2 streams a rank, 2 CTAs a call, and in each CTA two warps: the control warp, and a worker that stands
//! for all of them. One step is one access that another agent can see: epoch, guard and poison read, every word stored
//! to a peer, every poll that succeeds, every row read. Streams start a call's CTAs when the call before has ended, in
//! any order. Rows carry which call of the caller wrote them, not the epoch: a reader that found the epoch it expects is
//! still wrong when the row is another call's.
//!
//! A wait blocks. It may give up at any time where a scenario allows that ([`Scenario::give_ups`]), or when nothing else
//! in the system can move ([`Scenario::bounded`]): fail thresholds are far longer than everything else.
//!
//! Memory is interleaved, or with [`Scenario::delayed`] weak in one way: payload and entry lines are stored, and rows
//! loaded, at any time between the instruction and the next thing that orders them, which is a release store of the same
//! CTA or the end of the kernel.
//!
//! # What is not
//!
//! Causality without acquire, torn packs, more than one worker warp of a CTA, row maps, more than two phases, the clock,
//! the host's calls other than reset and reuse of ranges, devices that die. The checker looks at the shipped PTX for the
//! first three.
#![forbid(unsafe_code)]

mod agent;
mod counters;
mod explore;
mod fingerprint;
mod host;
mod memory;
mod operation;
mod program;
mod rules;
mod scenario;
mod state;
mod step;
mod wait;

pub use explore::{End, Exploration, Failure, Kind, explore};
pub use operation::{Operation, Transport};
pub use rules::{
    Boundary, EntryLine, EpochRule, FlagMatch, FlagOrder, Guard, Meeting, ResetEpoch, Rules, Scrub,
    TicketSum,
};
pub use scenario::{Caller, Calls, Grain, Jump, List, Scenario, Seam};
pub use state::Cause;
