//! The emulated driver as `libcuda.so.1`, in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo::built;
use crate::output::Result;

/// The name that programs know the driver by. Beside our binaries it would stand before the real one.
const NAME: &str = "libcuda.so.1";

/// Builds the library for speed and installs it.
pub fn install(folder: &Path) -> Result<()> {
    let library = put(folder, &["--release"])?;
    println!("wrote {}", library.display());
    println!(
        "to run a program with it: CUDA_EMU=1 CUDA_EMU_DEVICES=2 LD_LIBRARY_PATH={} PROGRAM",
        folder.display()
    );
    Ok(())
}

/// Builds the library with these arguments of cargo's and installs it; gives its path.
pub fn put(folder: &Path, profile: &[&str]) -> Result<PathBuf> {
    own(folder)?;
    let built = built(&[&["-p", "slabfence-emu-cuda", "--lib"], profile].concat())?;
    let is_library = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "so");
    let built = built
        .iter()
        .find(is_library)
        .ok_or("cargo built no shared library")?;
    let library = folder.join(NAME);
    // By a new file, not into the old one, which a program may be running with.
    let new = folder.join("libcuda.so.1.new");
    let error = |e| format!("cannot write {}: {e}", library.display());
    fs::copy(built, &new).map_err(error)?;
    fs::rename(&new, &library).map_err(error)?;
    Ok(library)
}

/// Makes the folder, unless it is there; refuses one that holds something else.
fn own(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let error = |e| format!("cannot list {}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(error)? {
        let name = entry.map_err(error)?.file_name();
        if name != NAME {
            return Err(format!(
                "{} holds {}: the emulated driver goes into a folder of its own, since there it would stand before the \
                 real one for other programs",
                folder.display(),
                name.display()
            ));
        }
    }
    Ok(())
}
