//! Modules, libraries, functions and launches.

use std::ffi::{CStr, CString, c_int, c_void};

use cudarc::driver::sys::{self, CUfunction_attribute as F};

use super::{bytes, context, filled};

/// The kernels of these tests.
pub fn image() -> CString {
    CString::new(include_str!("kernels.ptx")).unwrap()
}

/// A function of a module of its own.
pub fn function(name: &CStr) -> sys::CUfunction {
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    ok!(sys::cuModuleLoadData(&mut module, image().as_ptr().cast()));
    ok!(sys::cuModuleGetFunction(
        &mut function,
        module,
        name.as_ptr()
    ));
    function
}

guest_test! {
    fn a_module_is_loaded_from_a_file_and_tells_its_functions() {
        let _context = context(0);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/library/guest/kernels.ptx");
        let file = CString::new(file).unwrap();
        let mut module = std::ptr::null_mut();
        ok!(sys::cuModuleLoad(&mut module, file.as_ptr()));
        let mut count = 0;
        ok!(sys::cuModuleGetFunctionCount(&mut count, module));
        assert_eq!(count, 2);
        let (mut all, mut add) = ([std::ptr::null_mut(); 2], std::ptr::null_mut());
        ok!(sys::cuModuleEnumerateFunctions(all.as_mut_ptr(), 2, module));
        ok!(sys::cuModuleGetFunction(&mut add, module, c"add".as_ptr()));
        assert!(all.contains(&add) && all[0] != all[1]);
        let mut of = std::ptr::null_mut();
        ok!(sys::cuFuncGetModule(&mut of, add));
        assert_eq!(of, module);
        refused!(CUDA_ERROR_FILE_NOT_FOUND, sys::cuModuleLoad(&mut module, c"/no/such/file.ptx".as_ptr()));
    }
}

guest_test! {
    fn a_library_gives_kernels_that_are_launched() {
        let context = context(0);
        let (mut library, mut kernel, none) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        let image = image();
        let code = image.as_ptr().cast();
        let nowhere = std::ptr::null_mut();
        ok!(sys::cuLibraryLoadData(&mut library, code, nowhere, none, 0, std::ptr::null_mut(), none, 0));
        ok!(sys::cuLibraryGetKernel(&mut kernel, library, c"add".as_ptr()));
        refused!(CUDA_ERROR_NOT_FOUND, sys::cuLibraryGetKernel(&mut kernel, library, c"sub".as_ptr()));
        let (mut name, mut of) = (std::ptr::null(), std::ptr::null_mut());
        ok!(sys::cuKernelGetName(&mut name, kernel));
        // SAFETY: the driver gives a string that lives as long as the kernel.
        assert_eq!(unsafe { CStr::from_ptr(name) }, c"add");
        ok!(sys::cuKernelGetLibrary(&mut of, kernel));
        assert_eq!(of, library);
        let (mut offset, mut size, mut threads) = (0, 0, 0);
        ok!(sys::cuKernelGetParamInfo(kernel, 1, &mut offset, &mut size));
        assert_eq!((offset, size), (8, 4));
        ok!(sys::cuKernelGetAttribute(&mut threads, F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
        assert_eq!(threads, 1024);
        let wrong = F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        refused!(CUDA_ERROR_INVALID_DEVICE, sys::cuKernelGetAttribute(&mut threads, wrong, kernel, 1));
        let (mut at, mut size) = (0, 0);
        ok!(sys::cuLibraryGetGlobal(&mut at, &mut size, library, c"seven".as_ptr()));
        assert_eq!((size, bytes(at, 4)), (4, vec![7, 0, 0, 0]));

        let mut function = std::ptr::null_mut();
        ok!(sys::cuKernelGetFunction(&mut function, kernel));
        let (mut at, mut number) = (filled(8, 0), 3u32);
        let mut params: [*mut c_void; 2] = [(&raw mut at).cast(), (&raw mut number).cast()];
        let stream = context.new_stream().unwrap();
        let (params, on) = (params.as_mut_ptr(), stream.cu_stream());
        ok!(sys::cuLaunchCooperativeKernel(function, 1, 1, 1, 2, 1, 1, 0, on, params));
        stream.synchronize().unwrap();
        assert_eq!(bytes(at, 8), [3, 0, 0, 0, 3, 0, 0, 0]);
        ok!(sys::cuLibraryUnload(library));
        refused!(CUDA_ERROR_INVALID_HANDLE, sys::cuKernelGetName(&mut name, kernel));
    }
}

guest_test! {
    fn more_shared_memory_than_the_default_is_had_by_asking() {
        let _context = context(0);
        let told = function(c"shared_bytes");
        let (mut at, none) = (filled(4, 0), std::ptr::null_mut());
        let mut params: [*mut c_void; 1] = [(&raw mut at).cast()];
        let params = params.as_mut_ptr();
        let large = 200u32 << 10;
        let launch = || code!(sys::cuLaunchKernel(told, 1, 1, 1, 1, 1, 1, large, none, params, std::ptr::null_mut()));
        assert_eq!(launch(), sys::CUresult::CUDA_ERROR_INVALID_VALUE);
        let most = F::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuFuncSetAttribute(told, most, (227 << 10) + 1));
        ok!(sys::cuFuncSetAttribute(told, most, large as c_int));
        let mut value = 0;
        ok!(sys::cuFuncGetAttribute(&mut value, most, told));
        assert_eq!(value, large as c_int);
        assert_eq!(launch(), sys::CUresult::CUDA_SUCCESS);
        assert_eq!(bytes(at, 4), large.to_le_bytes());
    }
}

guest_test! {
    fn occupancy_agrees_with_itself() {
        let _context = context(0);
        let add = function(c"add");
        // 228 KiB an SM, 1 KiB of it reserved for each block: four blocks leave each 56 KiB.
        let mut shared = 0;
        ok!(sys::cuOccupancyAvailableDynamicSMemPerBlock(&mut shared, add, 4, 256));
        assert_eq!(shared, 56 << 10);
        let fitting = |shared| {
            let mut blocks = 0;
            ok!(sys::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut blocks, add, 256, shared, 1));
            blocks
        };
        assert_eq!((fitting(shared), fitting(shared + 1)), (4, 3));
        let (mut grid, mut block) = (0, 0);
        ok!(sys::cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, add, None, 0, 0));
        assert_eq!((grid, block), (2 * 132, 1024));
        unsafe extern "C" fn all_of_it(threads: c_int) -> usize {
            if threads > 64 { 300 << 10 } else { 200 << 10 }
        }
        ok!(sys::cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, add, Some(all_of_it), 0, 0));
        assert_eq!((grid, block), (132, 64));
    }
}
