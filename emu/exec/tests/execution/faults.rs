//! What ends a grid, and what is said of it.

use crate::support::{Buffer, Memory, compile, launch, module, run};
use slabfence_emu_exec::{AccessKind, Fault, FaultKind, Kernel, Launch, MemoryFault, Space};

const A: u64 = 0x7000_0000_0000;
const READ_ONLY: u64 = 0x7000_0001_0000;

fn fault(body: &str) -> Box<Fault> {
    let text = format!(
        ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p<4>; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];\n{body}"
    );
    let kernel = compile(&module(2, &text), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 64));
    memory.buffers.push(Buffer::new(READ_ONLY, 64).read_only());
    run(&mut memory, &[launch(&kernel, 1, 32, &[A, READ_ONLY])]).fault()
}

fn illegal(
    body: &str,
    addr: u64,
    size: u32,
    access: AccessKind,
    space: Space,
    reason: MemoryFault,
) {
    assert_eq!(
        fault(body).kind,
        FaultKind::IllegalAddress {
            addr,
            size,
            access,
            space,
            reason
        },
        "{body}"
    );
}

#[test]
fn accesses_outside_of_everything() {
    use AccessKind::{Load, ReadModifyWrite, Store};
    use MemoryFault::{ReadOnly, Unmapped};
    illegal(
        "ld.global.u32 %r1, [%d1+64];",
        A + 64,
        4,
        Load,
        Space::Global,
        Unmapped,
    );
    illegal(
        "ld.global.u64 %d3, [0];",
        0,
        8,
        Load,
        Space::Global,
        Unmapped,
    );
    illegal(
        "st.global.u64 [%d1+-8], %d1;",
        A - 8,
        8,
        Store,
        Space::Global,
        Unmapped,
    );
    illegal(
        "st.u8 [%d2], 1;",
        READ_ONLY,
        1,
        Store,
        Space::Global,
        ReadOnly,
    );
    // Not even when it was read before.
    illegal(
        "ld.global.u8 %r1, [%d2]; st.u8 [%d2], 1;",
        READ_ONLY,
        1,
        Store,
        Space::Global,
        ReadOnly,
    );
    illegal(
        "red.global.add.u32 [%d2], 1;",
        READ_ONLY,
        4,
        ReadModifyWrite,
        Space::Global,
        ReadOnly,
    );
    illegal(
        "st.relaxed.sys.global.u64 [%d2], %d1;",
        READ_ONLY,
        8,
        Store,
        Space::Global,
        ReadOnly,
    );
    illegal(
        "atom.global.add.u64 %d3, [%d1+128], 1;",
        A + 128,
        8,
        ReadModifyWrite,
        Space::Global,
        Unmapped,
    );
    illegal(
        "ld.shared.u32 %r1, [0];",
        0,
        4,
        Load,
        Space::Shared,
        Unmapped,
    );
    illegal(
        ".shared .align 8 .b8 s[8]; st.shared.u64 [s+8], %d1;",
        8,
        8,
        Store,
        Space::Shared,
        Unmapped,
    );
    illegal(
        ".local .align 16 .b8 l[16]; ld.local.u32 %r1, [l+16];",
        16,
        4,
        Load,
        Space::Local,
        Unmapped,
    );
    illegal(
        "mov.u64 %d3, p0; cvta.param.u64 %d3, %d3; st.u64 [%d3], 1;",
        0,
        8,
        Store,
        Space::Param,
        ReadOnly,
    );
    illegal(
        "ld.param.u64 %d3, [p0+16];",
        16,
        8,
        Load,
        Space::Param,
        Unmapped,
    );
    illegal(
        "cvta.shared.u64 %d3, 64; ld.u32 %r1, [%d3];",
        64,
        4,
        Load,
        Space::Shared,
        Unmapped,
    );
    // The end of a vector counts too.
    illegal(
        "ld.global.v2.u64 {%d3, %d4}, [%d1+64];",
        A + 64,
        16,
        Load,
        Space::Global,
        Unmapped,
    );
    // Addresses at the end of the address space do not wrap.
    illegal(
        "mov.u64 %d3, -8; ld.global.u64 %d4, [%d3];",
        u64::MAX - 7,
        8,
        Load,
        Space::Global,
        Unmapped,
    );
}

#[test]
fn loads_from_read_only_memory_are_fine() {
    let fault = fault(
        "ld.acquire.sys.global.u64 %d3, [%d2]; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d2+16]; trap;",
    );
    assert_eq!(fault.kind, FaultKind::Trap);
}

#[test]
fn misaligned_accesses() {
    let cases = [
        ("ld.global.u32 %r1, [%d1+2];", A + 2, 4, Space::Global),
        (
            "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1+8];",
            A + 8,
            16,
            Space::Global,
        ),
        ("st.global.u16 [%d1+1], %r1;", A + 1, 2, Space::Global),
        (
            "{ .reg .b128 q; ld.relaxed.sys.global.b128 q, [%d1+8]; }",
            A + 8,
            16,
            Space::Global,
        ),
        (
            "atom.global.add.u64 %d3, [%d1+4], 1;",
            A + 4,
            8,
            Space::Global,
        ),
        (
            ".shared .align 8 .b8 s[8]; ld.shared.u32 %r1, [s+1];",
            1,
            4,
            Space::Shared,
        ),
    ];
    for (body, addr, align, space) in cases {
        assert_eq!(
            fault(body).kind,
            FaultKind::Misaligned { addr, align, space },
            "{body}"
        );
    }
}

#[test]
fn a_fault_says_where() {
    let text =
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry broken(.param .u64 p)\n{
        .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<2>;
        .loc 1 17 5
        ld.param.u64 %d1, [p];
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 37;
        .loc 1 18 9, function_name $L__info_string0, inlined_at 1 30 2
        @!%p1 st.global.u32 [%d1], %r1;
        ret;\n}
        .file 1 \"dir/kernel.cu\"
        .section .debug_str {\n$L__info_string0:\n.b8 65,0\n}\n";
    let kernel = compile(text, "broken");
    let grid = launch(&kernel, 2, 64, &[0x10]);
    let fault = run(&mut Memory::default(), &[grid]).fault();
    assert_eq!(
        (fault.ctaid, fault.warp, fault.lane, fault.pc, fault.line),
        ([0; 3], 1, 5, 3, 12)
    );
    assert_eq!(
        fault.to_string(),
        "illegal store of 4 bytes at 0x10 in global space: nothing is mapped there; kernel `broken`, block (0, 0, 0), \
         warp 1, lane 5, PTX line 12, dir/kernel.cu:18"
    );
}

#[test]
fn lanes_without_fault_do_not_matter_and_idle_ones_do_not_access() {
    // Only lane 3 goes wrong; lanes above 3 are idle.
    let fault = fault(
        "mov.u32 %r1, %laneid; setp.gt.u32 %p1, %r1, 3; @%p1 bra END; setp.eq.u32 %p2, %r1, 3;
         selp.b64 %d3, 0, %d1, %p2; st.global.u32 [%d3], %r1; END: ret;",
    );
    assert_eq!(fault.lane, 3);
}

#[test]
fn launches_are_checked() {
    let text = ".version 9.0\n.target sm_80\n.address_size 64
        .visible .entry a(.param .u64 p) .maxntid 64, 2, 1\n{ ret; }
        .visible .entry b() .reqntid 32\n{ ret; }";
    let module = slabfence_emu_ptx::parse(text).unwrap();
    let kernel = |name| std::sync::Arc::new(Kernel::compile(&module, name).unwrap());
    let grid = |name, block: [u32; 3], params: usize| Launch {
        kernel: kernel(name),
        grid: [1, 1, 1],
        block,
        params: vec![0; params].into(),
        dynamic_shared: 0,
        globals: [].into(),
        multiprocessors: 1,
        tag: 0,
    };
    let refusal = |grid: Launch| grid.validate().unwrap_err().to_string();
    assert_eq!(grid("a", [128, 1, 1], 8).validate(), Ok(()));
    assert_eq!(
        refusal(grid("a", [129, 1, 1], 8)),
        "`a`: 129 threads per block, at most 128"
    );
    assert_eq!(
        refusal(grid("a", [1, 1, 1], 4)),
        "`a`: 4 bytes of parameters, it takes 8"
    );
    assert_eq!(
        refusal(grid("a", [0, 1, 1], 8)),
        "`a`: grid [1, 1, 1] or block [0, 1, 1] is empty"
    );
    assert_eq!(
        refusal(grid("b", [16, 1, 1], 0)),
        "`b`: block [16, 1, 1], but .reqntid is [32, 1, 1]"
    );
    let error = Kernel::compile(&module, "c").unwrap_err();
    assert_eq!(error.message, "the module has no kernel `c`");
}

#[test]
fn registers_must_fit_their_instruction() {
    let refusal = |body: &str| {
        let text = module(
            0,
            &format!(".reg .b64 %d<4>; .reg .b32 %r<4>; .reg .b16 %h<4>;\n{body}"),
        );
        let module = slabfence_emu_ptx::parse(&text).unwrap();
        Kernel::compile(&module, "k").unwrap_err().to_string()
    };
    assert_eq!(
        refusal("add.s32 %r1, %r2, %d1;"),
        "line 7: `%d1` is .b64, which does not fit .s32 here"
    );
    assert_eq!(
        refusal("add.s64 %d1, %r2, %d1;"),
        "line 7: `%r2` is .b32, which does not fit .s64 here"
    );
    assert_eq!(
        refusal("mov.u32 %h1, %r1;"),
        "line 7: `%h1` is .b16, which does not fit .u32 here"
    );
    assert_eq!(
        refusal("mov.f32 %r1, 1;"),
        "line 7: the constant does not fit .f32"
    );
    assert_eq!(
        refusal("ld.global.u64 %r1, [%d1];"),
        "line 7: `%r1` is .b32, which does not fit .u64 here"
    );
    assert_eq!(
        refusal("ld.global.u32 %r1, [%r1];"),
        "line 7: `%r1` is .b32, which does not fit .u64 here"
    );
    assert_eq!(
        refusal("add.u32 %r1, %clock, 1;"),
        "line 7: `%clock` is only supported in `mov`"
    );
    assert_eq!(
        refusal("mov.b64 %d1, {%r1, %h1};"),
        "line 7: `%h1` is .b16, which does not fit .b32 here"
    );
}
