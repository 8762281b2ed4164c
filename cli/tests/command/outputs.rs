//! Files that a run writes: whole, or not at all, and nothing else is touched.

use super::files::{Data, Folder};
use super::run::Run;

/// A run of a few milliseconds with these arguments more.
fn small(folder: &Folder, args: &[&str]) -> Run {
    let input = folder.file("input", &Data::small().bytes());
    let short = ["--threads", "--ranks", "2", "--replays", "1", "--input"];
    Run::decode(&[&short[..], &[&input], args].concat())
}

#[test]
fn files_beside_an_output_are_left_alone() {
    let folder = Folder::new("beside");
    let other = folder.file("r.partial", b"mine");
    let link = folder.path("g.txt.partial");
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let (output, graph) = (folder.path("r"), folder.path("g.txt"));
    let run = small(&folder, &["--output", &output, "--dump-graph", &graph]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(std::fs::read(&other).unwrap(), b"mine");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let mut names = folder.names();
    names.sort_unstable();
    assert_eq!(names, ["g.txt", "g.txt.partial", "input", "r", "r.partial"]);
}

#[test]
fn a_name_of_the_greatest_length_is_written() {
    let folder = Folder::new("long");
    let run = small(&folder, &["--output", &folder.path(&"n".repeat(255))]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(folder.names().len(), 2);
}

#[test]
fn outputs_that_are_inputs_or_each_other_are_refused() {
    let folder = Folder::new("same");
    let bytes = Data::small().bytes();
    let input = folder.file("input.txt", &bytes);
    let words = format!("--dump-graph {input}: that is an input, and would be overwritten");
    Run::refused(&["--input", &input, "--dump-graph", &input], &words);
    assert_eq!(std::fs::read(&input).unwrap(), bytes);
    let (one, again) = (folder.path("one.txt"), folder.path("./one.txt"));
    let words = format!("--output {again}: --dump-graph names the same file");
    Run::refused(&["--dump-graph", &one, "--output", &again], &words);
    let args = ["--json-file", &one, "--svg", &again, "--driver", "cuda"];
    let run = Run::with(&[&["bench"], &args[..]].concat());
    let words = format!("slabfence: --svg {again}: --json-file names the same file\n");
    assert_eq!((run.code, run.err), (Some(2), words));
    assert_eq!(folder.names(), ["input.txt"]);
}

#[test]
fn names_that_cannot_be_written_are_refused_before_the_run() {
    let folder = Folder::new("unwritable");
    let long = folder.path(&format!("{}.txt", "n".repeat(252)));
    let slash = folder.path("graph.txt/");
    // Nobody can make a file there, whoever it is.
    let process = "/proc/self/task/graph.txt";
    for (path, words) in [
        (&long[..], "cannot be written: File name too long"),
        (&slash, "that is no file name"),
        (process, "cannot be written: "),
    ] {
        for option in ["--output", "--dump-graph"] {
            Run::refused(&[option, path], &format!("{option} {path}: {words}"));
        }
        for option in ["--json-file", "--svg"] {
            let run = Run::of("bench", &[option, path]);
            let said = format!("slabfence: {option} {path}: {words}");
            assert_eq!(run.code, Some(2), "{}", run.err);
            assert!(run.err.starts_with(&said), "{}", run.err);
        }
    }
    assert_eq!(folder.names(), [""; 0]);
}
