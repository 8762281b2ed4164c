//! What a litmus file may say, and what is said of one that is wrong.

use slabfence_emu_model::litmus::{ErrorKind, Litmus};

/// A test of two threads with these rows and this last line.
fn text(initial: &str, rows: &str, last: &str) -> String {
    format!("PTX t\n{{{initial}}}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{rows}\n{last}")
}

fn error(text: &str) -> (ErrorKind, String) {
    let error = Litmus::parse(text).expect_err("the text is refused");
    (error.kind, error.to_string())
}

#[track_caller]
fn wrong(text: &str, said: &str) {
    assert_eq!(error(text), (ErrorKind::Wrong, said.to_owned()));
}

#[track_caller]
fn unsupported(text: &str, said: &str) {
    assert_eq!(error(text), (ErrorKind::Unsupported, said.to_owned()));
}

const OK: &str = "exists (x == 0)";
const ROW: &str = "st.weak x, 1 | ld.weak r0, x ;";

#[test]
fn errors_name_the_line_and_the_column() {
    wrong(
        "AArch64 t\n{}",
        "1:1: the first line must be `PTX` and the test's name",
    );
    wrong(
        "PTXt\n{}",
        "1:1: the first line must be `PTX` and the test's name",
    );
    wrong("PTX t\n\"no end", "2:2: a string does not end");
    wrong("PTX t\n{ x=1; (* no end", "2:8: a comment does not end");
    wrong("PTX t\n x=1;", "2:2: expected `{`, found `x`");
    wrong(&text("x", ROW, OK), "2:3: expected `=`, found `}`");
    wrong(
        &text("x=r", ROW, OK).replace("x=r", "x=;"),
        "2:4: expected a number, found `;`",
    );
    wrong(
        &text("x=99999999999999999999", ROW, OK),
        "2:4: `99999999999999999999` is not a number of 64 bits",
    );
    wrong(&text("P7:r0=1", ROW, OK), "2:2: there is no thread P7");
    wrong(
        &text("5=1", ROW, OK),
        "2:3: expected `:` and a register, found `=`",
    );
    wrong(
        &text("x=1 y=2", ROW, OK),
        "2:6: expected `;` or `}`, found `y`",
    );
    wrong(
        &text("", "st.strong x, 1 | ;", OK),
        "4:1: `st.strong` is not an instruction of litmus tests",
    );
    wrong(
        &text("", " | ld.weak x, r0 ;", OK),
        "4:12: expected a register, such as `r0`, found `x`",
    );
    wrong(
        &text("", "st.weak r0, 1 | ;", OK),
        "4:9: expected a location, found `r0`",
    );
    wrong(
        &text("", "st.weak x 1 | ;", OK),
        "4:11: expected `,`, found `1`",
    );
    wrong(
        &text("", "st.weak x, y | ;", OK),
        "4:12: expected a number or a register, found `y`",
    );
    wrong(
        &text("", "goto L0 | ;", OK),
        "4:6: there is no label `L0` in this thread",
    );
    wrong(
        &text("", "L0: | ;\nL0: | ;", OK),
        "5:1: there is a second label `L0` in this thread",
    );
    wrong(
        &text("", " | | st.weak x, 1 ;", OK),
        "4:6: expected `;`: the row has more cells than there are threads, found `st.weak`",
    );
    wrong(
        &text("", ROW, ""),
        "5:1: expected a row, `exists`, `~exists` or `forall`, found the end of the file",
    );
    wrong(
        &text("", ROW, "~forall (x == 0)"),
        "5:1: expected `exists`, `~exists` or `forall`",
    );
    wrong(
        &text("", ROW, "exists (y == 0)"),
        "5:9: no thread accesses a location `y`",
    );
    wrong(
        &text("", ROW, "exists (P1:r7 == 0)"),
        "5:12: P1 has no register `r7`",
    );
    wrong(
        &text("", ROW, "exists (P5:r0 == 0)"),
        "5:9: there is no such thread",
    );
    wrong(
        &text("", ROW, "exists (x == 0) x"),
        "5:17: expected the end of the file, found `x`",
    );
    wrong(
        &text("", ROW, "exists (x 0)"),
        "5:11: expected a comparison, found `0`",
    );
    wrong(&text("", "st.weak é, 1 | ;", OK), "4:9: unexpected 'é'");
    wrong(
        "PTX t\n{}\nP0@cta 0,gpu 0 | P0@host ;\n",
        "3:18: there is a second `P0`",
    );
    wrong(
        "PTX t\n{}\nP0@cta -1,gpu 0 ;\n",
        "3:8: `-1` is no number of a cta",
    );
    wrong(
        "PTX t\n{}\nP0@gpu 0 ;\n",
        "3:4: expected `cta`, found `gpu`",
    );
}

#[test]
fn the_api_and_barriers_are_where_they_can_be() {
    let host = |row: &str| format!("PTX t\n{{x=0;}}\nP0@host ;\n{row} ;\nexists (x == 0)");
    wrong(&host("kernel"), "4:8: `kernel` in a thread of the host");
    wrong(
        &host("bar.sync 0"),
        "4:10: a barrier in a thread of the host",
    );
    let uneven = "kernel | kernel ;\nkernel | ;";
    wrong(
        &text("x=0;", uneven, OK),
        "4:1: P1 has 1 `kernel`, another thread of gpu 0 has 2: a stream's threads run the same kernels",
    );
}

#[test]
fn sizes_are_bounded() {
    let rows = "st.weak x, 1 | ;\n".repeat(513);
    wrong(
        &text("", &rows, OK),
        "516:1: more than 512 instructions in a thread",
    );
    let heads: Vec<String> = (0..17).map(|n| format!("P{n}@host")).collect();
    wrong(
        &format!("PTX t\n{{}}\n{} ;", heads.join(" | ")),
        "3:167: more than 16 threads",
    );
    let initial: String = (0..65).map(|n| format!("x{n}=0;")).collect();
    wrong(&text(&initial, ROW, OK), "2:376: more than 64 locations");
    let deep = format!("exists {}x == 0{}", "(".repeat(65), ")".repeat(65));
    wrong(
        &text("", ROW, &deep),
        "5:72: the condition is nested too deeply",
    );
    let negated = format!("exists {}x == 0", "~".repeat(100));
    wrong(
        &text("", ROW, &negated),
        "5:72: the condition is nested too deeply",
    );
    let large = format!("PTX t\n{}", " ".repeat(1 << 16));
    wrong(&large, "1:1: the file is larger than 65536 bytes");
}

#[test]
fn what_is_not_modelled_is_told_apart_from_mistakes() {
    unsupported(
        &text("", "ld.weak.const r0, x | ;", OK),
        "4:1: `ld.weak.const`: proxies are not modelled",
    );
    unsupported(
        &text("", "ld.acquire.cluster r0, x | ;", OK),
        "4:1: `ld.acquire.cluster`: clusters are not modelled",
    );
    unsupported(
        &text("", "fence.proxy.alias | ;", OK),
        "4:1: `fence.proxy.alias`: proxies are not modelled",
    );
    unsupported(
        &text("y @ generic aliases x", ROW, OK),
        "2:2: aliases and proxies are not modelled",
    );
    unsupported(
        &text("y = x", ROW, OK),
        "2:2: locations that hold or are other locations are not modelled",
    );
    unsupported(
        &text("", ROW, "filter (x == 0)\nexists (x == 1)"),
        "5:1: `filter` is not supported",
    );
}

#[test]
fn comments_strings_and_both_ways_to_name_threads_are_read() {
    let text = "PTX t // a name\n\"one\"\n\"two\"\n{ (* three *) 0:r1=7; x=1 }\nP0@cta 0, gpu 0 ;\nst.weak x, r1 ; // four\nexists 0:r1 = 7 /\\ not (x != 7) \\/ x < 0";
    let litmus = Litmus::parse(text).expect("the text follows the format");
    assert_eq!(litmus.threads[0].initial, [7]);
    assert_eq!(litmus.initial, [1]);
    assert_eq!(litmus.threads[0].code.len(), 1);
}
