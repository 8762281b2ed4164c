//! Folders that killed runs have left. A run holds the lock of a file in its folder, which the kernel takes back with its
//! process: so what nobody holds is nobody's, also where runs do not see one another's processes. The folder's own lock is
//! the hub's.

use std::fs::{self, read_dir};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, open, openat, unlinkat,
};
use rustix::process::geteuid;

/// What names of ours begin with.
const PREFIX: &str = "slabfence-";
/// The file that is locked.
const LOCK: &str = "lock";

/// The name of a run's folder.
pub fn name(number: u64) -> String {
    format!("{PREFIX}{number:016x}")
}

const OPENED: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Holds a folder that this run has made. Waits for one that begins meanwhile and takes it for stale. Where there are no
/// locks, nobody takes it away.
pub fn hold(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OPENED;
    let lock = open(path.join(LOCK), flags, Mode::RUSR | Mode::WUSR)?;
    if let Err(error) = flock(&lock, FlockOperation::LockExclusive) {
        log::debug!("{} cannot be locked: {error}", path.display());
    }
    Ok(lock)
}

/// Removes what killed runs of this user have left in `place`, as far as it is empty but for sockets of ours.
pub fn sweep(place: &Path) {
    let Ok(entries) = read_dir(place) else { return };
    for entry in entries.flatten() {
        if is_ours(&entry.file_name().to_string_lossy())
            && let Err(error) = remove(&entry.path())
        {
            log::debug!("{} stays: {error}", entry.path().display());
        }
    }
}

/// Whether it is a name that [`name`] gives.
fn is_ours(text: &str) -> bool {
    let number = text.strip_prefix(PREFIX);
    let number = number.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| name(number) == text)
}

fn remove(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OPENED;
    let folder = open(path, flags, Mode::empty())?;
    let status = fstat(&folder)?;
    if status.st_uid != geteuid().as_raw() || status.st_mode & 0o7777 != 0o700 {
        return Ok(());
    }
    let lock = openat(&folder, LOCK, OFlags::RDWR | OPENED, Mode::empty())?;
    // Fails while its run lives.
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let ours = entry.file_name().to_bytes().starts_with(PREFIX.as_bytes());
        if ours && entry.file_type() == FileType::Socket {
            unlinkat(&folder, entry.file_name(), AtFlags::empty())?;
        }
    }
    unlinkat(&folder, LOCK, AtFlags::empty())?;
    // Fails if there is anything else.
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_ours_if_it_is_one_that_a_run_gives() {
        assert!(is_ours(&name(0)) && is_ours(&name(u64::MAX)));
        for other in [
            "slabfence-",
            "slabfence-12",
            "slabfence-00000000000000AB",
            "slabfence-+000000000000001",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
