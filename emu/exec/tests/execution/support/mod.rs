//! A device for tests: some buffers, and grids that run on it round-robin.

pub mod table;

use slabfence_emu_exec::{
    Cta, Env, Fast, Fault, GlobalMemory, Hook, Kernel, Launch, MemoryFault, Region, Step,
};
use std::{cell::UnsafeCell, sync::Arc};

/// A range of device memory. Its address is made up, and has nothing to do with where its bytes lie.
pub struct Buffer {
    base: u64,
    words: Box<[UnsafeCell<u128>]>,
    bytes: usize,
    writable: bool,
}

impl Buffer {
    pub fn new(base: u64, bytes: usize) -> Self {
        let words = (0..bytes.div_ceil(16))
            .map(|_| UnsafeCell::new(0))
            .collect();
        Self {
            base,
            words,
            bytes,
            writable: true,
        }
    }

    pub fn read_only(mut self) -> Self {
        self.writable = false;
        self
    }

    fn host(&self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }

    /// Where a byte of the buffer lies.
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset + len <= self.bytes);
        self.host().wrapping_add(offset)
    }

    pub fn write(&self, offset: usize, data: &[u8]) {
        let to = self.at(offset, data.len());
        // SAFETY: inside the buffer, which only this thread touches.
        unsafe { to.copy_from_nonoverlapping(data.as_ptr(), data.len()) }
    }

    pub fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        let from = self.at(offset, N).cast::<[u8; N]>();
        // SAFETY: inside the buffer, which only this thread touches.
        unsafe { from.read_unaligned() }
    }

    pub fn u32(&self, index: usize) -> u32 {
        u32::from_le_bytes(self.read(4 * index))
    }

    pub fn u64(&self, index: usize) -> u64 {
        u64::from_le_bytes(self.read(8 * index))
    }

    pub fn put_u32s(&self, values: &[u32]) {
        for (index, value) in values.iter().enumerate() {
            self.write(4 * index, &value.to_le_bytes());
        }
    }

    pub fn put_u64s(&self, values: &[u64]) {
        for (index, value) in values.iter().enumerate() {
            self.write(8 * index, &value.to_le_bytes());
        }
    }
}

/// Device memory: buffers.
#[derive(Default)]
pub struct Memory {
    pub buffers: Vec<Buffer>,
    pub generation: u64,
}

impl GlobalMemory for Memory {
    fn region(&self, addr: u64, write: bool) -> Result<Region, MemoryFault> {
        let inside =
            |buffer: &&Buffer| addr >= buffer.base && addr - buffer.base < buffer.bytes as u64;
        let buffer = self
            .buffers
            .iter()
            .find(inside)
            .ok_or(MemoryFault::Unmapped)?;
        if write && !buffer.writable {
            return Err(MemoryFault::ReadOnly);
        }
        // SAFETY: the bytes lie in interior-mutable cells that live as long as the buffer, 16-byte aligned as the
        // bases in these tests are; tests remove no buffer without a new generation.
        Ok(unsafe {
            Region::new(
                buffer.base,
                buffer.bytes as u64,
                buffer.host(),
                buffer.writable,
            )
        })
    }

    fn generation(&self) -> u64 {
        self.generation
    }
}

/// A one-kernel module around a body; parameters are 64-bit words `p0`, `p1`, …
pub fn module(params: usize, body: &str) -> String {
    let params: Vec<_> = (0..params).map(|n| format!(".param .u64 p{n}")).collect();
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k({})\n{{\n{body}\n}}\n",
        params.join(", ")
    )
}

pub fn compile(text: &str, name: &str) -> Arc<Kernel> {
    let module = slabfence_emu_ptx::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Arc::new(Kernel::compile(&module, name).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

pub fn launch(kernel: &Arc<Kernel>, grid: u32, block: u32, params: &[u64]) -> Arc<Launch> {
    let launch = Launch {
        kernel: Arc::clone(kernel),
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        params: params.iter().flat_map(|word| word.to_le_bytes()).collect(),
        dynamic_shared: 0,
        globals: Arc::from([]),
        multiprocessors: 4,
        tag: 0,
    };
    launch.validate().unwrap();
    Arc::new(launch)
}

/// How a run ended.
#[derive(Debug)]
pub enum End {
    Done(u64),
    Fault(Box<Fault>),
    /// Nobody can go on, or nobody has for long.
    Stuck(Vec<Cta>),
}

impl End {
    pub fn fault(self) -> Box<Fault> {
        match self {
            Self::Fault(fault) => fault,
            other => panic!("{other:?} is no fault"),
        }
    }

    pub fn done(self) -> u64 {
        match self {
            Self::Done(executed) => executed,
            other => panic!("{other:?} is not done"),
        }
    }
}

/// Runs grids to their end, all blocks resident, warps in turn with little fuel.
pub fn run_with<H: Hook>(
    memory: &mut Memory,
    hook: &mut H,
    launches: &[Arc<Launch>],
    fuel: u32,
) -> End {
    let mut ctas = Vec::new();
    for launch in launches {
        let [x, y, z] = launch.grid;
        for index in 0..x * y * z {
            ctas.push(Cta::new(
                launch,
                [index % x, index / x % y, index / x / y],
                index % 4,
            ));
        }
    }
    let (mut executed, mut idle) = (0, 0);
    loop {
        let mut progress = false;
        for cta in &mut ctas {
            for warp in 0..cta.warps() {
                if !cta.runnable(warp) {
                    continue;
                }
                let mut env = Env {
                    memory,
                    hook,
                    globaltimer: 1000 + executed,
                    clock: executed,
                    executed,
                };
                let step = cta.step(warp, &mut env, fuel);
                executed = env.executed;
                match step {
                    Step::Fault(fault) => return End::Fault(fault),
                    Step::Polled => {}
                    _ => progress = true,
                }
            }
        }
        if ctas.iter().all(Cta::done) {
            return End::Done(executed);
        }
        idle = if progress { 0 } else { idle + 1 };
        if idle > 1000 {
            return End::Stuck(ctas);
        }
    }
}

pub fn run(memory: &mut Memory, launches: &[Arc<Launch>]) -> End {
    run_with(memory, &mut Fast, launches, 64)
}
