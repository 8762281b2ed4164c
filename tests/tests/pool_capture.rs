//! Capture scopes: which channel a captured operation uses, who is refused, and what keeps a graph's memory.

use std::thread;
use std::time::Duration;

use slabfence::Error;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::{CaptureMode, Graph, Stream};
use slabfence::layout::Cause;
use slabfence_emu::Live;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_ranks};

fn contract() -> Contract {
    Contract {
        fail: Duration::from_secs(20),
        ..Contract::new(4, 64, 64, 8)
    }
}

fn pool(member: &Member, names: &[&str]) -> (Pool, Stream) {
    let pool = member.pool(&contract()).unwrap();
    pool.prepare(names).unwrap();
    (pool, Stream::new(&member.device).unwrap())
}

/// Captures `operations` gathers in a scope of channel `name`.
fn capture(pool: &Pool, stream: &Stream, name: &str, gather: &Gather, operations: usize) -> Graph {
    let channel = pool.channel(name).unwrap();
    let scope = pool.capture(name, stream).unwrap();
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    for _ in 0..operations {
        gather.enqueue(&channel, stream).unwrap();
    }
    let graph = stream.end_capture().unwrap();
    scope.finish().unwrap();
    graph
}

fn refusal(result: slabfence::Result<()>) -> String {
    match result {
        Err(Error::Refused { why, .. }) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn an_operation_is_one_kernel_node_and_replays_right_after_odd_counts() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, stream) = pool(member, &["graph"]);
        let gather = Gather::new(member, &contract(), 3).unwrap();
        let graph = capture(&pool, &stream, "graph", &gather, 3);
        assert_eq!(graph.kernel_nodes().unwrap(), 3);
        assert_eq!(graph.nodes().unwrap().len(), 3);
        let mut exec = graph.instantiate().unwrap();
        for round in 0..4 {
            gather.fill(member.rank(), round).unwrap();
            exec.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert!(
                gather.output().unwrap() == gather.expected(round),
                "round {round}"
            );
        }
        drop((exec, graph));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn capturing_outside_a_scope_is_refused_and_nothing_is_recorded() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, stream) = pool(member, &["a"]);
        let gather = Gather::new(member, &contract(), 1).unwrap();
        stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let why = refusal(gather.enqueue(&pool.channel("a").unwrap(), &stream));
        assert!(why.contains("captures outside a capture scope"), "{why}");
        let late = pool.capture("a", &stream).unwrap_err().to_string();
        assert!(late.contains("before the capture begins"), "{late}");
        assert_eq!(stream.end_capture().unwrap().nodes().unwrap().len(), 0);
        pool.close().unwrap();
    });
}

#[test]
fn inside_a_scope_other_streams_are_refused_and_warm_ups_go_to_its_channel() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, stream) = pool(member, &["eager", "graph"]);
        let side = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        let eager = pool.channel("eager").unwrap();
        // Rank 0 warms up through another channel's handle: both ranks must still meet on the scope's channel.
        let handle = pool
            .channel(["eager", "graph"][member.rank() as usize])
            .unwrap();
        let scope = pool.capture("graph", &stream).unwrap();
        let why = refusal(gather.enqueue(&eager, &side));
        assert!(why.contains("scope 'graph' is active"), "{why}");
        gather.fill(member.rank(), 1).unwrap();
        gather.enqueue(&handle, &stream).unwrap();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        scope.finish().unwrap();
        gather.fill(member.rank(), 2).unwrap();
        gather.enqueue(&eager, &side).unwrap();
        side.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(2));
        pool.close().unwrap();
    });
}

#[test]
fn the_channel_of_another_threads_scope_is_refused_until_the_scope_is_left() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, stream) = pool(member, &["a", "b"]);
        let [a, b] = ["a", "b"].map(|name| pool.channel(name).unwrap());
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.fill(member.rank(), 1).unwrap();
        let scope = pool.capture("a", &stream).unwrap();
        thread::scope(|threads| {
            let elsewhere = threads.spawn(|| {
                let stream = Stream::new(&member.device).unwrap();
                let why = refusal(gather.enqueue(&a, &stream));
                assert_eq!(why, "a capture scope of another thread owns channel 'a'");
                // Other channels of the pool are nobody's.
                gather.enqueue(&b, &stream).unwrap();
                stream.synchronize().unwrap();
            });
            elsewhere.join().unwrap();
        });
        assert!(gather.output().unwrap() == gather.expected(1));
        scope.finish().unwrap();
        gather.fill(member.rank(), 2).unwrap();
        gather.enqueue(&a, &stream).unwrap();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(2));
        pool.close().unwrap();
    });
}

#[test]
fn a_scope_is_not_inherited_by_a_stream_that_comes_later() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, stream) = pool(member, &["a"]);
        let gather = Gather::new(member, &contract(), 1).unwrap();
        let scope = pool.capture("a", &stream).unwrap();
        drop(stream);
        // Whether or not the driver gives the same handle again.
        let later = Stream::new(&member.device).unwrap();
        let why = refusal(gather.enqueue(&pool.channel("a").unwrap(), &later));
        assert!(why.contains("belongs to another stream"), "{why}");
        scope.finish().unwrap();
        pool.close().unwrap();
    });
}

#[test]
fn scopes_nest_and_are_left_in_reverse_order() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, outer) = pool(member, &["a", "b"]);
        let inner = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 1).unwrap();
        let channel = pool.channel("a").unwrap();
        let first = pool.capture("a", &outer).unwrap();
        let twice = pool.capture("a", &inner).unwrap_err().to_string();
        assert!(twice.contains("another scope owns channel 'a'"), "{twice}");
        let second = pool.capture("b", &inner).unwrap();
        let why = refusal(gather.enqueue(&channel, &outer));
        assert!(why.contains("scope 'b' is active"), "{why}");
        let disorder = refusal(first.finish());
        assert!(
            disorder.contains("'a' was left while scope 'b'"),
            "{disorder}"
        );
        second.finish().unwrap();
        // All is restored: eager operations go where they are called.
        gather.fill(member.rank(), 0).unwrap();
        gather.enqueue(&channel, &outer).unwrap();
        outer.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(0));
        pool.close().unwrap();
    });
}

#[test]
fn ranks_capture_prepared_channels_in_different_orders() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, stream) = pool(member, &["a", "b"]);
        let gathers = [1, 2].map(|batch| Gather::new(member, &contract(), batch).unwrap());
        let mut order = [("a", &gathers[0]), ("b", &gathers[1])];
        if member.rank() == 1 {
            order.reverse();
        }
        let mut graphs = order.map(|(name, gather)| capture(&pool, &stream, name, gather, 1));
        if member.rank() == 1 {
            graphs.reverse();
        }
        let mut execs = graphs.map(|graph| graph.instantiate().unwrap());
        for (round, which) in [0, 1, 1, 0, 0].into_iter().enumerate() {
            let gather = &gathers[which];
            gather.fill(member.rank(), round as u32).unwrap();
            execs[which].launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(round as u32));
        }
        drop(execs);
        pool.close().unwrap();
    });
}

#[test]
fn close_is_refused_while_a_graph_or_a_scope_holds_a_channel() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, stream) = pool(member, &["a"]);
        let gather = Gather::new(member, &contract(), 1).unwrap();
        let graph = capture(&pool, &stream, "a", &gather, 2);
        let exec = graph.instantiate().unwrap();
        drop(graph);
        let busy = |ranks: &[u32], words: &str| {
            let Err(Error::Busy { operation, holders }) = pool.close() else {
                panic!("closed under a holder");
            };
            assert_eq!(operation, "Pool::close");
            let all: Vec<u32> = holders.iter().map(|(rank, _)| rank.0).collect();
            assert_eq!(all, ranks);
            assert!(
                holders.iter().all(|(_, said)| said.contains(words)),
                "{holders:?}"
            );
        };
        busy(&[0, 1], "1 graph(s) hold channel 'a'");
        // Rank 1's graph alone refuses for both.
        let exec = (member.rank() == 1).then_some(exec);
        busy(&[1], "1 graph(s) hold channel 'a'");
        drop(exec);
        let scope = pool.capture("a", &stream).unwrap();
        busy(&[0, 1], "a capture scope owns channel 'a'");
        drop(scope);
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

/// Two ranks run different steps of equal shape on one channel; both must be told.
fn disagree(step: impl Fn(&Member, &Pool, &Stream, &Gather) + Sync) {
    let (_machine, driver) = machine(2);
    let faults = on_ranks(&driver, 2, |member| {
        let (pool, stream) = pool(member, &["a"]);
        let gather = Gather::new(member, &contract(), 1).unwrap();
        step(member, &pool, &stream, &gather);
        stream.synchronize().unwrap();
        let cause = pool.faults().unwrap()[0].cause;
        pool.close().unwrap();
        cause
    });
    assert!(faults.contains(&Some(Cause::TagMismatch)), "{faults:?}");
}

#[test]
fn an_eager_operation_does_not_pass_for_a_captured_one_of_equal_shape() {
    disagree(|member, pool, stream, gather| match member.rank() {
        0 => gather.enqueue(&pool.channel("a").unwrap(), stream).unwrap(),
        _ => {
            let graph = capture(pool, stream, "a", gather, 1);
            graph.instantiate().unwrap().launch(stream).unwrap();
        }
    });
}

#[test]
fn graphs_of_one_channel_replayed_in_different_orders_are_told_apart_by_their_labels() {
    disagree(|member, pool, stream, gather| {
        let channel = pool.channel("a").unwrap();
        let mut graphs = ["first", "second"].map(|label| {
            let scope = pool.capture_labelled("a", label, stream).unwrap();
            stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
            gather.enqueue(&channel, stream).unwrap();
            let graph = stream.end_capture().unwrap();
            scope.finish().unwrap();
            graph.instantiate().unwrap()
        });
        graphs[member.rank() as usize].launch(stream).unwrap();
    });
}
