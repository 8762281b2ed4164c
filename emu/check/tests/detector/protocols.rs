//! The kernels of other protocols, wrong and right.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::machine::{End, Schedule, Stream, grid, run};
use crate::support::{checker, filled, launch, memory};
use slabfence_emu_check::{Options, Region, Rule};
use slabfence_emu_exec::{Kernel, Launch};
use slabfence_emu_mutants::{Call, Exchange, PROTOCOLS, Protocol};

/// Seeds within which a wrong one must be found.
const SEEDS: u64 = 20;

const FLAGS: u64 = 0;
const COUNTERS: u64 = 0x1_0000;
const STAGE: u64 = 0x2_0000;
const SLOT: u64 = 0x1_0000;
const INPUT: u64 = 0x4_0000;
const OUTPUT: u64 = 0x5_0000;

fn base(rank: u64) -> u64 {
    0x10_0000_0000 * (rank + 1)
}

fn regions() -> Vec<Region> {
    let of = |rank: u64| {
        let device = rank as u32;
        let at = |offset| base(rank) + offset;
        vec![
            filled(at(FLAGS), 0x2000, device, "flags"),
            filled(at(COUNTERS), 0x1000, device, "counters"),
            Region::buffer(at(STAGE), 0x400, device, "slot 0"),
            Region::buffer(at(STAGE + SLOT), 0x400, device, "slot 1"),
            filled(at(INPUT), 0x400, device, "input"),
            Region::buffer(at(OUTPUT), 0x400, device, "output"),
        ]
    };
    (0..2).flat_map(of).collect()
}

fn block(protocol: &Protocol, call: &Call, rank: u64) -> Exchange {
    let (own, peer) = (base(rank), base(1 - rank));
    let stage =
        |base: u64| [call.slot, 1 - call.slot].map(|slot| base + STAGE + SLOT * slot as u64);
    let counters = if protocol.shared_counter {
        base(0)
    } else {
        own
    };
    Exchange {
        own_flags: own + FLAGS,
        peer_flags: peer + FLAGS,
        own_stage: stage(own),
        peer_stage: stage(peer),
        counters: counters + COUNTERS,
        input: own + INPUT,
        output: own + OUTPUT,
        calls: call.calls,
        rows: call.rows,
        reserved: 0,
    }
}

/// As the parameter block holds them.
fn words(block: &Exchange) -> [u64; 11] {
    let ([own0, own1], [peer0, peer1]) = (block.own_stage, block.peer_stage);
    let counts = u64::from(block.calls as u32) | u64::from(block.rows) << 32;
    [
        block.own_flags,
        block.peer_flags,
        own0,
        own1,
        peer0,
        peer1,
        block.counters,
        block.input,
        block.output,
        counts,
        block.reserved,
    ]
}

/// Names of what is found under a seed.
fn rules(protocol: &Protocol, seed: u64) -> BTreeSet<&'static str> {
    let module = slabfence_emu_ptx::parse(protocol.ptx).unwrap();
    let kernel = Arc::new(Kernel::compile(&module, protocol.entry).unwrap());
    let stream = |rank: u64| {
        let work = protocol.calls.iter().map(|call| {
            let launch: Launch =
                launch(&kernel, call.grid, 32, &words(&block(protocol, call, rank)));
            grid(launch)
        });
        Stream::new(rank as u32, work)
    };
    let regions = regions();
    let checker = checker(Options::default(), &regions);
    let streams = [stream(0), stream(1)];
    let outcome = run(&mut memory(&regions), checker, &streams, Schedule::of(seed));
    let mut found: BTreeSet<_> = outcome
        .rules()
        .into_iter()
        .map(|rule| rule.name())
        .collect();
    match outcome.end {
        End::Done => {}
        End::Stuck => _ = found.insert(Rule::Deadlock.name()),
        End::Fault(fault, finding) => panic!("{}: {fault} {finding:?}", protocol.name),
    }
    found
}

#[test]
fn wrong_protocols_are_found_by_name_and_right_ones_are_clean() {
    for protocol in PROTOCOLS {
        let found: Vec<_> = (0..SEEDS).map(|seed| rules(protocol, seed)).collect();
        let expected =
            |found: &BTreeSet<&str>| protocol.rules.iter().any(|rule| found.contains(rule));
        let right = match protocol.rules {
            [] => found.iter().all(BTreeSet::is_empty),
            _ => found.iter().any(expected),
        };
        assert!(right, "`{}`: {found:?}", protocol.name);
    }
}
