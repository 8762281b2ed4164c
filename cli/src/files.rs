//! Files that the user names.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A file that an option names, to be written at the end of a run.
pub type Named<'a> = (&'static str, &'a Path);

/// Refuses files that cannot be written, or that are each other or one of `inputs`, before anything runs.
pub fn check(outputs: &[Named<'_>], inputs: &[PathBuf]) -> Result<(), Failure> {
    let inputs: Vec<_> = inputs.iter().filter_map(|input| place(input)).collect();
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    for &(option, path) in outputs {
        let refuse = |what: String| {
            let words = format!("{option} {}: {what}", path.display());
            Err(Failure::Use(words))
        };
        if let Err(what) = writable(path) {
            return refuse(what);
        }
        let Some(place) = place(path) else { continue };
        if inputs.contains(&place) {
            return refuse("that is an input, and would be overwritten".to_owned());
        }
        if let Some((other, _)) = seen.iter().find(|(_, there)| *there == place) {
            return refuse(format!("{other} names the same file"));
        }
        seen.push((option, place));
    }
    Ok(())
}

/// Writes a file whole, or not at all.
pub fn store(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fresh(&folder_of(path))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// The bytes of a plain file: others may have no end, or keep the reader waiting.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("cannot be read: {error}");
    // Before it is opened, for to open a FIFO is to wait.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err("cannot be read: that is no plain file".to_owned());
    }
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let large = || format!("cannot be read: that is larger than {} MiB", most >> 20);
    if length > most {
        return Err(large());
    }
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(length as usize)
        .map_err(|_| format!("cannot be read: no memory for {length} bytes"))?;
    // It may grow meanwhile, and a file of the kernel's has no length at all.
    let read = file
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match read as u64 > most {
        true => Err(large()),
        false => Ok(bytes),
    }
}

/// Whether the file can be written, by the file that [`store`] begins with.
fn writable(path: &Path) -> Result<(), String> {
    let whole = path.as_os_str().as_encoded_bytes();
    let named = path
        .file_name()
        .is_some_and(|name| whole.ends_with(name.as_encoded_bytes()));
    if !named || path.is_dir() {
        return Err("that is no file name".to_owned());
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(format!("there is no folder {}", folder.display()));
    }
    match path.metadata() {
        // What is there is replaced: a device such as /dev/null would be gone.
        Ok(there) if !there.is_file() => return Err("that is no plain file".to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(format!("cannot be written: {error}"));
        }
        _ => {}
    }
    let probe = fresh(&folder).and_then(NamedTempFile::close);
    probe.map_err(|error| format!("cannot be written: {error}"))
}

/// A new file under a name that nothing else has. The name is short: a longer one than the user's might not fit.
fn fresh(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".slab")
        // As any file that a program makes; the process's mask takes away what it should.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Where the file is, or will be, whatever way its path takes.
fn place(path: &Path) -> Option<PathBuf> {
    let there = path.canonicalize().ok();
    there.or_else(|| Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?)))
}
