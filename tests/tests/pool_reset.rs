//! What a reset refuses before any rank has changed anything, so that the pool then goes on as it was, and what ends one.

use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use slabfence::Error;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::{CaptureMode, Stream};
use slabfence::group::{Rank, ThreadBootstrap};
use slabfence::layout::{LocalBlock, started_warps, started_word};
use slabfence_emu::Live;
use slabfence_tests::late::local_of;
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::ranks::{Gather, Member, on_members, on_ranks};

fn contract() -> Contract {
    Contract::new(4, 64, 64, 8)
}

/// Checks that a reset failed in its first step, for the reasons of these ranks.
fn refused(result: slabfence::Result<()>, words: &[(u32, &str)]) {
    let Err(Error::Setup { phase, failures }) = result else {
        panic!("{result:?}");
    };
    assert_eq!(phase, "reset: begin");
    assert_eq!(failures.len(), words.len(), "{failures:?}");
    for ((rank, said), (wanted, words)) in failures.iter().zip(words) {
        assert_eq!(*rank, Rank(*wanted));
        assert!(said.contains(words), "{said}");
    }
}

/// An operation, a reset, an operation.
fn works(member: &Member, pool: &Pool, stream: &Stream) {
    let channel = pool.channel("decode").unwrap();
    let gather = Gather::new(member, &contract(), 2).unwrap();
    for round in 0..2 {
        gather.fill(member.rank(), round).unwrap();
        gather.enqueue(&channel, stream).unwrap();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(round));
        pool.reset().unwrap();
    }
}

#[test]
fn a_floor_that_no_epoch_can_reach_is_refused_on_all_ranks() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, _) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        for floor in [1 << 56, u64::MAX] {
            let result = match member.rank() {
                0 => pool.reset(),
                _ => pool.reset_above(floor),
            };
            let words = format!("epoch {floor:#x}; epochs end below 2^56");
            refused(result, &[(1, &words)]);
        }
        works(member, &pool, &stream);
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_capture_outlives_a_reset_that_is_refused_for_it() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, _) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let foreign = Stream::new(&member.device).unwrap();
        let words = "1 stream(s) of device 1 capture; call again after the capture has ended";
        if member.rank() == 1 {
            foreign.begin_capture(CaptureMode::Global).unwrap();
        }
        refused(pool.reset(), &[(1, words)]);
        // Of a step that drains the same holds.
        let Err(Error::Setup { phase, failures }) = pool.prepare(&["more"]) else {
            panic!("prepared");
        };
        assert_eq!((phase, failures.len()), ("prepare: drain", 1));
        assert!(failures[0].1.contains(words), "{failures:?}");
        if member.rank() == 1 {
            assert_eq!(foreign.end_capture().unwrap().nodes().unwrap().len(), 0);
        }
        works(member, &pool, &stream);
        pool.prepare(&["more"]).unwrap();
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_stream_that_went_with_its_capture_is_in_nobodys_way() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, _) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let lost = Stream::new(&member.device).unwrap();
        lost.begin_capture(CaptureMode::Relaxed).unwrap();
        drop(lost);
        works(member, &pool, &stream);
        pool.close().unwrap();
    });
}

#[test]
fn a_scope_refuses_the_reset_and_what_it_captures_replays() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        let scope = pool.capture("decode", &stream).unwrap();
        let words = "a capture scope owns channel 'decode'; leave the scope first";
        refused(pool.reset(), &[(0, words), (1, words)]);
        stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        refused(pool.reset(), &[(0, words), (1, words)]);
        let graph = stream.end_capture().unwrap();
        scope.finish().unwrap();
        let mut exec = graph.instantiate().unwrap();
        pool.reset().unwrap();
        gather.fill(member.rank(), 3).unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(3));
        drop((exec, graph));
        works(member, &pool, &stream);
        pool.close().unwrap();
    });
}

#[test]
fn a_rank_that_hangs_fails_the_reset_by_name_and_the_pool_can_only_be_closed() {
    let (_machine, driver) = machine(2);
    let contract = Contract {
        fail: Duration::from_secs(10),
        ..contract()
    };
    let members = ThreadBootstrap::world(2)
        .into_iter()
        .map(|member| Arc::new(member) as _)
        .collect();
    // A reset waits for half of it.
    let limit = Duration::from_secs(12);
    on_members(&driver, members, limit, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 2).unwrap();
        if member.rank() == 0 {
            gather.enqueue(&channel, &stream).unwrap();
        }
        let Err(Error::Setup { phase, failures }) = pool.reset() else {
            panic!("reset beside a running operation");
        };
        assert_eq!((phase, failures[0].0), ("reset: drain", Rank(0)));
        assert!(
            failures[0].1.contains("device 0 still runs"),
            "{}",
            failures[0].1
        );
        let said = gather.enqueue(&channel, &stream).unwrap_err().to_string();
        assert!(said.contains("the pool can only be closed"), "{said}");
        // Its memory is still there.
        channel.verdict().unwrap();
        stream.synchronize().unwrap();
        pool.close().unwrap();
    });
}

/// Every word of the block by its place, so that one that a reset forgets shows: most of them no later operation would miss.
#[test]
fn a_reset_leaves_no_word_of_a_failure_in_the_channels_memory() {
    let (_machine, driver) = machine(2);
    let contract = Contract {
        warn: Duration::from_millis(50),
        fail: Duration::from_secs(2),
        ..contract()
    };
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 2).unwrap();
        let local = local_of(&pool, "decode");
        let probe = Probe::new(&member.device).unwrap();
        let words = || -> Vec<u64> {
            let words = (0..size_of::<LocalBlock>() as u64 / 8).map(|word| local + word * 8);
            words.map(|word| probe.peek(word).unwrap()).collect()
        };
        if member.rank() == 0 {
            gather.enqueue(&channel, &stream).unwrap();
            stream.synchronize().unwrap();
            let failed = words();
            for field in [
                offset_of!(LocalBlock, status),
                offset_of!(LocalBlock, failed),
                offset_of!(LocalBlock, fault_claim),
                offset_of!(LocalBlock, warn_claim),
            ] {
                assert_ne!(failed[field / 8], 0, "word at {field}");
            }
        }
        member.meet();
        pool.reset().unwrap();
        let after = words();
        // Rank 0 has begun an operation of epoch 2, so the largest next one is 3.
        let mut wanted = vec![0; after.len()];
        wanted[offset_of!(LocalBlock, epoch) / 8] = 5;
        wanted[offset_of!(LocalBlock, generation) / 8] = 1;
        let begun = started_warps(after[offset_of!(LocalBlock, started) / 8]);
        wanted[offset_of!(LocalBlock, started) / 8] = started_word(begun, 5);
        wanted[offset_of!(LocalBlock, retired) / 8] = begun;
        assert_eq!(begun == 0, member.rank() == 1);
        assert_eq!(after, wanted);
        pool.close().unwrap();
    });
}
