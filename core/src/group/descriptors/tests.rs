mod faults;

use super::*;
use crate::group::ThreadBootstrap;
use crate::socket::tests::as_another_user;
use std::io::{Read, Write};
use std::sync::Arc;

/// Two ranks of which the second does what `second` says, with the first one's door and its own.
fn two(
    second: impl FnOnce(&Group, Door, Record) + Send,
    timeout: Duration,
) -> Result<Vec<Vec<OwnedFd>>> {
    let mut members = ThreadBootstrap::world(2).into_iter().map(|member| {
        let rank = member.rank();
        let group = Group::new(Arc::new(member), rank, 2).unwrap();
        group.with_timeout(timeout)
    });
    let (first, other) = (members.next().unwrap(), members.next().unwrap());
    thread::scope(|scope| {
        scope.spawn(move || {
            let soon = Instant::now() + Duration::from_secs(10);
            let door = Door::open(None, soon).unwrap();
            let records = other
                .share("create: export", Ok(door.record.write()))
                .unwrap();
            second(&other, door, Record::read(&records[0]).unwrap());
        });
        let peers: Vec<PeerIndex> = first.peers().collect();
        let mine = (0..3).map(|_| pipe().1).collect();
        first.hand_over(&peers, Ok(mine))
    })
}

fn pipe() -> (std::io::PipeReader, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    (reader, writer.into())
}

/// A message as rank 1 would send it to the door with this token.
fn message(token: u64) -> Vec<u8> {
    Writer::new().word(MAGIC).word(token).word(1).finish()
}

fn send(record: Record, message: &[u8], count: usize) {
    let connection = socket::connect(&record.address(None).unwrap()).unwrap();
    let descriptors: Vec<OwnedFd> = (0..count).map(|_| pipe().1).collect();
    let sent = match count {
        0 => socket::send_message(&connection, message),
        _ => socket::send_descriptors(&connection, message, &descriptors),
    };
    assert!(sent.unwrap());
}

#[test]
fn descriptors_arrive_in_order_and_are_copies() {
    let (mut reader, writer) = pipe();
    let own = &mut vec![writer];
    let got = two(
        |group, mut door, record| {
            let there = socket::connect(&record.address(None).unwrap()).unwrap();
            own.extend([pipe().1, pipe().1]);
            assert!(socket::send_descriptors(&there, &message(record.token), own).unwrap());
            let peers: Vec<PeerIndex> = group.peers().collect();
            let until = Instant::now() + Duration::from_secs(10);
            let other = Peer::of(&there).unwrap();
            let theirs = take_from_all(&peers, &[Some(&other)], &mut door, 3, until).unwrap();
            assert_eq!((theirs.len(), theirs[0].len()), (1, 3));
            group.verdict("create: hand over", &Ok(())).unwrap();
        },
        Duration::from_secs(20),
    );
    let mut got = got.unwrap().remove(0);
    own.clear();
    let mut first = std::fs::File::from(got.remove(0));
    first.write_all(b"through").unwrap();
    drop(first);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), got.len()), ("through", 2));
}

#[test]
fn what_is_not_a_ranks_handover_is_sent_away_and_waited_past() {
    let (mut reader, writer) = pipe();
    let got = two(
        |group, _door, record| {
            send(record, &[0xa5; 24], 3);
            send(record, &message(record.token)[..23], 3);
            send(record, &[message(record.token), vec![0]].concat(), 3);
            send(record, &[7; MAX_MESSAGE + 1], 3);
            send(record, &message(record.token ^ 1), 3);
            for count in [0, 2, 4, socket::MAX_DESCRIPTORS] {
                send(record, &message(record.token), count);
            }
            let of = |rank: u64| {
                Writer::new()
                    .word(MAGIC)
                    .word(record.token)
                    .word(rank)
                    .finish()
            };
            send(record, &of(0), 3);
            send(record, &of(2), 3);
            drop(socket::connect(&record.address(None).unwrap()).unwrap());
            // All right, but of another user.
            as_another_user(|| {
                let stranger = socket::connect(&record.address(None).unwrap()).unwrap();
                let three = [pipe().1, pipe().1, pipe().1];
                // It may have been closed already.
                let _ = socket::send_descriptors(&stranger, &message(record.token), &three);
            });
            let there = socket::connect(&record.address(None).unwrap()).unwrap();
            let right = [writer, pipe().1, pipe().1];
            assert!(socket::send_descriptors(&there, &message(record.token), &right).unwrap());
            group.verdict("create: hand over", &Ok(())).unwrap();
        },
        Duration::from_secs(20),
    );
    // Those of the one that was right, and no other's.
    let mut got = got.unwrap().remove(0);
    assert_eq!(got.len(), 3);
    std::fs::File::from(got.remove(0)).write_all(b"x").unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "x");
}

#[test]
fn a_rank_that_hands_over_nothing_is_named() {
    let got = two(
        |group, _door, _| {
            let error = group.verdict("create: hand over", &Ok(())).unwrap_err();
            assert!(error.to_string().contains("rank 1 did not come in time"));
        },
        Duration::from_secs(4),
    );
    let error = got.unwrap_err();
    assert!(matches!(error, Error::Setup { .. }), "{error}");
}

#[test]
fn a_rank_that_cannot_export_fails_the_handover_on_all() {
    let members = ThreadBootstrap::world(2);
    let outcomes: Vec<_> = thread::scope(|scope| {
        let ranks = members.into_iter().map(|member| {
            scope.spawn(move || {
                let rank = member.rank();
                let group = Group::new(Arc::new(member), rank, 2).unwrap();
                let peers: Vec<PeerIndex> = group.peers().collect();
                let mine = match rank.0 {
                    0 => Ok(vec![pipe().1]),
                    _ => refuse("nothing to give".to_owned()),
                };
                group.hand_over(&peers, mine).unwrap_err().to_string()
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    for said in outcomes {
        assert!(
            said.starts_with("create: export failed on rank 1"),
            "{said}"
        );
        assert!(said.contains("nothing to give"), "{said}");
    }
}

#[test]
fn a_door_in_a_folder_is_found_by_those_who_have_one() {
    let folder = std::env::temp_dir();
    let soon = Instant::now() + Duration::from_secs(10);
    let door = Door::open(Some(&folder), soon).unwrap();
    let record = Record::read(&door.record.write()).unwrap();
    assert_eq!(record, door.record);
    drop(socket::connect(&record.address(Some(&folder)).unwrap()).unwrap());
    let said = record.address(None).unwrap_err().to_string();
    assert!(said.contains("this rank's bootstrap names none"), "{said}");
    // One without is found by those who have a folder too.
    let door = Door::open(None, soon).unwrap();
    drop(socket::connect(&door.record.address(Some(&folder)).unwrap()).unwrap());
}

/// A door with what is at it, and the rank that is to send.
fn alone() -> (Door, Vec<PeerIndex>, SocketAddrUnix) {
    let member = ThreadBootstrap::world(2).remove(0);
    let group = Group::new(Arc::new(member), Rank(0), 2).unwrap();
    let door = Door::open(None, Instant::now() + Duration::from_secs(10)).unwrap();
    let there = door.record.address(None).unwrap();
    (door, group.peers().collect(), there)
}

#[test]
fn what_a_rank_has_sent_is_taken_however_many_others_have_come_since() {
    let (mut door, peers, there) = alone();
    send(door.record, &message(door.record.token), 3);
    let mut silent = Vec::new();
    for _ in 0..3 {
        // What the kernel keeps at once is fewer.
        silent.extend((0..MAX_GUESTS / 2).map(|_| socket::connect(&there).unwrap()));
        take_in(&mut door).unwrap();
    }
    let me = Peer::of(&silent[0]).unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    let theirs = take_from_all(&peers, &[Some(&me)], &mut door, 3, until).unwrap();
    assert_eq!(theirs[0].len(), 3);
    assert_eq!(door.guests.len(), MAX_GUESTS);
}

#[test]
fn whoever_comes_without_end_keeps_no_rank_out_and_no_deadline_off() {
    for comes in [true, false] {
        let (mut door, peers, there) = alone();
        let record = door.record;
        let stop = &std::sync::atomic::AtomicBool::new(false);
        thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    let mut silent = std::collections::VecDeque::new();
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        silent.extend(socket::connect(&there));
                        if silent.len() > 100 {
                            silent.pop_front();
                        }
                    }
                });
            }
            let (me, _there) = std::os::unix::net::UnixStream::pair().unwrap();
            let me = Peer::of(&me.into()).unwrap();
            let begin = Instant::now();
            let until = begin + Duration::from_secs(if comes { 20 } else { 2 });
            let rank = threads.spawn(move || {
                thread::sleep(Duration::from_millis(200));
                let mine = [pipe().1, pipe().1, pipe().1];
                let to = peers_of(Rank(1));
                let from = Speaker {
                    rank: Rank(1),
                    pool: None,
                };
                comes.then(|| send_to(to[0], from, Some(record), None, &mine, until))
            });
            let theirs = take_from_all(&peers, &[Some(&me)], &mut door, 3, until);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(theirs.is_ok(), comes, "{theirs:?}");
            assert!(begin.elapsed() < Duration::from_secs(19));
            assert!(rank.join().unwrap().is_none_or(|sent| sent.is_ok()));
        });
    }
}

fn peers_of(me: Rank) -> Vec<PeerIndex> {
    let member = ThreadBootstrap::world(2).remove(me.index());
    let group = Group::new(Arc::new(member), me, 2).unwrap();
    group.peers().collect()
}

#[test]
fn those_who_wait_at_the_door_are_taken_in_some_at_a_time() {
    let (mut door, _, there) = alone();
    let full = (0..).map(|_| socket::connect(&there)).map_while(Result::ok);
    let waiting: Vec<OwnedFd> = full.collect();
    assert!(waiting.len() > MAX_GUESTS);
    take_in(&mut door).unwrap();
    assert_eq!(door.guests.len(), MAX_GUESTS);
}
