//! That what a process tells of a pool is what the pool says of itself, member by member, while a rank waits, a graph and a
//! scope hold channels, and behind a reset.

use std::path::Path;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::{ChannelStatus, Contract, KindBytes, PoolStatus};
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::Transport;
use slabfence::status::{self, Bytes, Channel, Pool};
use slabfence_tests::graphs::capture;
use slabfence_tests::host::contract;
use slabfence_tests::late::{on_ranks, until};
use slabfence_tests::probe::machine;
use slabfence_tests::processes::Folder;
use slabfence_tests::ranks::Gather;

const WARN: Duration = Duration::from_millis(60);
/// Of the device's answer, on a loaded host.
const PATIENCE: Duration = Duration::from_secs(60);

fn bytes_agree(told: &Bytes, of: &KindBytes) {
    let all = [told.local, told.signal, told.inbox, told.outbox, told.total];
    let parts = [of.local, of.signal, of.inbox, of.outbox];
    assert_eq!(all[..4], parts);
    assert_eq!(told.total, parts.iter().sum::<u64>());
}

fn channels_agree(told: &Channel, of: &ChannelStatus) {
    assert_eq!(told.name, of.name);
    assert_eq!(
        (told.owner.scope, told.owner.graphs),
        (of.scoped, of.graphs)
    );
    assert_eq!((told.epoch, told.begun), (of.epoch, of.begun));
    assert_eq!((told.running, told.resets), (of.running, of.resets));
    assert_eq!((told.launched, told.recorded), (of.launched, of.recorded));
    bytes_agree(&told.bytes, &of.bytes);
    assert_eq!(told.host_bytes, of.host_bytes);
    let words = of.warning.as_ref().map(ToString::to_string);
    assert_eq!(told.warning.as_ref().map(|of| of.words.clone()), words);
    let words = of.fault.as_ref().map(ToString::to_string);
    assert_eq!(told.fault.as_ref().map(|of| of.words.clone()), words);
}

fn pools_agree(told: &Pool, of: &PoolStatus) {
    assert_eq!((told.number, told.rank), (of.number, of.rank.0));
    assert_eq!(told.members, of.members);
    assert_eq!(told.world as usize, of.members.len());
    assert_eq!(
        (told.device, &told.device_name),
        (of.device, &of.device_name)
    );
    assert_eq!(told.uuid, format!("{:?}", of.uuid));
    assert_eq!(told.transport, "pull");
    assert_eq!(told.phase, of.phase);
    let limits = [of.warn, of.fail].map(|limit| limit.as_secs_f64());
    assert_eq!([told.warn_seconds, told.fail_seconds], limits);
    assert_eq!(told.max_channels, of.max_channels);
    bytes_agree(&told.bytes, &of.mapped);
    assert_eq!(told.imported_bytes, of.imported_bytes);
    assert_eq!(told.host_bytes, of.host_bytes);
    assert_eq!((&told.unanswered, &of.unanswered), (&None, &None));
    assert_eq!(told.channels.len(), of.channels.len());
    for (told, of) in told.channels.iter().zip(&of.channels) {
        channels_agree(told, of);
    }
}

/// What this process tells of a pool once its device has answered: the server does not wait long for it.
fn told_of(folder: &Path, number: u64) -> Pool {
    let until = Instant::now() + PATIENCE;
    loop {
        let document = status::read(folder, process::id()).unwrap().unwrap();
        let mut pools = document.pools.into_iter();
        let told = pools.find(|told| told.number == number);
        let told = told.expect("this rank's pool");
        if told.unanswered.is_none() || Instant::now() > until {
            return told;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_member_of_the_document_is_what_the_pool_says() {
    let folder = Folder::new();
    let _server = status::serve(folder.path()).unwrap();
    let (_machine, driver) = machine(2);
    let contract = Contract {
        transport: Transport::Pull,
        warn: WARN,
        max_channels: 5,
        ..contract()
    };
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&["eager", "graph", "scope"]).unwrap();
        pool.reset().unwrap();
        let streams = [(); 2].map(|()| Stream::new(&member.device).unwrap());
        let gather = Gather::new(member, &contract, 2).unwrap();
        let graph = capture(&pool, &streams[0], "graph", |channel| {
            gather.enqueue(channel, &streams[0]).unwrap();
            gather.enqueue(channel, &streams[0]).unwrap();
        });
        let eager = pool.channel("eager").unwrap();
        member.meet();
        if member.rank() == 0 {
            gather.enqueue(&eager, &streams[0]).unwrap();
            let held = pool.capture("scope", &streams[1]).unwrap();
            until("warned", || pool.health().unwrap() == Health::Warned);
            // Between the two nothing changes: the operation waits.
            let own = pool.status_within(PATIENCE).unwrap();
            let told = told_of(folder.path(), own.number);
            pools_agree(&told, &own);
            assert_eq!(told.health, "warned");
            // So that what agrees is not all nothing.
            let [eager, graph, scope] = &told.channels[..] else {
                panic!("{told:?}")
            };
            assert_eq!((eager.running, graph.running), (Some(true), Some(false)));
            assert_eq!((eager.launched, eager.recorded), (1, 0));
            assert_eq!((graph.launched, graph.recorded), (0, 2));
            assert!(eager.warning.is_some() && graph.warning.is_none());
            let owners = [eager, graph, scope].map(|of| (of.owner.scope, of.owner.graphs));
            assert_eq!(owners, [(false, 0), (false, 1), (true, 0)]);
            assert_eq!([eager, graph, scope].map(|of| of.resets), [Some(1); 3]);
            assert_eq!((told.warn_seconds, told.max_channels), (0.06, 5));
            held.finish().unwrap();
            member.meet();
        } else {
            member.meet();
            gather.enqueue(&eager, &streams[0]).unwrap();
        }
        streams[0].synchronize().unwrap();
        member.meet();
        drop(graph);
        pool.close().unwrap();
    });
}
