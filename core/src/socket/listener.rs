//! Sockets that others find: by a file, which outlives no run but a killed one, or by a name without a file.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::net::SocketAddrUnix;

use super::Peer;
use crate::driver::fork;

/// Connections that the kernel keeps until the hub takes them.
const BACKLOG: i32 = 64;
/// Between two attempts at what another process holds.
const PAUSE: Duration = Duration::from_millis(5);

/// How the files of short meetings end: those of killed runs are known by it.
const SHORT: &str = "door";
/// How the files end where a process tells what its pools are doing.
const STATUS: &str = "status";
/// Longest path of a socket, in bytes: with its end, what fits into an address.
const MAX_PATH: usize = 107;

/// Where a socket listens, and others find it.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A file: found by whoever shares its folder, in whatever container.
    File(PathBuf),
    /// A name in the kernel's abstract space: found in one network namespace.
    Abstract(String),
}

impl Place {
    /// Where a job's hub is found, for as long as the job lives.
    pub(crate) fn of_job(folder: &Path, job: &str) -> Self {
        Self::File(folder.join(format!("slabfence-{job}.sock")))
    }

    /// A place for one short meeting, with a number that no other has: in the folder, if there is one.
    pub(crate) fn of_meeting(folder: Option<&Path>, number: u64) -> Self {
        let name = format!("slabfence-{number:016x}.{SHORT}");
        match folder {
            Some(folder) => Self::File(folder.join(name)),
            None => Self::Abstract(name),
        }
    }

    /// Where the process of this number tells what its pools are doing.
    pub(crate) fn of_status(folder: &Path, process: u32) -> Self {
        Self::File(folder.join(format!("slabfence-{process}.{STATUS}")))
    }

    /// The process that tells at this path what its pools are doing, if it is such a path.
    pub(crate) fn status_of(path: &Path) -> Option<u32> {
        let name = path.file_name()?.to_str()?;
        let number = name.strip_prefix("slabfence-")?.strip_suffix(STATUS)?;
        let number: u32 = number.strip_suffix('.')?.parse().ok()?;
        // Not what parses to the same number, such as one with a sign.
        let folder = path.parent()?;
        matches!(Self::of_status(folder, number), Self::File(there) if there == path)
            .then_some(number)
    }

    /// Whether it is of no use once nobody listens there: nobody comes back to it.
    fn is_swept(&self) -> bool {
        let told = |path: &PathBuf| Self::status_of(path).is_some();
        self.is_for_one_meeting() || matches!(self, Self::File(path) if told(path))
    }

    /// Whether it is for nothing but one meeting.
    pub(crate) fn is_for_one_meeting(&self) -> bool {
        match self {
            Self::File(path) => path.extension().is_some_and(|end| end == SHORT),
            Self::Abstract(_) => true,
        }
    }

    /// Its address, or why there is none.
    pub(crate) fn address(&self) -> Result<SocketAddrUnix, String> {
        match self {
            Self::File(path) => {
                let failed = |why: String| format!("{self} cannot be a socket's name: {why}");
                let bytes = path.as_os_str().len();
                if bytes > MAX_PATH {
                    return Err(failed(format!(
                        "{bytes} bytes, at most {MAX_PATH} are possible; choose a folder with a shorter path"
                    )));
                }
                SocketAddrUnix::new(path).map_err(|error| failed(error.to_string()))
            }
            Self::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())
                .map_err(|error| format!("{name} cannot be a socket's name: {error}")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Abstract(name) => write!(f, "@{name}"),
        }
    }
}

/// A listening socket, with its file if it has one.
#[derive(Debug)]
pub(crate) struct Listener {
    pub socket: OwnedFd,
    file: Option<Made>,
}

/// A socket's file.
#[derive(Debug)]
struct Made {
    path: PathBuf,
    /// Device and inode, so that no other file is ever taken away.
    identity: (u64, u64),
}

impl Listener {
    /// Listens at a place. Takes away the file of a run that was killed; refuses where a run still lives.
    pub(crate) fn open(place: &Place, deadline: Instant) -> Result<Self, String> {
        let address = place.address()?;
        let socket =
            super::new().map_err(|error| format!("no socket: {}", super::explain(&error)))?;
        let failed =
            |what: &str, error: rustix::io::Errno| format!("{what} {place} failed: {error}");
        let Place::File(path) = place else {
            let bound = rustix::net::bind(&socket, &address);
            bound.map_err(|error| failed("making the socket", error))?;
            return Self::listen(socket, None, place);
        };
        // Held while the file is looked at and replaced, and until somebody listens there: two runs that start together
        // must not remove each other's.
        let _lock = lock(path.parent().unwrap_or(path), deadline)?;
        // Before the bind: the file is made with these rights, and never has others.
        let restricted = rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR);
        restricted.map_err(|error| failed("restricting", error))?;
        if let Err(error) = rustix::net::bind(&socket, &address) {
            if error != rustix::io::Errno::ADDRINUSE {
                return Err(failed("making the socket", error));
            }
            remove_stale(path, &address)?;
            let bound = rustix::net::bind(&socket, &address);
            bound.map_err(|error| failed("making the socket", error))?;
        }
        let file = fs::symlink_metadata(path)
            .map_err(|error| format!("looking at {place} failed: {error}"))?;
        let made = Made {
            path: path.clone(),
            identity: (file.dev(), file.ino()),
        };
        Self::listen(socket, Some(made), place)
    }

    fn listen(socket: OwnedFd, file: Option<Made>, place: &Place) -> Result<Self, String> {
        let listener = Self { socket, file };
        match rustix::net::listen(&listener.socket, BACKLOG) {
            Ok(()) => Ok(listener),
            Err(error) => Err(format!("listening at {place} failed: {error}")),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(made) = self.file.take().filter(|_| !fork::forked()) else {
            return;
        };
        let mine = |file: fs::Metadata| (file.dev(), file.ino()) == made.identity;
        // Nobody replaces the file while this socket listens, so what is looked at is what is removed.
        if fs::symlink_metadata(&made.path).is_ok_and(mine)
            && let Err(error) = fs::remove_file(&made.path)
        {
            log::warn!("{} could not be removed: {error}", made.path.display());
        }
    }
}

/// Locks the folder against other runs that start, until the lock is dropped.
fn lock(folder: &Path, deadline: Instant) -> Result<OwnedFd, String> {
    let failed = |error: rustix::io::Errno| {
        let why = super::explain(&error.into());
        format!("locking {} failed: {why}", folder.display())
    };
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

/// Removes the files that runs which were killed have left of short meetings and of telling their state. No run needs them:
/// their names are used by one process only. A file that cannot be looked at or removed, such as another user's in a folder
/// for all, stays and keeps nobody.
pub(crate) fn sweep(folder: &Path, deadline: Instant) -> Result<(), String> {
    let failed = |error: io::Error| format!("looking through {} failed: {error}", folder.display());
    let _lock = lock(folder, deadline)?;
    for file in fs::read_dir(folder).map_err(failed)?.flatten() {
        let path = file.path();
        let place = Place::File(path.clone());
        let name = file.file_name();
        let ours = name.as_encoded_bytes().starts_with(b"slabfence-") && place.is_swept();
        if !ours || !file.file_type().is_ok_and(|kind| kind.is_socket()) {
            continue;
        }
        let Ok(address) = place.address() else {
            continue;
        };
        let there = super::connect(&address);
        if there.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
            && let Err(why) = remove(&path)
        {
            log::debug!("{why}");
        }
    }
    Ok(())
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
    match super::connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove(path),
        Ok(other) => {
            let process = match Peer::of(&other) {
                // Its forked children still hold the socket, and nobody takes connections from it.
                Ok(process) if process.has_ended() => return remove(path),
                Ok(process) => process.to_string(),
                Err(why) => why,
            };
            Err(match Place::status_of(path) {
                Some(_) => format!(
                    "{process} tells its state there already ({there}); choose another folder"
                ),
                None => format!(
                    "a job of this name is running ({process}, {there}); choose another name, or end that job"
                ),
            })
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(format!(
            "a job of this name is running ({there}); choose another name, or end that job"
        )),
        Err(error) => Err(format!("{there} is in use: {error}")),
    }
}

fn remove(path: &Path) -> Result<(), String> {
    let there = path.display();
    fs::remove_file(path).map_err(|error| format!("{there} could not be removed: {error}"))?;
    log::info!("{there} was left by a run that was killed, and was removed");
    Ok(())
}
