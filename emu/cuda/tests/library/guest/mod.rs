//! Tests that call the driver by somebody else's bindings, cudarc's. These find the library by the environment of their
//! process, so each such test runs this program again for itself.

use std::process::Command;
use std::sync::Arc;

use cudarc::driver::{CudaContext, result, sys};

use crate::build::{run, with_library};

/// Set in the process that the test's body runs in.
const INSIDE: &str = "SLABFENCE_EMU_GUEST";

/// Whether this is the process with the library. Where it is not, runs the test in one, which must pass.
pub fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1");
    let (status, out, err) = run(with_library(&mut again));
    assert!(
        status.success() && out.contains("1 passed"),
        "{test}: {status}\n{out}\n{err}"
    );
    false
}

/// A test whose body runs in a process with the library.
macro_rules! guest_test {
    (fn $name:ident() $body:block) => {
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            let (_, path) = path.split_once("::").unwrap();
            if crate::guest::inside(path) $body
        }
    };
}

/// Calls the driver by cudarc's binding; gives its code.
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
            cudarc::driver::sys::CUresult::CUDA_SUCCESS,
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
            cudarc::driver::sys::CUresult::$code,
            "{}",
            stringify!($call)
        )
    };
}

mod contexts;
mod copies;
mod graphs;
mod modules;
mod pools;

/// The primary context of a device, current.
pub fn context(ordinal: usize) -> Arc<CudaContext> {
    CudaContext::new(ordinal).unwrap()
}

/// Bytes of device memory, filled with one value; never freed, as the process ends with its test.
pub fn filled(bytes: usize, value: u8) -> sys::CUdeviceptr {
    // SAFETY: a context is current.
    let at = unsafe { result::malloc_sync(bytes) }.unwrap();
    ok!(sys::cuMemsetD8_v2(at, value, bytes));
    at
}

/// What device memory holds.
pub fn bytes(at: sys::CUdeviceptr, count: usize) -> Vec<u8> {
    let mut host = vec![0; count];
    ok!(sys::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), at, count));
    host
}
