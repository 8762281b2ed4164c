//! The folder in which the ranks of a run meet.

use std::fs::{DirBuilder, read_to_string, remove_dir_all};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::stale;
use crate::failure::Failure;

/// The signals by which a run is ended from outside.
const ENDING: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// How often a folder is made that somebody takes away meanwhile, or emptied in which somebody makes files.
const ATTEMPTS: usize = 100;

/// A folder for nobody else. It goes as soon as the ranks have met, or before a signal ends this process.
#[derive(Debug)]
pub struct Folder {
    path: Place,
}

/// Where it is, as long as it is there.
type Place = Arc<Mutex<Option<Made>>>;

#[derive(Debug)]
struct Made {
    path: PathBuf,
    /// Tells other runs that it is not stale.
    _lock: OwnedFd,
}

impl Folder {
    /// Makes one.
    pub fn new() -> Result<Self, Failure> {
        let shared = Place::default();
        // First, so that a signal finds whatever is made.
        remove_at_signals(&shared).map_err(|error| {
            Failure::Fault(format!("the ends of this run cannot be watched: {error}"))
        })?;
        let folder = std::env::temp_dir();
        stale::sweep(&folder);
        let mut place = shared.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(make(&folder).map_err(|(path, error)| {
            Failure::Use(format!(
                "no folder for the ranks to meet in: {}: {error}; set TMPDIR, or use --threads",
                path.display()
            ))
        })?);
        drop(place);
        Ok(Self { path: shared })
    }

    /// Where it is; empty if it has gone.
    pub fn path(&self) -> PathBuf {
        let place = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        place
            .as_ref()
            .map(|made| made.path.clone())
            .unwrap_or_default()
    }

    /// Removes it, if it is there.
    pub fn remove(&mut self) {
        remove(&mut self.path.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Makes a folder that this process holds. A run that begins meanwhile may find it before it is locked, and take it away.
fn make(place: &Path) -> Result<Made, (PathBuf, io::Error)> {
    let mut gone = io::Error::from(io::ErrorKind::NotFound);
    let mut path = PathBuf::new();
    for _ in 0..ATTEMPTS {
        // The standard library seeds its hashers from the system's random numbers.
        path = place.join(stale::name(RandomState::new().hash_one("folder")));
        if let Err(error) = DirBuilder::new().mode(0o700).create(&path) {
            return Err((path, error));
        }
        match stale::hold(&path) {
            Ok(lock) if path.is_dir() => return Ok(Made { path, _lock: lock }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => gone = error,
            Err(error) => return Err((path, error)),
        }
    }
    Err((path, gone))
}

fn remove(place: &mut Option<Made>) {
    if let Some(Made { path, .. }) = place.take()
        && let Err(error) = emptied(&path)
    {
        log::warn!("{} could not be removed: {error}", path.display());
    }
}

/// Removes the folder although ranks may come to it.
fn emptied(path: &Path) -> io::Result<()> {
    for _ in 1..ATTEMPTS {
        match remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            done => return done,
        }
    }
    remove_dir_all(path)
}

fn remove_at_signals(shared: &Place) -> io::Result<()> {
    let ignored = ignored();
    // `nohup` and shells have some ignored, which must stay so.
    let heeded = ENDING
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(heeded)?;
    let shared = shared.clone();
    let watch = move || {
        for signal in signals.forever() {
            // Kept until the end, so that no folder is made any more.
            let mut place = shared.lock().unwrap_or_else(PoisonError::into_inner);
            remove(&mut place);
            if let Err(error) = emulate_default_handler(signal) {
                log::warn!("signal {signal} does not end this process: {error}");
            }
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)?;
    Ok(())
}

/// The signals that this process ignores, a bit each.
fn ignored() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
