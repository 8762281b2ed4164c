//! The hub's address: a socket file that outlives no run but a killed one, whose file the next run takes away.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::net::SocketAddrUnix;

use crate::driver::fork;
use crate::socket::{self, Peer};

/// Connections that the kernel keeps until the hub takes them.
const BACKLOG: i32 = 64;
/// Between two attempts at what another process holds.
const PAUSE: Duration = Duration::from_millis(5);

/// A listening socket with its file.
#[derive(Debug)]
pub(super) struct Listener {
    pub socket: OwnedFd,
    path: PathBuf,
    /// Device and inode of the file, so that no other is ever taken away.
    identity: (u64, u64),
}

/// Where the hub of a job listens.
pub(super) fn path(folder: &Path, job: &str) -> PathBuf {
    folder.join(format!("slabfence-{job}.sock"))
}

/// The address of a path, or why there is none.
pub(super) fn address(path: &Path) -> Result<SocketAddrUnix, String> {
    SocketAddrUnix::new(path).map_err(|error| {
        let bytes = path.as_os_str().len();
        format!(
            "{} cannot be a socket's name ({bytes} bytes, at most 107 are possible): {error}; choose a folder with a shorter path",
            path.display()
        )
    })
}

impl Listener {
    /// Listens at `path`. Takes away the file of a run that was killed; refuses where a run still lives.
    pub(super) fn open(path: &Path, deadline: Instant) -> Result<Self, String> {
        let failed = |what: &str, error: &dyn Display| {
            Err(format!("{what} {} failed: {error}", path.display()))
        };
        let address = address(path)?;
        // Held while the file is looked at and replaced: two runs that start together must not remove each other's.
        let _lock = lock(path, deadline)?;
        let listener = socket::new().map_err(|error| format!("no socket: {error}"))?;
        // Before the bind: the file is made with these rights, and never has others.
        if let Err(error) = rustix::fs::fchmod(&listener, Mode::RUSR | Mode::WUSR) {
            return failed("restricting", &error);
        }
        if let Err(error) = rustix::net::bind(&listener, &address) {
            if error != rustix::io::Errno::ADDRINUSE {
                return failed("making the socket", &error);
            }
            remove_stale(path, &address)?;
            if let Err(error) = rustix::net::bind(&listener, &address) {
                return failed("making the socket", &error);
            }
        }
        let identity = match fs::symlink_metadata(path) {
            Ok(file) => (file.dev(), file.ino()),
            Err(error) => return failed("looking at", &error),
        };
        let listener = Self {
            socket: listener,
            path: path.to_owned(),
            identity,
        };
        match rustix::net::listen(&listener.socket, BACKLOG) {
            Ok(()) => Ok(listener),
            Err(error) => failed("listening at", &error),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        let mine = |file: fs::Metadata| (file.dev(), file.ino()) == self.identity;
        // Nobody replaces the file while this socket listens, so what is looked at is what is removed.
        if fs::symlink_metadata(&self.path).is_ok_and(mine)
            && let Err(error) = fs::remove_file(&self.path)
        {
            log::warn!("{} could not be removed: {error}", self.path.display());
        }
    }
}

/// Locks the folder against other runs that start, until the lock is dropped.
fn lock(path: &Path, deadline: Instant) -> Result<OwnedFd, String> {
    let folder = path.parent().unwrap_or(path);
    let failed = |error: rustix::io::Errno| format!("locking {} failed: {error}", folder.display());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let lock = rustix::fs::open(folder, flags, Mode::empty()).map_err(failed)?;
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(error) if error != rustix::io::Errno::AGAIN => return Err(failed(error)),
            Err(_) if Instant::now() >= deadline => {
                return Err(format!(
                    "{} stayed locked by another process",
                    folder.display()
                ));
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Removes the file of a run that was killed.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), String> {
    let there = path.display();
    let file = fs::symlink_metadata(path).map_err(|error| format!("{there}: {error}"))?;
    if !file.file_type().is_socket() {
        return Err(format!(
            "{there} is there and is no socket; remove it or choose another name"
        ));
    }
    match socket::connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove(path),
        Ok(other) => {
            let process = match Peer::of(&other) {
                // Its forked children still hold the socket, and nobody takes connections from it.
                Ok(process) if process.has_ended() => return remove(path),
                Ok(process) => process.to_string(),
                Err(why) => why,
            };
            Err(format!(
                "a job of this name is running ({process}, {there}); choose another name, or end that job"
            ))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(format!(
            "a job of this name is running ({there}); choose another name, or end that job"
        )),
        Err(error) => Err(format!("{there} is in use: {error}")),
    }
}

fn remove(path: &Path) -> Result<(), String> {
    let there = path.display();
    log::info!("{there} was left by a run that was killed");
    fs::remove_file(path).map_err(|error| format!("{there} could not be removed: {error}"))
}
