//! What ranks of the matrix launch besides collectives.

use slabfence::Result;
use slabfence::driver::{Device, Kernel, Module, Stream};
use slabfence::layout::{DeviceStruct, Field};

/// One counts to its argument and touches no memory, the other takes one from the word there.
const KERNELS: &str = "
.version 7.0
.target sm_80
.address_size 64

.visible .entry sleep(.param .align 8 .b8 block[8])
{
    .reg .b64 %left;
    .reg .pred %p;
    ld.param.u64 %left, [block];
AGAIN:
    sub.s64 %left, %left, 1;
    setp.ne.s64 %p, %left, 0;
    @%p bra AGAIN;
    ret;
}

.visible .entry less(.param .align 8 .b8 block[8])
{
    .reg .b64 %word, %less;
    ld.param.u64 %word, [block];
    mov.u64 %less, -1;
    red.relaxed.gpu.global.add.u64 [%word], %less;
    ret;
}
";

/// The parameter block of these kernels: a number or an address.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Word {
    word: u64,
}

impl DeviceStruct for Word {
    const NAME: &'static str = "Word";
    const FIELDS: &'static [Field] = &[];
    const DOC: &'static [&'static str] = &[];
}

/// The kernels on one device.
#[derive(Debug)]
pub struct Aside {
    sleep: Kernel,
    less: Kernel,
}

impl Aside {
    /// Loads them.
    pub fn new(device: &Device) -> Result<Self> {
        let module = Module::from_ptx(device, "aside", KERNELS)?;
        Ok(Self {
            sleep: module.kernel("sleep")?,
            less: module.kernel("less")?,
        })
    }

    /// Holds a stream up.
    pub fn sleep(&self, stream: &Stream) -> Result<()> {
        let turns = Word { word: 3000 };
        // SAFETY: the block is the kernel's, and the kernel touches no memory.
        unsafe { self.sleep.launch(stream, 1, 32, &turns) }
    }

    /// Takes one from a channel's counter of warps that have ended, at `retired`.
    pub fn trip(&self, stream: &Stream, retired: u64) -> Result<()> {
        // SAFETY: the block is the kernel's, and the word lives as long as the channel, which the caller has.
        unsafe { self.less.launch(stream, 1, 1, &Word { word: retired }) }
    }
}
