//! What `slabfence check` assumes of the machine, and does without when it is told to.

use super::files::Folder;
use super::run::Run;

/// Rank 1 reads a word of rank 0, and in its next kernel says so by a relaxed store; rank 0 then overwrites the word.
const REUSE_PTX: &str = ".version 7.0
.target sm_80
.address_size 64
.visible .entry use(.param .u64 word, .param .u64 to)
{
    .reg .b64 %word, %to;
    .reg .b32 %value;
    ld.param.u64 %word, [word];
    ld.param.u64 %to, [to];
    ld.global.u32 %value, [%word];
    st.global.u32 [%to], %value;
    ret;
}
.visible .entry say(.param .u64 flag)
{
    .reg .b64 %flag;
    .reg .b32 %one;
    ld.param.u64 %flag, [flag];
    mov.u32 %one, 1;
    st.relaxed.sys.global.u32 [%flag], %one;
    ret;
}
.visible .entry reuse(.param .u64 flag, .param .u64 word)
{
    .reg .b64 %flag, %word;
    .reg .b32 %seen;
    .reg .pred %waits;
    ld.param.u64 %flag, [flag];
    ld.param.u64 %word, [word];
AGAIN:
    ld.acquire.sys.global.u32 %seen, [%flag];
    setp.eq.u32 %waits, %seen, 0;
    @%waits bra AGAIN;
    st.global.u32 [%word], %seen;
    ret;
}
";

const REUSE: &str = r#"ptx = "k.ptx"
ranks = 2
[[buffer]]
name = "word"
size = 4
owner = 0
mapped = [1]
[[buffer]]
name = "flag"
size = 4
owner = 0
mapped = [1]
[[buffer]]
name = "copy"
size = 4
owner = 1
[[step]]
rank = 1
launch = { kernel = "use", grid = 1, block = 1, arguments = [{ buffer = "word" }, { buffer = "copy" }] }
[[step]]
rank = 1
launch = { kernel = "say", grid = 1, block = 1, arguments = [{ buffer = "flag" }] }
[[step]]
rank = 0
launch = { kernel = "reuse", grid = 1, block = 1, arguments = [{ buffer = "flag" }, { buffer = "word" }] }
"#;

#[test]
fn without_the_kernel_boundary_the_end_of_a_kernel_orders_nothing_for_a_third_party() {
    let folder = Folder::new("check-boundary");
    folder.file("k.ptx", REUSE_PTX.as_bytes());
    let path = folder.file("s.toml", REUSE.as_bytes());
    let scenario = ["check", "--scenario", &path];
    let run = Run::with(&scenario);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let run = Run::with(&[&scenario[..], &["--without-kernel-boundary"]].concat());
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    assert!(
        run.out.contains("\nrace at buffer `word`, + 0: "),
        "{}",
        run.out
    );
    let replay =
        format!("replay: slabfence check --scenario {path} --seed 0 --without-kernel-boundary\n");
    assert!(run.out.contains(&replay), "{}", run.out);
}

const PUSH: [&str; 7] = [
    "check",
    "--op",
    "gather",
    "--transport",
    "push",
    "--world",
    "2",
];

#[test]
fn shipped_kernels_are_clean_without_the_kernel_boundary() {
    let run = Run::with(&[&PUSH[..], &["--without-kernel-boundary", "--seeds", "2"]].concat());
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
}

#[test]
fn a_grid_that_is_not_resident_as_a_whole_is_a_deadlock() {
    // Of three CTAs one has room, on each rank another one.
    let run = Run::with(&[&PUSH[..], &["--resident", "1"]].concat());
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    let found = run.out.find("\ndeadlock: ").map(|at| &run.out[at..]);
    let found = found.unwrap_or_else(|| panic!("{}", run.out));
    assert!(
        found.contains("`sf_gather_push`: 2 CTAs have no room"),
        "{found}"
    );
    assert!(found.contains(" --resident 1\n"), "{found}");
    let heads = run.out.lines().filter(|line| line.starts_with("world "));
    let heads: Vec<&str> = heads.collect();
    assert!(!heads.is_empty());
    // Only one scenario has such grids.
    assert!(
        heads
            .iter()
            .all(|head| head.starts_with("world 2, grids-and-a-sleeper, ")),
        "{heads:?}"
    );
    let all = Run::with(&[&PUSH[..], &["--resident", "3", "--seeds", "4"]].concat());
    assert_eq!(all.code, Some(0), "{}\n{}", all.out, all.err);
}
