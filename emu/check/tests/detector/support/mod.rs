//! What the tests run on: memory, a small machine, kernels.

pub mod exchange;
pub mod machine;
pub mod memory;
pub mod shipped;

use machine::{Outcome, Schedule, Stream, run};
use memory::{Buffer, Memory};
use slabfence_emu_check::{Checker, Options, Region};
use slabfence_emu_exec::{Kernel, Launch};
use std::sync::Arc;

/// A one-kernel module around a body with 64-bit parameters `p0`, `p1`, …, and registers of every kind.
pub fn kernel(params: usize, body: &str) -> Arc<Kernel> {
    let params: Vec<_> = (0..params).map(|n| format!(".param .u64 p{n}")).collect();
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k({})\n{{\n\
         .reg .pred %p<16>; .reg .b32 %r<32>; .reg .b64 %d<48>;\n\
         mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x;\n{body}\n}}\n",
        params.join(", ")
    );
    let module = slabfence_emu_ptx::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Arc::new(Kernel::compile(&module, "k").unwrap_or_else(|error| panic!("{error}\n{text}")))
}

pub fn launch(kernel: &Arc<Kernel>, grid: u32, block: u32, params: &[u64]) -> Launch {
    Launch {
        kernel: Arc::clone(kernel),
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        params: params.iter().flat_map(|word| word.to_le_bytes()).collect(),
        dynamic_shared: 0,
        // No kernel here uses a variable of its text.
        globals: vec![0; kernel.globals()].into(),
        multiprocessors: 4,
        tag: 0,
    }
}

/// Memory that the regions lie in, each from its base rounded down to the next multiple of 16.
pub fn memory(regions: &[Region]) -> Memory {
    let mut memory = Memory::default();
    for region in regions {
        let base = region.base & !15;
        if memory
            .buffers
            .iter()
            .all(|b| base.wrapping_sub(b.base) >= b.len())
        {
            memory.buffers.push(Buffer::new(base, region.end() - base));
        }
    }
    memory
}

pub fn checker(options: Options, regions: &[Region]) -> Checker {
    let mut checker = Checker::new(options);
    for region in regions {
        checker.region(region.clone());
    }
    checker
}

/// Runs streams in these regions, with everything resident.
pub fn check(regions: &[Region], streams: &[Stream], seed: u64) -> Outcome {
    let checker = checker(Options::default(), regions);
    run(&mut memory(regions), checker, streams, Schedule::of(seed))
}

pub const A: u64 = 0x10_0000_0000;
pub const B: u64 = 0x20_0000_0000;

/// An initialised buffer.
pub fn filled(base: u64, len: u64, device: u32, name: &str) -> Region {
    Region {
        initialised: true,
        ..Region::buffer(base, len, device, name)
    }
}
