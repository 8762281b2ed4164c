//! What a process that opted in tells others of its pools, and who asks in odd ways.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    recv, send, socket_with,
};
use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::status::{self, Document, Pool, SCHEMA};
use slabfence_tests::host::contract;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_ranks};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("slabfence-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn own(&self) -> PathBuf {
        self.socket(std::process::id())
    }

    fn socket(&self, process: u32) -> PathBuf {
        self.0.join(format!("slabfence-{process}.status"))
    }

    fn read(&self) -> Document {
        let document = status::read(&self.0, std::process::id());
        document.unwrap().expect("this process tells")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

fn client(path: &Path) -> OwnedFd {
    let socket = socket();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

/// What a run that was killed leaves: a socket's file at which nobody listens.
fn stale(path: &Path) {
    bind(socket(), &SocketAddrUnix::new(path).unwrap()).unwrap();
}

/// Number of a process that has ended.
fn ended() -> u32 {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Pools with a channel of this name: other tests of this process have theirs.
fn pools<'a>(document: &'a Document, name: &str) -> Vec<&'a Pool> {
    let has = |pool: &&Pool| pool.channels.iter().any(|channel| channel.name == name);
    document.pools.iter().filter(has).collect()
}

#[test]
fn all_pools_of_a_process_are_told_until_the_server_is_dropped() {
    let folder = Folder::new("told");
    let server = status::serve(&folder.0).unwrap();
    assert_eq!(server.path(), folder.own());
    let mode = fs::metadata(folder.own()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "told").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        stream.synchronize().unwrap();
        member.meet();
        // On a loaded host a device may answer late.
        let until = Instant::now() + Duration::from_secs(60);
        let document = loop {
            let document = folder.read();
            let late = |pool: &&Pool| pool.unanswered.is_some();
            if !pools(&document, "told").iter().any(late) {
                break document;
            }
            assert!(Instant::now() < until, "no device answers");
        };
        assert_eq!(document.schema, SCHEMA);
        assert_eq!(document.process, std::process::id());
        let told = pools(&document, "told");
        let mut ranks: Vec<u32> = told.iter().map(|pool| pool.rank).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, [0, 1]);
        for pool in told {
            let words = [&pool.transport, &pool.phase, &pool.health];
            assert_eq!(words, ["push", "open", "healthy"]);
            assert_eq!((pool.world, pool.members.clone()), (2, vec![0, 1]));
            let [channel] = &pool.channels[..] else {
                panic!("{pool:?}")
            };
            assert_eq!((channel.epoch, channel.begun), (Some(3), Some(1)));
            assert_eq!((channel.launched, channel.recorded), (1, 0));
            assert!(channel.bytes.total > 0 && pool.bytes.total >= channel.bytes.total);
        }
        member.meet();
        pool.close().unwrap();
        drop(pool);
        member.meet();
        assert_eq!(pools(&folder.read(), "told").len(), 0);
    });
    assert_eq!(status::processes(&folder.0).unwrap(), [std::process::id()]);
    drop(server);
    assert_eq!(status::processes(&folder.0).unwrap(), Vec::<u32>::new());
    assert_eq!(status::read(&folder.0, std::process::id()), Ok(None));
    assert!(!folder.own().exists());
}

#[test]
fn garbage_and_clients_that_read_nothing_keep_nobody_from_an_answer() {
    let folder = Folder::new("odd");
    let server = status::serve(&folder.0).unwrap();
    let (_machine, driver) = machine(2);
    // So that an answer does not fit into a socket's buffer.
    let contract = Contract {
        max_channels: 512,
        ..contract()
    };
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        let long = "x".repeat(190);
        let names: Vec<String> = (0..512).map(|i| format!("{long}{i}")).collect();
        pool.prepare(&names).unwrap();
        member.meet();
        if member.rank() == 0 {
            let silent: Vec<OwnedFd> = (0..10).map(|_| client(&folder.own())).collect();
            let rude = client(&folder.own());
            let _ = send(&rude, &[0xff; 1000], SendFlags::NOSIGNAL);
            drop(rude);
            drop(client(&folder.own()));
            let document = folder.read();
            assert_eq!(pools(&document, &names[511]).len(), 2);
            // They are given up on, with some of it sent.
            let mut one = [PollFd::new(&silent[0], PollFlags::empty())];
            let minute = Timespec {
                tv_sec: 60,
                tv_nsec: 0,
            };
            assert_eq!(poll(&mut one, Some(&minute)), Ok(1));
            let mut part = vec![0; 1 << 16];
            let mut bytes = 0;
            loop {
                match recv(&silent[0], &mut part[..], RecvFlags::empty()).unwrap() {
                    (0, _) => break,
                    (length, _) => bytes += length,
                }
            }
            let whole = pools(&document, &names[0]).len() * 512 * names[0].len();
            assert!(bytes > 0 && bytes < whole, "{bytes} of {whole}");
        }
        member.meet();
        pool.close().unwrap();
    });
    drop(server);
}

#[test]
fn a_folder_has_one_server_of_a_process() {
    let (folder, other) = (Folder::new("first"), Folder::new("second"));
    let server = status::serve(&folder.0).unwrap();
    let refused = status::serve(&folder.0).unwrap_err().to_string();
    let process = std::process::id();
    let words = format!("process {process} tells its state there already");
    assert!(refused.contains(&words), "{refused}");
    let second = status::serve(&other.0).unwrap();
    assert_eq!(folder.read().process, process);
    drop(server);
    let document = status::read(&other.0, process).unwrap();
    assert_eq!(document.expect("it goes on").process, process);
    drop(second);
    let server = status::serve(&folder.0).unwrap();
    drop(server);
    let nowhere = status::serve(&folder.0.join("absent")).unwrap_err();
    assert!(nowhere.to_string().contains("absent"), "{nowhere}");
}

#[test]
fn sockets_of_processes_that_were_killed_are_passed_over_and_taken_away() {
    let folder = Folder::new("stale");
    let dead = ended();
    stale(&folder.socket(dead));
    stale(&folder.own());
    fs::write(folder.socket(7), "no socket").unwrap();
    fs::write(folder.0.join("slabfence-+8.status"), "no name").unwrap();
    let mut there = vec![dead, std::process::id()];
    there.sort_unstable();
    assert_eq!(status::processes(&folder.0).unwrap(), there);
    assert_eq!(status::read(&folder.0, dead), Ok(None));
    assert_eq!(status::read(&folder.0, std::process::id()), Ok(None));
    let server = status::serve(&folder.0).unwrap();
    assert_eq!(status::processes(&folder.0).unwrap(), [std::process::id()]);
    assert_eq!(folder.read().process, std::process::id());
    drop(server);
    assert!(folder.socket(7).exists());
}
