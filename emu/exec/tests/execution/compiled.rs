//! What nvcc made of `data/sample.cu` does what the source says, lane for lane.

use crate::support::{Buffer, Memory, run};
use slabfence_emu_exec::{Kernel, Launch};
use std::sync::Arc;

const OUT: u64 = 0x7000_0000_0000;
const GLOBALS: u64 = 0x7100_0000_0000;
const TABLE: [u64; 4] = [0x0123_4567_89ab_cdef, 99, 0xffff_ffff_0000_0001, 1 << 63];
const TAIL: [u8; 3] = [200, 7, 31];
const ROUNDS: u32 = 40;

/// One thread's state.
#[derive(Clone, Copy)]
struct Thread {
    t: u32,
    x: u64,
    y: i64,
    history: [u32; 4],
}

fn byte_perm(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    u32::from_le_bytes([0, 4, 8, 12].map(|shift| bytes[(selector >> shift & 7) as usize]))
}

impl Thread {
    fn scramble(&mut self, i: u32) {
        const WEIGHTS: [i32; 4] = [3, -5, 7, -11];
        let Self { t, x, y, .. } = *self;
        let wide = u64::from(t);
        self.x = match x >> 3 & 7 {
            0 => x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407),
            1 => x ^ x >> 17,
            2 => x.wrapping_add((WEIGHTS[i as usize & 3] * t as i32) as u64),
            3 => x / (wide + 3) + x % (wide + 7),
            4 => {
                self.y = (y / 11).wrapping_sub(y % 13);
                x ^ self.y as u64
            }
            5 => {
                let high = (u128::from(x) * 0x9e37_79b9_7f4a_7c15) >> 64;
                let signed = (i128::from(y) * 12_345_678_901) >> 64;
                (high as u64).wrapping_add(signed as u64)
            }
            6 => x << (t & 63) | x >> (63 - (t & 63)) >> 1,
            _ => x
                .reverse_bits()
                .wrapping_add(u64::from(x.count_ones() * 5))
                .wrapping_add(x.leading_zeros().into()),
        };
        let at = (i & 3) as usize;
        let funnel = ((u64::from(self.history[at]) << 32 | wide) << (i & 31) >> 32) as u32;
        let permuted = byte_perm(self.x as u32, self.history[(i + 1) as usize & 3], 0x5140);
        self.history[at] = permuted.wrapping_add(funnel);
        self.x = self
            .x
            .wrapping_add(self.history[(self.x & 3) as usize].into());
    }

    fn fold(&mut self) {
        let wide =
            (u128::from(self.x) * u128::from(self.x)).wrapping_add(u128::from(self.y as u64));
        self.x = (wide >> 64) as u64 ^ wide as u64;
    }

    /// The float part. nvcc may fuse what the source does not mark as rounded.
    fn floats(&self) -> f32 {
        let f = (self.x as u32 as f32).mul_add(0.003_906_25, f32::from(self.y as i16));
        (f * 1.25 + f.abs().sqrt()) + 1.0 / (f32::from(self.x as i8) + 0.5)
    }
}

fn expected() -> Vec<[u64; 2]> {
    let mut threads: Vec<_> = (0..64u32)
        .map(|t| {
            let x =
                TABLE[t as usize & 3].wrapping_add(u64::from(TAIL[t as usize % 3]) + u64::from(t));
            Thread {
                t,
                x,
                y: (x as i64).wrapping_mul(-7919),
                history: [1, 2, 3, 4],
            }
        })
        .collect();
    for i in 0..ROUNDS {
        threads.iter_mut().for_each(|thread| thread.scramble(i));
        let row: Vec<_> = threads.iter().map(|thread| thread.x).collect();
        threads
            .iter_mut()
            .for_each(|thread| thread.x ^= row[(thread.t ^ 33) as usize]);
        let row: Vec<_> = threads.iter().map(|thread| thread.x as u32).collect();
        for thread in &mut threads {
            thread.x = thread
                .x
                .wrapping_add(row[(thread.t ^ (1 + (i & 15))) as usize].into());
            thread.fold();
        }
    }
    let witness = [48, 8];
    let out = |thread: &Thread| {
        let f = thread.floats();
        [
            thread.x.wrapping_add(witness[thread.t as usize & 1]),
            f as i64 as u64 ^ u64::from(f.to_bits()) << 32,
        ]
    };
    threads.iter().map(out).collect()
}

#[test]
fn a_compiled_kernel_does_what_its_source_says() {
    let module = slabfence_emu_ptx::parse(include_str!("data/sample.ptx")).unwrap();
    assert_eq!((module.version, module.target), ((9, 0), 80));
    let kernel = Arc::new(Kernel::compile(&module, "sample").unwrap());
    assert_eq!(
        (
            kernel.param_bytes(),
            kernel.static_shared_bytes(),
            kernel.local_bytes()
        ),
        (48, 512, 16)
    );
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(OUT, 1024));
    let mut addresses = Vec::new();
    for (index, global) in module.globals.iter().enumerate() {
        let address = GLOBALS + 4096 * index as u64;
        let buffer = Buffer::new(address, global.size as usize);
        buffer.write(0, &global.init);
        memory.buffers.push(buffer.read_only());
        addresses.push(address);
    }
    let mut params = OUT.to_le_bytes().to_vec();
    params.extend(TABLE.iter().flat_map(|word| word.to_le_bytes()));
    params.extend(ROUNDS.to_le_bytes());
    params.extend(TAIL);
    params.push(0);
    let grid = Launch {
        kernel,
        grid: [1, 1, 1],
        block: [64, 1, 1],
        params: params.into(),
        dynamic_shared: 0,
        globals: addresses.into(),
        multiprocessors: 1,
        tag: 0,
    };
    grid.validate().unwrap();
    run(&mut memory, &[Arc::new(grid)]).done();
    for (thread, words) in expected().into_iter().enumerate() {
        let found = [
            memory.buffers[0].u64(2 * thread),
            memory.buffers[0].u64(2 * thread + 1),
        ];
        assert_eq!(found, words, "thread {thread}");
    }
}

#[test]
fn every_shipped_image_is_accepted() {
    let images = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ptx/images");
    let mut kernels = 0;
    for file in std::fs::read_dir(images).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let module = slabfence_emu_ptx::parse(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for entry in &module.entries {
            let kernel = Kernel::compile(&module, &entry.name);
            let kernel = kernel
                .unwrap_or_else(|error| panic!("{}: {}: {error}", path.display(), entry.name));
            assert!(kernel.registers() <= 255 && kernel.static_shared_bytes() <= 48 << 10);
            kernels += 1;
        }
    }
    assert!(kernels > 0, "no kernels in {images}");
}
