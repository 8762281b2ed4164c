//! Callers who break what is assumed of them (docs/protocol.md), on the shipped kernels: calls of a channel that overlap, grids
//! that are not wholly resident, and memory that somebody else touches during a call.

use std::mem::offset_of;

use slabfence::channel::Contract;
use slabfence::collective::AllGatherHeads;
use slabfence::layout::{Cause, DType, Header, SlotAddresses, Transport};
use slabfence::sys::CUdeviceptr;
use slabfence_emu::held::{End, Finding, Looked, Patience, Plan, Policy, RegionKind, Run, Wait};
use slabfence_tests::callers::{Caller, callers, close};
use slabfence_tests::graphs::parameter;
use slabfence_tests::held::contract;
use slabfence_tests::probe::machine;
use slabfence_tests::shape::Shape;

const SEEDS: u64 = 20;
const TRANSPORTS: [Transport; 2] = [Transport::Push, Transport::Pull];
const GATHER: Shape = Shape::gather(DType::Bf16, 2, 1, 16);
const PLAN: Plan = Plan::new(Policy::Mixed { changes: 3 });

fn gather(transport: Transport) -> &'static str {
    match transport {
        Transport::Pull => "sf_gather_pull",
        _ => "sf_gather_push",
    }
}

/// Rank 0 enqueues its two calls on two streams, rank 1 in order. Wrong rows are never unreported, and some seeds find the
/// overlap, some none.
fn two_streams(transport: Transport, enqueue: impl Fn(&mut Caller, usize, usize)) {
    let (machine, driver) = machine(2);
    let mut callers = callers(&driver, 2, &contract(2, transport), &[GATHER; 2]);
    let mut held = machine.hold().unwrap();
    for (caller, streams) in callers.iter_mut().zip([[0, 1], [0, 0]]) {
        (0..2).for_each(|number| enqueue(caller, number, streams[number]));
    }
    let mut causes = Vec::new();
    let told = |looked: &Looked<'_>| {
        for caller in &callers {
            let right = (0..2).all(|number| caller.is_right(number, looked));
            let verdict = caller.verdict(looked).map(|(cause, _)| cause);
            if verdict.is_none() && !right {
                return Err("wrong rows, and nobody is told".to_owned());
            }
            causes.push(verdict);
        }
        Ok(())
    };
    // Rows of the other call are no fault of the kernel.
    let blind = Plan {
        detect: false,
        ..PLAN
    };
    let found = held.explore(&blind, 0..SEEDS, told).unwrap();
    assert_eq!((found.runs, found.bad), (SEEDS, None));
    let expected = [
        None,
        Some(Cause::TagMismatch),
        Some(Cause::Overlap),
        Some(Cause::PeerFailed),
        Some(Cause::Skipped),
    ];
    assert!(
        causes.iter().all(|cause| expected.contains(cause)),
        "{causes:?}"
    );
    assert!(causes.contains(&Some(Cause::Overlap)), "{causes:?}");
    drop(held);
    close(callers);
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn two_streams_on_one_channel_are_told_apart_or_do_no_harm() {
    for transport in TRANSPORTS {
        two_streams(transport, |caller, number, stream| {
            caller.eager(number, stream);
        });
    }
}

#[test]
fn a_replay_that_overlaps_a_replay_is_told_or_does_no_harm() {
    for transport in TRANSPORTS {
        two_streams(transport, Caller::replay);
    }
}

#[test]
fn a_grid_that_is_not_wholly_resident_is_a_deadlock_that_names_the_blocks_without_room() {
    for transport in TRANSPORTS {
        let (machine, driver) = machine(2);
        let contract = Contract {
            transport,
            ..Contract::new(4, 256, 256, 12)
        };
        let wide = Shape::gather(DType::Bf16, 12, 2, 256);
        let callers = callers(&driver, 2, &contract, &[wide]);
        let mut held = machine.hold().unwrap();
        callers.iter().for_each(|caller| caller.eager(0, 0));
        // Enough room for all: clean.
        let found = held.explore(&PLAN, 0..4, |_| Ok(())).unwrap();
        assert_eq!(found.bad, None);
        let cramped = Plan {
            residency: Some(1),
            ..PLAN
        };
        let bad = held.explore(&cramped, 0..SEEDS, |_| Ok(())).unwrap().bad;
        let bad = bad.expect("ranks with different blocks resident");
        let End::Deadlock(waiters) = &bad.end else {
            panic!("{bad}");
        };
        for device in 0..2 {
            let room = |wait: &Wait| matches!(wait, Wait::Room { blocks } if *blocks > 0);
            let mut of = waiters.iter().filter(|waiter| waiter.device == device);
            let told = of.any(|waiter| waiter.what == gather(transport) && room(&waiter.wait));
            assert!(told, "{bad}");
        }
        // The fail threshold ends it.
        let timed = Plan {
            patience: Patience::Time,
            ..cramped
        };
        let ended = held.run(&timed, bad.seed).unwrap();
        assert_eq!(ended.end, End::Complete);
        drop(held);
        close(callers);
    }
}

/// What is found, in each of some seeds, when ranks make one call and rank 0 does something besides, on its other stream.
fn beside(transport: Transport, act: impl Fn(&Caller)) -> Vec<Run> {
    let (machine, driver) = machine(2);
    let callers = callers(&driver, 2, &contract(2, transport), &[GATHER; 2]);
    let mut held = machine.hold().unwrap();
    callers.iter().for_each(|caller| caller.eager(0, 0));
    act(&callers[0]);
    let runs = (0..4).map(|seed| held.run(&PLAN, seed).unwrap()).collect();
    drop(held);
    close(callers);
    runs
}

/// Asserts that every run has a finding of a rule in memory of a kind, with these two kernels as its sides.
#[track_caller]
fn all_find(runs: &[Run], rule: &str, kind: RegionKind, kernels: [Option<&str>; 2]) {
    let mut kernels = kernels;
    kernels.sort_unstable();
    let fits = |finding: &Finding| {
        let sides = [&finding.earlier, &finding.later];
        let mut sides = sides.map(|side| {
            let thread = side.as_ref().and_then(|side| side.thread.as_ref());
            thread.map(|thread| thread.kernel.as_str())
        });
        sides.sort_unstable();
        let place = finding.place.as_ref().and_then(|place| place.kind);
        finding.rule.name() == rule && place == Some(kind) && sides == kernels
    };
    for run in runs {
        assert!(run.findings.iter().any(fits), "{run}");
    }
}

#[test]
fn an_input_that_is_written_during_a_call_is_a_race() {
    for transport in TRANSPORTS {
        let runs = beside(transport, |caller| {
            let input = caller.exchanges[0].input.ptr().raw();
            caller.probe.enqueue_poke(input, 5).unwrap();
        });
        let kernels = [Some("poke"), Some(gather(transport))];
        all_find(&runs, "race", RegionKind::Buffer, kernels);
    }
}

#[test]
fn an_output_that_is_written_or_read_during_a_call_is_a_race() {
    for transport in TRANSPORTS {
        let output = |caller: &Caller| caller.exchanges[0].output.ptr().raw();
        let written = beside(transport, |caller| {
            caller.probe.enqueue_poke(output(caller), 5).unwrap();
        });
        let kernels = [Some("poke"), Some(gather(transport))];
        all_find(&written, "race", RegionKind::Buffer, kernels);
        let read = beside(transport, |caller| {
            let to = caller.exchanges[1].output.ptr().raw();
            caller.probe.enqueue_copy(to, output(caller)).unwrap();
        });
        let kernels = [Some("copy"), Some(gather(transport))];
        all_find(&read, "race", RegionKind::Buffer, kernels);
    }
}

#[test]
fn calls_of_which_one_reads_what_the_other_writes_are_a_race_unless_they_are_in_order() {
    for transport in TRANSPORTS {
        for (stream, ordered) in [(1, false), (0, true)] {
            let (machine, driver) = machine(2);
            let contract = contract(2, transport);
            let callers = callers(&driver, 2, &contract, &[GATHER; 2]);
            let mut held = machine.hold().unwrap();
            for caller in &callers {
                caller.eager(0, 0);
                let [first, second] = &caller.exchanges[..] else {
                    panic!("two collectives");
                };
                let call = AllGatherHeads {
                    input: first.output.ptr(),
                    output: second.output.ptr(),
                    batch: 2,
                    dtype: DType::Bf16,
                    head_dim: Some(16),
                };
                // SAFETY: both buffers are long enough and outlive the call.
                let enqueued =
                    unsafe { call.enqueue(&caller.channels[1], &caller.streams[stream]) };
                enqueued.unwrap();
            }
            let runs: Vec<Run> = (0..4).map(|seed| held.run(&PLAN, seed).unwrap()).collect();
            if ordered {
                assert!(runs.iter().all(Run::is_clean), "{runs:?}");
            } else {
                let kernels = [Some(gather(transport)); 2];
                all_find(&runs, "race", RegionKind::Buffer, kernels);
            }
            drop(held);
            close(callers);
        }
    }
}

/// Where rank 0's memory of slot A begins, by the parameters of its kernels.
fn own(caller: &Caller, field: usize) -> u64 {
    parameter(caller.graph(0), offset_of!(Header, own) + field)
}

#[test]
fn a_kernel_that_stores_to_words_of_the_protocol_is_in_the_wrong_region() {
    for field in [
        offset_of!(SlotAddresses, flags),
        offset_of!(SlotAddresses, entry),
    ] {
        let runs = beside(Transport::Push, |caller| {
            // The line of rank 1.
            caller
                .probe
                .enqueue_poke(own(caller, field) + 128, 2)
                .unwrap();
        });
        let kind = match field == offset_of!(SlotAddresses, flags) {
            true => RegionKind::Flag,
            false => RegionKind::Entry,
        };
        all_find(&runs, "wrong-region", kind, [Some("poke"), None]);
    }
}

#[test]
fn a_fill_by_the_host_in_staged_rows_is_a_race() {
    for (transport, field, kind) in [
        (
            Transport::Push,
            offset_of!(SlotAddresses, inbox),
            RegionKind::Inbox,
        ),
        (
            Transport::Pull,
            offset_of!(SlotAddresses, outbox),
            RegionKind::Outbox,
        ),
    ] {
        let runs = beside(transport, |caller| {
            let mut at = own(caller, field);
            if transport == Transport::Push {
                // Rank 1's part.
                at += parameter(caller.graph(0), offset_of!(Header, inbox_stride));
            }
            let stream = &caller.streams[1];
            let _guard = stream.device().bind().unwrap();
            let fill = stream.device().driver().api().cuMemsetD8Async().unwrap();
            // SAFETY: the slab is mapped there, and its pool lives as long as the work that is enqueued.
            let code = unsafe { fill(CUdeviceptr(at), 0xee, 16, stream.raw()) };
            assert!(code.is_success(), "{code:?}");
        });
        all_find(&runs, "race", kind, [None, Some(gather(transport))]);
    }
}
