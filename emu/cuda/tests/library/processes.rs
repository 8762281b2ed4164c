//! A C program that is linked with the library: what it sees before and after `cuInit`, in a forked child, and at its end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::build::{folder, run, with_library};

/// The program, compiled and linked once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/program.c");
        let program = folder().join("program");
        let status = Command::new("cc")
            .args(["-Wall", "-Werror", "-pthread", "-o"])
            .arg(&program)
            .arg(source)
            .arg("-L")
            .arg(folder())
            .args(["-lcuda", "-ldl"])
            .status()
            .expect("the C compiler that Rust links with");
        assert!(status.success());
        program
    })
}

/// What the program writes in one of its parts, which must end well.
fn wrote(part: &str) -> String {
    let (status, out, err) = run(with_library(Command::new(program()).arg(part)));
    assert!(status.success(), "{part}: {status}\n{out}\n{err}");
    out
}

#[test]
fn a_linked_program_sees_emulated_devices() {
    let seen = "before cuInit: 3, version 13000, CUDA_ERROR_NOT_INITIALIZED\n2 devices, EMULATED H200 (h200-nvlink)\n";
    assert_eq!(wrote("devices"), seen);
}

#[test]
fn without_the_variable_there_is_no_device_and_the_reason_is_told() {
    let (status, out, err) =
        run(with_library(Command::new(program()).arg("init")).env_remove("CUDA_EMU"));
    assert!(status.success(), "{status}");
    assert_eq!(out, "cuInit: 100 CUDA_ERROR_NO_DEVICE\n");
    assert!(err.contains("set CUDA_EMU=1 to use it"), "{err}");
    let (_, out, err) =
        run(with_library(Command::new(program()).arg("init")).env("CUDA_EMU_DEVICES", "17"));
    assert_eq!(out, "cuInit: 100 CUDA_ERROR_NO_DEVICE\n");
    assert!(
        err.contains("CUDA_EMU_DEVICES=17: a number from 1 to 16 is wanted"),
        "{err}"
    );
}

#[test]
fn a_profile_is_chosen_by_variable() {
    let command = &mut Command::new(program());
    let (_, out, _) =
        run(with_library(command.arg("devices")).env("CUDA_EMU_PROFILE", "sm120-pcie"));
    assert!(
        out.ends_with("2 devices, EMULATED RTX PRO 6000 (sm120-pcie)\n"),
        "{out}"
    );
}

#[test]
fn devices_are_seen_in_the_order_of_the_list() {
    let at = |list: Option<&str>| {
        let mut command = Command::new(program());
        let command = with_library(command.arg("order"));
        if let Some(list) = list {
            command.env("CUDA_VISIBLE_DEVICES", list);
        }
        let (status, out, err) = run(command);
        assert!(status.success(), "{list:?}: {status}\n{out}\n{err}");
        out
    };
    let first = "0000:01:00.0, UUID ends with 0\n";
    let second = "0000:02:00.0, UUID ends with 1\n";
    assert_eq!(at(None), format!("{first}{second}"));
    assert_eq!(at(Some("1,0")), format!("{second}{first}"));
    assert_eq!(at(Some("1")), second);
    let mut command = Command::new(program());
    let none = with_library(command.arg("init")).env("CUDA_VISIBLE_DEVICES", "2,0");
    let (_, out, err) = run(none);
    assert_eq!(out, "cuInit: 100 CUDA_ERROR_NO_DEVICE\n");
    let told = "CUDA_VISIBLE_DEVICES=2,0 shows no device of 2";
    assert!(err.contains(told), "{err}");
}

#[test]
fn a_forked_child_has_no_driver_and_its_parent_keeps_its_own() {
    assert_eq!(
        wrote("fork"),
        "child: cuInit 3, cuMemAlloc 3\nparent: cuMemAlloc 0\n"
    );
}

#[test]
fn a_child_that_is_forked_before_has_a_machine_of_its_own() {
    assert_eq!(
        wrote("fork-first"),
        "child: cuMemAlloc 0\nparent: cuMemAlloc 0\n"
    );
}

#[test]
fn a_process_ends_while_a_kernel_runs() {
    assert_eq!(wrote("spin"), "running: 600\n");
}

#[test]
fn calls_at_the_end_of_a_thread_and_of_the_process_are_answered() {
    // The thread has no current context any more, the process no driver.
    assert_eq!(wrote("end"), "thread: 201\nprocess: 4\n");
}

#[test]
fn the_library_stays_when_it_is_closed() {
    assert_eq!(wrote("close"), "2 devices after dlclose\n");
}
