//! A rank that does its part of a step and does not learn how the step ended.

use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::driver::{CaptureMode, Stream};
use slabfence::group::{Rank, ThreadBootstrap};
use slabfence_emu::Live;
use slabfence_tests::host::contract;
use slabfence_tests::lossy::lossy;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_members};

/// Runs two ranks of which rank 1 loses what it is told in this step, as often as it takes part in it.
fn losing<T: Send>(
    step: &'static str,
    body: impl Fn(&Member) -> T + Sync,
) -> (Vec<T>, Live, Vec<String>) {
    losing_where(step, false, body)
}

/// [`losing`] of which it is the first time alone.
fn losing_once<T: Send>(
    step: &'static str,
    body: impl Fn(&Member) -> T + Sync,
) -> (Vec<T>, Live, Vec<String>) {
    losing_where(step, true, body)
}

fn losing_where<T: Send>(
    step: &'static str,
    once: bool,
    body: impl Fn(&Member) -> T + Sync,
) -> (Vec<T>, Live, Vec<String>) {
    let (machine, driver) = machine(2);
    let members = ThreadBootstrap::world(2)
        .into_iter()
        .map(|inner| lossy(inner, step, once));
    let results = on_members(&driver, members.collect(), Duration::from_secs(2), body);
    drop(driver);
    (results, machine.live(), machine.faults())
}

#[test]
fn a_rank_that_has_freed_its_memory_is_closed_whatever_it_hears_of_the_others() {
    let (_, live, faults) = losing("close: free", |member| {
        let pool = member.pool(&contract()).unwrap();
        pool.close().unwrap();
        pool.close().unwrap();
    });
    assert_eq!((live, faults), (Live::default(), Vec::new()));
}

#[test]
fn a_rank_that_missed_how_the_unmapping_ended_ends_alone_when_it_meets_nobody() {
    let (tries, live, faults) = losing("close: unmap", |member| {
        let pool = member.pool(&contract()).unwrap();
        let tries = (1..).find(|_| pool.close().is_ok());
        pool.close().unwrap();
        tries.unwrap()
    });
    // Rank 0 has freed its memory when it learns that rank 1 is elsewhere; so has then that one.
    assert_eq!(tries, [1, 2]);
    assert_eq!((live, faults), (Live::default(), Vec::new()));
}

#[test]
fn a_rank_whose_device_is_not_at_rest_does_not_end_alone() {
    let (_, live, faults) = losing("close: unmap", |member| {
        let pool = member.pool(&contract()).unwrap();
        let closed = pool.close();
        if member.rank() == 0 {
            // The other's unmapping was done.
            return closed.unwrap();
        }
        closed.unwrap_err();
        let stream = Stream::new(&member.device).unwrap();
        // The device cannot be waited for.
        stream.begin_capture(CaptureMode::Relaxed).unwrap();
        let (before, error) = (pool.status().unwrap().mapped, pool.close().unwrap_err());
        let status = pool.status().unwrap();
        assert!(before.total() > 0 && status.mapped == before, "{error}");
        stream.end_capture().unwrap();
        pool.close().unwrap();
    });
    assert_eq!((live, faults), (Live::default(), Vec::new()));
}

#[test]
fn a_pool_that_one_rank_alone_has_is_closed_together_with_what_the_other_has_left() {
    let (_, live, faults) = losing("create: self test, clear", |member| {
        let (ticket, pool) = match member.pool(&contract()) {
            // Rank 1, which could not close its part alone.
            Err(Error::Retained { ticket, .. }) => (Some(ticket), None),
            Err(error) => panic!("{error}"),
            Ok(pool) => (None, Some(pool)),
        };
        assert_eq!(pool.is_some(), member.rank() == 0);
        // Rank 0 learns of it when both create another; before, it meets the other's close.
        let told = (0..10).find_map(|_| match member.pool(&contract()) {
            Err(Error::Retained { ticket, .. }) => Some(Some(ticket)),
            Err(Error::Setup { phase, .. }) if phase == "create: pending" && ticket.is_some() => {
                Some(None)
            }
            Err(_) => None,
            Ok(_) => panic!("another pool beside what is left"),
        });
        let ticket = ticket.or(told.expect("the ranks meet")).expect("a ticket");
        ticket.retry().unwrap();
        if let Some(pool) = pool {
            let closed = pool.prepare(&["a"]);
            assert!(matches!(closed, Err(Error::Closed { .. })), "{closed:?}");
        }
    });
    assert_eq!((live, faults), (Live::default(), Vec::new()));
}

#[test]
fn a_rank_that_missed_whether_channels_were_added_can_only_close() {
    let (_, live, faults) = losing("prepare: initialise", |member| {
        let pool = member.pool(&contract()).unwrap();
        let prepared = pool.prepare(&["a"]);
        if member.rank() == 0 {
            prepared.unwrap();
            let Err(Error::Setup { phase, failures }) = pool.prepare(&["b"]) else {
                panic!("prepared alone");
            };
            assert_eq!((phase, failures[0].0), ("prepare: drain", Rank(1)));
        } else {
            prepared.unwrap_err();
            let said = pool.prepare(&["a"]).unwrap_err().to_string();
            let words = "can only be closed, since its preparation ended on this rank only";
            assert!(said.contains(words), "{said}");
            pool.close().unwrap_err();
        }
        pool.close().unwrap();
    });
    assert_eq!((live, faults), (Live::default(), Vec::new()));
}

#[test]
fn a_rank_that_retires_alone_is_told_so_and_not_that_the_channel_is_busy() {
    let (_, live, faults) = losing("retire: names", |member| {
        let (pool, _) = member.channel(&contract(), "a").unwrap();
        let retired = pool.retire(&["a"]);
        if member.rank() == 0 {
            let Err(Error::Setup { phase, failures }) = retired else {
                panic!("{retired:?}");
            };
            assert_eq!((phase, failures[0].0), ("retire: held", Rank(1)));
            assert!(failures[0].1.starts_with("it is in 'close: drain'"));
            // Nothing has changed here.
            pool.channel("a").unwrap();
        } else {
            retired.unwrap_err();
            pool.close().unwrap_err();
        }
        pool.close().unwrap();
    });
    assert_eq!((live, faults), (Live::default(), Vec::new()));
}

#[test]
fn a_subgroup_whose_rank_does_not_learn_of_it_is_formed_on_none_and_then_on_all() {
    for step in ["subgroup: ranks", "subgroup: meet"] {
        let (_, _, faults) = losing_once(step, |member| {
            let group = &member.group;
            let both = [Rank(1), Rank(0)];
            let begin = Instant::now();
            let formed = group.subgroup(&both);
            // Of the last step alone the other rank does not know that its word was lost.
            let alone = step == "subgroup: meet" && member.rank() == 0;
            assert_eq!(formed.is_ok(), alone, "{step}: {formed:?}");
            if let Ok(Some(group)) = &formed {
                let left = group.verdict("x", &Ok(())).unwrap_err();
                assert!(matches!(left, Error::Bootstrap(_)), "{left}");
            }
            assert!(begin.elapsed() < Duration::from_secs(30));
            let again = (0..10).find_map(|_| group.subgroup(&both).ok());
            let again = again.flatten().expect("a subgroup");
            again.verdict("x", &Ok(())).unwrap();
        });
        assert_eq!(faults, Vec::<String>::new());
    }
}

#[test]
fn a_rank_that_cannot_know_whether_the_others_have_closed_enqueues_nothing_more() {
    let (_machine, driver) = machine(2);
    let members = ThreadBootstrap::world(2)
        .into_iter()
        .map(|inner| lossy(inner, "close: graphs", false));
    on_members(
        &driver,
        members.collect(),
        Duration::from_millis(500),
        |member| {
            let (pool, channel) = member.channel(&contract(), "decode").unwrap();
            let stream = Stream::new(&member.device).unwrap();
            let gather = Gather::new(member, &contract(), 2).unwrap();
            pool.close().unwrap_err();
            let said = gather.enqueue(&channel, &stream).unwrap_err().to_string();
            assert!(said.contains("the pool can only be closed"), "{said}");
        },
    );
}
