//! How many warp-instructions a second this machine interprets, of one thread (its own time: the machine may have
//! other work).
//!
//! `cargo run --release -p slabfence-emu-exec --example speed [-- PART OF A NAME]`

use slabfence_emu_exec::{Cta, Env, Fast, GlobalMemory, Kernel, Launch, MemoryFault, Region, Step};
use std::{cell::UnsafeCell, sync::Arc};

const HEAD: &str =
    ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 p0) {";
const DATA: u64 = 0x7000_0000_0000;

fn main() {
    let prologue = "
        .reg .pred %p<4>; .reg .b32 %r<32>; .reg .f32 %f<16>; .reg .b64 %rd<16>;
        ld.param.u64 %rd1, [p0];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 16;
        add.s64 %rd3, %rd1, %rd2;
        mov.u32 %r2, 0; mov.u32 %r3, 1; mov.u32 %r4, 3;
        mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F000000; mov.f32 %f3, 0f3E800000;
    LOOP:";
    let epilogue = "
        add.s32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r2, 20000;
        @%p1 bra LOOP;
        ret;";
    let bodies = [
        (
            "integers, converged",
            "add.s32 %r5, %r3, %r2; xor.b32 %r6, %r5, %r1; shl.b32 %r7, %r6, 3; and.b32 %r8, %r7, 255;
             mad.lo.s32 %r9, %r8, %r4, %r5; add.s64 %rd4, %rd3, %rd2; mul.wide.u32 %rd5, %r9, 4; add.s64 %rd6, %rd5, %rd4;
             setp.gt.s32 %p2, %r9, %r1; selp.b32 %r3, %r9, %r5, %p2;",
        ),
        (
            "floats, converged",
            "fma.rn.f32 %f4, %f1, %f2, %f3; add.f32 %f5, %f4, %f3; mul.f32 %f6, %f5, %f2; fma.rn.f32 %f1, %f6, %f2, %f3;",
        ),
        (
            "16-byte loads and stores",
            "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd3]; add.s32 %r5, %r5, 1; st.global.v4.u32 [%rd3], {%r5, %r6, %r7, %r8};",
        ),
        (
            "16 of 32 lanes",
            "and.b32 %r5, %r1, 1; setp.eq.u32 %p2, %r5, 0; @%p2 bra SKIP;
             add.s32 %r6, %r3, %r2; xor.b32 %r7, %r6, %r1; shl.b32 %r8, %r7, 3; add.s32 %r3, %r8, 1;
         SKIP:",
        ),
    ];
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (name, body) in bodies
        .into_iter()
        .filter(|(name, _)| name.contains(&wanted))
    {
        let text = format!("{HEAD}{prologue}{body}{epilogue}}}");
        let module = slabfence_emu_ptx::parse(&text).expect("the text is right");
        let launch = Arc::new(Launch {
            kernel: Arc::new(Kernel::compile(&module, "k").expect("the text is right")),
            grid: [8, 1, 1],
            block: [256, 1, 1],
            params: DATA.to_le_bytes().into(),
            dynamic_shared: 0,
            globals: [].into(),
            multiprocessors: 8,
            tag: 0,
        });
        let start = cpu_seconds();
        let executed = run(&launch);
        let seconds = cpu_seconds() - start;
        println!(
            "{name}: {:.1} million warp-instructions/s",
            executed as f64 / seconds / 1e6
        );
    }
}

/// Time that this thread has run, as Linux counts it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|field| field.parse::<f64>().ok())
        .expect("a number");
    nanoseconds / 1e9
}

/// One buffer at [`DATA`].
struct Memory(Vec<UnsafeCell<u128>>);

impl GlobalMemory for Memory {
    fn region(&self, addr: u64, _: bool) -> Result<Region, MemoryFault> {
        let len = 16 * self.0.len() as u64;
        if addr.wrapping_sub(DATA) >= len {
            return Err(MemoryFault::Unmapped);
        }
        let host = self.0.as_ptr().cast_mut().cast();
        // SAFETY: cells that live as long as the memory, and are only accessed through it.
        Ok(unsafe { Region::new(DATA, len, host, true) })
    }

    fn generation(&self) -> u64 {
        0
    }
}

/// Runs all blocks, warps in turn; gives how many instructions they executed.
fn run(launch: &Arc<Launch>) -> u64 {
    let mut memory = Memory((0..4096).map(|_| UnsafeCell::new(0)).collect());
    let mut ctas: Vec<_> = (0..launch.grid[0])
        .map(|x| Cta::new(launch, [x, 0, 0], 0))
        .collect();
    let mut executed = 0;
    while !ctas.iter().all(Cta::done) {
        for cta in &mut ctas {
            for warp in 0..cta.warps() {
                let (memory, hook) = (&mut memory, &mut Fast);
                let mut env = Env {
                    memory,
                    hook,
                    globaltimer: 0,
                    clock: 0,
                    executed,
                };
                if let Step::Fault(fault) = cta.step(warp, &mut env, 4096) {
                    panic!("{fault}");
                }
                executed = env.executed;
            }
        }
    }
    executed
}
