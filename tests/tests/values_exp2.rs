//! The kernels' own 2^x, measured through the operation that uses it.
//!
//! Two ranks have log-sum-exps 0 and x <= 0 in base 2, so weights 1 and w = 2^x, normalised by s = 1 + w. Of a row's four
//! elements one is 1 on rank 0 and 0 on rank 1, one the other way round: they come out as the normalised weights
//! n_0 = 1/s and n_1 = w · (1/s), both rounded. Two statements follow about the kernel's w:
//!
//! - for x <= -25, s rounds to 1: n_0 = 1 and n_1 = w exactly. The stated bound of 0.871 ulp holds for n_1 itself.
//! - for all x, n_1 / n_0 = w (1 + d), |d| <= 2^-24: one rounded product. With the stated relative error of w, 7.34e-8,
//!   n_1 / n_0 is off by less than 7.34e-8 + 2^-24, which is 1.12 × 2^-23.

use slabfence::channel::Contract;
use slabfence::collective::{Layout, LseBase};
use slabfence::driver::Stream;
use slabfence::layout::{DType, Transport};
use slabfence_tests::exchange::Exchange;
use slabfence_tests::late::{FAIL, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::shape::{Kind, Place, Shape, Source};

const BATCH: u32 = 4096;

/// The exponents: in operation 0 steps of 25/4096 from 0 down to -25, then of 100/4096 to -125, each moved by up to a step,
/// differently for the two ranks' heads.
fn exponent(place: Place) -> f32 {
    let step = place.token as f32 + (place.hash() % 1024) as f32 / 1024.0;
    match place.operation {
        0 => -step * (25.0 / BATCH as f32),
        1 => -25.0 - step * (100.0 / BATCH as f32),
        // Halves and integers, where the polynomial's argument is at its ends, and their neighbours.
        _ => {
            let half = -((place.token % 250) as f32) / 2.0;
            f32::from_bits(half.to_bits() + place.token / 250 % 3)
        }
    }
}

const SHAPE: Shape = Shape {
    kind: Kind::Reduce(LseBase::Two, Layout::TokenMajor, Layout::TokenMajor),
    source: Source {
        element: |_, place| match place.i == place.rank {
            true => 1f32.to_bits(),
            false => 0,
        },
        lse: |place| match place.rank {
            0 => 0.0,
            _ => exponent(place),
        },
    },
    ..Shape::reduce(DType::F32, BATCH, 1, 4)
};

/// Distance of `got` from 2^x in ulps of 2^x.
fn ulps(got: f64, x: f32) -> f64 {
    let exact = f64::from(x).exp2();
    let ulp = 2f64.powi(f64::from(x).floor() as i32 - 23);
    (got - exact).abs() / ulp
}

#[test]
fn two_to_the_x_of_the_shipped_kernel_is_within_its_stated_error() {
    let (machine, driver) = machine(2);
    let contract = Contract {
        transport: Transport::Push,
        reduce_element_bytes: 4,
        fail: FAIL,
        ..Contract::new(2, 8, 4, BATCH)
    };
    let worst = on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let exchange = Exchange::new(member, SHAPE).unwrap();
        let (mut direct, mut relative) = (0f64, 0f64);
        for operation in 0..3 {
            exchange.supply(operation).unwrap();
            exchange.enqueue(&channel, &stream).unwrap();
            stream.synchronize().unwrap();
            let got = exchange.read().unwrap();
            exchange.check(operation, &got);
            for row in SHAPE.rows(Layout::TokenMajor, 2, member.rank(), operation) {
                let x = row.lse[1];
                let element = |i: usize| {
                    let at = row.at.start + 4 * i;
                    f32::from_le_bytes(got[at..at + 4].try_into().unwrap())
                };
                let weights = [element(0), element(1)].map(f64::from);
                if x <= -25.0 {
                    assert_eq!(weights[0], 1.0, "x = {x}");
                    direct = direct.max(ulps(weights[1], x));
                }
                let ratio = weights[1] / weights[0];
                let error = (ratio / f64::from(x).exp2() - 1.0).abs();
                relative = relative.max(error);
            }
        }
        pool.close().unwrap();
        (direct, relative)
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    for (direct, relative) in worst {
        println!("largest errors: {direct} ulp, {relative:e} of a ratio");
        assert!(direct <= 0.871, "{direct}");
        assert!(relative <= 7.34e-8 + 2f64.powi(-24), "{relative}");
        // The sweep is dense enough to come near the largest error there is.
        assert!(direct > 0.7, "{direct}");
    }
}
