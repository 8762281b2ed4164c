//! Generated files: where they are, writing them only when they change, comparing them.

use std::fs;
use std::path::{Path, PathBuf};

/// What a task says when it fails.
pub type Result<T> = std::result::Result<T, String>;

/// The repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Reads a text file.
pub fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Writes `bytes` unless the file already holds them, so that nothing is rebuilt for nothing.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("wrote {}", short(path));
    Ok(())
}

/// Names of the files in a folder, sorted.
pub fn list(folder: &Path) -> Result<Vec<String>> {
    let error = |e| format!("cannot list {}: {e}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        if entry.path().is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A folder for intermediate files, gone when dropped.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new, empty folder outside the repository.
    pub fn new(purpose: &str) -> Result<Self> {
        let name = format!("slabfence-{}-{purpose}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|e| format!("cannot create {}: {e}", path.display()))?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a file there.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        fs::write(&path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays in the system's folder for temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Fails, with the first line that differs, unless the file at `path` holds `fresh`.
pub fn same_text(path: &Path, fresh: &str, task: &str) -> Result<()> {
    let found = read_text(path)?;
    match first_difference(&found, fresh) {
        None => Ok(()),
        Some((line, found, fresh)) => Err(format!(
            "{} is out of date at line {line}:\n  - {found}\n  + {fresh}\nrun `cargo xtask {task}` and commit the result",
            short(path)
        )),
    }
}

/// A path as one would name it inside the repository.
fn short(path: &Path) -> std::path::Display<'_> {
    path.strip_prefix(root()).unwrap_or(path).display()
}

/// Number of the first line that differs, and both versions of it.
fn first_difference<'a>(found: &'a str, fresh: &'a str) -> Option<(usize, &'a str, &'a str)> {
    if found == fresh {
        return None;
    }
    const END: &str = "(end of file)";
    let (mut a, mut b) = (found.split('\n'), fresh.split('\n'));
    let mut line = 1;
    loop {
        let (x, y) = (a.next(), b.next());
        if x != y || x.is_none() {
            return Some((line, x.unwrap_or(END), y.unwrap_or(END)));
        }
        line += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b", "c")));
        assert_eq!(
            first_difference("a\n", "a\nc"),
            Some((2, "", "c")),
            "a missing last line is a difference"
        );
        assert_eq!(first_difference("a", "a\n"), Some((2, "(end of file)", "")));
    }
}
