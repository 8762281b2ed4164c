//! Retired channels give their ranges to later ones.

use std::time::Duration;

use slabfence::channel::{Channel, Part};
use slabfence::group::Rank;
use slabfence::health::Health;
use slabfence::{Error, Result};
use slabfence_emu::Live;
use slabfence_tests::graphs::capture;
use slabfence_tests::host::Host;
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::ranks::on_ranks;

/// Gathers `rounds` times.
fn gathers(host: &Host<'_>, channel: &Channel, rounds: u32) {
    for round in 0..rounds {
        host.eager(channel, round);
    }
}

/// Prepares one channel.
fn prepared(host: &Host<'_>, name: &str) -> Channel {
    host.pool.prepare(&[name]).unwrap();
    host.channel(name)
}

/// Where a channel keeps its epoch, and the epoch.
fn epoch(host: &Host<'_>, name: &str) -> (u64, u64) {
    let ranges = host.pool.ranges().unwrap();
    let local = ranges.iter().find(|range| {
        let mine = range.owner == host.member.group.me();
        mine && range.part == Part::Local && range.channel.as_deref() == Some(name)
    });
    let at = local.unwrap().base;
    let probe = Probe::new(&host.member.device).unwrap();
    (at, probe.peek(at).unwrap())
}

fn words(result: Result<()>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn the_next_channel_gets_the_ranges_and_begins_above_all_that_they_have_seen() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = Host::new(member, 1);
        let a = prepared(&host, "a");
        gathers(&host, &a, 3);
        let (at, first) = epoch(&host, "a");
        assert_eq!(first, 5);
        let full = words(host.pool.prepare(&["b"]));
        assert!(full.contains("max_channels is 1"), "{full}");
        host.pool.retire(&["a"]).unwrap();
        let b = prepared(&host, "b");
        assert_eq!(epoch(&host, "b"), (at, 7));
        gathers(&host, &b, 4);
        assert!(host.pool.channel("a").is_err());
        host.pool.retire(&["b"]).unwrap();
        let again = prepared(&host, "a");
        assert_eq!(epoch(&host, "a"), (at, 13));
        gathers(&host, &again, 2);
        // The first channel of this name is another one.
        let refused = words(host.gather.enqueue(&a, &host.stream));
        assert!(refused.contains("channel 'a' was retired"), "{refused}");
        assert!(a.fault().is_err() && again.fault().unwrap().is_none());
        // Its word is the other channel's by now.
        assert!(a.verdict().is_err() && again.verdict().is_ok());
        host.pool.close().unwrap();
        for closed in [
            again.verdict().map(drop),
            again.fault().map(drop),
            again.warning().map(drop),
        ] {
            assert!(matches!(closed, Err(Error::Closed { .. })), "{closed:?}");
        }
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_channel_that_a_graph_of_one_rank_holds_is_busy_on_all_and_stays_as_it_is() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = Host::new(member, 2);
        host.pool.prepare(&["a", "b"]).unwrap();
        let graph = (member.rank() == 1).then(|| {
            capture(&host.pool, &host.stream, "a", |channel| {
                host.gather.enqueue(channel, &host.stream).unwrap();
            })
        });
        let Err(Error::Busy { holders, .. }) = host.pool.retire(&["b", "a"]) else {
            panic!("not busy");
        };
        let [(Rank(1), words)] = &holders[..] else {
            panic!("{holders:?}");
        };
        assert!(words.contains("1 graph(s) hold channel 'a'"), "{words}");
        for name in ["a", "b"] {
            gathers(&host, &host.channel(name), 1);
        }
        drop(graph);
        host.pool.retire(&["a", "b"]).unwrap();
        host.pool.close().unwrap();
    });
}

#[test]
fn wishes_that_cannot_be_met_change_nothing_on_any_rank() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = Host::new(member, 2);
        host.pool.prepare(&["a", "b"]).unwrap();
        let mine = ["a", "b"][member.rank() as usize];
        let differ = words(host.pool.retire(&[mine]));
        assert!(
            differ.contains(r#"it wants ["b"], rank 0 wants ["a"]"#),
            "{differ}"
        );
        let unknown = words(host.pool.retire(&[["a", "c"][member.rank() as usize]]));
        assert!(
            unknown.contains("rank 1: Pool::retire: channel 'c' is not prepared"),
            "{unknown}"
        );
        for name in ["a", "b"] {
            gathers(&host, &host.channel(name), 2);
        }
        host.pool.close().unwrap();
    });
}

#[test]
fn a_failed_channel_can_be_retired_and_the_others_go_on() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = Host::failing_after(member, 3, Duration::from_secs(3));
        host.pool.prepare(&["a", "b", "c"]).unwrap();
        let (b, c) = (
            host.pool.channel("b").unwrap(),
            host.pool.channel("c").unwrap(),
        );
        if member.rank() == 0 {
            host.gather.enqueue(&b, &host.stream).unwrap();
            host.stream.synchronize().unwrap();
            assert_eq!(host.pool.health().unwrap(), Health::Failed);
        }
        host.pool.retire(&["b"]).unwrap();
        assert_eq!(host.pool.health().unwrap(), Health::Healthy);
        gathers(&host, &c, 2);
        // The others' ranges are not the first ones any more.
        host.pool.reset().unwrap();
        gathers(&host, &c, 3);
        gathers(&host, &prepared(&host, "d"), 3);
        host.pool.close().unwrap();
    });
}
