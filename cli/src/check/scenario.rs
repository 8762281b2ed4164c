//! The scenarios of the matrix: what every rank enqueues.

use slabfence::collective::{Layout, LseBase};
use slabfence::layout::DType;
use slabfence_tests::arithmetic::narrow;
use slabfence_tests::shape::{Kind, Place, Shape, Source, nan, number};

use super::kernels::Collective;

/// Elements of the longest row of a gather, and of a reduce-scatter.
pub const ROWS: (u32, u32) = (256, 128);
/// Most tokens.
pub const BATCH: u32 = 9;
/// Epoch of a fresh channel's first operation.
pub const FRESH: u64 = 2;

/// One thing that a rank enqueues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A collective of a channel, on the channel's stream.
    Eager {
        /// The channel.
        channel: usize,
        /// Which of the channel's shapes.
        shape: usize,
    },
    /// The graph of all collectives of a channel.
    Replay {
        /// The channel.
        channel: usize,
    },
    /// Lets the counters of a channel say that a warp of an earlier operation still runs: the next one fails before it enters.
    Trip {
        /// The channel.
        channel: usize,
    },
    /// A kernel that takes long and touches nothing.
    Sleep {
        /// On the stream of this channel.
        channel: usize,
    },
}

/// Work that is enqueued together and run once for each seed.
#[derive(Debug)]
pub struct Phase {
    /// By rank.
    pub acts: Vec<Vec<Act>>,
    /// How it must end.
    pub ending: Ending,
}

/// How a phase must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With right outputs and healthy pools.
    Right,
    /// The same. Then the channels are retired, and others of the same names prepared in their ranges.
    Retired,
    /// The same. Then the pool is reset, so that the first operation behind has this epoch.
    Raised(u64),
    /// A rank stays away: time passes, and the others must end with a verdict. Then the pool is reset.
    Away,
    /// A rank's operation fails before it enters: all must end with a verdict, and before any time-out. Then the pool is reset.
    Tripped,
    /// Ranks are in different operations: all must end with a verdict, and before any time-out. Then the pool is reset.
    Mismatch,
}

/// One scenario.
#[derive(Debug)]
pub struct Scenario {
    /// Stable name.
    pub name: &'static str,
    /// The smallest epoch that the first operation may have.
    pub floor: u64,
    /// Shapes by channel.
    pub channels: Vec<Vec<Shape>>,
    /// One after another.
    pub phases: Vec<Phase>,
}

impl Scenario {
    /// Whether it takes some ranks long to get anywhere.
    pub fn is_long(&self) -> bool {
        let sleeps = |act: &Act| matches!(act, Act::Sleep { .. });
        let mut acts = self.phases.iter().flat_map(|phase| &phase.acts).flatten();
        acts.any(sleeps) || self.phases.iter().any(|phase| phase.ending == Ending::Away)
    }

    /// Most rounds that a rank enqueues on a channel.
    pub fn rounds(&self, channel: usize) -> u32 {
        let uses = |act: &&Act| match **act {
            Act::Eager { channel: of, .. } | Act::Replay { channel: of } => of == channel,
            Act::Trip { .. } | Act::Sleep { .. } => false,
        };
        let ranks = self.phases.first().map_or(0, |phase| phase.acts.len());
        let of = |rank: usize| {
            let acts = self.phases.iter().flat_map(|phase| &phase.acts[rank]);
            acts.filter(uses).count() as u32
        };
        (0..ranks).map(of).max().unwrap_or(0)
    }
}

/// A collective of channel 0.
const fn eager(shape: usize) -> Act {
    Act::Eager { channel: 0, shape }
}

const REPLAY: Act = Act::Replay { channel: 0 };

/// No numbers and empty shards: of most rows some shards are empty, of some all.
const EMPTY: Source = Source {
    element: |dtype, place| match share(place).is_finite() {
        true => narrow(dtype, number(place.hash())),
        false => nan(dtype, place),
    },
    lse: share,
};

fn share(place: Place) -> f32 {
    let word = Place { i: 0, ..place }.hash();
    match word % 8 {
        0 => f32::NEG_INFINITY,
        1 => f32::NAN,
        2 => f32::INFINITY,
        3 => -f32::NAN,
        4 => -0.0,
        5 => 1.5,
        6 => -3.5,
        _ => 40.0,
    }
}

/// A collective of one CTA, in the element type of this number.
fn small(op: Collective, number: usize) -> Shape {
    match op {
        Collective::Gather => {
            let dtype = [DType::Bf16, DType::F8E4M3, DType::F32][number % 3];
            Shape::gather(dtype, 2, 1, 16)
        }
        Collective::Reduce => {
            let dtype = [DType::Bf16, DType::F16, DType::F32][number % 3];
            Shape::reduce(dtype, 2, 1, 16)
        }
    }
}

/// A collective of several CTAs.
fn large(op: Collective) -> Shape {
    match op {
        Collective::Gather => Shape::gather(DType::F32, BATCH, 1, ROWS.0),
        Collective::Reduce => Shape::reduce(DType::F32, BATCH, 1, ROWS.1),
    }
}

fn sorts(op: Collective, count: usize) -> Vec<Shape> {
    (0..count).map(|number| small(op, number)).collect()
}

fn special(op: Collective) -> Vec<Shape> {
    let with = |shape: Shape| match op {
        Collective::Gather => Shape {
            source: Source::NANS,
            ..shape
        },
        // In base 2 the differences of these log-sum-exps are exact.
        Collective::Reduce => Shape {
            kind: Kind::Reduce(
                LseBase::Two,
                Layout::HeadMajor { capacity: 3 },
                Layout::TokenMajor,
            ),
            source: EMPTY,
            ..shape
        },
    };
    sorts(op, 3).into_iter().map(with).collect()
}

/// One phase in which all ranks do the same.
fn all(world: u32, acts: &[Act]) -> Vec<Phase> {
    each(world, |_| acts.to_vec())
}

fn each(world: u32, acts: impl Fn(u32) -> Vec<Act>) -> Vec<Phase> {
    vec![Phase {
        acts: (0..world).map(acts).collect(),
        ending: Ending::Right,
    }]
}

/// Large, small and large grids; the last rank sleeps in between.
fn sleeper(world: u32, rank: u32) -> Vec<Act> {
    let mut acts = vec![eager(0), eager(1), eager(0)];
    if rank + 1 == world {
        acts.insert(1, Act::Sleep { channel: 0 });
        acts.insert(3, Act::Sleep { channel: 0 });
    }
    acts
}

/// Both channels, in an order that differs between neighbours.
fn opposite(rank: u32) -> Vec<Act> {
    let mut order = [0, 1];
    if rank % 2 == 1 {
        order.reverse();
    }
    let eager = order.map(|channel| Act::Eager { channel, shape: 0 });
    let replays = order.map(|channel| Act::Replay { channel });
    [eager, replays].concat()
}

/// The last rank stays away; then all come, and only poison ends the waits for rank 0; then all is well.
fn poison(world: u32) -> Vec<Phase> {
    let absent = |rank| match rank + 1 == world {
        true => Vec::new(),
        // The second one is skipped.
        false => vec![eager(0), eager(1)],
    };
    let mut phases = each(world, absent);
    phases[0].ending = Ending::Away;
    let trip = |rank| (rank == 0).then_some(Act::Trip { channel: 0 });
    phases.extend(each(world, |rank| {
        trip(rank).into_iter().chain([eager(0)]).collect()
    }));
    phases[1].ending = Ending::Tripped;
    phases.extend(all(world, &[eager(0), REPLAY]));
    phases
}

/// One call in each slot; then the same and a replay on a channel in the ranges of that one: were its epochs those of the
/// first, every flag and entry line would be there already.
fn reused(world: u32) -> Vec<Phase> {
    let calls = [eager(0), eager(1)];
    let mut phases = all(world, &calls);
    phases[0].ending = Ending::Retired;
    phases.extend(all(world, &[&calls[..], &[REPLAY]].concat()));
    phases
}

/// Three calls across the end of 32 bits. Then the second and third again where it ends the next time: their flags and entry
/// lines of the first time have the low 32 bits, and the tag, that they wait for. All find those before the last rank comes.
fn around(world: u32) -> Vec<Phase> {
    let mut phases = all(world, &[eager(0), eager(1), eager(0)]);
    phases[0].ending = Ending::Raised((2 << 32) - 1);
    phases.extend(each(world, |rank| late(world, rank, &[eager(1), eager(0)])));
    phases
}

/// The same acts on all ranks; the last one sleeps before.
fn late(world: u32, rank: u32, acts: &[Act]) -> Vec<Act> {
    let sleep = (rank + 1 == world).then_some(Act::Sleep { channel: 0 });
    sleep.into_iter().chain(acts.iter().copied()).collect()
}

/// Rank 0 is in a collective of several CTAs, the others in one CTA of the other collective; then all in the same.
fn mismatched(world: u32) -> Vec<Phase> {
    let mut phases = each(world, |rank| vec![eager(usize::from(rank != 0))]);
    phases[0].ending = Ending::Mismatch;
    phases.extend(all(world, &[eager(0), eager(1)]));
    phases
}

/// All scenarios of a collective for ranks of this world.
pub fn scenarios(op: Collective, world: u32) -> Vec<Scenario> {
    let one = |name, floor, shapes, phases| Scenario {
        name,
        floor,
        channels: vec![shapes],
        phases,
    };
    let three = [eager(0), eager(1), eager(0)];
    let four = [eager(0), eager(1), eager(2), eager(0)];
    vec![
        one("back-to-back", FRESH, sorts(op, 3), all(world, &four)),
        one(
            "eager-and-replay",
            FRESH,
            sorts(op, 2),
            all(world, &[eager(0), REPLAY, eager(1), REPLAY]),
        ),
        one(
            "odd-graph",
            FRESH,
            sorts(op, 3),
            all(world, &[REPLAY, REPLAY]),
        ),
        one(
            "grids-and-a-sleeper",
            FRESH,
            vec![large(op), small(op, 0)],
            each(world, |rank| sleeper(world, rank)),
        ),
        Scenario {
            name: "two-channels",
            floor: FRESH,
            channels: vec![sorts(op, 1), sorts(op, 2)],
            phases: each(world, opposite),
        },
        one(
            "epoch-2^31",
            (1 << 31) - 2,
            sorts(op, 2),
            all(world, &three),
        ),
        one("epoch-2^32", (1 << 32) - 2, sorts(op, 2), around(world)),
        one(
            "empty-shards-and-nan",
            FRESH,
            special(op),
            all(world, &[eager(0), eager(1), eager(2)]),
        ),
        one(
            "poison-and-reset",
            FRESH,
            vec![large(op), small(op, 0)],
            poison(world),
        ),
        one("retire-and-reuse", FRESH, sorts(op, 2), reused(world)),
        one(
            "mismatched-ranks",
            FRESH,
            vec![large(op), small(op.other(), 0)],
            mismatched(world),
        ),
    ]
}
