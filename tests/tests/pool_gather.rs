//! Heads gathered through a pool, operation after operation.

use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::Transport;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_ranks};

fn gathers(world: u32, transport: Transport, batch: u32) {
    let (machine, driver) = machine(world);
    let contract = Contract {
        transport,
        fail: Duration::from_secs(20),
        ..Contract::new(2 * world, 64, 64, 8)
    };
    on_ranks(&driver, world, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, batch).unwrap();
        for round in 0..5 {
            gather.fill(member.rank(), round).unwrap();
            gather.enqueue(&channel, &stream).unwrap();
            stream.synchronize().unwrap();
            assert!(
                gather.output().unwrap() == gather.expected(round),
                "round {round}"
            );
        }
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        assert_eq!(pool.faults().unwrap(), []);
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn two_ranks_gather_by_push() {
    gathers(2, Transport::Push, 3);
}

#[test]
fn three_ranks_gather_by_pull() {
    gathers(3, Transport::Pull, 8);
}
