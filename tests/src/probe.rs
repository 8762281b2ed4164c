//! Small kernels for tests: one stores a word, one copies a word, one lets time pass.

use std::time::Duration;

use slabfence::driver::{Device, DeviceBuffer, DevicePtr, Driver, Kernel, Module, Stream};
use slabfence::layout::{DeviceStruct, Field};
use slabfence_emu::{Machine, Profile};

use crate::watched::Watched;

const PTX: &str = "
.version 7.0
.target sm_80
.address_size 64

.visible .entry poke(.param .align 8 .b8 block[16])
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [block];
    ld.param.u64 %rd2, [block+8];
    st.global.u64 [%rd1], %rd2;
    ret;
}

.visible .entry copy(.param .align 8 .b8 block[16])
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [block];
    ld.param.u64 %rd2, [block+8];
    ld.global.u64 %rd3, [%rd2];
    st.global.u64 [%rd1], %rd3;
    ret;
}

.visible .entry pause(.param .align 8 .b8 block[16])
{
    .reg .pred %p<3>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [block+8];
    mov.u64 %rd2, %globaltimer;
    mov.u64 %rd4, 0;
again:
    mov.u64 %rd3, %globaltimer;
    sub.u64 %rd3, %rd3, %rd2;
    add.u64 %rd4, %rd4, 1;
    setp.ge.u64 %p1, %rd3, %rd1;
    @%p1 bra done;
    setp.lt.u64 %p2, %rd4, 100000000;
    @%p2 bra again;
done:
    ret;
}
";

/// The parameter block of the kernels: where to store, and what (`poke`) or from where (`copy`); or how long (`pause`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Address to store to.
    pub to: u64,
    /// Value, address to load from, or nanoseconds.
    pub word: u64,
}

impl DeviceStruct for Words {
    const NAME: &'static str = "Words";
    const FIELDS: &'static [Field] = &[];
    const DOC: &'static [&'static str] = &[];
}

/// A machine of `devices` devices and its driver. No device of it may have had a fault when it goes.
///
/// # Panics
///
/// When there is none: these are tests.
pub fn machine(devices: u32) -> (Watched, Driver) {
    machine_of("h200-nvlink", devices)
}

/// [`machine`] of a profile.
///
/// # Panics
///
/// When there is none: these are tests.
pub fn machine_of(profile: &str, devices: u32) -> (Watched, Driver) {
    let profile = Profile::named(profile).expect("a known profile");
    let machine = Machine::new(profile, devices).expect("a machine");
    let api = machine.api().expect("its function table");
    let driver = Driver::from_api(api).expect("its driver");
    (Watched::new(machine), driver)
}

/// The kernels on one device, with a stream to run them on.
#[derive(Debug)]
pub struct Probe {
    /// Where the kernels run.
    pub stream: Stream,
    poke: Kernel,
    copy: Kernel,
    pause: Kernel,
}

impl Probe {
    /// Loads the kernels.
    pub fn new(device: &Device) -> slabfence::Result<Self> {
        let module = Module::from_ptx(device, "probe", PTX)?;
        Ok(Self {
            stream: Stream::new(device)?,
            poke: module.kernel("poke")?,
            copy: module.kernel("copy")?,
            pause: module.kernel("pause")?,
        })
    }

    /// Enqueues a store of `word` to `to`.
    ///
    /// The address may be any: a wrong one is a fault of the device, which it reports from then on.
    pub fn enqueue_poke(&self, to: u64, word: u64) -> slabfence::Result<()> {
        // SAFETY: the tests' addresses are of live memory, or of none, which the device reports.
        unsafe { self.poke.launch(&self.stream, 1, 1, &Words { to, word }) }
    }

    /// Stores `word` to `to` and waits.
    pub fn poke(&self, to: u64, word: u64) -> slabfence::Result<()> {
        self.enqueue_poke(to, word)?;
        self.stream.synchronize()
    }

    /// Enqueues a copy of the word at `from` to `to`, under the same terms.
    pub fn enqueue_copy(&self, to: u64, from: u64) -> slabfence::Result<()> {
        let words = Words { to, word: from };
        // SAFETY: as for `enqueue_poke`.
        unsafe { self.copy.launch(&self.stream, 1, 1, &words) }
    }

    /// Enqueues a kernel that holds `stream` up for `time`.
    pub fn enqueue_pause(&self, stream: &Stream, time: Duration) -> slabfence::Result<()> {
        let (to, word) = (0, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        // SAFETY: it touches no memory.
        unsafe { self.pause.launch(stream, 1, 1, &Words { to, word }) }
    }

    /// Loads the word at `from` by a kernel and gives it.
    pub fn peek(&self, from: u64) -> slabfence::Result<u64> {
        let result = DeviceBuffer::new(self.stream.device(), 8)?;
        let to: DevicePtr = result.ptr();
        self.enqueue_copy(to.raw(), from)?;
        self.stream.synchronize()?;
        let mut bytes = [0; 8];
        result.read(0, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Whether an error is the device's word that an address was wrong.
pub fn is_illegal_address(error: &slabfence::Error) -> bool {
    use slabfence::sys::CUresult;
    matches!(error, slabfence::Error::Driver(error) if error.code == CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)
}
