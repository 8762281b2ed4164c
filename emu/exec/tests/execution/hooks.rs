//! What a hook sees of a run.

use crate::support::{Buffer, Memory, compile, launch, module, run_with};
use slabfence_emu_exec::{Access, CtaBarrier, Fence, Hook, Order, Scope, Site};

const A: u64 = 0x7000_0000_0000;

/// Writes down what it sees.
#[derive(Default)]
struct Log(Vec<String>);

impl Hook for Log {
    const CHECKING: bool = true;

    fn access(&mut self, at: &Site<'_>, access: &Access<'_>) {
        let Access {
            kind,
            order,
            scope,
            space,
            size,
            elements,
            lanes,
            nc,
            ..
        } = *access;
        let first = lanes.trailing_zeros() as usize;
        let values = |rows: &[[u64; 32]]| rows.iter().map(|row| row[first]).collect::<Vec<_>>();
        let operation = access
            .operation
            .map_or(String::new(), |operation| format!(" {operation:?}"));
        self.0.push(format!(
            "{}:{} {kind:?}{operation} {order:?} {scope:?} {space} {elements}x{size}{} lanes {lanes:x} at {:x} loaded {:?} stored {:?}",
            at.warp,
            at.launch.kernel.ptx_line(at.pc),
            if nc { " nc" } else { "" },
            access.addresses[first],
            values(access.loaded),
            values(access.stored),
        ));
    }

    fn fence(&mut self, _: &Site<'_>, lanes: u32, fence: Fence) {
        self.0.push(format!("fence {lanes:x} {fence:?}"));
    }

    fn cta_barrier(&mut self, at: &Site<'_>, event: CtaBarrier<'_>) {
        self.0.push(match event {
            CtaBarrier::Arrived { id, lanes, waits } => {
                format!("{} arrives at {id} {lanes:x} {waits}", at.warp)
            }
            CtaBarrier::Completed {
                id,
                arrived,
                waited,
            } => format!("{id} complete {arrived:x?} {waited:x?}"),
        });
    }

    fn warp_barrier(&mut self, _: &Site<'_>, lanes: u32) {
        self.0.push(format!("warp meets {lanes:x}"));
    }

    fn exit(&mut self, at: &Site<'_>, lanes: u32) {
        self.0.push(format!("{} exits {lanes:x}", at.warp));
    }
}

fn log(block: u32, body: &str) -> Vec<String> {
    let text = format!(
        ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p<4>; mov.u64 %d1, {A}; mov.u32 %r1, %laneid; mov.u32 %r2, %warpid;\n{body}"
    );
    let kernel = compile(&module(0, &text), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 64));
    memory.buffers[0].put_u32s(&[1, 2, 3, 4]);
    let mut log = Log::default();
    run_with(
        &mut memory,
        &mut log,
        &[launch(&kernel, 1, block, &[])],
        100,
    )
    .done();
    log.0
}

#[test]
fn accesses_are_seen_with_their_kind_order_lanes_and_values() {
    let seen = log(
        2,
        "ld.global.nc.v2.u32 {%r3, %r4}, [%d1+8];
         ld.acquire.sys.global.u64 %d2, [%d1];
         st.volatile.global.u32 [%d1], %r4;
         setp.eq.u32 %p1, %r1, 1;
         @%p1 st.release.gpu.global.u32 [%d1], 9;
         @%p1 atom.cas.acq_rel.cta.global.b32 %r5, [%d1], 9, 7;
         @%p1 red.relaxed.sys.global.add.u32 [%d1], 5;
         ret;",
    );
    assert_eq!(
        seen,
        [
            "0:7 Load Weak None global 2x4 nc lanes 3 at 700000000008 loaded [3, 4] stored []",
            "0:8 Load Acquire Some(Sys) global 1x8 lanes 3 at 700000000000 loaded [8589934593] stored []",
            "0:9 Store Volatile Some(Sys) global 1x4 lanes 3 at 700000000000 loaded [] stored [4]",
            "0:11 Store Release Some(Gpu) global 1x4 lanes 2 at 700000000000 loaded [] stored [9]",
            "0:12 ReadModifyWrite Cas AcqRel Some(Cta) global 1x4 lanes 2 at 700000000000 loaded [9] stored [7]",
            "0:13 ReadModifyWrite Add Relaxed Some(Sys) global 1x4 lanes 2 at 700000000000 loaded [] stored [5]",
            "0 exits 3",
        ]
    );
}

/// The lanes of which a hook hears that they left values as they were, access by access.
#[derive(Default)]
struct Kept(Vec<u32>);

impl Hook for Kept {
    const CHECKING: bool = true;

    fn access(&mut self, _: &Site<'_>, access: &Access<'_>) {
        self.0.push(access.kept);
    }

    fn fence(&mut self, _: &Site<'_>, _: u32, _: Fence) {}
    fn cta_barrier(&mut self, _: &Site<'_>, _: CtaBarrier<'_>) {}
    fn warp_barrier(&mut self, _: &Site<'_>, _: u32) {}
    fn exit(&mut self, _: &Site<'_>, _: u32) {}
}

#[test]
fn read_modify_writes_that_leave_the_value_as_it_was_are_told_lane_by_lane() {
    // The words are 1, 2, 3, 4; lanes come one after another.
    let text = format!(
        ".reg .b64 %d<8>; .reg .b32 %r<8>; .shared .align 4 .b8 s[4]; mov.u64 %d1, {A}; mov.u32 %r1, %laneid;
         atom.cas.relaxed.sys.global.b32 %r5, [%d1], 1, 7;
         atom.cas.relaxed.sys.global.b32 %r5, [%d1], 7, 7;
         atom.add.relaxed.sys.global.u32 %r5, [%d1], %r1;
         red.relaxed.sys.global.max.s32 [%d1], -1;
         atom.exch.relaxed.sys.global.b32 %r5, [%d1+4], 2;
         st.global.u32 [%d1+4], 2;
         st.shared.u32 [s], 5;
         atom.shared.cas.b32 %r5, [s], 4, 9;
         ret;"
    );
    let kernel = compile(&module(0, &text), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 64));
    memory.buffers[0].put_u32s(&[1, 2, 3, 4]);
    let mut kept = Kept::default();
    run_with(&mut memory, &mut kept, &[launch(&kernel, 1, 2, &[])], 100).done();
    assert_eq!(kept.0, [0b10, 0, 0b01, 0b11, 0, 0, 0, 0b11]);
}

#[test]
fn every_space_is_seen_and_generic_addresses_are_resolved() {
    let seen = log(
        1,
        ".shared .align 4 .b8 s[8]; .local .align 4 .b8 l[8];
         st.shared.u32 [s+4], 1; st.local.u32 [l+4], 2;
         mov.u64 %d3, s; cvta.shared.u64 %d3, %d3; ld.u32 %r3, [%d3+4];
         { .reg .b128 q; ld.relaxed.gpu.global.b128 q, [%d1]; st.weak.global.b128 [%d1+16], q; }
         ret;",
    );
    assert_eq!(
        seen,
        [
            "0:8 Store Weak None shared 1x4 lanes 1 at 4 loaded [] stored [1]",
            "0:8 Store Weak None local 1x4 lanes 1 at 4 loaded [] stored [2]",
            "0:9 Load Weak None shared 1x4 lanes 1 at 4 loaded [1] stored []",
            "0:10 Load Relaxed Some(Gpu) global 1x16 lanes 1 at 700000000000 loaded [8589934593, 17179869187] stored []",
            "0:10 Store Weak None global 1x16 lanes 1 at 700000000010 loaded [] stored [8589934593, 17179869187]",
            "0 exits 1",
        ]
    );
}

#[test]
fn synchronisation_is_seen() {
    let seen = log(
        64,
        "fence.acq_rel.sys; membar.gl; fence.sc.cta; fence.acquire.gpu; bar.warp.sync -1;
         setp.eq.u32 %p1, %r2, 0; @%p1 bar.arrive 1, 64; @!%p1 bar.sync 1, 64; ret;",
    );
    let fence =
        |order: Order, sc, scope: Scope| format!("fence ffffffff {:?}", Fence { order, sc, scope });
    let own = [
        fence(Order::AcqRel, false, Scope::Sys),
        fence(Order::AcqRel, true, Scope::Gpu),
        fence(Order::AcqRel, true, Scope::Cta),
        fence(Order::Acquire, false, Scope::Gpu),
        "warp meets ffffffff".to_owned(),
    ];
    let first = own.iter().cloned().chain([
        "0 arrives at 1 ffffffff false".into(),
        "0 exits ffffffff".into(),
    ]);
    let second = own.iter().cloned().chain([
        "1 arrives at 1 ffffffff true".into(),
        "1 complete [ffffffff, 0] [0, ffffffff]".into(),
        "1 exits ffffffff".into(),
    ]);
    assert_eq!(seen, first.chain(second).collect::<Vec<_>>());
}
