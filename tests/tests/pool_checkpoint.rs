//! Checkpoints: what was prepared for a trial is taken back on all ranks.

use slabfence::Error;
use slabfence::channel::Contract;
use slabfence::driver::{CaptureMode, drop_released};
use slabfence::group::Rank;
use slabfence_emu::Live;
use slabfence_tests::graphs::capture;
use slabfence_tests::host::{Host, contract};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::on_ranks;

/// A failed step's words, for each rank that failed.
fn refused(host: &Host<'_>, result: slabfence::Result<()>, step: &str) -> Vec<(Rank, String)> {
    match result {
        Err(Error::Setup { phase, failures }) if phase == step => failures,
        other => panic!("{}: {other:?}", host.member.group.me()),
    }
}

#[test]
fn a_profiling_capture_is_thrown_away_and_the_real_ones_take_its_names() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        // As many as the real run needs: the trial has to give its ranges back.
        let host = Host::new(member, 3);
        let (pool, stream) = (&host.pool, &host.stream);
        let captured = |name: &str| {
            capture(pool, stream, name, |channel| {
                host.gather.enqueue(channel, stream).unwrap();
            })
        };
        pool.prepare(&["eager"]).unwrap();
        let eager = host.channel("eager");
        host.eager(&eager, 0);
        let before = pool.checkpoint().unwrap();
        // The trial: a warm-up, a graph and replays of it, then away with all of it.
        pool.prepare(&["graph.8", "graph.1"]).unwrap();
        let stale = host.channel("graph.8");
        let graph = captured("graph.8");
        let mut exec = graph.instantiate().unwrap();
        host.eager(&stale, 1);
        host.right(2, || exec.launch(stream));
        drop((exec, graph));
        pool.rollback(&before).unwrap();
        for name in ["graph.8", "graph.1"] {
            let gone = pool.channel(name).unwrap_err().to_string();
            assert!(gone.contains(r#"(prepared: ["eager"])"#), "{gone}");
        }
        let refused = host.gather.enqueue(&stale, stream).unwrap_err().to_string();
        assert!(refused.contains("'graph.8' was retired"), "{refused}");
        host.eager(&eager, 3);
        // The real run, in another order.
        pool.prepare(&["graph.1"]).unwrap();
        pool.prepare(&["graph.8"]).unwrap();
        let graphs = ["graph.1", "graph.8"].map(captured);
        let mut execs = graphs.each_ref().map(|graph| graph.instantiate().unwrap());
        for round in 4..10 {
            let exec = &mut execs[round as usize % 2];
            host.right(round, || exec.launch(stream));
            host.eager(&eager, round + 100);
        }
        drop((execs, graphs));
        // The same checkpoint again: the next trial's.
        pool.rollback(&before).unwrap();
        pool.rollback(&before).unwrap();
        host.eager(&eager, 10);
        pool.close().unwrap();
        assert!(matches!(pool.checkpoint(), Err(Error::Closed { .. })));
        assert!(matches!(pool.rollback(&before), Err(Error::Closed { .. })));
    });
    drop_released();
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_channel_that_was_prepared_again_has_come_after_the_checkpoint() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = Host::new(member, 3);
        let pool = &host.pool;
        pool.prepare(&["a", "b"]).unwrap();
        let before = pool.checkpoint().unwrap();
        assert_eq!(
            format!("{before:?}"),
            r#"Checkpoint { channels: ["a", "b"], .. }"#
        );
        pool.retire(&["a", "b"]).unwrap();
        pool.prepare(&["a"]).unwrap();
        pool.rollback(&before).unwrap();
        let none = pool.channel("a").unwrap_err().to_string();
        assert!(none.contains("(prepared: [])"), "{none}");
        pool.close().unwrap();
    });
}

#[test]
fn a_graph_or_a_scope_of_one_rank_makes_the_rollback_busy_on_all() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = Host::new(member, 2);
        let (pool, stream) = (&host.pool, &host.stream);
        pool.prepare(&["old"]).unwrap();
        let before = pool.checkpoint().unwrap();
        pool.prepare(&["new"]).unwrap();
        let busy = |words: &str| {
            let Err(Error::Busy { operation, holders }) = pool.rollback(&before) else {
                panic!("not busy");
            };
            let [(Rank(1), said)] = &holders[..] else {
                panic!("{holders:?}");
            };
            assert_eq!(operation, "Pool::rollback");
            assert!(said.contains(words), "{said}");
        };
        let holds = member.rank() == 1;
        let graph = holds.then(|| {
            capture(pool, stream, "new", |channel| {
                host.gather.enqueue(channel, stream).unwrap();
            })
        });
        busy("1 graph(s) hold channel 'new'");
        drop(graph);
        let scope = holds.then(|| pool.capture("new", stream).unwrap());
        busy("a capture scope owns channel 'new'");
        // The channel is as it was.
        host.eager(&host.channel("new"), 0);
        if scope.is_some() {
            stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        }
        let failures = refused(&host, pool.rollback(&before), "rollback: drain");
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].0, Rank(1));
        if let Some(scope) = scope {
            // Still valid.
            stream.end_capture().unwrap();
            scope.finish().unwrap();
        }
        host.eager(&host.channel("old"), 1);
        // What only the old channel's graphs hold is in nobody's way.
        let kept = capture(pool, stream, "old", |channel| {
            host.gather.enqueue(channel, stream).unwrap();
        });
        let mut exec = kept.instantiate().unwrap();
        pool.rollback(&before).unwrap();
        assert!(pool.channel("new").is_err());
        host.right(2, || exec.launch(stream));
        drop((exec, kept));
        pool.close().unwrap();
    });
}

#[test]
fn checkpoints_of_another_pool_or_another_point_are_refused_on_all_ranks() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = Host::new(member, 3);
        let other = host
            .member
            .pool(&Contract {
                max_channels: 1,
                ..contract()
            })
            .unwrap();
        let pool = &host.pool;
        pool.prepare(&["a"]).unwrap();
        let early = pool.checkpoint().unwrap();
        pool.prepare(&["b"]).unwrap();
        let late = pool.checkpoint().unwrap();
        let strange = other.checkpoint().unwrap();
        let odd = member.rank() == 1;
        let wrong = pool.rollback(if odd { &strange } else { &early });
        assert_eq!(
            refused(&host, wrong, "rollback: names"),
            [(
                Rank(1),
                "Pool::rollback: the checkpoint is of another pool".to_owned()
            )]
        );
        let wrong = pool.rollback(if odd { &late } else { &early });
        assert_eq!(
            refused(&host, wrong, "rollback: names"),
            [(Rank(1), r#"it wants [], rank 0 wants ["b"]"#.to_owned())]
        );
        // A rank in another call is told.
        let wrong = match odd {
            true => pool.retire(&["b"]),
            false => pool.rollback(&early),
        };
        let told = refused(
            &host,
            wrong,
            ["rollback: drain", "retire: drain"][odd as usize],
        );
        let there = ["retire: drain", "rollback: drain"][odd as usize];
        assert!(told[0].1.contains(there), "{told:?}");
        // Nothing has changed.
        for name in ["a", "b"] {
            host.eager(&host.channel(name), 0);
        }
        pool.rollback(&early).unwrap();
        assert!(pool.channel("b").is_err());
        other.close().unwrap();
        pool.close().unwrap();
    });
}
