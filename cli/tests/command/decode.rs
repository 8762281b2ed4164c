//! `slabfence decode` from its command line to its results, on the emulated machine.

use safetensors::{Dtype, SafeTensors};

use super::files::{Data, Folder, attention};
use super::run::Run;

#[test]
fn the_default_shape_is_right_and_says_that_it_is_emulated() {
    let run = Run::decode(&["--replays", "9"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let line = |name: &str| {
        let found = run
            .out
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name));
        found.unwrap_or_else(|| panic!("no line {name} in {}", run.out))
    };
    assert!(line("driver").contains("EMULATED"), "{}", run.out);
    assert!(line("devices").contains("4 x EMULATED H200"), "{}", run.out);
    assert!(
        line("ranks")
            .contains("4 processes, 3 of 12 heads each; 160 keys, contiguous: 40 + 40 + 40 + 40")
    );
    assert!(line("operations").contains("3 in a graph of 1 layer (push), 1 kernel node each"));
    assert!(line("replays").contains("9 of each graph"));
    assert!(line("result").ends_with(" ok"));
    assert!(!run.out.contains("GPU time"), "{}", run.out);
    assert_eq!(run.err, "");
}

#[test]
fn json_is_one_object_with_every_field() {
    let report = Run::json(&["--replays", "4", "--batch", "1,2"]);
    assert!(report["driver"].as_str().unwrap().contains("EMULATED"));
    for (field, value) in [
        ("emulated", serde_json::json!(true)),
        ("ranks", 4.into()),
        ("operations", 3.into()),
        ("replays", 4.into()),
        ("kernel_nodes_per_operation", 1.0.into()),
        ("gathered_exact", true.into()),
        ("bit_identical_eager_and_graph", true.into()),
        ("ok", true.into()),
    ] {
        assert_eq!(report[field], value, "{field}");
    }
    let error = report["max_abs_error"].as_f64().unwrap();
    assert!(error > 0.0 && error < 1e-5, "{error}");
    assert_eq!(report["tolerance"], 1e-4);
    let batches: Vec<_> = report["batches"].as_array().unwrap().iter().collect();
    assert_eq!(batches.len(), 2);
    assert_eq!(batches[1]["batch"], 2);
    assert!(
        batches
            .iter()
            .all(|batch| batch.get("gpu_microseconds").is_none())
    );
}

#[test]
fn every_world_that_divides_the_heads_is_right() {
    for (ranks, more) in [
        ("2", ["--sharding", "interleaved"]),
        ("3", ["--transport", "pull"]),
        ("4", ["--profile", "sm120-pcie"]),
        ("6", ["--sharding", "contiguous"]),
    ] {
        let report = Run::json(&[&["--replays", "3", "--ranks", ranks], &more[..]].concat());
        assert_eq!(report["ranks"].to_string(), ranks);
        assert_eq!(report["ok"], true);
    }
}

#[test]
fn pull_and_push_give_the_same_bits() {
    let folder = Folder::new("transports");
    let output = |transport: &str| {
        let path = folder.path(transport);
        let args = ["--replays", "2", "--batch", "4", "--transport", transport];
        let report = Run::json(&[&args[..], &["--output", &path]].concat());
        assert_eq!(report["transport"], transport);
        let file = std::fs::read(path).unwrap();
        let tensors = SafeTensors::deserialize(&file).unwrap();
        tensors.tensor("b4.layer0.output").unwrap().data().to_vec()
    };
    let (pull, push) = (output("pull"), output("push"));
    assert_eq!(pull.len(), 4 * 12 * 32 * 4);
    // Not `assert_eq`, which would print all of it.
    assert!(pull == push);
}

#[test]
fn layers_take_their_data_in_turn_and_the_count_stays_odd() {
    let report = Run::json(&["--layers", "3", "--replays", "3", "--ranks", "2"]);
    assert_eq!(
        (&report["operations"], &report["ok"]),
        (&7.into(), &true.into())
    );
}

#[test]
fn a_published_shape_is_right_in_every_element_type() {
    for dtype in ["f32", "bf16", "f16"] {
        let shape = ["--model", "glm-5.2", "--context", "9", "--dtype", dtype];
        let report = Run::json(&[&shape[..], &["--ranks", "2", "--replays", "2"]].concat());
        assert_eq!(
            (&report["heads"], &report["ok"]),
            (&64.into(), &true.into()),
            "{dtype}"
        );
        assert_eq!(report["element"], dtype);
        let error = report["max_abs_error"].as_f64().unwrap();
        assert!(error > 0.0 && error <= report["tolerance"].as_f64().unwrap());
    }
}

#[test]
fn ranks_may_share_devices_when_asked() {
    for (ranks, devices) in [("4", 2), ("6", 1)] {
        let places = ["--ranks", ranks, "--devices", &devices.to_string()];
        let args = [&places[..], &["--oversubscribe", "--replays", "3"]].concat();
        let report = Run::json(&args);
        assert_eq!(report["devices"].as_array().unwrap().len(), devices);
        assert_eq!(report["ok"], true);
    }
}

#[test]
fn a_rank_without_keys_counts_for_nothing() {
    let folder = Folder::new("empty-shard");
    let data = Data {
        keys: 2,
        ..Data::small()
    };
    let file = folder.file("data", &data.bytes());
    let report = Run::json(&["--input", &file, "--replays", "3", "--ranks", "4"]);
    assert_eq!((&report["keys"], &report["ok"]), (&2.into(), &true.into()));
}

#[test]
fn a_wrong_result_ends_with_status_1_and_says_so() {
    let folder = Folder::new("wrong");
    let data = Data {
        wrong_by: 1e-3,
        ..Data::small()
    };
    let file = folder.file("data", &data.bytes());
    let run = Run::decode(&["--input", &file, "--replays", "2"]);
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    assert!(
        run.out.contains("TOO LARGE") && run.out.contains("result      WRONG"),
        "{}",
        run.out
    );
    let run = Run::decode(&["--input", &file, "--replays", "2", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &report["ok"]), (Some(1), &false.into()));
}

/// Recomputes the outputs from nothing but the file.
fn largest_error(file: &[u8], shared: bool) -> (f64, f64) {
    let tensors = SafeTensors::deserialize(file).unwrap();
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    let scale: f64 = header.metadata().as_ref().unwrap()["scale"]
        .parse()
        .unwrap();
    let numbers = |name: &str| -> (Vec<usize>, Vec<f64>) {
        let view = tensors.tensor(name).unwrap();
        let numbers = match view.dtype() {
            Dtype::F32 => view
                .data()
                .as_chunks()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b).into())
                .collect(),
            Dtype::F64 => view
                .data()
                .as_chunks()
                .0
                .iter()
                .map(|b| f64::from_le_bytes(*b))
                .collect(),
            other => panic!("{name} is {other:?}"),
        };
        (view.shape().to_vec(), numbers)
    };
    let (q_shape, q) = numbers("b2.layer1.q");
    let (shape, output) = numbers("b2.layer1.output");
    let (_, expected) = numbers("b2.layer1.expected");
    let [batch, heads, dim] = shape[..] else {
        panic!("{shape:?}")
    };
    let key_dim = q_shape[2];
    let (k, v) = match shared {
        true => (numbers("layer1.kv"), None),
        false => (numbers("layer1.k"), Some(numbers("layer1.v"))),
    };
    let keys = k.0[0];
    let (mut by_formula, mut by_file): (f64, f64) = (0.0, 0.0);
    for row in 0..batch * heads {
        let head = row % heads;
        let cut = |array: &[f64], first: usize, len: usize| array[first..first + len].to_vec();
        let cache: Vec<_> = (0..keys)
            .map(|key| match &v {
                Some((_, v)) => (
                    cut(&k.1, (key * heads + head) * key_dim, key_dim),
                    cut(v, (key * heads + head) * dim, dim),
                ),
                None => (
                    cut(&k.1, key * key_dim, key_dim),
                    cut(&k.1, key * key_dim, dim),
                ),
            })
            .collect();
        let right = attention(&cut(&q, row * key_dim, key_dim), &cache, scale);
        for (d, right) in right.iter().enumerate() {
            by_formula = by_formula.max((output[row * dim + d] - right).abs());
            by_file = by_file.max((output[row * dim + d] - expected[row * dim + d]).abs());
        }
    }
    (by_formula, by_file)
}

#[test]
fn the_error_can_be_computed_again_from_the_output_file() {
    let folder = Folder::new("output");
    let path = folder.path("out.safetensors");
    let common = [
        "--layers",
        "2",
        "--batch",
        "2",
        "--ranks",
        "2",
        "--replays",
        "2",
    ];
    let args = [&common[..], &["--output", &path]].concat();
    let report = Run::json(&args);
    let (by_formula, by_file) = largest_error(&std::fs::read(&path).unwrap(), false);
    let told = report["max_abs_error"].as_f64().unwrap();
    assert!(by_file > 0.0 && by_file <= told, "{by_file} {told}");
    assert!(by_formula < 1e-5, "{by_formula}");

    let made = ["--model", "glm-5.2", "--context", "8", "--dtype", "f32"];
    Run::json(&[&args[..], &made[..]].concat());
    let (by_formula, by_file) = largest_error(&std::fs::read(&path).unwrap(), true);
    assert!(
        (by_formula - by_file).abs() < 1e-12,
        "{by_formula} {by_file}"
    );
    assert!(by_file > 0.0 && by_file < 1e-4, "{by_file}");
    assert_eq!(folder.names(), ["out.safetensors"]);
}
