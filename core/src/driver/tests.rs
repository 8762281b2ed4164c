//! What the wrappers promise, against a driver that writes its calls down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use slabfence_sys::{CUresult, CUstreamCaptureMode};

use super::fake;
use super::*;
use crate::error::Error;
use crate::layout::FaultRecord;

const OOM: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

#[test]
fn a_failed_call_is_told_with_its_name_code_and_what_to_do() {
    let device = fake::device();
    fake::fail("cuMemAlloc", OOM);
    let error = DeviceBuffer::new(&device, 64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; free device memory or ask for smaller or fewer channels"
    );
}

#[test]
fn a_code_that_the_driver_cannot_name_is_told_as_a_number() {
    let device = fake::device();
    fake::fail("cuMemAlloc", CUresult(31337));
    let error = DeviceBuffer::new(&device, 64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cuMemAlloc failed: CUresult(31337) (31337): the driver has no words for it"
    );
}

#[test]
fn the_stub_library_is_told_as_such() {
    fake::fail("cuInit", CUresult::CUDA_ERROR_STUB_LIBRARY);
    let api = fake::driver_api();
    let error = Driver::from_api(api).unwrap_err();
    assert!(matches!(
        error,
        Error::Load(slabfence_sys::LoadError::StubLibrary)
    ));
    fake::fail("cuInit", CUresult::CUDA_SUCCESS);
}

#[test]
fn devices_are_listed_with_what_they_are() {
    let devices = fake::driver().devices().unwrap();
    let [first, second] = devices.as_slice() else {
        panic!("{devices:?}");
    };
    assert_eq!((first.ordinal, second.ordinal), (0, 1));
    assert_eq!(first.name, "FAKE");
    assert_eq!(second.uuid.bytes, [1; 16]);
    assert_eq!((first.compute_capability, first.sm_count), ((9, 0), 7));
    assert_eq!(first.total_memory, 1 << 30);
}

#[test]
fn a_guard_puts_the_hosts_context_back() {
    let device = fake::device();
    let foreign = fake::push_foreign();
    {
        let _guard = device.bind().unwrap();
        assert_eq!(fake::thread_state().0, [foreign, device.context()]);
    }
    assert_eq!(fake::thread_state().0, [foreign]);
    assert_eq!(
        fake::log(),
        ["cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent"]
    );
}

#[test]
fn a_context_that_is_current_is_not_pushed_again() {
    let device = fake::device();
    let _outer = device.bind().unwrap();
    fake::log();
    drop(device.bind().unwrap());
    assert_eq!(fake::log(), ["cuCtxGetCurrent"]);
    assert_eq!(fake::thread_state().0, [device.context()]);
}

#[test]
fn set_up_runs_relaxed_and_puts_the_capture_mode_back() {
    let device = fake::device();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    fake::set_mode(mode);
    {
        let _guard = device.setup().unwrap();
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_eq!(fake::thread_state(), (vec![device.context()], relaxed));
    }
    assert_eq!(fake::thread_state(), (Vec::new(), mode));
    fake::fail("cuMemAlloc", OOM);
    DeviceBuffer::new(&device, 1).unwrap_err();
    assert_eq!(fake::thread_state(), (Vec::new(), mode));
}

#[test]
fn nothing_stays_current_when_the_capture_mode_cannot_be_had() {
    let device = fake::device();
    fake::fail("cuThreadExchangeStreamCaptureMode", OOM);
    assert!(device.setup().is_err());
    assert_eq!(fake::thread_state().0, []);
}

#[test]
fn the_context_is_released_after_everything_made_in_it() {
    let device = fake::device();
    let stream = Stream::new(&device).unwrap();
    let module = Module::from_ptx(&device, "text", ".version 9.0").unwrap();
    let kernel = module.kernel("k").unwrap();
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    let graph = stream.end_capture().unwrap();
    let exec = graph.instantiate().unwrap();
    let buffer = DeviceBuffer::new(&device, 16).unwrap();
    buffer.fill(0).unwrap();
    fake::log();
    drop(device);
    drop(module);
    assert_eq!(fake::calls(), [""; 0]);
    drop((exec, graph, kernel, stream));
    drop(buffer);
    assert_eq!(
        fake::calls(),
        [
            "cuGraphExecDestroy",
            "cuGraphDestroy",
            "cuModuleUnload",
            "cuStreamDestroy",
            "cuMemFree 4096",
            "cuStreamDestroy",
            "cuDevicePrimaryCtxRelease 0"
        ]
    );
}

#[test]
fn a_drop_survives_a_driver_that_has_gone() {
    let device = fake::device();
    let event = Event::new(&device).unwrap();
    let buffer = DeviceBuffer::new(&device, 16).unwrap();
    fake::fail("cuCtxGetCurrent", CUresult::CUDA_ERROR_DEINITIALIZED);
    fake::log();
    drop((event, buffer));
    assert_eq!(fake::calls(), [""; 0]);
    fake::fail("cuCtxGetCurrent", CUresult::CUDA_SUCCESS);
}

#[test]
fn a_hosts_stream_is_not_destroyed() {
    let device = fake::device();
    let owned = Stream::new(&device).unwrap();
    fake::log();
    // SAFETY: the stream lives longer than its second owner.
    drop(unsafe { Stream::from_raw(&device, owned.raw()) });
    assert_eq!(fake::log(), [""; 0]);
}

#[test]
fn streams_do_not_wait_for_the_legacy_default_stream() {
    let device = fake::device();
    Stream::new(&device).unwrap();
    assert_eq!(fake::calls(), ["cuStreamCreate 1", "cuStreamDestroy"]);
}

#[test]
fn a_stream_without_an_identity_says_so() {
    // The fake driver serves CUDA 12.4 but lacks cuStreamGetId, as a profiler's stand-in may.
    let stream = Stream::new(&fake::device()).unwrap();
    assert_eq!(stream.id().unwrap(), None);
}

/// All tests of this process share the queue of what graphs have let go of: another test may be about to drop what it has
/// taken out.
fn eventually(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "it never came true");
        std::thread::yield_now();
    }
}

/// Counts how often it is dropped: outside a driver callback and inside one.
#[derive(Clone, Default)]
struct Witness {
    outside: Arc<AtomicU32>,
    inside: Arc<AtomicU32>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        let count = if fake::in_callback() {
            &self.inside
        } else {
            &self.outside
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_a_graph_held_is_dropped_at_the_next_set_up_and_never_in_the_drivers_callback() {
    let device = fake::device();
    let stream = Stream::new(&device).unwrap();
    let witness = Witness::default();
    let (outside, inside) = (witness.outside.clone(), witness.inside.clone());
    stream.begin_capture(CaptureMode::Global).unwrap();
    let CaptureStatus::Active { id, .. } = stream.capture_status().unwrap() else {
        panic!("the stream captures");
    };
    assert_eq!(id, 5);
    fake::log();
    stream.retain_in_capture(Arc::new(witness)).unwrap();
    assert_eq!(
        fake::calls(),
        [
            "cuStreamGetCaptureInfo",
            "cuUserObjectCreate 1 1",
            "cuGraphRetainUserObject 0x99 1 1"
        ]
    );
    assert_eq!(fake::graphs_holding(), 1);
    assert_eq!(outside.load(Ordering::Relaxed), 0);
    fake::end_graphs();
    drop(device.setup().unwrap());
    eventually(|| outside.load(Ordering::Relaxed) == 1);
    assert_eq!(inside.load(Ordering::Relaxed), 0);
}

#[test]
fn a_capture_is_known_to_all_who_opened_the_device() {
    let device = fake::device();
    let again = Device::open(device.driver(), device.ordinal()).unwrap();
    let stream = Stream::new(&device).unwrap();
    again.refuse_during_capture("waiting").unwrap();
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    let refused = again.refuse_during_capture("waiting").unwrap_err();
    assert!(refused.to_string().contains("1 stream(s)"), "{refused}");
    stream.end_capture().unwrap();
    again.refuse_during_capture("waiting").unwrap();
}

#[test]
fn a_capture_is_known_as_long_as_any_value_of_its_stream_is_there() {
    let device = fake::device();
    let refuses = || device.refuse_during_capture("waiting").is_err();
    let stream = Stream::new(&device).unwrap();
    // SAFETY: the stream lives longer than these.
    let again = || unsafe { Stream::from_raw(&device, stream.raw()) };
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    drop(again());
    assert!(refuses());
    again().end_capture().unwrap();
    assert!(!refuses());
    again().begin_capture(CaptureMode::ThreadLocal).unwrap();
    assert!(refuses());
    // Whoever knew it has gone, and it may have been destroyed.
    drop(stream);
    assert!(!refuses());
}

#[test]
fn a_forked_child_gets_errors_and_its_drops_touch_nothing() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
        fn alarm(seconds: u32) -> u32;
        fn _exit(status: i32) -> !;
    }
    let device = fake::device();
    let buffer = DeviceBuffer::new(&device, 16).unwrap();
    let stream = Stream::new(&device).unwrap();
    fake::log();
    // For the child, as if held by a thread that it does not have.
    let held = device.capturing().unwrap();
    // SAFETY: the child only runs code that allocates, which glibc permits in it, and leaves by `_exit`.
    let child = unsafe { fork() };
    if child == 0 {
        // SAFETY: ends a child that hangs.
        unsafe { alarm(60) };
        let refused = matches!(device.bind(), Err(Error::Forked))
            && matches!(device.driver().devices(), Err(Error::Forked))
            && matches!(Driver::from_api(device.api().clone()), Err(Error::Forked));
        std::mem::forget(held);
        drop((device, stream, buffer));
        let silent = fake::log().is_empty();
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { _exit(i32::from(!refused) + 2 * i32::from(!silent)) };
    }
    drop(held);
    let mut status = -1;
    // SAFETY: waits for the child that was just made.
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    assert_eq!(
        status, 0,
        "exit code in the second byte: 1 not refused, 2 not silent; a signal in the first: 14 hung"
    );
    assert!(device.bind().is_ok(), "the parent goes on");
}

#[test]
fn an_object_that_no_graph_takes_is_given_back() {
    let device = fake::device();
    let stream = Stream::new(&device).unwrap();
    stream.begin_capture(CaptureMode::Global).unwrap();
    let object = Arc::new(());
    fake::fail("cuUserObjectCreate", OOM);
    assert!(stream.retain_in_capture(object.clone()).is_err());
    assert_eq!(Arc::strong_count(&object), 1);
    fake::fail("cuUserObjectCreate", CUresult::CUDA_SUCCESS);
    fake::fail("cuGraphRetainUserObject", OOM);
    assert!(stream.retain_in_capture(object.clone()).is_err());
    assert!(fake::calls().contains(&"cuUserObjectRelease".to_owned()));
    drop_released();
    eventually(|| Arc::strong_count(&object) == 1);
}

#[test]
fn holding_something_without_a_capture_is_refused() {
    let stream = Stream::new(&fake::device()).unwrap();
    let error = stream.retain_in_capture(Arc::new(())).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[test]
fn text_that_does_not_compile_is_told_with_the_compilers_words() {
    let error = Module::from_ptx(&fake::device(), "gather", "broken").unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel image `gather` on device 0 (FAKE, compute capability 9.0): cuModuleLoadDataEx failed: \
         CUDA_ERROR_INVALID_PTX (218): the driver has no words for it; the compiler says: ptxas: line 1: no"
    );
}

#[test]
fn bytes_that_are_no_cubin_never_reach_the_driver() {
    let device = fake::device();
    let error = Module::from_cubin(&device, "reduce", b"\x7fELF").unwrap_err();
    assert!(
        error.to_string().ends_with("4 bytes that are no ELF file"),
        "{error}"
    );
    assert_eq!(fake::calls(), [""; 0]);
}

#[test]
fn a_kernel_that_is_not_there_is_named() {
    let module = Module::from_ptx(&fake::device(), "gather", "text").unwrap();
    let error = module.kernel("absent").unwrap_err().to_string();
    assert!(error.ends_with("it has no kernel `absent`"), "{error}");
}

#[test]
fn a_kernel_is_loaded_when_it_is_found_and_its_residency_counts_the_whole_device() {
    let module = Module::from_ptx(&fake::device(), "gather", "text").unwrap();
    fake::log();
    let kernel = module.kernel("k").unwrap();
    assert_eq!(
        fake::calls()[..2],
        ["cuModuleGetFunction".to_owned(), "cuFuncLoad".to_owned()]
    );
    assert_eq!(kernel.max_resident_ctas(512).unwrap(), 4 * 7);
}

#[test]
fn parameters_of_another_size_than_the_kernels_are_refused() {
    let device = fake::device();
    let stream = Stream::new(&device).unwrap();
    let module = Module::from_ptx(&device, "gather", "text").unwrap();
    let kernel = module.kernel("k").unwrap();
    fake::log();
    let record = FaultRecord {
        state: 0xabcd,
        cause: 0,
        operation: 0,
        rank: 0,
        late_rank: 0,
        cta: 0,
        phase: 0,
        expected: 0,
        seen: 0,
        waited: 0,
        tag: 0,
        late_ranks: 0,
        reserved: [0; 7],
    };
    // SAFETY: the fake driver runs nothing.
    unsafe { kernel.launch(&stream, 3, 288, &record) }.unwrap();
    assert_eq!(fake::calls(), ["cuLaunchKernel 3x1x1 288x1x1 0 0xabcd"]);
    let twice = crate::layout::ChannelHealth {
        warning: record,
        fault: record,
    };
    // SAFETY: as above.
    let error = unsafe { kernel.launch(&stream, 3, 288, &twice) }.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("[(0, 128)], not one ChannelHealth of 256 bytes"),
        "{said}"
    );
    assert_eq!(fake::calls(), [""; 0]);
}

#[test]
fn parts_of_a_buffer_are_checked_to_the_byte() {
    let buffer = DeviceBuffer::new(&fake::device(), 16).unwrap();
    buffer.write(12, &[0; 4]).unwrap();
    assert!(fake::calls().contains(&format!("cuMemcpyHtoDAsync {:#x} 4", 4096 + 12)));
    for (offset, bytes) in [(12, 5), (17, 0), (usize::MAX, 1)] {
        let error = buffer.write(offset, &vec![0; bytes]).unwrap_err();
        assert!(matches!(error, Error::Argument { .. }), "{error}");
    }
    assert!(matches!(
        DeviceBuffer::new(buffer.device(), 0),
        Err(Error::Argument { .. })
    ));
}

#[test]
fn addresses_do_not_wrap() {
    let last = DevicePtr::from_raw(u64::MAX);
    assert_eq!(last.offset(1), None);
    assert_eq!(
        DevicePtr::from_raw(16).offset(8),
        Some(DevicePtr::from_raw(24))
    );
    assert!(
        DevicePtr::from_raw(32).is_aligned_to(16) && !DevicePtr::from_raw(40).is_aligned_to(16)
    );
    assert!(!last.is_aligned_to(0));
}
