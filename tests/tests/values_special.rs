//! Combined shards at the edges: empty shards and what they may hold, weights that vanish, log-sum-exps far from zero,
//! results that are infinite, no number, or too small for the type.

use std::collections::BTreeMap;
use std::sync::Mutex;

use slabfence::channel::Contract;
use slabfence::collective::{Layout, LseBase};
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::{DType, Transport};
use slabfence_tests::arithmetic::{narrow, widen};
use slabfence_tests::exchange::Exchange;
use slabfence_tests::late::{FAIL, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::shape::{Kind, Place, Shape, Source, nan, number};

/// Rows of one rank: tokens, heads, elements.
const BATCH: u32 = 13;
const HEADS: u32 = 3;
const DIM: u32 = 16;

/// A word of the row alone, the same for all ranks and elements.
fn row(place: Place) -> u32 {
    let rank = 99;
    Place {
        rank,
        i: 0,
        ..place
    }
    .hash()
}

/// [`combine_in`] in base 2: the differences of the tests' log-sum-exps are then exact.
fn combine(world: u32, source: Source, also: impl Fn(&Exchange, &[u8]) + Sync) {
    combine_in(LseBase::Two, world, source, also);
}

/// Of all three types and both transports: checks each result against the model, and gives it, with its shape, to `also`.
fn combine_in(base: LseBase, world: u32, source: Source, also: impl Fn(&Exchange, &[u8]) + Sync) {
    for transport in [Transport::Push, Transport::Pull] {
        let (machine, driver) = machine(world);
        let contract = Contract {
            transport,
            reduce_element_bytes: 4,
            max_grid: 8,
            fail: FAIL,
            ..Contract::new(HEADS * world, 8, DIM, BATCH)
        };
        on_ranks(&driver, world, |member| {
            let (pool, channel) = member.channel(&contract, "decode").unwrap();
            let stream = Stream::new(&member.device).unwrap();
            for dtype in [DType::F32, DType::F16, DType::Bf16] {
                let shape = Shape {
                    kind: Kind::Reduce(base, Layout::TokenMajor, Layout::TokenMajor),
                    source,
                    ..Shape::reduce(dtype, BATCH, HEADS, DIM)
                };
                let exchange = Exchange::new(member, shape).unwrap();
                for operation in 0..2 {
                    exchange.supply(operation).unwrap();
                    exchange.enqueue(&channel, &stream).unwrap();
                    stream.synchronize().unwrap();
                    let got = exchange.read().unwrap();
                    exchange.check(operation, &got);
                    also(&exchange, &got);
                }
            }
            assert_eq!(pool.health().unwrap(), Health::Healthy);
            pool.close().unwrap();
        });
        assert_eq!(machine.faults(), Vec::<String>::new());
    }
}

/// Each rank's outputs by element type's code, from [`combine_in`].
fn results(
    base: LseBase,
    world: u32,
    source: Source,
    also: impl Fn(&Exchange, &[u8]) + Sync,
) -> BTreeMap<(u32, u32), Vec<Vec<u8>>> {
    let results = Mutex::new(BTreeMap::new());
    combine_in(base, world, source, |exchange, got| {
        also(exchange, got);
        let key = (exchange.rank, exchange.shape.dtype.code());
        let mut results = results.lock().unwrap();
        let all: &mut Vec<Vec<u8>> = results.entry(key).or_default();
        all.push(got.to_vec());
    });
    results.into_inner().unwrap()
}

/// The elements of an output.
fn values(exchange: &Exchange, got: &[u8]) -> impl Iterator<Item = f32> {
    let dtype = exchange.shape.dtype;
    got.chunks_exact(dtype.bytes()).map(move |element| {
        let bits = element.iter().rev().fold(0, |w, &b| w << 8 | u32::from(b));
        widen(dtype, bits)
    })
}

/// −inf, NaN or +inf.
fn empty(word: u32) -> f32 {
    [f32::NEG_INFINITY, f32::NAN, f32::INFINITY, -f32::NAN][word as usize % 4]
}

#[test]
fn all_shards_empty_give_plus_zero_whatever_they_hold() {
    let source = Source {
        element: nan,
        lse: |place| empty(place.hash()),
    };
    for base in [LseBase::Two, LseBase::E] {
        combine_in(base, 3, source, |_, got| {
            assert!(got.iter().all(|&b| b == 0));
        });
    }
}

#[test]
fn the_only_shard_that_is_not_empty_comes_through_unchanged() {
    // Its rank depends on the row, its log-sum-exp may be anything finite.
    fn lse(place: Place) -> f32 {
        if row(place) % 3 != place.rank {
            return empty(place.hash());
        }
        [0.0, -0.0, 1e-40, -3.5, 1e30, f32::MAX, f32::MIN][place.hash() as usize % 7]
    }
    let source = Source {
        element: |dtype, place| match lse(place).is_finite() {
            true => narrow(dtype, number(place.hash())),
            false => nan(dtype, place),
        },
        lse,
    };
    let unchanged = |exchange: &Exchange, got: &[u8]| {
        let shape = exchange.shape;
        let only = (0..2).any(|operation| {
            shape
                .rows(Layout::TokenMajor, 3, exchange.rank, operation)
                .all(|row| {
                    let source = row.lse.iter().position(|l| l.is_finite()).unwrap();
                    let wanted = row.parts.iter().flat_map(|parts| {
                        parts[source]
                            .to_le_bytes()
                            .into_iter()
                            .take(shape.dtype.bytes())
                    });
                    got[row.at].iter().copied().eq(wanted)
                })
        });
        assert!(only, "{shape:?}");
    };
    for base in [LseBase::Two, LseBase::E] {
        combine_in(base, 3, source, unchanged);
    }
}

#[test]
fn an_lse_of_minus_infinity_nan_or_plus_infinity_empties_its_shard_and_no_other() {
    // Rank 1's shard, in every row, beside two with numbers.
    fn beside(place: Place, edge: f32) -> f32 {
        match place.rank {
            1 => edge,
            _ => (Source::NUMBERS.lse)(place),
        }
    }
    let element = |dtype, place: Place| match place.rank {
        1 => nan(dtype, place),
        _ => (Source::NUMBERS.element)(dtype, place),
    };
    let edges: [fn(Place) -> f32; 4] = [
        |place| beside(place, f32::NEG_INFINITY),
        |place| beside(place, f32::NAN),
        |place| beside(place, -f32::NAN),
        |place| beside(place, f32::INFINITY),
    ];
    for base in [LseBase::Two, LseBase::E] {
        let results = edges.map(|lse| {
            results(base, 3, Source { element, lse }, |exchange, got| {
                assert!(values(exchange, got).all(|value| value.is_finite() && value != 0.0));
            })
        });
        assert!(results.iter().all(|edge| *edge == results[0]));
    }
}

#[test]
fn a_weight_that_vanishes_takes_its_payload_with_it() {
    // Rank 0 is ahead of the others by 126 and more, up to the difference that overflows.
    let source = Source {
        element: |dtype, place| match place.rank {
            0 => narrow(dtype, number(place.hash())),
            _ => nan(dtype, place),
        },
        lse: |place| match (place.rank, place.hash() % 3) {
            (0, _) => 1e38,
            (_, 0) => 1e38 - 2e31,
            (_, 1) => 0.0,
            _ => f32::MIN,
        },
    };
    combine(4, source, |exchange, got| {
        assert!(values(exchange, got).all(f32::is_finite));
    });
}

#[test]
fn the_smallest_weight_is_two_to_the_minus_125() {
    // Rank 1 holds 2^120 behind a weight of 2^-125 or, a little further behind, of none; rank 0 holds zeros.
    let source = Source {
        element: |_, place| match place.rank {
            0 => 0,
            _ => 2f32.powi(120).to_bits(),
        },
        lse: |place| match (place.rank, row(place) % 2) {
            (0, _) => 0.0,
            (_, 0) => -125.0,
            _ => -125.00001,
        },
    };
    combine(2, source, |exchange, got| {
        if exchange.shape.dtype != DType::F32 {
            return;
        }
        let seen = |wanted: f32| {
            let mut elements = got.chunks_exact(4);
            elements.any(|element| element == wanted.to_le_bytes())
        };
        assert!(seen(2f32.powi(-5)) && seen(0.0));
    });
}

#[test]
fn a_common_shift_of_all_log_sum_exps_changes_no_bit() {
    // Multiples of 1/4: adding ±2^20 to them is exact.
    fn lse(place: Place) -> f32 {
        (place.hash() % 128) as f32 * 0.25 - 16.0
    }
    let element = Source::NUMBERS.element;
    let results = [
        |place| lse(place),
        |place| lse(place) + 1_048_576.0,
        |place| lse(place) - 1_048_576.0,
    ]
    .map(|lse: fn(Place) -> f32| results(LseBase::Two, 3, Source { element, lse }, |_, _| {}));
    assert!(results[0] == results[1] && results[0] == results[2]);
}

#[test]
fn infinities_overflow_subnormals_and_canonical_nans_come_out_as_stated() {
    // Any bits of any type under weights of every size: the check against the model is the assertion.
    let source = Source {
        element: |dtype, place| match place.hash() % 4 {
            0 => nan(dtype, place),
            _ => {
                let edge = [
                    f32::INFINITY,
                    f32::MAX,
                    f32::MIN_POSITIVE,
                    1e-45,
                    65519.0,
                    65536.0,
                    6e-8,
                    -0.0,
                ];
                let x = edge[(place.hash() >> 8) as usize % edge.len()];
                narrow(dtype, if place.hash() >> 31 == 1 { -x } else { x })
            }
        },
        lse: |place| match row(place) % 4 {
            0 => -((place.hash() % 120) as f32),
            _ => number(place.hash()),
        },
    };
    combine(2, source, |_, _| {});
    combine(5, source, |_, _| {});
}
