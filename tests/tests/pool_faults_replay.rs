//! A fault in a replay: what a graph can do about it by itself, and what a reset makes of its graphs.

use slabfence::channel::Contract;
use slabfence::driver::{DeviceBuffer, Stream};
use slabfence::health::Health;
use slabfence::layout::{Cause, split_verdict};
use slabfence_tests::graphs::{EpochCounter, capture};
use slabfence_tests::late::FAIL;
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::ranks::{Gather, on_ranks};

#[test]
fn a_verdict_copied_by_its_graph_tells_of_the_fault_and_reset_revives_all_graphs() {
    let (machine, driver) = machine(2);
    let contract = Contract {
        fail: FAIL,
        concurrent_operations: 2,
        ..Contract::new(4, 64, 64, 8)
    };
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&["a", "b"]).unwrap();
        let probe = Probe::new(&member.device).unwrap();
        let stream: &Stream = &probe.stream;
        let gathers = [2, 5].map(|batch| Gather::new(member, &contract, batch).unwrap());
        let copies = DeviceBuffer::new(&member.device, 16).unwrap();
        let copy = |index: usize| {
            let mut word = [0; 8];
            copies.read(index * 8, &mut word).unwrap();
            u64::from_le_bytes(word)
        };
        let graphs = [0, 1].map(|index| {
            capture(&pool, stream, ["a", "b"][index], |channel| {
                gathers[index].enqueue(channel, stream).unwrap();
                let verdict = channel.verdict().unwrap().raw();
                let to = copies.ptr().raw() + 8 * index as u64;
                probe.enqueue_copy(to, verdict).unwrap();
            })
        });
        let mut execs = graphs.each_ref().map(|graph| graph.instantiate().unwrap());
        let mut right = |index: usize, round: u32| {
            let gather = &gathers[index];
            gather.fill(member.rank(), round).unwrap();
            copies.fill(0xaa).unwrap();
            execs[index].launch(stream).unwrap();
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(round));
            assert_eq!(copy(index), 0, "round {round}");
        };
        (0..4).for_each(|round| right(round as usize % 2, round));
        let mut exec = graphs[0].instantiate().unwrap();
        let channel = pool.channel("a").unwrap();
        // What a replay on rank 0 meets is none of a graph.
        match member.rank() {
            0 => exec.launch(stream).unwrap(),
            _ => gathers[0].enqueue(&channel, stream).unwrap(),
        }
        stream.synchronize().unwrap();
        let fault = channel.fault().unwrap().unwrap();
        assert_eq!(fault.epoch, 4, "{fault}");
        assert_eq!(pool.health().unwrap(), Health::Failed);
        // Several warps find out, each in its way; the first to set the verdict need not be the first to write the record.
        let verdict = probe.peek(channel.verdict().unwrap().raw()).unwrap();
        let (cause, epoch) = split_verdict(verdict).unwrap();
        let causes = [Cause::TagMismatch, Cause::PeerFailed, Cause::Skipped];
        assert!(causes.contains(&cause) && epoch == 4, "{cause:?} {epoch}");
        if member.rank() == 0 {
            assert_eq!(copy(0), verdict);
        }
        // A later replay does nothing, and the verdict stays that of the first fault.
        gathers[0].fill(member.rank(), 10).unwrap();
        copies.fill(0).unwrap();
        exec.launch(stream).unwrap();
        stream.synchronize().unwrap();
        let output = gathers[0].output().unwrap();
        assert!(output.iter().all(|&byte| byte == 0xff));
        assert_eq!(copy(0), verdict);
        // The other channel goes on.
        right(1, 11);
        pool.reset().unwrap();
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        for round in 12..15 {
            right(0, round);
            right(1, round + 100);
        }
        // From 6, where the failed ones left it, by the reset's two and three rounds.
        assert_eq!(EpochCounter::of(&graphs[0], stream).read(), 11);
        drop((exec, execs, graphs));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}
