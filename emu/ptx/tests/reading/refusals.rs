//! What is not supported is refused with its line and its text.

use crate::{body_refusal, refusal};
use slabfence_emu_ptx::parse;

#[test]
fn forms_that_are_not_in_the_table() {
    let cases = [
        (
            "mul.hi.u16 %h1, %h2, %h3;",
            "line 7: `mul.hi.u16`: modifier `.hi` is not supported with `.u16`",
        ),
        (
            "mul.u32 %r1, %r2, %r3;",
            "line 7: `mul.u32`: needs one of `.lo`",
        ),
        (
            "mul.wide.u64 %d1, %d2, %d3;",
            "line 7: `mul.wide.u64`: modifier `.wide` is not supported with `.u64`",
        ),
        (
            "add.f16x2.ftz %r1, %r2, %r3;",
            "line 7: `add.f16x2.ftz`: modifier `.ftz` is not supported with `.f16x2`",
        ),
        (
            "add.pred %p1, %p2, %p3;",
            "line 7: `add.pred`: `.pred` is not supported here",
        ),
        ("add %r1, %r2, %r3;", "line 7: `add`: a type is missing"),
        (
            "fma.f32 %f1, %f2, %f3, %f4;",
            "line 7: `fma.f32`: needs one of `.rn`, `.rz`, `.rm`, `.rp`",
        ),
        (
            "add.rn.rz.f32 %f1, %f2, %f3;",
            "line 7: `add.rn.rz.f32`: modifier `.rz` is not supported with `.f32`",
        ),
        (
            "ld.release.gpu.global.u32 %r1, [%d1];",
            "line 7: `ld.release.gpu.global.u32`: modifier `.release` is not supported with `.u32`",
        ),
        (
            "ld.acquire.global.u32 %r1, [%d1];",
            "line 7: `ld.acquire.global.u32`: needs one of `.cta`, `.cluster`, `.gpu`, `.sys`",
        ),
        (
            "st.acquire.sys.u32 [%d1], %r1;",
            "line 7: `st.acquire.sys.u32`: modifier `.acquire` is not supported with `.u32`",
        ),
        (
            "red.acquire.gpu.global.add.u32 [%d1], %r1;",
            "line 7: `red.acquire.gpu.global.add.u32`: modifier `.acquire` is not supported with `.u32`",
        ),
        (
            "atom.global.add.s64 %d1, [%d2], %d3;",
            "line 7: `atom.global.add.s64`: modifier `.add` is not supported with `.s64`",
        ),
        (
            "ld.const.v2.b128 %d1, [%d2];",
            "line 7: `ld.const.v2.b128`: modifier `.const` is not supported with `.b128`",
        ),
        (
            "cvt.rn.s32.f32 %r1, %f1;",
            "line 7: `cvt.rn.s32.f32`: modifier `.rn` is not supported with `.s32`, `.f32`",
        ),
        (
            "cvt.f32.s32 %f1, %r1;",
            "line 7: `cvt.f32.s32`: needs one of `.rn`, `.rz`, `.rm`, `.rp`",
        ),
        (
            "setp.lo.s32.s32 %p1, %r1, %r2;",
            "line 7: `setp.lo.s32.s32`: `.s32`, `.s32` is not supported here",
        ),
        (
            "wgmma.fence.sync.aligned;",
            "line 7: `wgmma.fence.sync.aligned`: opcode `wgmma` is not supported",
        ),
        (
            "call.uni helper, ();",
            "line 7: `call.uni`: opcode `call` is not supported; have the compiler inline device functions",
        ),
        (
            "add.saturate.s32 %r1, %r2, %r3;",
            "line 7: `add.saturate.s32`: modifier `.saturate` is not supported",
        ),
        (
            "ld.global.L2::cache_hint.u32 %r1, [%d1];",
            "line 7: `ld.global.L2::cache_hint.u32`: modifier `.L2::cache_hint` is not supported",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(body_refusal(body), expected);
    }
}

#[test]
fn operands_of_the_wrong_shape() {
    let cases = [
        (
            "\nadd.s32 %r1, %r2;",
            "line 8: `add.s32`: takes 3 operands, not 2",
        ),
        (
            "mov.u32 %p1, 1;",
            "line 7: `mov.u32`: operand 1 must be a destination register or a vector of them",
        ),
        (
            "add.s32 5, %r1, %r2;",
            "line 7: `add.s32`: operand 1 must be a destination register",
        ),
        (
            "add.s32 %r1, %p1, %r2;",
            "line 7: `add.s32`: operand 2 must be a register or a constant",
        ),
        (
            "add.s32 %r1, {%r1, %r2}, %r2;",
            "line 7: `add.s32`: operand 2 must be a register or a constant",
        ),
        (
            "setp.eq.s32 %r1, %r2, %r3;",
            "line 7: `setp.eq.s32`: operand 1 must be a predicate register or two with `|`",
        ),
        (
            "selp.b32 %r1, %r2, %r3, %r4;",
            "line 7: `selp.b32`: operand 4 must be a predicate",
        ),
        (
            "ld.global.u32 %r1, %d1;",
            "line 7: `ld.global.u32`: operand 2 must be an address in brackets",
        ),
        (
            "mov.b64 %d1, {{%r1}, %r2};",
            "line 7: expected an element, found `{`",
        ),
        (
            "setp.eq.s32 %p1|%p2|%p3, %r1, 0;",
            "line 7: expected `;`, found `|`",
        ),
        (
            "lop3.b32 %r1, %r2, %r3, %r4, %r5;",
            "line 7: `lop3.b32`: operand 5 must be an integer constant",
        ),
        (
            "mov.pred %p1, %r1;",
            "line 7: `mov.pred`: operand 2 must be a predicate",
        ),
        (
            "bar.sync 0, 1, 2;",
            "line 7: `bar.sync`: takes 2 operands, not 3",
        ),
        (
            "and.pred %p1, %r1, %p2;",
            "line 7: `and.pred`: operand 2 must be a predicate",
        ),
        ("ret %r1;", "line 7: `ret`: takes 0 operands, not 1"),
    ];
    for (body, expected) in cases {
        assert_eq!(body_refusal(body), expected);
    }
}

#[test]
fn names_that_nothing_declares() {
    let cases = [
        (
            "mov.u32 %r1, %r9;",
            "line 7: operand `%r9` is not declared or not supported",
        ),
        (
            "mov.u32 %r1, %envreg3;",
            "line 7: operand `%envreg3` is not declared or not supported",
        ),
        (
            "mov.u32 %r1, %tid.w;",
            "line 7: operand `%tid.w` is not declared or not supported",
        ),
        (
            "ld.global.u32 %r1, [nowhere+4];",
            "line 7: `[nowhere]`: `nowhere` is not declared",
        ),
        ("bra $L1;", "line 7: label `$L1` is nowhere in this kernel"),
        (
            "@%q bra $L1; $L1:",
            "line 7: `@%q`: `%q` is no predicate register",
        ),
        (
            "@%r1 bra $L1; $L1:",
            "line 7: `@%r1`: `%r1` is no predicate register",
        ),
        ("$A: ret; $A: ret;", "line 7: label `$A` is placed twice"),
        (
            "{ .reg .b32 inner; mov.b32 inner, 1; } mov.b32 %r1, inner;",
            "line 7: operand `inner` is not declared or not supported",
        ),
        (
            "bra $IN; { $IN: ret; }",
            "line 7: label `$IN` is nowhere in this kernel",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(body_refusal(body), expected);
    }
}

#[test]
fn directives_that_are_not_understood() {
    let cases = [
        (
            ".func f() { ret; }",
            "line 4: `.func f`: device functions are not supported; have the compiler inline them",
        ),
        (
            ".extern .func (.param .b32 r) vprintf(.param .b64 a);",
            "line 4: `.func vprintf`: device functions are not supported; have the compiler inline them",
        ),
        (
            ".alias a, b;",
            "line 4: directive `.alias` is not supported",
        ),
        (
            ".extern .global .u32 elsewhere;",
            "line 4: `.extern .global`: variables of other modules are not supported",
        ),
        (
            "mov.u32 %r1, 1;",
            "line 4: expected a directive, found `mov`",
        ),
        (
            ".entry k() .blocksareclusters { ret; }",
            "line 4: directive `.blocksareclusters` is not supported on a kernel",
        ),
        (
            ".entry k() { .branchtargets a, b; }",
            "line 4: directive `.branchtargets` is not supported in a kernel",
        ),
        (".entry k()\n{\nret;\n", "line 7: kernel without end"),
        (
            ".entry k() { ret; }\n.entry k() { ret; }",
            "line 5: kernel `k` is declared twice",
        ),
        (
            ".global .u32 a;\n.global .u32 a;",
            "line 5: `a` is declared twice",
        ),
        (".global .b8 a[];", "line 4: `a` has no size"),
        (
            ".const .b8 a[65536];\n.const .b8 b[1];",
            "line 5: `b`: constants have at most 65536 bytes together",
        ),
        (
            ".global .align 3 .u32 a;",
            "line 4: `.align 3` is no usable power of two",
        ),
        (
            ".global .u32 a[2] = {1, 2, 3};",
            "line 4: `a`: 12 bytes of initialiser for 8 bytes",
        ),
        (
            ".global .u32 a = b;",
            "line 4: `b` is not supported as an initial value of type `.u32`",
        ),
        (
            ".global .u64 a = b;",
            "line 4: `b` is no variable whose address is constant",
        ),
        (
            ".shared .u32 a[];",
            "line 4: a `.shared` variable is either sized or `.extern` with `[]`",
        ),
        (
            ".entry k(.param .b8 p[40000]) { ret; }",
            "line 4: parameter `p` is unsized or too large",
        ),
        (
            ".entry k(.reg .u32 p) { ret; }",
            "line 4: expected `.param`, found `.reg`",
        ),
        (
            ".global .texref t;",
            "line 4: `.texref` is not supported in a declaration",
        ),
        ("/* without end", "line 4: comment without end"),
        (".file 1 \"without end\n", "line 4: string without end"),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn heads_that_are_not_understood() {
    let refusal = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(
        refusal(""),
        "line 1: expected `.version`, found the end of the text"
    );
    assert_eq!(
        refusal("hello"),
        "line 1: expected `.version`, found `hello`"
    );
    assert_eq!(
        refusal(".version nine"),
        "line 1: `.version` takes a number such as 9.0"
    );
    assert_eq!(
        refusal(".version 9.0\n.target compute_90"),
        "line 2: `.target` takes one architecture such as sm_90"
    );
    assert_eq!(
        refusal(".version 9.0\n.target sm_90, texmode_unified"),
        "line 2: `.target` option `texmode_unified` is not supported"
    );
    assert_eq!(
        refusal(".version 9.0\n.target sm_90\n.address_size 32"),
        "line 3: only `.address_size 64` is supported"
    );
}

#[test]
fn broken_texts_are_errors_and_never_panics() {
    let whole =
        ".version 9.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 g[4] = {1, 0x2, 3};
        .visible .entry k(.param .align 8 .b8 p[16]) .maxntid 32, 1, 1 {
        .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %d<3>; .loc 1 2 3
        ld.param.u64 %d1, [p+8]; @!%p1 bra $L; shfl.sync.idx.b32 %r1|%p2, %r2, 0, 31, -1;
        { .reg .b32 t; mov.b32 t, 0f3F800000; st.global.v2.u32 [%d1+-8], {t, %r1}; }
        $L: ret; }\n.file 1 \"a\"\n";
    assert!(parse(whole).is_ok());
    for end in (0..whole.len()).filter(|&end| whole.is_char_boundary(end)) {
        let _ = parse(&whole[..end]);
        // The same with one character replaced.
        for with in ["%", "{", "]", ".", "\u{e9}", "9", "\""] {
            let text = format!(
                "{}{with}{}",
                &whole[..end],
                whole.get(end + 1..).unwrap_or("")
            );
            let _ = parse(&text);
        }
    }
}
