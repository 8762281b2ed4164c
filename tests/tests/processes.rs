//! Ranks as processes that nothing disturbs, and strangers at the door: second jobs, garbage, folders that cannot be used.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, send, sendmsg,
};
use slabfence_tests::late::until;
use slabfence_tests::processes::{Ending, Folder, Ranks, TOGETHER};
use slabfence_tests::untested::{may_make_namespaces, untested};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");

/// Checks that every rank ended well, and left nothing.
fn right(endings: &[Ending]) {
    for (rank, ending) in endings.iter().enumerate() {
        let right = Ending::right();
        assert_eq!(*ending, right, "rank {rank}");
    }
}

/// Runs a scenario that nothing disturbs.
fn undisturbed(scenario: &str, world: u32) {
    let folder = Folder::new();
    let ranks: Vec<u32> = (0..world).collect();
    right(&Ranks::start(PROGRAM, scenario, folder.path(), &ranks, world).finish());
    assert_eq!(folder.files(), 0);
}

#[test]
fn processes_push_into_each_others_memory_by_announced_addresses_and_leave_nothing() {
    undisturbed("push", 2);
    undisturbed("push", 3);
}

#[test]
fn processes_pull_from_each_others_memory_by_announced_addresses_and_leave_nothing() {
    undisturbed("pull", 2);
}

/// Runs a scenario with each rank in a network namespace of its own. Root has a right to that, unless a sandbox took it away,
/// and so has everybody on most hosts; elsewhere the ranks go on in one namespace, where only the folder's use is tested.
fn apart(scenario: &str, world: u32) {
    let folder = Folder::new();
    let ranks: Vec<u32> = (0..world).collect();
    let mut endings = Ranks::start(PROGRAM, scenario, folder.path(), &ranks, world).finish();
    let together = |ending: &Ending| ending.out.first().is_some_and(|line| line == TOGETHER);
    if endings.iter().any(together) {
        assert!(endings.iter().all(together), "{endings:?}");
        assert!(
            !may_make_namespaces(),
            "this process may make namespaces, and its children could not"
        );
        untested("of ranks in other network namespaces: none can be made here (unshare)");
        endings
            .iter_mut()
            .for_each(|ending| drop(ending.out.remove(0)));
    }
    right(&endings);
    assert_eq!(folder.files(), 0);
}

#[test]
fn processes_that_share_a_folder_and_no_network_namespace_hand_over_memory() {
    apart("apart", 2);
    apart("apart", 3);
}

#[test]
fn subgroups_of_processes_that_share_a_folder_outlive_their_parent() {
    apart("subgroups", 4);
}

#[test]
fn a_forked_child_gets_errors_and_its_parent_goes_on() {
    undisturbed("fork", 2);
}

fn stopped(scenario: &str) {
    let folder = Folder::new();
    let ranks = Ranks::start(PROGRAM, scenario, folder.path(), &[0, 1, 2], 3);
    until("stopped", || ranks.is_stopped(2));
    // They have been warned, and wait.
    (0..2).for_each(|rank| ranks.ready(rank));
    assert!(!ranks.is_stopped(0));
    ranks.resume(2);
    for (rank, ending) in ranks.finish().into_iter().enumerate() {
        assert_eq!(ending.errors, "", "rank {rank}");
        let out: &[&str] = match rank {
            2 => &["faults: []", "done", "nothing left"],
            _ => &["warned", "faults: []", "done", "nothing left"],
        };
        assert_eq!(ending.out, out, "rank {rank}");
    }
}

#[test]
fn a_rank_that_is_stopped_for_longer_than_the_warning_limit_makes_no_fault() {
    stopped("stopped");
    stopped("stopped:pull");
}

fn replayed(scenario: &str) {
    let folder = Folder::new();
    let endings = Ranks::start(PROGRAM, scenario, folder.path(), &[0, 1, 2], 3).finish();
    let told = endings.iter().map(|ending| {
        let [told, done, left] = &ending.out[..] else {
            panic!("{ending:?}")
        };
        assert_eq!([done, left], ["done", "nothing left"]);
        let cause = told.strip_prefix("1 told, epoch 5, ");
        cause.expect("one event, of the fault's epoch").to_owned()
    });
    let told: Vec<String> = told.collect();
    // Whoever comes after another has found out learns of it from there.
    let known = ["Some(TagMismatch)", "Some(PeerFailed)", "Some(Skipped)"];
    let known = |cause: &String| known.contains(&cause.as_str());
    assert!(told.iter().all(known), "{told:?}");
    assert!(told.contains(&"Some(TagMismatch)".to_owned()), "{told:?}");
}

#[test]
fn a_fault_in_a_replay_is_told_by_its_event_and_graphs_are_right_after_the_reset() {
    replayed("replayed");
    replayed("replayed:pull");
}

#[test]
fn a_process_that_exits_looks_no_more_for_faults_when_host_memory_goes() {
    exits("exits");
}

#[test]
fn a_process_that_exits_answers_nobody_any_more_when_host_memory_goes() {
    exits("exits-asked");
}

fn exits(scenario: &str) {
    let folder = Folder::new();
    let endings = Ranks::start(PROGRAM, scenario, folder.path(), &[0, 1], 2).finish();
    for ending in endings {
        let right = Ending {
            code: Some(0),
            out: vec!["exits".to_owned()],
            errors: String::new(),
        };
        assert_eq!(ending, right);
    }
}

#[test]
fn all_that_came_learn_who_never_did() {
    for (present, missing) in [([0, 1], 2), ([1, 2], 0), ([0, 2], 1)] {
        let folder = Folder::new();
        let mut ranks = Ranks::start(PROGRAM, "never", folder.path(), &present, 3);
        (0..2).for_each(|index| ranks.ready(index));
        let begin = Instant::now();
        (0..2).for_each(|index| ranks.go(index));
        for ending in ranks.finish() {
            let words = format!("join: joining job 'job': rank {missing} did not come in time;");
            assert!(ending.out[0].starts_with(&words), "{ending:?}");
            assert_eq!(ending.out[1], "nothing left");
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
        assert_eq!(folder.files(), 0);
    }
}

#[test]
fn a_rank_that_joins_and_then_stands_still_is_named_by_all() {
    let folder = Folder::new();
    let mut ranks = Ranks::start(PROGRAM, "absent", folder.path(), &[0, 1, 2], 3);
    ranks.ready(2);
    for rank in 0..2 {
        let ending = ranks.ending(rank);
        let words = "failed: create: pending: rank 2 did not come in time;";
        assert!(ending.out[0].starts_with(words), "{ending:?}");
        assert_eq!(ending.out[1], "nothing left");
    }
    ranks.kill(2);
    assert_eq!(ranks.ending(2).code, None);
    assert_eq!(folder.files(), 0);
}

#[test]
fn a_second_job_of_the_same_name_is_refused_and_the_first_ends_right() {
    let folder = Folder::new();
    let mut first = Ranks::start(PROGRAM, "paused", folder.path(), &[0, 1], 2);
    (0..2).for_each(|rank| first.ready(rank));
    let second = Ranks::start(PROGRAM, "push", folder.path(), &[0, 1], 2).finish();
    for (ending, words) in second.iter().zip([
        "join: UnixBootstrap::join refused: a job of this name is running (process ",
        "join: UnixBootstrap::join refused: the hub of job 'job' says: rank 1 is there already (process ",
    ]) {
        assert!(ending.out[0].starts_with(words), "{ending:?}");
        assert_eq!(ending.out[1], "nothing left");
    }
    (0..2).for_each(|rank| first.go(rank));
    right(&first.finish());
    assert_eq!(folder.files(), 0);
    // The name is free again.
    right(&Ranks::start(PROGRAM, "push", folder.path(), &[0, 1], 2).finish());
}

#[test]
fn a_folder_that_takes_no_socket_is_refused_by_the_hub_with_its_name() {
    // Nobody can make a file there, whoever it is.
    let endings = Ranks::start(PROGRAM, "push", Path::new("/proc/self/task"), &[0], 2).finish();
    let words = "join: UnixBootstrap::join refused: making the socket /proc/self/task/slabfence-job.sock failed: ";
    assert!(endings[0].out[0].starts_with(words), "{endings:?}");
    assert_eq!(endings[0].out[1], "nothing left");
    for rank in 0..2 {
        let there = Path::new("/proc/self/task/nowhere");
        let endings = Ranks::start(PROGRAM, "push", there, &[rank], 2).finish();
        let words = "join: UnixBootstrap::join refused: there is no folder /proc/self/task/nowhere";
        assert_eq!(endings[0].out, [words, "nothing left"]);
    }
}

#[test]
fn a_rank_that_gets_no_memory_fails_the_setup_on_all_by_name() {
    let folder = Folder::new();
    for ending in Ranks::start(PROGRAM, "full", folder.path(), &[0, 1, 2], 3).finish() {
        let words = "failed: create: allocate failed on rank 2: rank 2: cuMemCreate";
        assert!(ending.out[0].starts_with(words), "{ending:?}");
        assert_eq!(ending.out[1], "nothing left");
    }
    assert_eq!(folder.files(), 0);
}

/// More files than a rank of three opens.
const MANY: u32 = 60;

/// Runs a scenario in which a rank can open so many files more than it has, for every number up to one that is enough. Each
/// time, all ranks say the same of that rank and its limit alone.
fn too_few(scenario: &str, victim: usize, joins: bool) {
    let hub = if victim == 0 { ":hub" } else { "" };
    for more in 0..MANY {
        let folder = Folder::new();
        let named = format!("{scenario}:{more}{hub}");
        let endings = Ranks::start(PROGRAM, &named, folder.path(), &[0, 1, 2], 3).finish();
        if endings[victim].out[0] == "done" {
            right(&endings);
            assert!(more > 0, "nothing was lacking");
            return;
        }
        for (rank, ending) in endings.iter().enumerate() {
            let said = &ending.out[0];
            assert_eq!(ending.out[1], "nothing left", "{named}");
            if !joins && endings[victim].out[0].starts_with("join: ") {
                let words = match rank == victim {
                    true => "(ulimit -n)".to_owned(),
                    false => format!("rank {victim} "),
                };
                assert!(
                    said.starts_with("join: ") && said.contains(&words),
                    "{named}: {said}"
                );
                continue;
            }
            assert!(said.starts_with("failed: create: "), "{named}: {said}");
            let words = format!(" failed on rank {victim}: rank {victim}: ");
            assert!(
                said.contains(&words) && said.contains("(ulimit -n)"),
                "{named}: {said}"
            );
        }
        assert_eq!(folder.files(), 0);
    }
    panic!("{MANY} files are not enough");
}

#[test]
fn a_rank_that_can_open_too_few_files_is_named_alone_and_told_what_to_raise() {
    too_few("narrow", 2, true);
}

#[test]
fn a_hub_that_can_open_too_few_files_is_named_alone_and_told_what_to_raise() {
    too_few("narrow-hub", 0, false);
}

/// A connection to the hub in `folder`, once it listens.
fn knock(folder: &Folder) -> OwnedFd {
    let address = SocketAddrUnix::new(folder.path().join("slabfence-job.sock")).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .unwrap();
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return socket,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn garbage_at_the_door_of_a_running_job_harms_nobody() {
    let folder = Folder::new();
    let mut ranks = Ranks::start(PROGRAM, "paused", folder.path(), &[0, 1], 2);
    (0..2).for_each(|rank| ranks.ready(rank));
    let mut guests = Vec::new();
    for length in [1, 7, 8, 24, 300, 60_000] {
        let guest = knock(&folder);
        send(&guest, &vec![0xa5; length], SendFlags::NOSIGNAL).unwrap();
        guests.push(guest);
        let guest = knock(&folder);
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let (reader, writer) = std::io::pipe().unwrap();
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        let descriptors = [&reader, &writer].map(std::os::fd::AsFd::as_fd);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let message = [std::io::IoSlice::new(&[0; 24])];
        sendmsg(&guest, &message, &mut control, SendFlags::NOSIGNAL).unwrap();
        guests.push(guest);
    }
    // And some that say nothing.
    guests.extend((0..8).map(|_| knock(&folder)));
    (0..2).for_each(|rank| ranks.go(rank));
    right(&ranks.finish());
    assert_eq!(folder.files(), 0);
}

#[test]
fn as_many_silent_connections_as_the_hub_takes_keep_a_rank_waiting_but_not_out() {
    let folder = Folder::new();
    let mut first = Ranks::start(PROGRAM, "push", folder.path(), &[0], 2);
    let silent: Vec<OwnedFd> = (0..64).map(|_| knock(&folder)).collect();
    let second = Ranks::start(PROGRAM, "push", folder.path(), &[1], 2).finish();
    right(&[first.ending(0)]);
    right(&second);
    drop(silent);
    assert_eq!(folder.files(), 0);
}
