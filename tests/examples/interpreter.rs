//! How many warp-instructions a second the emulated machine interprets in its two modes: fast, as programs run on it, and
//! checking, under a seeded schedule with the detector, as `slabfence check` does.
//!
//! `cargo run --release -p slabfence-tests --example interpreter [-- PART OF A NAME]`
//!
//! The time is the processor time of all threads of the process, the best of several: the host may have other work.

use slabfence::channel::Contract;
use slabfence::layout::{DType, Transport};
use slabfence_emu::Machine;
use slabfence_emu::held::{Plan, Policy};
use slabfence_tests::held::{Seat, close, compare, seats};
use slabfence_tests::probe::machine;
use slabfence_tests::shape::{Kind, Shape};

const WORLD: u32 = 4;
/// How often each is measured, and how many instructions at least a measurement has: a thread's time is known to a few
/// milliseconds.
const TIMES: u64 = 5;
const ENOUGH: u64 = 500_000;

fn main() {
    // 48 tokens of 4 x 16 heads of 512 elements in 16 CTAs of 256 workers; and 2 tokens of 4 heads of 16 elements in one.
    let shapes = [
        Shape::gather(DType::Bf16, 48, 16, 512),
        Shape::reduce(DType::Bf16, 48, 16, 512),
        Shape::gather(DType::Bf16, 2, 1, 16),
        Shape::reduce(DType::Bf16, 2, 1, 16),
    ];
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for transport in [Transport::Push, Transport::Pull] {
        for shape in shapes {
            let kind = match shape.kind {
                Kind::Gather => "gather",
                Kind::Reduce(..) => "reduce",
            };
            let (batch, heads, dim) = (shape.batch, WORLD * shape.heads, shape.dim);
            let name = format!("{kind} {transport:?} {batch} x {heads} x {dim}");
            if name.contains(&wanted) {
                measure(&name, transport, shape);
            }
        }
    }
}

fn measure(name: &str, transport: Transport, shape: Shape) {
    let (machine, driver) = machine(WORLD);
    let contract = Contract {
        transport,
        max_grid: 16,
        ..Contract::new(WORLD * shape.heads, shape.dim, shape.dim, shape.batch)
    };
    let seats = seats(&driver, WORLD, &contract, &[shape], 1, 2);
    let fast = best(|_| fast(&machine, &seats));
    let mut held = machine.hold().expect("a machine at rest");
    seats.iter().for_each(|seat| seat.eager(0, 0));
    let plan = Plan::new(Policy::Random);
    let checking = best(|seed| {
        let run = held.run(&plan, seed).expect("a run");
        assert!(run.is_clean(), "{run:?}");
        run.executed
    });
    drop(held);
    assert_eq!(compare(&seats), Ok(()));
    close(seats);
    for (mode, (executed, seconds)) in [("fast", fast), ("checking", checking)] {
        println!(
            "{name}, {mode}: {executed:.0} warp-instructions in {:.2} ms, {:.1} million/s",
            1e3 * seconds,
            executed / seconds / 1e6
        );
    }
}

/// One collective of all ranks: how many instructions.
fn fast(machine: &Machine, seats: &[Seat]) -> u64 {
    let before = machine.executed();
    seats.iter().for_each(|seat| seat.eager(0, 0));
    for seat in seats {
        seat.stream.synchronize().expect("a collective");
    }
    machine.executed() - before
}

/// Instructions and seconds of one of many, in the fastest of several measurements.
fn best(mut once: impl FnMut(u64) -> u64) -> (f64, f64) {
    let mut measure = |_| {
        let start = processor_seconds();
        let (mut executed, mut count) = (0, 0);
        while executed < ENOUGH {
            executed += once(count);
            count += 1;
        }
        let seconds = processor_seconds() - start;
        (executed as f64 / count as f64, seconds / count as f64)
    };
    let rate = |&(executed, seconds): &(f64, f64)| executed / seconds;
    let all = (0..TIMES).map(&mut measure);
    all.max_by(|a, b| rate(a).total_cmp(&rate(b)))
        .expect("at least one")
}

/// Time that the threads of this process have run, as Linux counts it.
fn processor_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let nanoseconds = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}
