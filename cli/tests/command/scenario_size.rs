//! `slabfence check --scenario`: how much the ranks of a file may do.

use super::files::Folder;
use super::run::Run;
use super::scenario_files::stored;
use super::scenario_waits::WAIT;
use super::scenarios::access;

/// Line 7 on of the scenario, up to the arguments of its launch.
const STEP: &str = "[[step]]\nrank = 0\n[step.launch]\nkernel = \"store\"\ngrid = 1\nblock = 1\n";
const ARGUMENTS: &str = "arguments = [{ buffer = \"to\" }, { u32 = 7 }]\n";

#[test]
fn launches_of_too_many_threads_are_refused_with_their_line_and_number() {
    let large = "kernel = \"store\"\ngrid = 65536\nblock = 1024\n";
    let step = |times: u32| format!("[[step]]\nrank = 0\ntimes = {times}\n[step.launch]\n{large}");
    let refused = |name: &str, that: &str, said: &str| {
        let (run, err) = stored(name, STEP, that);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{err}");
        assert_eq!(err, format!("slabfence: s.toml: {said}\n"));
    };
    let most = "blocks by threads by times; the launches of a scenario have at most 268435456";
    refused(
        "check-size-1",
        &step(5),
        &format!("line 9: 335544320 threads up to here, {most}"),
    );
    // As many as there may be are looked at by the device.
    refused(
        "check-size-2",
        &step(4),
        "line 11: the device refuses to launch `store`: CUDA_ERROR_INVALID_VALUE",
    );
    // All steps together.
    refused(
        "check-size-3",
        &format!("{}{ARGUMENTS}{STEP}", step(4)),
        &format!("line 19: 268435457 threads up to here, {most}"),
    );
    // A graph has those of all its launches.
    let graph = format!("[[graph.launch]]\n{large}{ARGUMENTS}").repeat(2);
    let replays = format!(
        "[[graph]]\nname = \"g\"\nrank = 0\n{graph}[[step]]\nrank = 0\ntimes = 3\nreplay = \"g\"\n{STEP}"
    );
    refused(
        "check-size-4",
        &replays,
        &format!("line 22: 402653184 threads up to here, {most}"),
    );
}

#[test]
fn operations_that_are_too_many_are_refused_with_their_number() {
    let (run, err) = stored(
        "check-size-5",
        "[[step]]\nrank = 0\n",
        "[[step]]\nrank = 0\ntimes = 4097\n",
    );
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{err}");
    let said = "line 7: 4097 operations; there can be 1 to 4096";
    assert_eq!(err, format!("slabfence: s.toml: {said}\n"));
}

#[test]
fn variables_that_are_too_large_together_are_refused_with_the_line_of_the_text() {
    let folder = Folder::new("check-size-6");
    let path = folder.file("s.toml", WAIT.as_bytes());
    let refused = |variables: &str, said: &str| {
        let ptx = access("").replace(".visible", &format!("{variables}\n.visible"));
        folder.file("k.ptx", ptx.as_bytes());
        let run = Run::with(&["check", "--scenario", &path]);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{}", run.err);
        let most = "variables have at most 67108864 bytes together, on all ranks";
        assert!(
            run.err.ends_with(&format!("k.ptx: {said}: {most}\n")),
            "{}",
            run.err
        );
    };
    refused(".global .b8 big[4294967296];", "line 4: `big`");
    // Three ranks.
    refused(".global .b8 a[22369621];\n.const .b8 b[1];", "line 5: `b`");
}
