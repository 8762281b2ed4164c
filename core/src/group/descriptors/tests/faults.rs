//! Every call on a socket by which a rank of three hands over memory failed.

use std::io::PipeReader;
use std::iter;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use rustix::event::PollFlags;

use super::super::*;
use super::pipe;
use crate::group::ThreadBootstrap;
use crate::socket::faults::{Strike, arm};

/// Whoever has lost a message waits for half of it.
const PATIENCE: Duration = Duration::from_secs(6);
/// More calls of a kind than a rank of three makes that nobody keeps waiting.
const CALLS: u32 = 4;
/// Worlds at once. Each has some fifty descriptors, and a process often no more than 1024.
const WORLDS: usize = 14;

/// What a rank of three has by handing over three descriptors, and the other ends of its own.
fn hand_over(group: &Group) -> (std::result::Result<usize, String>, Vec<PipeReader>) {
    let peers: Vec<PeerIndex> = group.peers().collect();
    let (readers, mine): (Vec<_>, Vec<_>) = (0..3).map(|_| pipe()).unzip();
    let theirs = group.hand_over(&peers, Ok(mine));
    let theirs = theirs.map(|theirs| theirs.iter().map(Vec::len).sum());
    (theirs.map_err(|error| error.to_string()), readers)
}

/// Three ranks of which `rank` has a call fail in the first of two attempts; whether it was come to, and whether that attempt
/// failed.
fn struck(rank: u32, strike: Strike) -> (bool, bool) {
    let mut ranks: Vec<_> = thread::scope(|scope| {
        let members = ThreadBootstrap::world(3).into_iter();
        let ranks = members.map(|member| {
            scope.spawn(move || {
                let me = member.rank();
                let group = Group::new(Arc::new(member), me, 3).unwrap();
                let group = group.with_timeout(PATIENCE);
                arm((me.0 == rank).then_some(strike));
                let (first, mut readers) = hand_over(&group);
                let hit = arm(None);
                let (second, more) = hand_over(&group);
                readers.extend(more);
                (first, second, hit, readers)
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let hit = ranks[rank as usize].2;
    let words = ranks[0].0.clone();
    // Of what is made good at once nobody hears; nor of a look at another process, which comes again, but of a wait.
    let fails = match strike.call {
        "poll" => words.is_err(),
        _ => hit && strike.code != Errno::PIPE,
    };
    for (first, second, _, readers) in &mut ranks {
        assert_eq!((&*first, first.is_err()), (&words, fails), "{strike:?}");
        assert_eq!(*second, Ok(6), "{strike:?}");
        for reader in readers {
            // No copy of the other end is left.
            let mut end = [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)];
            socket::poll(&mut end, Instant::now() + Duration::from_secs(10)).unwrap();
            assert_eq!(end[0].revents(), PollFlags::HUP, "{strike:?}");
        }
    }
    if let Err(words) = words {
        assert!(
            words.contains(&format!("rank {rank}")),
            "{strike:?}: {words}"
        );
    }
    (hit, fails)
}

#[test]
fn a_socket_call_that_fails_anywhere_in_a_handover_fails_it_on_all_3_ranks_and_the_next_succeeds() {
    let mut points = Vec::new();
    for (call, after, codes) in [
        ("getrandom", false, &[Errno::IO][..]),
        ("socket", false, &[Errno::IO]),
        ("connect", false, &[Errno::IO, Errno::PIPE]),
        ("connect", true, &[Errno::IO, Errno::PIPE]),
        ("sendmsg", false, &[Errno::IO, Errno::PIPE]),
        ("sendmsg", true, &[Errno::IO, Errno::PIPE]),
        ("accept", false, &[Errno::IO]),
        ("accept", true, &[Errno::IO]),
        ("recvmsg", false, &[Errno::IO]),
        ("poll", false, &[Errno::IO]),
    ] {
        for &code in codes {
            points.extend((0..CALLS).flat_map(|nth| {
                let strike = Strike {
                    call,
                    after,
                    nth,
                    code,
                };
                (0..3).map(move |rank| (rank, strike))
            }));
        }
    }
    // They wait more than they work.
    let left = Mutex::new(points.into_iter());
    let one = || {
        let (rank, strike) = left.lock().unwrap().next()?;
        Some((strike.call, struck(rank, strike)))
    };
    let lived: Vec<_> = thread::scope(|scope| {
        let worlds = [(); WORLDS].map(|()| scope.spawn(|| iter::from_fn(one).collect::<Vec<_>>()));
        let worlds = worlds.into_iter().flat_map(|world| world.join().unwrap());
        worlds.collect()
    });
    let hits = lived.iter().filter(|(_, (hit, _))| *hit);
    let hits: Vec<&str> = hits.map(|(call, _)| *call).collect();
    let waits = lived.iter().filter(|(call, _)| *call == "poll");
    assert!(waits.filter(|(_, (_, fails))| *fails).count() > 0);
    println!("injected: {} calls on sockets of 3 ranks", hits.len());
    // Two numbers of a door; one socket for it and one for each peer; one connection and one message to and from each.
    for (call, least) in [
        ("getrandom", 6),
        ("socket", 9),
        ("connect", 24),
        ("sendmsg", 24),
        ("accept", 12),
        ("recvmsg", 6),
    ] {
        let count = hits.iter().filter(|hit| **hit == call).count();
        assert!(count >= least, "{count} of {call}");
    }
}
