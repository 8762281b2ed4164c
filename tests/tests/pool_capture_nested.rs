//! Capture scopes within one another, and graphs of one channel that nothing tells apart.

use slabfence::channel::{Contract, Pool};
use slabfence::driver::{CaptureMode, Graph, Stream};
use slabfence_tests::graphs::{capture, local_block};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_ranks};

fn contract() -> Contract {
    Contract::new(2, 16, 16, 4)
}

fn pool(member: &Member, names: &[&str]) -> Pool {
    let pool = member.pool(&contract()).unwrap();
    pool.prepare(names).unwrap();
    pool
}

/// Captures one call of `channel` in whatever scope there is.
fn captured(pool: &Pool, channel: &str, gather: &Gather, stream: &Stream) -> Graph {
    let channel = pool.channel(channel).unwrap();
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    gather.enqueue(&channel, stream).unwrap();
    stream.end_capture().unwrap()
}

#[test]
fn behind_an_inner_scope_the_outer_one_goes_on_with_its_channel() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = pool(member, &["a", "b", "eager"]);
        let [outer, inner] = [(); 2].map(|()| Stream::new(&member.device).unwrap());
        let gather = Gather::new(member, &contract(), 1).unwrap();
        let of = |name: &str| {
            let graph = capture(&pool, &inner, name, |channel| {
                gather.enqueue(channel, &inner).unwrap();
            });
            local_block(&graph)
        };
        let (a, b) = (of("a"), of("b"));
        assert_ne!(a, b);
        let first = pool.capture("a", &outer).unwrap();
        let before = captured(&pool, "eager", &gather, &outer);
        let second = pool.capture("b", &inner).unwrap();
        let within = captured(&pool, "eager", &gather, &inner);
        second.finish().unwrap();
        let behind = captured(&pool, "eager", &gather, &outer);
        first.finish().unwrap();
        let used = [&before, &within, &behind].map(local_block);
        assert_eq!(used, [a, b, a]);
        // Each is right, and so is an eager call, which no scope takes any more.
        for (round, graph) in [&before, &within, &behind].into_iter().enumerate() {
            gather.fill(member.rank(), round as u32).unwrap();
            graph.instantiate().unwrap().launch(&outer).unwrap();
            outer.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(round as u32));
        }
        gather.fill(member.rank(), 3).unwrap();
        let eager = pool.channel("eager").unwrap();
        gather.enqueue(&eager, &outer).unwrap();
        outer.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(3));
        drop((before, within, behind));
        pool.close().unwrap();
    });
}

/// Whoever shares a channel among graphs gives them labels: `capture` has the channel's name for all of them.
#[test]
fn graphs_of_one_channel_and_one_label_in_different_orders_are_not_told() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = pool(member, &["a"]);
        let stream = Stream::new(&member.device).unwrap();
        let mut both = [(); 2].map(|()| {
            let gather = Gather::new(member, &contract(), 1).unwrap();
            let graph = capture(&pool, &stream, "a", |channel| {
                gather.enqueue(channel, &stream).unwrap();
            });
            (gather, graph.instantiate().unwrap())
        });
        if member.rank() == 1 {
            both.reverse();
        }
        for (turn, (gather, exec)) in (0..).zip(&mut both) {
            gather.fill(member.rank(), turn).unwrap();
            exec.launch(&stream).unwrap();
        }
        stream.synchronize().unwrap();
        for (turn, (gather, _)) in (0..).zip(&both) {
            assert!(gather.output().unwrap() == gather.expected(turn));
        }
        assert!(pool.faults().unwrap().is_empty());
        drop(both);
        pool.close().unwrap();
    });
}
