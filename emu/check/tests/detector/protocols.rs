//! The kernels of other protocols, wrong and right.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::machine::{End, Outcome, Schedule, Stream, grid, run};
use crate::support::{checker, filled, launch, memory};
use slabfence_emu_check::{Options, Region, RegionKind, Rule, Writers};
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

/// What all memory is for. A counter of both ranks is a word like any other.
fn regions(protocol: &Protocol) -> Vec<Region> {
    let of = |rank: u64| {
        let device = rank as u32;
        let at = |offset| base(rank) + offset;
        let own = |kind, region| Region {
            kind,
            channel: Some(1),
            rank: Some(device),
            ..region
        };
        let stage = |at| Region::buffer(at, 0x400, device, "staging");
        let counters = filled(at(COUNTERS), 0x1000, device, "counters");
        vec![
            Region {
                writers: Writers::Rank(1 - device),
                ..own(RegionKind::Flag, filled(at(FLAGS), 0x2000, device, "flags"))
            },
            match protocol.shared_counter {
                true => counters,
                false => own(RegionKind::Counter, counters),
            },
            own(RegionKind::Outbox, stage(at(STAGE))),
            own(RegionKind::Outbox, stage(at(STAGE + SLOT))),
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

/// What comes of a seed.
fn outcome(protocol: &Protocol, seed: u64) -> Outcome {
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
    let regions = regions(protocol);
    let checker = checker(Options::default(), &regions);
    let streams = [stream(0), stream(1)];
    run(&mut memory(&regions), checker, &streams, Schedule::of(seed))
}

/// Names of what is found under a seed.
fn rules(protocol: &Protocol, seed: u64) -> BTreeSet<&'static str> {
    let outcome = outcome(protocol, seed);
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
        let right = match protocol.rules {
            [] => found.iter().all(BTreeSet::is_empty),
            rules => rules
                .iter()
                .all(|rule| found.iter().any(|found| found.contains(rule))),
        };
        assert!(right, "`{}`: {found:?}", protocol.name);
    }
}

#[test]
fn an_index_of_minus_one_stores_rows_to_the_flags_of_the_peer() {
    let wanted = |protocol: &&Protocol| protocol.name == "signed-index-minus-one";
    let protocol = PROTOCOLS.iter().find(wanted).expect("a known protocol");
    for seed in 0..SEEDS {
        let outcome = outcome(protocol, seed);
        let finding = outcome.find(Rule::WrongRegion);
        let place = finding.place.as_ref().expect("a place");
        assert_eq!(place.kind, Some(RegionKind::Flag), "seed {seed}");
        let by = finding.later.as_ref().expect("who stores");
        assert_eq!(by.access, "weak store of 4 bytes");
        // The flags are those of the other rank.
        let flags = base(u64::from(1 - by.device)) + FLAGS;
        assert!(
            (flags..flags + 0x2000).contains(&place.address),
            "{finding}"
        );
        assert_eq!(
            finding.detail,
            "an ordinary store hits a word of the protocol"
        );
    }
}
