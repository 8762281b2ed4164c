//! Every driver call of a capture failed on one rank: that rank captures again, the graphs of all ranks replay, and no
//! failed attempt holds the channel but one whose graph was made and not given.

use std::time::Duration;

use slabfence::channel::{Contract, Pool};
use slabfence::driver::{CaptureMode, CaptureStatus, Graph, GraphExec, Stream, drop_released};
use slabfence_tests::exhaust::{Seat, World, every_call};
use slabfence_tests::injection::Point;
use slabfence_tests::ranks::Gather;

/// No operation here waits for a rank that has failed, so none ends by its limit, on a loaded host either.
const FAIL: Duration = Duration::from_secs(20);

fn make(seat: &Seat<'_>) -> Pool {
    let contract = Contract {
        fail: FAIL,
        ..seat.contract.clone()
    };
    let pool = seat.member.pool(&contract).expect("a pool");
    // As a round leaves it.
    pool.prepare(&["decode"]).expect("a channel");
    pool.retire(&["decode"]).expect("retired");
    pool
}

/// One attempt, as a host makes it that gives up at the first error.
fn capture(pool: &Pool, stream: &Stream, gather: &Gather) -> slabfence::Result<(Graph, GraphExec)> {
    let channel = pool.channel("decode")?;
    let scope = pool.capture("decode", stream)?;
    stream.begin_capture(CaptureMode::ThreadLocal)?;
    let enqueued = gather.enqueue(&channel, stream);
    let graph = stream.end_capture();
    enqueued?;
    scope.finish()?;
    let graph = graph?;
    let executable = graph.instantiate()?;
    Ok((graph, executable))
}

fn capture_and_replay(seat: &Seat<'_>, pool: &mut Pool, point: Option<Point>) {
    pool.prepare(&["decode"]).expect("a channel");
    let member = seat.member;
    let gather = Gather::new(member, &seat.contract, 1).expect("buffers");
    let stray = point.filter(Point::strays);
    let graph = {
        let stream = Stream::new(&member.device).expect("a stream");
        let graph = seat.step("capture", || capture(pool, &stream, &gather));
        if stray.is_some() {
            // The capture has ended, whatever its end said: neither it nor its scope is in the way.
            let status = stream.capture_status().expect("its status");
            assert_eq!(status, CaptureStatus::None);
            pool.reset().expect("nothing captures");
        }
        graph
    };
    let stream = Stream::new(&member.device).expect("a stream");
    let graph = graph.or_else(|_| capture(pool, &stream, &gather));
    let mut graph = graph.expect("the second attempt");
    for round in 0..2 {
        gather.fill(member.rank(), round).expect("an upload");
        seat.meet("");
        graph.1.launch(&stream).expect("a replay");
        stream.synchronize().expect("its end");
        assert!(gather.output().expect("an output") == gather.expected(round));
    }
    drop((graph, stream));
    drop_released();
    seat.meet("");
    let retired = pool.retire(&["decode"]);
    match stray {
        None => retired.expect("nothing holds the channel"),
        Some(point) => {
            seat.give_up(point, pool, "decode", retired);
            *pool = make(seat);
        }
    }
}

fn every_point_of_a_capture(world: World, calls: usize, exchanges: usize) {
    let injected = every_call(world, make, capture_and_replay);
    injected.tell("capture", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_capture_of_one_of_2_ranks_is_captured_again() {
    every_point_of_a_capture(World::pushing(2), 118, 0);
}

#[test]
fn what_fails_anywhere_in_a_capture_of_one_of_3_ranks_is_captured_again() {
    every_point_of_a_capture(World::pushing(3), 177, 0);
}

#[test]
fn what_fails_anywhere_in_a_capture_of_one_of_2_ranks_that_pull_is_captured_again() {
    every_point_of_a_capture(World::pulling(2), 118, 0);
}
