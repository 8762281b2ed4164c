//! What `slabfence decode` refuses: at once, with one clear error and status 2, leaving nothing.

use safetensors::Dtype;

use super::files::{Data, Folder};
use super::run::Run;

#[test]
fn heads_that_ranks_cannot_share_are_refused() {
    Run::refused(
        &["--ranks", "5"],
        "12 heads cannot be divided among 5 ranks",
    );
}

#[test]
fn too_few_devices_are_refused() {
    let args = ["--ranks", "4", "--devices", "2"];
    Run::refused(&args, "4 ranks need 4 devices, and there are 2 devices");
}

#[test]
fn a_batch_over_the_capacity_is_refused_on_all_ranks() {
    let args = ["--batch", "4", "--capacity", "2"];
    Run::refused(&args, "batch is 4, the contract's max_batch is 2");
}

#[test]
fn numbers_out_of_range_are_refused() {
    Run::refused(&["--ranks", "1"], "a group has 2 to 16 ranks");
    Run::refused(&["--ranks", "17"], "a group has 2 to 16 ranks");
    Run::refused(
        &["--batch", "161"],
        "--batch 161: the data have 160 query tokens",
    );
    Run::refused(&["--batch", "1,0"], "--batch: must be at least 1");
    Run::refused(&["--layers", "0"], "--layers: must be at least 1");
    Run::refused(&["--replays", "0"], "--replays: must be at least 1");
    let most = usize::MAX.to_string();
    Run::refused(&["--layers", &most], "at most 1024");
}

#[test]
fn made_data_that_no_memory_holds_are_refused_with_what_fits() {
    let most = usize::MAX.to_string();
    for keys in ["1000000000000", &most] {
        let args = ["--model", "glm-5.2", "--context", keys];
        Run::refused(
            &args,
            &format!("--context {keys}, --batch 1: the made data"),
        );
    }
    let args = ["--model", "glm-5.2", "--batch", "4294967295"];
    Run::refused(&args, "at most 0 keys do");
}

#[test]
fn one_device_is_too_few_for_a_group() {
    let words = "a group has at least 2 ranks, and there is 1 device: ask for more devices";
    Run::refused(&["--devices", "1"], words);
}

#[test]
fn inputs_without_an_end_are_refused() {
    let folder = Folder::new("endless-input");
    let fifo = folder.path("fifo.litmus");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo runs").success());
    for path in [&fifo[..], "/dev/zero"] {
        let words = format!("{path}: cannot be read: that is no plain file");
        Run::refused(&["--input", path], &words);
        let run = Run::with(&["graph", "dump", path]);
        assert_eq!(
            (run.code, run.err),
            (Some(2), format!("slabfence: {words}\n"))
        );
        let run = Run::with(&["litmus", path]);
        let said = format!("slabfence: {path}: that is no plain file\n");
        assert_eq!((run.code, run.err), (Some(2), said));
    }
    let large = folder.path("large");
    let sparse = |bytes| std::fs::File::create(&large).unwrap().set_len(bytes);
    sparse((16 << 20) + 1).unwrap();
    let run = Run::with(&["litmus", &large]);
    let said = format!("slabfence: {large}: is larger than 16 MiB\n");
    assert_eq!((run.code, run.err), (Some(2), said));
    sparse((4 << 30) + 1).unwrap();
    Run::refused(
        &["--input", &large],
        "large: cannot be read: that is larger than 4096 MiB",
    );
}

#[test]
fn files_that_are_no_attention_data_are_refused() {
    let folder = Folder::new("bad-files");
    let whole = Data::small().bytes();
    let truncated = folder.file("truncated", &whole[..whole.len() - 1]);
    let garbage = folder.file("garbage", &[0xa5; 1000]);
    let halves = folder.file(
        "halves",
        &Data {
            dtype: Dtype::F16,
            ..Data::small()
        }
        .bytes(),
    );
    let unaligned = folder.file(
        "unaligned",
        &Data {
            dim: 6,
            ..Data::small()
        }
        .bytes(),
    );
    let absent = folder.path("absent");
    let input = |path: &str, words: &str| Run::refused(&["--input", path], words);
    input(&truncated, "truncated: not a whole safetensors file");
    input(&garbage, "garbage: not a whole safetensors file");
    input(&absent, "absent: cannot be read");
    input(&halves, "tensor `q` is F16; it must be F32");
    input(
        &unaligned,
        "a key row of 6 elements has 24 bytes, which is no multiple of 16",
    );

    let right = folder.file("right", &whole);
    let longer = folder.file(
        "longer",
        &Data {
            keys: 7,
            ..Data::small()
        }
        .bytes(),
    );
    let args = ["--input", &right, "--input", &longer, "--layers", "2"];
    Run::refused(&args, "all layers of a run have the same");
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_run() {
    let folder = Folder::new("bad-output");
    let nowhere = folder.path("no/such/folder");
    Run::refused(&["--output", &nowhere], "there is no folder");
    Run::refused(&["--output", &folder.path("")], "that is no file name");
    assert_eq!(folder.names(), [""; 0]);
    let bytes = Data::small().bytes();
    let input = folder.file("input", &bytes);
    let roundabout = folder.path("./input");
    let args = ["--input", &input, "--output", &roundabout];
    Run::refused(&args, "that is an input, and would be overwritten");
    assert_eq!(std::fs::read(&input).unwrap(), bytes);
    let listener = std::os::unix::net::UnixListener::bind(folder.path("socket"));
    let args = ["--output", &folder.path("socket")];
    Run::refused(&args, "that is no plain file");
    drop(listener.unwrap());
    assert_eq!(folder.names().len(), 2);
}

#[test]
fn wrong_use_is_told_apart_from_a_fault() {
    for args in [
        &["--dtype", "f16"][..],
        &["--model", "gpt-2"],
        &["--input", "x", "--model", "glm-5.2"],
    ] {
        let run = Run::decode(args);
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(2), ""),
            "{args:?}: {}",
            run.err
        );
        assert!(run.err.starts_with("error: "), "{}", run.err);
    }
}

#[test]
fn json_gets_the_error_as_an_object_too() {
    let run = Run::decode(&["--ranks", "5", "--json"]);
    assert_eq!(run.code, Some(2));
    let object: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(object["ok"], false);
    assert!(object["error"].as_str().unwrap().contains("12 heads"));
}
