//! The built library, installed into a folder of its own, and programs that run with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// No program of these tests takes nearly as long; one that does hangs.
const HANG: Duration = Duration::from_secs(120);

/// The library's file, which cargo builds beside this program.
pub fn built() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().join("libslabfence_emu_cuda.so")
}

/// The folder with `libcuda.so.1`, and the name that linkers look for.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let library = built();
        let profile = library
            .ancestors()
            .nth(2)
            .and_then(Path::file_name)
            .unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("emulated-cuda")
            .join(profile);
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["libcuda.so.1", "libcuda.so"] {
            let link = folder.join(name);
            if std::fs::read_link(&link).is_ok_and(|there| there == library) {
                continue;
            }
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(&library, link).unwrap();
        }
        folder
    })
}

/// Makes a command find the library before any other, with a machine of two devices.
pub fn with_library(command: &mut Command) -> &mut Command {
    let mut path = OsString::from(folder());
    if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(rest);
    }
    command
        .env("LD_LIBRARY_PATH", path)
        .env("CUDA_EMU", "1")
        .env("CUDA_EMU_DEVICES", "2")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("CUDA_EMU_PROFILE")
        .env_remove("CUDA_EMU_LOG")
}

/// How a program ended, what it wrote, and what it complained of.
pub fn run(command: &mut Command) -> (ExitStatus, String, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What these programs write fits a pipe.
    ended(&mut child);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status, text(output.stdout), text(output.stderr))
}

fn ended(child: &mut Child) {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > HANG {
            child.kill().unwrap();
            panic!("the program did not end within {HANG:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
