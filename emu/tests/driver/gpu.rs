//! A machine with its function table, and short forms of the calls that every test makes.

use std::ffi::{CString, c_void};
use std::time::{Duration, Instant};

use slabfence_emu::{Live, Machine, Profile};
use slabfence_sys::*;

/// Calls the driver and gives its code.
macro_rules! code {
    ($call:expr) => {
        // SAFETY: the arguments are live objects of the test, or wrong in a way that the driver answers with a code.
        unsafe { $call }
    };
}

/// Calls the driver, which must succeed.
macro_rules! ok {
    ($call:expr) => {
        assert_eq!(
            code!($call),
            ::slabfence_sys::CUresult::CUDA_SUCCESS,
            "{}",
            stringify!($call)
        )
    };
}

/// Calls the driver, which must answer this code.
macro_rules! refused {
    ($code:ident, $call:expr) => {
        assert_eq!(
            code!($call),
            ::slabfence_sys::CUresult::$code,
            "{}",
            stringify!($call)
        )
    };
}

/// Bytes of a physical allocation.
pub const BLOCK: usize = 2 << 20;

/// A machine of `h200-nvlink` devices, initialised, with the context of device 0 current.
pub struct Gpu {
    pub api: Api,
    pub machine: Machine,
    devices: i32,
}

impl Gpu {
    pub fn new(devices: u32) -> Gpu {
        Gpu::of("h200-nvlink", devices)
    }

    pub fn of(profile: &str, devices: u32) -> Gpu {
        let profile = Profile::named(profile).expect("a known profile");
        Gpu::with(Machine::new(profile, devices).expect("a machine"), devices)
    }

    /// A machine that sees these devices of the host.
    pub fn seeing(boards: &[u32]) -> Gpu {
        let profile = Profile::named("h200-nvlink").expect("a known profile");
        let machine = Machine::seeing(profile, boards).expect("a machine");
        Gpu::with(machine, boards.len() as u32)
    }

    fn with(machine: Machine, devices: u32) -> Gpu {
        let api = machine.api().expect("a whole table");
        let gpu = Gpu {
            api,
            machine,
            devices: devices as i32,
        };
        ok!((gpu.api.cuInit)(0));
        for device in (0..gpu.devices).rev() {
            let mut context = CUcontext::null();
            ok!((gpu.api.cuDevicePrimaryCtxRetain)(
                &mut context,
                CUdevice(device)
            ));
            ok!((gpu.api.cuCtxSetCurrent.unwrap())(context));
        }
        gpu
    }

    /// Makes a device's context current.
    pub fn on(&self, device: i32) {
        let mut context = CUcontext::null();
        ok!((self.api.cuDevicePrimaryCtxRetain)(
            &mut context,
            CUdevice(device)
        ));
        ok!((self.api.cuCtxSetCurrent.unwrap())(context));
        ok!((self.api.cuDevicePrimaryCtxRelease)(CUdevice(device)));
    }

    /// Ends the test: nothing may be left but the contexts, and no kernel may have faulted.
    pub fn clean(self) {
        let contexts = self.devices as usize;
        assert_eq!(
            self.machine.live(),
            Live {
                contexts,
                ..Live::default()
            }
        );
        assert_eq!(self.machine.faults(), Vec::<String>::new());
        for device in 0..self.devices {
            ok!((self.api.cuDevicePrimaryCtxRelease)(CUdevice(device)));
        }
        assert_eq!(self.machine.live(), Live::default());
    }

    pub fn alloc(&self, bytes: usize) -> CUdeviceptr {
        let mut at = CUdeviceptr(0);
        ok!((self.api.cuMemAlloc)(&mut at, bytes));
        at
    }

    pub fn free(&self, at: CUdeviceptr) {
        ok!((self.api.cuMemFree)(at));
    }

    /// Page-locked memory, zeroed; the same address for host and devices.
    pub fn pinned(&self, words: usize) -> *mut u32 {
        let mut at = std::ptr::null_mut();
        ok!((self.api.cuMemHostAlloc.unwrap())(
            &mut at,
            words * 4,
            CUmemHostAlloc_flags::CU_MEMHOSTALLOC_DEVICEMAP
        ));
        // SAFETY: the allocation has that many words.
        unsafe { std::ptr::write_bytes(at.cast::<u8>(), 0, words * 4) };
        at.cast()
    }

    pub fn write(&self, to: CUdeviceptr, words: &[u32]) {
        ok!((self.api.cuMemcpyHtoD.unwrap())(
            to,
            words.as_ptr().cast(),
            size_of_val(words)
        ));
    }

    pub fn read(&self, from: CUdeviceptr, words: usize) -> Vec<u32> {
        let mut out = vec![0u32; words];
        ok!((self.api.cuMemcpyDtoH.unwrap())(
            out.as_mut_ptr().cast(),
            from,
            words * 4
        ));
        out
    }

    pub fn stream(&self) -> CUstream {
        let mut stream = CUstream::null();
        ok!((self.api.cuStreamCreate.unwrap())(
            &mut stream,
            CUstream_flags::CU_STREAM_NON_BLOCKING
        ));
        stream
    }

    pub fn event(&self) -> CUevent {
        let mut event = CUevent::null();
        ok!((self.api.cuEventCreate.unwrap())(
            &mut event,
            CUevent_flags::empty()
        ));
        event
    }

    pub fn module(&self, ptx: &str) -> CUmodule {
        let (mut module, text) = (CUmodule::null(), CString::new(ptx).expect("no NUL inside"));
        let mut log = [0u8; 512];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [
            log.as_mut_ptr().cast::<c_void>(),
            std::ptr::without_provenance_mut(log.len()),
        ];
        let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
        let result = code!((self.api.cuModuleLoadDataEx)(
            &mut module,
            text.as_ptr().cast(),
            2,
            options,
            values
        ));
        assert_eq!(
            result,
            CUresult::CUDA_SUCCESS,
            "{}",
            String::from_utf8_lossy(&log)
        );
        module
    }

    pub fn function(&self, module: CUmodule, name: &str) -> CUfunction {
        let (mut function, name) = (
            CUfunction::null(),
            CString::new(name).expect("no NUL inside"),
        );
        ok!((self.api.cuModuleGetFunction)(
            &mut function,
            module,
            name.as_ptr()
        ));
        function
    }

    /// Launches with 64-bit parameters.
    pub fn launch(
        &self,
        function: CUfunction,
        grid: u32,
        block: u32,
        stream: CUstream,
        params: &[u64],
    ) -> CUresult {
        let mut pointers: Vec<*mut c_void> = params
            .iter()
            .map(|param| std::ptr::from_ref(param).cast_mut().cast())
            .collect();
        let pointers = pointers.as_mut_ptr();
        code!((self.api.cuLaunchKernel)(
            function,
            grid,
            1,
            1,
            block,
            1,
            1,
            0,
            stream,
            pointers,
            std::ptr::null_mut()
        ))
    }

    pub fn sync(&self, stream: CUstream) {
        ok!((self.api.cuStreamSynchronize)(stream));
    }

    pub fn begin(&self, stream: CUstream) {
        ok!((self.api.cuStreamBeginCapture.unwrap())(
            stream,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        ));
    }

    pub fn end(&self, stream: CUstream) -> CUgraph {
        let mut graph = CUgraph::null();
        ok!((self.api.cuStreamEndCapture.unwrap())(stream, &mut graph));
        graph
    }

    pub fn instantiate(&self, graph: CUgraph) -> CUgraphExec {
        let mut exec = CUgraphExec::null();
        ok!((self.api.cuGraphInstantiateWithFlags.unwrap())(
            &mut exec,
            graph,
            CUgraphInstantiate_flags::empty()
        ));
        exec
    }

    pub fn create(&self, device: i32) -> CUmemGenericAllocationHandle {
        let mut handle = CUmemGenericAllocationHandle(0);
        ok!((self.api.cuMemCreate.unwrap())(
            &mut handle,
            BLOCK,
            &prop(device),
            0
        ));
        handle
    }

    pub fn reserve(&self, bytes: usize) -> CUdeviceptr {
        let mut at = CUdeviceptr(0);
        ok!((self.api.cuMemAddressReserve.unwrap())(
            &mut at,
            bytes,
            0,
            CUdeviceptr(0),
            0
        ));
        at
    }

    pub fn grant(&self, at: CUdeviceptr, device: i32, flags: CUmemAccess_flags) -> CUresult {
        code!((self.api.cuMemSetAccess.unwrap())(
            at,
            BLOCK,
            &CUmemAccessDesc {
                location: place(device),
                flags
            },
            1
        ))
    }

    /// One block of a device's memory, mapped, and accessible to these devices.
    pub fn mapped(&self, owner: i32, access: &[(i32, CUmemAccess_flags)]) -> CUdeviceptr {
        let (at, handle) = (self.reserve(BLOCK), self.create(owner));
        ok!((self.api.cuMemMap.unwrap())(at, BLOCK, 0, handle, 0));
        ok!((self.api.cuMemRelease.unwrap())(handle));
        for &(device, flags) in access {
            assert_eq!(self.grant(at, device, flags), CUresult::CUDA_SUCCESS);
        }
        at
    }

    pub fn unmap(&self, at: CUdeviceptr) {
        ok!((self.api.cuMemUnmap.unwrap())(at, BLOCK));
        ok!((self.api.cuMemAddressFree.unwrap())(at, BLOCK));
    }
}

pub const READ: CUmemAccess_flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ;
pub const READWRITE: CUmemAccess_flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
pub const NONE: CUmemAccess_flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE;

pub fn place(device: i32) -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: device,
    }
}

pub fn prop(device: i32) -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        location: place(device),
        ..CUmemAllocationProp::default()
    }
}

/// Waits until `done` holds, or fails the test.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// The kernels of the tests.
pub const PTX: &str = include_str!("kernels.ptx");
