//! Opening `libcuda.so.1`: this machine's, and libraries made here that stand for other machines'.
//!
//! A library is found through LD_LIBRARY_PATH, which counts when a process starts. So a test runs
//! this program again, on the test that reports what this machine's driver is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use slabfence_sys::{Api, LoadError};

const REPORT: &str = "Api::open() = ";

#[test]
fn this_machines_driver_opens_or_the_reason_is_told() {
    let opened = Api::open();
    println!("\n{REPORT}{opened:?}");
    match opened {
        Ok(api) => assert!(api.driver_version >= 12000, "{api:?}"),
        Err(error @ LoadError::NoLibrary { .. }) => {
            // The dynamic linker's words, not only that its call failed.
            let message = error.to_string();
            let start = "no CUDA driver: libcuda.so.1 could not be opened (libcuda.so.1: cannot open shared object file";
            assert!(message.starts_with(start), "{message}");
            assert!(message.contains("install the NVIDIA driver"), "{message}");
        }
        Err(other) => assert!(!other.to_string().is_empty()),
    }
}

/// Makes a `libcuda.so.1` in a folder of its own.
fn library(name: &str, defines: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .arg(folder.join("libcuda.so.1"))
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg(source)
        .status()
        .expect("the C compiler that Rust links with");
    assert!(status.success());
    folder
}

/// What `Api::open` gives in a process that finds `folder` first.
fn opened_with(folder: &Path) -> String {
    let mut path = OsString::from(folder);
    if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(rest);
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "this_machines_driver_opens_or_the_reason_is_told",
            "--nocapture",
        ])
        .env("LD_LIBRARY_PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(REPORT));
    line.unwrap_or_else(|| panic!("no report in {text}"))
        .to_owned()
}

#[test]
fn a_12_2_driver_opens_and_lacks_what_came_later() {
    let folder = library("driver-12.2", &["DRIVER=12020"]);
    assert_eq!(
        opened_with(&folder),
        "Ok(Api { driver_version: 12020, emulated: false, absent: [\"cuStreamGetCaptureInfo_v3\", \"cuFuncLoad\", \
         \"cuFuncGetParamInfo\", \"cuFuncGetName\", \"cuGraphGetEdges_v2\", \"slabfenceEmuVersion\", \
         \"slabfenceEmuAnnounceRange\"], .. })"
    );
}

#[test]
fn an_emulated_driver_is_known_by_the_names_it_exports() {
    let folder = library("driver-emulated", &["DRIVER=13000", "EMULATED"]);
    assert_eq!(
        opened_with(&folder),
        "Ok(Api { driver_version: 13000, emulated: true, absent: [], .. })"
    );
}

#[test]
fn a_null_pointer_with_a_success_code_is_a_missing_entry() {
    let required = library(
        "driver-without-cuLaunchKernel",
        &["DRIVER=12080", "LACKS=\"cuLaunchKernel\""],
    );
    assert_eq!(
        opened_with(&required),
        r#"Err(MissingSymbol(MissingSymbol { name: "cuLaunchKernel", needs: 4000, driver: 12080 }))"#
    );
    let optional = library(
        "driver-without-cuMemMap",
        &["DRIVER=12080", "LACKS=\"cuMemMap\""],
    );
    assert_eq!(
        opened_with(&optional),
        "Ok(Api { driver_version: 12080, emulated: false, absent: [\"cuMemMap\", \"slabfenceEmuVersion\", \
         \"slabfenceEmuAnnounceRange\"], .. })"
    );
}

#[test]
fn a_driver_before_12_0_is_told_from_a_missing_one() {
    let folder = library("driver-11.4", &["DRIVER=11040", "OLD"]);
    assert_eq!(
        opened_with(&folder),
        r#"Err(NoProcAddress { library: "libcuda.so.1", driver: Some(11040) })"#
    );
    let error = LoadError::NoProcAddress {
        library: "libcuda.so.1",
        driver: Some(11040),
    };
    assert_eq!(
        error.to_string(),
        "libcuda.so.1 has no cuGetProcAddress_v2: the driver serves CUDA 11.4, slabfence needs CUDA 12.0 or newer: update \
         the NVIDIA driver (525 or newer)"
    );
}

#[test]
fn the_toolkits_stub_is_told_from_a_driver() {
    assert_eq!(
        opened_with(&library("stub", &["DRIVER=13000", "STUB"])),
        "Err(StubLibrary)"
    );
    let old_stub = opened_with(&library("stub-old", &["DRIVER=11040", "OLD", "STUB"]));
    assert_eq!(old_stub, r#"Err(StubLibrary)"#);
}

#[test]
fn a_file_that_is_no_library_is_reported_with_the_linkers_reason() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-a-library");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("libcuda.so.1"), "text").unwrap();
    let report = opened_with(&folder);
    assert!(
        report.starts_with("Err(NoLibrary { library: \"libcuda.so.1\", reason: "),
        "{report}"
    );
    assert!(
        report.contains("not-a-library/libcuda.so.1: file too short"),
        "{report}"
    );
}
