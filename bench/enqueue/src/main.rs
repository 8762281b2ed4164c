//! What one eager enqueue costs the host, beside the driver's launch call itself.
//!
//! `cargo run --release -p slabfence-bench-enqueue`
//!
//! Two ranks set a pool up on the emulated machine. Then every driver call of an enqueue becomes a stub that does nothing
//! but count, and one rank enqueues again and again. Printed are nanoseconds a call, the stub's own launch in the same
//! loop, and what is between them; allocations and driver calls of one enqueue; and the same with a second thread that
//! enqueues on another channel of the pool. Fails when an enqueue allocates, and with `--most NS` when one costs more, alone
//! or beside the other thread.

mod count;
mod stub;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use slabfence::channel::{Channel, Contract};
use slabfence::driver::{Driver, Stream};
use slabfence::layout::{DType, Transport};
use slabfence_emu::{Machine, Profile};
use slabfence_tests::exchange::Exchange;
use slabfence_tests::ranks::{Member, on_ranks};
use slabfence_tests::shape::Shape;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Calls between two looks at the clock, and how many such spans.
const CALLS: u32 = 64;
const SPANS: usize = 1_000;

/// Nanoseconds a call: of all spans the median, and what 99 of 100 do not exceed.
struct Cost {
    median: f64,
    p99: f64,
}

fn main() -> Result<(), Failure> {
    let most = most(std::env::args().skip(1))?;
    let profile = Profile::named("h200-nvlink").ok_or("no such profile")?;
    let machine = Machine::new(profile, 2)?;
    let mut api = machine.api()?;
    stub::place(&mut api);
    let driver = Driver::from_api(api)?;
    let done = on_ranks(&driver, 2, |member| {
        run(member, most).map_err(|error| error.to_string())
    });
    for result in done {
        result?;
    }
    Ok(())
}

/// The bound of the command line, if there is one.
fn most(mut words: impl Iterator<Item = String>) -> Result<f64, Failure> {
    match (words.next().as_deref(), words.next(), words.next()) {
        (None, ..) => Ok(f64::INFINITY),
        (Some("--most"), Some(most), None) => Ok(most.parse()?),
        _ => Err("usage: slabfence-bench-enqueue [--most NANOSECONDS]".into()),
    }
}

fn run(member: &Member, most: f64) -> Result<(), Failure> {
    let contract = Contract {
        transport: Transport::Push,
        ..Contract::new(64, 576, 512, 4)
    };
    let pool = member.pool(&contract)?;
    pool.prepare(&["one", "other"])?;
    let channels = [pool.channel("one")?, pool.channel("other")?];
    if member.rank() == 0 {
        let gather = Shape::gather(DType::Bf16, 4, 32, 576);
        measure(member, "gather", gather, &channels, most)?;
        let reduce = Shape::reduce(DType::Bf16, 4, 32, 512);
        measure(member, "reduce-scatter", reduce, &channels, most)?;
    }
    pool.close()?;
    Ok(())
}

fn measure(
    member: &Member,
    name: &str,
    shape: Shape,
    channels: &[Channel; 2],
    most: f64,
) -> Result<(), Failure> {
    let streams = [Stream::new(&member.device)?, Stream::new(&member.device)?];
    let exchanges = [Exchange::new(member, shape)?, Exchange::new(member, shape)?];
    let enqueue = |at: usize| exchanges[at].enqueue(&channels[at], &streams[at]);
    let context = member.device.context();
    let _stubs = stub::On::new(context);
    enqueue(0)?;
    let (allocated, called) = (count::allocations(), stub::calls());
    enqueue(0)?;
    let (allocated, called) = (count::allocations() - allocated, stub::calls() - called);
    let launch = cost(|| stub::launch(streams[0].raw()));
    let alone = cost(|| enqueue(0));
    let stop = AtomicBool::new(false);
    let beside = thread::scope(|scope| {
        let other = scope.spawn(|| -> slabfence::Result<()> {
            let _stubs = stub::On::new(context);
            while !stop.load(Ordering::Relaxed) {
                enqueue(1)?;
            }
            Ok(())
        });
        let cost = cost(|| enqueue(0));
        stop.store(true, Ordering::Relaxed);
        other.join().map(|ended| ended.map(|()| cost))
    });
    let beside = beside.map_err(|_| "the other thread panicked")??;
    let over = |cost: &Cost| cost.median - launch.median;
    println!(
        "{name}: {:.0} ns over the launch (median {:.0}, p99 {:.0}; the stub's launch {:.0}), {allocated} allocations, \
         {called} driver calls; beside a thread on another channel {:.0} ns over the launch",
        over(&alone),
        alone.median,
        alone.p99,
        launch.median,
        over(&beside),
    );
    if allocated != 0 {
        return Err(format!("{name}: an enqueue allocates").into());
    }
    let costs = [("", &alone), (" beside another channel's", &beside)];
    match costs.iter().find(|(_, cost)| over(cost) > most) {
        Some((beside, _)) => {
            Err(format!("{name}: an enqueue{beside} costs more than {most} ns").into())
        }
        None => Ok(()),
    }
}

/// Times `call`, which must not fail.
fn cost<E: std::fmt::Debug>(call: impl Fn() -> Result<(), E>) -> Cost {
    let mut spans: Vec<f64> = (0..SPANS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                black_box(call()).expect("an enqueue against the stub");
            }
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    spans.sort_by(f64::total_cmp);
    Cost {
        median: spans[SPANS / 2],
        p99: spans[SPANS * 99 / 100],
    }
}
