//! Blocks that run in different host threads at the same time.

use crate::support::{Buffer, Memory, compile, launch, module};
use slabfence_emu_exec::{Cta, Env, Fast, GlobalMemory, Launch, MemoryFault, Region, Step};
use std::{sync::Arc, thread};

const A: u64 = 0x7000_0000_0000;

/// Memory of several threads.
struct Shared(Memory);

// SAFETY: in these tests the buffers are only touched through regions (whose accesses are atomic) while threads run.
unsafe impl Sync for Shared {}
// SAFETY: the same.
unsafe impl Send for Shared {}

/// One thread's view of it.
struct View(Arc<Shared>);

impl GlobalMemory for View {
    fn region(&self, addr: u64, write: bool) -> Result<Region, MemoryFault> {
        self.0.0.region(addr, write)
    }

    fn generation(&self) -> u64 {
        0
    }
}

/// Runs each grid of one block in a thread of its own.
fn run_in_threads(memory: Arc<Shared>, launches: Vec<Arc<Launch>>) {
    thread::scope(|scope| {
        for launch in launches {
            let mut view = View(Arc::clone(&memory));
            scope.spawn(move || {
                let mut cta = Cta::new(&launch, [0; 3], 0);
                while !cta.done() {
                    for warp in 0..cta.warps() {
                        let (memory, hook) = (&mut view, &mut Fast);
                        let mut env = Env {
                            memory,
                            hook,
                            globaltimer: 0,
                            clock: 0,
                            executed: 0,
                        };
                        match cta.step(warp, &mut env, 1000) {
                            Step::Fault(fault) => panic!("{fault}"),
                            Step::Polled => thread::yield_now(),
                            _ => {}
                        }
                    }
                }
            });
        }
    });
}

fn memory() -> Arc<Shared> {
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 4096));
    Arc::new(Shared(memory))
}

#[test]
fn flags_and_data_go_to_and_fro() {
    // Two blocks pass a turn and a counter in plain memory; each adds to the counter in its turn.
    let body = ".reg .b64 %d<8>; .reg .pred %p<4>;
        ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; xor.b64 %d3, %d2, 1; mov.u64 %d6, 0;
        ROUND:
        POLL: ld.acquire.sys.global.u64 %d4, [%d1]; setp.ne.u64 %p1, %d4, %d2; @%p1 bra POLL;
        ld.global.u64 %d5, [%d1+64]; add.u64 %d5, %d5, 1; st.global.u64 [%d1+64], %d5;
        st.release.sys.global.u64 [%d1], %d3;
        add.u64 %d6, %d6, 1; setp.lt.u64 %p2, %d6, 500; @%p2 bra ROUND; ret;";
    let kernel = compile(&module(2, body), "k");
    let memory = memory();
    let launches = [0, 1].map(|side| launch(&kernel, 1, 1, &[A, side])).into();
    run_in_threads(Arc::clone(&memory), launches);
    assert_eq!(memory.0.buffers[0].u64(8), 1000);
}

#[test]
fn atomics_of_two_threads_lose_nothing() {
    let body = ".reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u64 %d1, [p0]; mov.u32 %r1, 0;
        LOOP: red.relaxed.sys.global.add.u64 [%d1], 1; atom.global.add.u32 %r2, [%d1+8], 1;
        atom.global.inc.u32 %r2, [%d1+16], 0xffffffff; atom.global.add.f32 %r2, [%d1+24], 0f3F800000;
        add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 500; @%p1 bra LOOP; ret;";
    let kernel = compile(&module(1, body), "k");
    let memory = memory();
    run_in_threads(Arc::clone(&memory), vec![launch(&kernel, 1, 64, &[A]); 2]);
    let buffer = &memory.0.buffers[0];
    assert_eq!([buffer.u64(0), buffer.u64(1), buffer.u64(2)], [64_000; 3]);
    assert_eq!(buffer.u32(6), 64_000f32.to_bits());
}

#[test]
fn sixteen_byte_scalars_do_not_tear() {
    // One block stores packets whose halves are equal, the other loads until it has seen the last one, and counts
    // those whose halves differ.
    let writer = ".reg .b64 %d<4>; .reg .pred %p<2>; .reg .b128 %q<2>; ld.param.u64 %d1, [p0]; mov.u64 %d2, 0;
        LOOP: add.u64 %d2, %d2, 1; mov.b128 %q1, {%d2, %d2}; st.relaxed.sys.global.b128 [%d1], %q1;
        setp.lt.u64 %p1, %d2, 20000; @%p1 bra LOOP; ret;";
    let reader = ".reg .b64 %d<6>; .reg .pred %p<3>; .reg .b128 %q<2>; ld.param.u64 %d1, [p0]; mov.u64 %d4, 0;
        LOOP: ld.acquire.sys.global.b128 %q1, [%d1]; mov.b128 {%d2, %d3}, %q1;
        setp.ne.u64 %p1, %d2, %d3; @%p1 add.u64 %d4, %d4, 1;
        setp.ne.u64 %p2, %d3, 20000; @%p2 bra LOOP; st.global.u64 [%d1+64], %d4; st.global.u64 [%d1+72], %d3; ret;";
    let memory = memory();
    let launches = [writer, reader].map(|body| launch(&compile(&module(1, body), "k"), 1, 1, &[A]));
    run_in_threads(Arc::clone(&memory), launches.into());
    let buffer = &memory.0.buffers[0];
    assert_eq!([buffer.u64(8), buffer.u64(9)], [0, 20_000]);
}
