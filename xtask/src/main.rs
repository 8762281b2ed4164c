//! Tasks of slabfence's developers. What is generated is checked in, and `--check` proves that it is up to date.

#![cfg_attr(
    not(feature = "library"),
    expect(
        dead_code,
        reason = "without the library there is one task, which needs only some of what is shared"
    )
)]

#[cfg(feature = "library")]
mod abi;
mod acceptance;
mod bindings;
mod cargo;
mod emulator;
#[cfg(feature = "library")]
mod image;
#[cfg(feature = "library")]
mod kernels;
mod linkage;
#[cfg(feature = "library")]
mod manifest;
mod output;
mod programs;
#[cfg(feature = "library")]
mod scan;
mod toolchain;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  abi [--check]            write kernels/abi.cuh from slabfence::layout, or fail when it is out of date
  bindings [--check]       write sys/src/generated from the driver's headers, or fail when it is out of date
  kernels [--check]        build kernels/*.cu into ptx/, or fail when ptx/ is not what they build to
  kernels --lineinfo DIR   write images with line information to DIR, for debuggers; never commit them
  emulator --out DIR       build the emulated driver and put it into DIR, a folder of its own, as libcuda.so.1
  acceptance               fail if a test that docs/acceptance.md names is in no test program
  linkage                  build everything and fail if something is linked with a library of CUDA's
  programs [--slow]        run other people's programs on the emulated driver, or those too that take a minute each";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        #[cfg(feature = "library")]
        ["abi"] => abi::write(),
        #[cfg(feature = "library")]
        ["abi", "--check"] => abi::check(),
        ["bindings"] => bindings::write(),
        ["bindings", "--check"] => bindings::check(),
        #[cfg(feature = "library")]
        ["kernels"] => kernels::write(),
        #[cfg(feature = "library")]
        ["kernels", "--check"] => kernels::check(),
        #[cfg(feature = "library")]
        ["kernels", "--lineinfo", directory] => kernels::write_with_lines(directory.as_ref()),
        ["emulator", "--out", directory] => emulator::install(directory.as_ref()),
        ["acceptance"] => acceptance::check(),
        ["linkage"] => linkage::check(),
        ["programs"] => programs::check(false),
        ["programs", "--slow"] => programs::check(true),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
