//! Leaving a pool without the other ranks: what is given back, what is kept, and when it is refused.

use slabfence::Error;
use slabfence::channel::{Abandoned, Contract};
use slabfence::driver::{Stream, drop_released};
use slabfence_emu::Live;
use slabfence_tests::graphs::capture;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_ranks};

fn contract() -> Contract {
    Contract::new(4, 64, 64, 8)
}

#[test]
fn a_rank_that_abandons_a_pool_of_threads_keeps_what_the_others_may_use() {
    let (machine, driver) = machine(2);
    let kept = on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.fill(member.rank(), 1).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        let Abandoned { kept } = pool.abandon().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        // There is nothing more to do, and nothing more can be done.
        assert_eq!(pool.abandon().unwrap(), Abandoned { kept: 0 });
        pool.close().unwrap();
        let refused = gather.enqueue(&channel, &stream).unwrap_err();
        assert!(matches!(refused, Error::Closed { .. }), "{refused}");
        kept
    });
    // Signal memory and two inboxes, of one size on both ranks.
    assert_eq!(kept[0], kept[1]);
    assert!(kept[0] > 0);
    let live = machine.live();
    assert_eq!((live.mappings, live.physical), (6, 6));
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn a_pool_whose_graphs_live_is_not_abandoned_and_stays_as_it_was() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, _) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        let graph = capture(&pool, &stream, "decode", |channel| {
            gather.enqueue(channel, &stream).unwrap();
        });
        let mut executable = graph.instantiate().unwrap();
        let said = pool.abandon().unwrap_err().to_string();
        let words = "Pool::abandon refused: 1 graph(s) hold channel 'decode'";
        assert!(said.starts_with(words), "{said}");
        gather.fill(member.rank(), 1).unwrap();
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        drop((executable, graph));
        drop_released();
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}
