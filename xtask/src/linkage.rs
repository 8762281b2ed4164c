//! `cargo xtask linkage`: nothing that is built asks the dynamic linker for a library of CUDA's.

use std::collections::BTreeSet;
use std::path::Path;

use slabfence_layout_tests::elf::{is_cuda, needed};

use crate::cargo::artefacts;
use crate::output::{self, Result};

/// What is built, by the arguments of cargo's that also build it in the steps of `.ci/run` before this one: all programs,
/// tests and shared libraries, and the command and the emulated driver as users have them. Nothing is built twice.
const BUILDS: [&[&str]; 3] = [
    &["build", "--workspace", "--all-targets"],
    &["build", "--release"],
    &["build", "--release", "--package", "slabfence-emu-cuda"],
];

/// What must be among the files, so that a list that lacks some of them is noticed: the command and the emulated driver in
/// both builds, a test (whose name goes on with a hash).
const KNOWN: [&str; 5] = [
    "debug/slabfence",
    "release/slabfence",
    "debug/libslabfence_emu_cuda.so",
    "release/libslabfence_emu_cuda.so",
    "witness-",
];

/// Reads the ELF of every program and shared library of the workspace's, its build scripts and macros too.
pub fn check() -> Result<()> {
    let mut files = BTreeSet::new();
    for arguments in BUILDS {
        files.extend(artefacts(arguments)?);
    }
    let mut linked = Vec::new();
    for path in &files {
        let file = output::read(path)?;
        if is_elf(&file) {
            judge(path, &file)?;
            linked.push(path);
        }
    }
    for known in KNOWN {
        if !linked.iter().any(|path| is_called(path, known)) {
            return Err(format!("cargo names no {known} among what it built"));
        }
    }
    println!(
        "{} programs and shared libraries: none is linked with CUDA",
        linked.len()
    );
    Ok(())
}

/// Whether this is the end of a path, or how the file's name begins.
fn is_called(path: &Path, known: &str) -> bool {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    path.ends_with(known) || known.ends_with('-') && file.starts_with(known)
}

/// Fails if the dynamic linker would load a library of CUDA's with the file.
fn judge(path: &Path, file: &[u8]) -> Result<()> {
    let libraries = needed(file).map_err(|e| format!("{}: {e}", path.display()))?;
    match libraries.iter().find(|library| is_cuda(library)) {
        Some(library) => Err(format!("{} is linked with {library}", path.display())),
        None => Ok(()),
    }
}

/// Programs and shared libraries; cargo also names archives and metadata of its own.
fn is_elf(file: &[u8]) -> bool {
    file.starts_with(b"\x7fELF")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These tests' own program, with another name of the same length where that of the C library was.
    fn linked_with(library: &[u8; 9]) -> Vec<u8> {
        let mut program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let name = b"\0libc.so.6\0";
        // The names lie near the start, before all code.
        let places: Vec<usize> = program[..1 << 20]
            .windows(name.len())
            .enumerate()
            .filter_map(|(at, window)| (window == name).then_some(at + 1))
            .collect();
        for at in places {
            program[at..at + library.len()].copy_from_slice(library);
        }
        program
    }

    #[test]
    fn a_program_that_is_linked_with_a_library_of_cuda_is_refused_by_name() {
        let path = Path::new("program");
        assert_eq!(judge(path, &linked_with(b"libc.so.6")), Ok(()));
        for library in [b"libcuda.1", b"libnccl.2", b"libnvml.1"] {
            let name = std::str::from_utf8(library).unwrap();
            assert_eq!(
                judge(path, &linked_with(library)),
                Err(format!("program is linked with {name}"))
            );
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_as_elf_is_refused() {
        assert!(is_elf(b"\x7fELF\x02"));
        assert!(judge(Path::new("program"), b"\x7fELF\x02").is_err());
        assert!(!is_elf(b"!<arch>"));
    }
}
