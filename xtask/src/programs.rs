//! Other people's programs, unmodified, on the emulated driver's `libcuda.so.1`: cudarc's examples and tests, the Python
//! bindings of CUDA; and our own command, which takes it for a driver.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::cargo::programs;
use crate::emulator::put;
use crate::output::{Result, Scratch, root};
use crate::toolchain::{self, run};

/// cudarc's examples that need no other library of CUDA's but its compiler, each with what it must write besides ending
/// well. Those that are left out are in `docs/emulator.md`, as are tests.
const EXAMPLES: [(&str, &str); 8] = [
    ("01-allocate", ""),
    ("02-copy", ""),
    // The sines of 1, 2 and 3 by the kernel's own arithmetic.
    ("03-launch-kernel", "Found [0.841471, 0.90929747, 0.14112]"),
    ("04-streams", "Found [0.841471, 0.90929747, 0.14112]"),
    ("09-constant-memory", "All results match expected values!"),
    (
        "10-function-attributes",
        "Device: EMULATED H200 (h200-nvlink)",
    ),
    ("13-copy-multi-gpu", ""),
    // The square of a matrix of 1, 2, 3 and 4.
    ("matmul-kernel", "Found [7.0, 10.0, 15.0, 22.0]"),
];

/// cudarc's own tests of the driver: those that need no device functions, no managed memory, no contexts but primary ones,
/// and measure no time. cudarc leaves some out unless they are asked for: they need a second device.
const TESTS: [&str; 23] = [
    "driver::result::tests::peer_transfer_contexts",
    "driver::result::tests::peer_transfer_self",
    "driver::result::tests::re_associate_context_for_memory_op",
    "driver::safe::core::tests::test_alloc_pinned_panics_on_size_overflow",
    "driver::safe::core::tests::test_borrowed_stream_is_not_destroyed_on_drop",
    "driver::safe::core::tests::test_copy_uses_correct_context",
    "driver::safe::core::tests::test_ctx_copy_to_views",
    "driver::safe::core::tests::test_event_try_is_complete",
    "driver::safe::core::tests::test_event_try_is_complete_preserves_capture_error",
    "driver::safe::core::tests::test_htod_copy_pinned",
    "driver::safe::core::tests::test_htod_copy_pinned_with_default_flags",
    "driver::safe::core::tests::test_leak_and_upgrade",
    "driver::safe::core::tests::test_post_alloc_arc_counts",
    "driver::safe::core::tests::test_post_build_arc_count",
    "driver::safe::core::tests::test_primary_context_is_primary",
    "driver::safe::core::tests::test_slice_is_freed_with_correct_context",
    "driver::safe::core::tests::test_threading",
    "driver::safe::core::tests::test_transmutes",
    "driver::safe::graph::tests::test_end_capture_flags",
    "driver::safe::graph::tests::test_end_capture_invalid_flags",
    "driver::safe::launch::tests::test_large_launches",
    "driver::safe::launch::tests::test_launch_with_mut_and_ref_cudarc",
    "driver::safe::launch::tests::test_launch_with_views",
];

/// Those whose kernels are long loops, made to be slow on a GPU.
const SLOW: [&str; 3] = [
    "driver::safe::launch::tests::test_multi_stream_concurrent_reads",
    "driver::safe::launch::tests::test_multi_stream_writes_block",
    "driver::safe::launch::tests::test_peer_memcpy_waits_for_src_stream",
];

/// One that must run by itself, since it looks at what memory is free.
const ALONE: &str = "driver::safe::core::tests::test_post_alloc_memory";

/// The Python bindings that the script is written for.
const BINDINGS: (&str, &str) = ("cuda-bindings", "13.0.3");

/// Runs all of them; with `slow` those too that take a minute each.
pub fn check(slow: bool) -> Result<()> {
    let folder = Scratch::new("emulated-driver")?;
    put(folder.path(), &[])?;
    let library = Library {
        folder: folder.path(),
        compiler: toolchain::nvrtc()?,
    };
    examples(&library)?;
    tests(&library, slow)?;
    python(&library)?;
    own(&library)
}

/// The folders with the library, and with the compiler that programs load.
struct Library<'a> {
    folder: &'a Path,
    compiler: PathBuf,
}

impl Library<'_> {
    /// Runs a program with the library and two devices; it must end well.
    fn run(&self, command: &mut Command) -> Result<Output> {
        let mut path = OsString::from(self.folder);
        path.push(":");
        path.push(&self.compiler);
        if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH") {
            path.push(":");
            path.push(rest);
        }
        run(command
            .env("LD_LIBRARY_PATH", path)
            .env("CUDA_EMU", "1")
            .env("CUDA_EMU_DEVICES", "2")
            .env_remove("CUDA_VISIBLE_DEVICES"))
    }

    /// As [`Library::run`]; the program must write this.
    fn writes(&self, command: &mut Command, words: &str) -> Result<()> {
        let output = self.run(command)?;
        let text = String::from_utf8_lossy(&output.stdout);
        if text.contains(words) {
            return Ok(());
        }
        let program = command.get_program().to_string_lossy().into_owned();
        Err(format!("{program} did not write `{words}`:\n{text}"))
    }
}

/// The folder of cudarc's source, as cargo has it.
fn cudarc() -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root())
        .args(["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value =
        serde_json::from_slice(&run(&mut cargo)?.stdout).map_err(|e| e.to_string())?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata names no packages")?;
    let package = packages.iter().find(|package| package["name"] == "cudarc");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.ok_or("cudarc is not among the dependencies")?;
    Ok(Path::new(manifest)
        .parent()
        .unwrap_or(Path::new("/"))
        .to_path_buf())
}

fn examples(library: &Library<'_>) -> Result<()> {
    let chosen = EXAMPLES.iter().flat_map(|(name, _)| ["--example", name]);
    let arguments: Vec<&str> = ["build", "-p", "cudarc"]
        .into_iter()
        .chain(chosen)
        .collect();
    let built = programs(&arguments)?;
    // They name their files relative to their package.
    let folder = cudarc()?;
    for (name, words) in EXAMPLES {
        let program = built
            .iter()
            .find(|program| program.file_name().is_some_and(|file| file == name));
        let program =
            program.ok_or_else(|| format!("cargo did not build cudarc's example {name}"))?;
        library.writes(Command::new(program).current_dir(&folder), words)?;
        println!("cudarc's example {name}: ok");
    }
    Ok(())
}

fn tests(library: &Library<'_>, slow: bool) -> Result<()> {
    let built = programs(&["test", "-p", "cudarc", "--lib", "--no-run"])?;
    let program = built.first().ok_or("cargo did not build cudarc's tests")?;
    let slow: &[&str] = if slow { &SLOW } else { &[] };
    for tests in [&TESTS[..], &[ALONE], slow] {
        if tests.is_empty() {
            continue;
        }
        let mut command = Command::new(program);
        command.args(["--exact", "--include-ignored"]).args(tests);
        library.writes(
            &mut command,
            &format!(
                "test result: ok. {} passed; 0 failed; 0 ignored",
                tests.len()
            ),
        )?;
    }
    let passed = TESTS.len() + 1 + slow.len();
    println!("cudarc's tests of the driver: {passed} passed");
    Ok(())
}

fn python(library: &Library<'_>) -> Result<()> {
    let python = toolchain::python(BINDINGS)?;
    let script = root().join("emu/cuda/tests/bindings.py");
    library.writes(Command::new(python).arg(script), "all right")?;
    println!("{} {} in Python: ok", BINDINGS.0, BINDINGS.1);
    Ok(())
}

fn own(library: &Library<'_>) -> Result<()> {
    let built = programs(&["build", "-p", "slabfence-cli", "--bin", "slabfence"])?;
    let program = built.first().ok_or("cargo did not build slabfence")?;
    for form in [&[][..], &["--threads"]] {
        let decode = ["decode", "--driver", "cuda", "--replays", "3"];
        let mut command = Command::new(program);
        let said = library.run(command.args(decode).args(form))?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        for words in [
            "driver      EMULATED libcuda.so.1, as CUDA 13.0",
            "2 x EMULATED H200",
            "result      ok",
        ] {
            if !said.contains(words) {
                return Err(format!("slabfence decode did not write `{words}`:\n{said}"));
            }
        }
    }
    println!("slabfence decode --driver cuda: ok");
    Ok(())
}
