mod garbage;
mod meeting;
mod rounds;
mod strangers;

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::UnixBootstrap;
use super::frame::{Frame, MAX_FRAME};
use crate::error::Result;
use crate::group::Rank;
use crate::socket::{self, Place, Received};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// A folder of its own for a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("slabfence-group-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }

    fn place(&self) -> Place {
        Place::of_job(&self.0, "job")
    }

    fn socket(&self) -> PathBuf {
        self.0.join("slabfence-job.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn soon(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

fn join(folder: &Folder, rank: u32, world: u32, ms: u64) -> Result<UnixBootstrap> {
    UnixBootstrap::join(&folder.0, "job", Rank(rank), world, soon(ms))
}

/// Runs `body` as every rank and gives what each returned.
fn on_ranks<T: Send>(world: u32, body: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let body = &body;
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..world)
            .map(|rank| scope.spawn(move || body(rank)))
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn ranks(numbers: &[u32]) -> Vec<Rank> {
    numbers.iter().copied().map(Rank).collect()
}

/// Waits until the others have counted so far.
fn reaches(count: &AtomicU32, wanted: u32) {
    let until = soon(20_000);
    while count.load(Ordering::SeqCst) < wanted {
        assert!(Instant::now() < until, "never {wanted}");
        thread::sleep(PAUSE);
    }
}

/// Waits until all of so many have come here.
fn all_come(count: &AtomicU32, all: u32) {
    count.fetch_add(1, Ordering::SeqCst);
    reaches(count, all);
}

/// Waits until the hub listens.
fn knock(folder: &Folder) -> OwnedFd {
    let address = folder.place().address().unwrap();
    let until = soon(10_000);
    loop {
        match socket::connect(&address) {
            Ok(socket) => return socket,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        thread::sleep(PAUSE);
    }
}

/// The hub's answer to a raw message.
fn answer(socket: &OwnedFd) -> Option<Frame> {
    socket::poll(&mut [PollFd::new(socket, PollFlags::IN)], soon(10_000)).unwrap();
    match socket::receive_message(socket, MAX_FRAME) {
        Received::Message(message) => Some(Frame::decode(&message).unwrap().1),
        Received::End => None,
        other => panic!("{other:?}"),
    }
}
