//! Capture scopes within one another, and graphs of one channel that nothing tells apart.

use core::mem::offset_of;

use slabfence::channel::{Contract, Pool};
use slabfence::driver::{CaptureMode, Graph, Stream};
use slabfence::layout::Header;
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

/// Scopes are left in reverse order within a pool. Those of another have nothing to do with it, on one stream as on two.
#[test]
fn scopes_of_two_pools_may_be_left_in_any_order_and_take_their_own_pools_operations() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pools = [(); 2].map(|()| pool(member, &["a", "eager"]));
        let gathers = [(); 2].map(|()| Gather::new(member, &contract(), 1).unwrap());
        let stream = Stream::new(&member.device).unwrap();
        let blocks = [0, 1].map(|at: usize| {
            let graph = capture(&pools[at], &stream, "a", |channel| {
                gathers[at].enqueue(channel, &stream).unwrap();
            });
            local_block(&graph)
        });
        let [first, second] = [0, 1].map(|at: usize| pools[at].capture("a", &stream).unwrap());
        stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        for at in [1, 0] {
            let eager = pools[at].channel("eager").unwrap();
            gathers[at].enqueue(&eager, &stream).unwrap();
        }
        let both = stream.end_capture().unwrap();
        first.finish().unwrap();
        // The pool of the scope that was left is free, the other's still in its scope.
        let other = Stream::new(&member.device).unwrap();
        for (at, gather) in gathers.iter().enumerate() {
            let eager = pools[at].channel("eager").unwrap();
            gather.fill(member.rank(), 1).unwrap();
            let enqueued = gather.enqueue(&eager, &other);
            assert_eq!(enqueued.is_ok(), at == 0, "{enqueued:?}");
        }
        other.synchronize().unwrap();
        assert!(gathers[0].output().unwrap() == gathers[0].expected(1));
        second.finish().unwrap();
        let nodes = both.nodes().unwrap();
        let used = nodes.iter().filter_map(|node| {
            let block = &node.kernel()?.params.as_ref()?[0].bytes;
            let local = &block[offset_of!(Header, local)..][..8];
            Some(u64::from_le_bytes(local.try_into().unwrap()))
        });
        assert_eq!(used.collect::<Vec<_>>(), [blocks[1], blocks[0]]);
        for gather in &gathers {
            gather.fill(member.rank(), 2).unwrap();
        }
        both.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize().unwrap();
        for gather in &gathers {
            assert!(gather.output().unwrap() == gather.expected(2));
        }
        drop(both);
        for pool in pools {
            pool.close().unwrap();
        }
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
