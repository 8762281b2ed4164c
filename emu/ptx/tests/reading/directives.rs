//! Module level: heads, variables, files, kernels.

use crate::{kernel, module};
use slabfence_emu_ptx::{GlobalSpace, Loc, Param, Relocation, SourceFile, Variable, parse};

#[test]
fn the_head_says_version_and_target() {
    let module = parse("//\n.version 8.3\n.target sm_90a, debug\n.address_size 64\n").unwrap();
    assert_eq!(
        (module.version, module.target, module.target_suffix),
        ((8, 3), 90, Some('a'))
    );
    let module = parse(".version 9.0 .target sm_120 .address_size 64").unwrap();
    assert_eq!(
        (module.version, module.target, module.target_suffix),
        ((9, 0), 120, None)
    );
}

#[test]
fn variables_have_bytes() {
    let module = module(
        ".visible .global .align 8 .b8 witness[24] = {176, 0, 255, -1};
         .const .align 4 .f32 half[2] = {0f3F000000, 1.5};
         .global .u32 counter;
         .global .align 16 .u64 pointers[3] = {generic(counter), witness+8, 7};
         .weak .global .s16 grid[2][2] = {{1, 2}, {-3, 4}};
         .global .v4 .f32 four;",
    );
    let found: Vec<_> = module
        .globals
        .iter()
        .map(|global| {
            (
                &*global.name,
                global.space,
                global.size,
                global.align,
                &global.init[..],
            )
        })
        .collect();
    let half = [0, 0, 0, 0x3f, 0, 0, 0xc0, 0x3f];
    let pointers = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0,
    ];
    let grid = [1, 0, 2, 0, 0xfd, 0xff, 4, 0];
    assert_eq!(
        found,
        [
            (
                "witness",
                GlobalSpace::Global,
                24,
                8,
                &[176, 0, 255, 255][..]
            ),
            ("half", GlobalSpace::Const, 8, 4, &half),
            ("counter", GlobalSpace::Global, 4, 4, &[]),
            ("pointers", GlobalSpace::Global, 24, 16, &pointers),
            ("grid", GlobalSpace::Global, 8, 2, &grid),
            ("four", GlobalSpace::Global, 16, 16, &[]),
        ]
    );
    assert_eq!(
        module.globals[3].relocations,
        [
            Relocation {
                offset: 0,
                target: 2,
                addend: 0
            },
            Relocation {
                offset: 8,
                target: 0,
                addend: 8
            }
        ]
    );
}

#[test]
fn parameters_have_offsets() {
    let module = module(
        ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 16 .b8 c[20], .param .f32 d)
         .maxntid 128, 2, 1 .minnctapersm 3 .maxnreg 64 { ret; }
         .entry none .reqntid 32 { ret; }",
    );
    let param = |name: &str, offset, size, align| Param {
        name: name.into(),
        offset,
        size,
        align,
    };
    let [k, none] = &module.entries[..] else {
        panic!("{} entries", module.entries.len())
    };
    assert_eq!(
        k.params,
        [
            param("a", 0, 1, 1),
            param("b", 8, 8, 8),
            param("c", 16, 20, 16),
            param("d", 36, 4, 4)
        ]
    );
    assert_eq!(k.param_bytes, 40);
    assert_eq!(
        (k.max_threads, k.required_threads),
        (Some([128, 2, 1]), None)
    );
    assert_eq!((k.min_ctas_per_sm, k.max_registers), (Some(3), Some(64)));
    assert_eq!(
        (none.required_threads, none.param_bytes),
        (Some([32, 1, 1]), 0)
    );
    assert!(module.entry("none").is_some() && module.entry("nobody").is_none());
}

#[test]
fn lines_of_the_source_are_kept() {
    let entry = kernel(
        ".loc 1 17 5\nmov.u32 %r1, 1;\n.loc 2 30 1, function_name $L__info_string0, inlined_at 1 18 9\nmov.u32 %r2, 2; ret;
         .loc 1 0 0\nret;",
    );
    let lines: Vec<_> = entry
        .body
        .iter()
        .map(|instruction| (instruction.line, instruction.loc))
        .collect();
    let (outer, inner) = (
        Loc {
            file: 1,
            line: 17,
            column: 5,
        },
        Loc {
            file: 2,
            line: 30,
            column: 1,
        },
    );
    assert_eq!(
        lines,
        [
            (8, Some(outer)),
            (10, Some(inner)),
            (10, Some(inner)),
            (12, None)
        ]
    );
    let module = module(
        ".file 1 \"a b/k.cu\"\n.file 2 \"m.cuh\", 123, 456\n.section .debug_str\n{\n$L__info_string0:\n.b8 95,90,0\n}",
    );
    let file = |number, path: &str| SourceFile {
        number,
        path: path.into(),
    };
    assert_eq!(module.files, [file(1, "a b/k.cu"), file(2, "m.cuh")]);
    assert_eq!((module.file(2), module.file(3)), (Some("m.cuh"), None));
}

#[test]
fn shared_variables_belong_to_the_kernels_that_use_them() {
    let module = module(
        ".extern .shared .align 16 .b8 dyn[]; .extern .shared .align 8 .b8 dyn8[];
         .shared .align 4 .b8 common[12];
         .entry one() { .reg .b32 %r<3>; .shared .u64 own; .local .align 8 .b8 stack[24];
             mov.u32 %r1, dyn8; mov.u32 %r2, dyn; ld.shared.u32 %r1, [common]; ld.shared.u32 %r1, [common+4]; ret; }
         .entry two() { ret; }",
    );
    let variable = |name: &str, size, align| Variable {
        name: name.into(),
        size,
        align,
    };
    let [one, two] = &module.entries[..] else {
        panic!("{} entries", module.entries.len())
    };
    assert_eq!(
        one.shared,
        [variable("own", 8, 8), variable("common", 12, 4)]
    );
    assert_eq!(one.local, [variable("stack", 24, 8)]);
    assert_eq!(one.dynamic_shared_align, Some(16));
    assert_eq!((two.shared.len(), two.dynamic_shared_align), (0, None));
}
