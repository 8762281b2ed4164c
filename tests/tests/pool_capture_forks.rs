//! Captures that fork to side streams by events: all streams of such a capture make one graph, and the channel is used on the
//! scope's own stream alone.

use std::thread;

use slabfence::Error;
use slabfence::channel::{Channel, Contract};
use slabfence::driver::{CaptureMode, CaptureStatus, DeviceBuffer, Event, Stream};
use slabfence_emu::Live;
use slabfence_tests::late::{FAIL, on_ranks};
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::ranks::{Gather, Member};

fn contract() -> Contract {
    Contract {
        fail: FAIL,
        ..Contract::new(4, 64, 64, 8)
    }
}

fn refusal(result: slabfence::Result<()>) -> String {
    match result {
        Err(Error::Refused { why, .. }) => why,
        other => panic!("not refused: {other:?}"),
    }
}

/// Makes `to` wait for what is on `from`: while one of them captures, the other does too, into the same graph.
fn join(member: &Member, from: &Stream, to: &Stream) {
    let event = Event::new(&member.device).unwrap();
    event.record(from).unwrap();
    to.wait(&event).unwrap();
}

/// Captures two gathers on a stream, and beside the second one a store on a side stream that has forked off and on which
/// rank 1 does `amiss` too. The graph must be what it would be without that, and replay right.
fn forked(amiss: impl Fn(&Gather, &Channel, &Stream) + Sync) {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "graph").unwrap();
        pool.prepare(&["other"]).unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let probe = Probe::new(&member.device).unwrap();
        let word = DeviceBuffer::new(&member.device, 8).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();

        let scope = pool.capture("graph", &stream).unwrap();
        stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        join(member, &stream, &probe.stream);
        let status = probe.stream.capture_status().unwrap();
        assert_eq!(status, stream.capture_status().unwrap());
        if member.rank() == 1 {
            amiss(&gather, &channel, &probe.stream);
            amiss(&gather, &pool.channel("other").unwrap(), &probe.stream);
        }
        assert_eq!(stream.capture_status().unwrap(), status);
        probe.enqueue_poke(word.ptr().raw(), 7).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        join(member, &probe.stream, &stream);
        let graph = stream.end_capture().unwrap();
        scope.finish().unwrap();
        assert_eq!(probe.stream.capture_status().unwrap(), CaptureStatus::None);
        assert_eq!(
            (graph.kernel_nodes().unwrap(), graph.nodes().unwrap().len()),
            (3, 3)
        );

        let mut exec = graph.instantiate().unwrap();
        for round in 0..3 {
            gather.fill(member.rank(), round).unwrap();
            word.fill(0).unwrap();
            exec.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(round));
            assert_eq!(probe.peek(word.ptr().raw()).unwrap(), 7);
        }
        // The side stream is free again.
        gather.fill(member.rank(), 3).unwrap();
        gather.enqueue(&channel, &probe.stream).unwrap();
        probe.stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(3));
        drop((exec, graph));
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.faults(), Vec::<String>::new());
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_side_stream_that_has_joined_the_capture_is_refused_and_the_graph_is_right() {
    forked(|gather, channel, side| {
        assert_eq!(
            refusal(gather.enqueue(channel, side)),
            "capture scope 'graph' is active on this thread and belongs to another stream; issue its operations on that stream"
        );
    });
}

#[test]
fn a_side_stream_that_has_joined_the_capture_is_refused_to_other_threads_too() {
    forked(|gather, channel, side| {
        thread::scope(|threads| {
            let why = threads.spawn(|| refusal(gather.enqueue(channel, side)));
            assert_eq!(
                why.join().unwrap(),
                "the stream captures outside a capture scope; enter one with Pool::capture before the capture begins"
            );
        });
    });
}
