//! What is loaded, what is refused, and what functions say of themselves.

use std::ffi::{CStr, CString, c_void};

use slabfence_sys::*;

use crate::gpu::{Gpu, PTX};

/// Loads an image; gives the code and the error log.
pub fn load(gpu: &Gpu, image: &[u8]) -> (CUresult, String) {
    let mut module = CUmodule::null();
    let mut log = [1u8; 256];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [
        log.as_mut_ptr().cast::<c_void>(),
        std::ptr::without_provenance_mut(log.len()),
    ];
    let (options, values_at) = (options.as_mut_ptr(), values.as_mut_ptr());
    let code = code!((gpu.api.cuModuleLoadDataEx)(
        &mut module,
        image.as_ptr().cast(),
        2,
        options,
        values_at
    ));
    let text = CStr::from_bytes_until_nul(&log)
        .expect("a string")
        .to_string_lossy()
        .into_owned();
    assert_eq!(
        values[1].addr(),
        text.len(),
        "the option tells how much was written"
    );
    (code, text)
}

pub fn text(ptx: &str) -> Vec<u8> {
    CString::new(ptx)
        .expect("no NUL inside")
        .into_bytes_with_nul()
}

#[test]
fn binaries_are_refused_as_not_for_this_device() {
    let gpu = Gpu::new(1);
    for image in [
        &b"\x7fELF\x02\x01\x01\0"[..],
        &[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0],
    ] {
        let (code, log) = load(&gpu, image);
        assert_eq!(code, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_eq!(
            log,
            "the image is a binary: the emulated driver takes PTX text only"
        );
    }
    gpu.clean();
}

#[test]
fn a_text_that_does_not_parse_is_refused_with_the_line_in_the_log() {
    let gpu = Gpu::new(1);
    let (code, log) = load(&gpu, &text(&PTX.replace("trap;", "frobnicate;")));
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    let line = PTX.lines().position(|line| line.contains("trap;")).unwrap() + 1;
    assert!(
        log.starts_with(&format!("line {line}:")) && log.contains("frobnicate"),
        "{log}"
    );
    let (code, _) = load(&gpu, b"\0");
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    gpu.clean();
}

#[test]
fn a_text_newer_than_the_driver_is_refused_whatever_it_holds() {
    let gpu = Gpu::new(1);
    let newer = PTX
        .replace(".version 9.0", ".version 9.1")
        .replace("trap;", "frobnicate;");
    let (code, log) = load(&gpu, &text(&newer));
    assert_eq!(code, CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert_eq!(log, "line 9: PTX .version 9.1: this driver takes up to 9.0");
    gpu.clean();
}

#[test]
fn a_text_for_a_newer_device_is_refused() {
    let gpu = Gpu::new(1);
    for (target, loads) in [
        ("sm_90", true),
        ("sm_90a", true),
        ("sm_100", false),
        ("sm_80a", false),
    ] {
        let (code, log) = load(
            &gpu,
            &text(&PTX.replace(".target sm_80", &format!(".target {target}"))),
        );
        let expected = if loads {
            CUresult::CUDA_SUCCESS
        } else {
            CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        };
        assert_eq!(code, expected, "{target}: {log}");
    }
}

#[test]
fn variables_have_their_first_values_and_are_found_by_name() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (mut at, mut bytes) = (CUdeviceptr(0), 0);
    ok!((gpu.api.cuModuleGetGlobal.unwrap())(
        &mut at,
        &mut bytes,
        module,
        c"table".as_ptr()
    ));
    assert_eq!(bytes, 16);
    assert_eq!(gpu.read(at, 4), [1, 2, 3, 4]);
    ok!((gpu.api.cuModuleGetGlobal.unwrap())(
        &mut at,
        &mut bytes,
        module,
        c"counter".as_ptr()
    ));
    assert_eq!((bytes, gpu.read(at, 1)), (4, vec![7]));
    refused!(
        CUDA_ERROR_NOT_FOUND,
        (gpu.api.cuModuleGetGlobal.unwrap())(&mut at, &mut bytes, module, c"absent".as_ptr())
    );
    let (globals, out) = (gpu.function(module, "globals"), gpu.alloc(8));
    for seen in [[7, 4], [8, 1]] {
        assert_eq!(
            gpu.launch(globals, 1, 1, CUstream::null(), &[out.0]),
            CUresult::CUDA_SUCCESS
        );
        assert_eq!(gpu.read(out, 2), seen);
    }
    gpu.free(out);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

/// Constants, a kernel that tells them, and one that writes the first.
const CONSTANTS: &str = ".version 8.0
.target sm_70
.address_size 64
.visible .const .align 4 .b32 factors[2];
.visible .entry tell(.param .u64 at)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<1>;
    ld.param.u64 %d0, [at];
    ld.const.u32 %r0, [factors];
    ld.const.u32 %r1, [factors+4];
    st.global.u32 [%d0], %r0;
    st.global.u32 [%d0+4], %r1;
    ret;
}
.visible .entry write(.param .u64 at)
{
    .reg .b32 %r<1>;
    .reg .b64 %d<1>;
    ld.param.u64 %d0, [at];
    mov.u32 %r0, 1;
    st.global.u32 [%d0], %r0;
    ret;
}
";

#[test]
fn constants_are_written_by_copies_and_fills_within_them_but_not_by_kernels() {
    let gpu = Gpu::new(1);
    let module = gpu.module(CONSTANTS);
    let (mut at, mut bytes) = (CUdeviceptr(0), 0);
    let get_global = gpu.api.cuModuleGetGlobal.unwrap();
    ok!(get_global(&mut at, &mut bytes, module, c"factors".as_ptr()));
    assert_eq!((bytes, gpu.read(at, 2)), (8, vec![0, 0]));
    let (tell, out) = (gpu.function(module, "tell"), gpu.alloc(8));
    let told = || {
        let launched = gpu.launch(tell, 1, 1, CUstream::null(), &[out.0]);
        assert_eq!(launched, CUresult::CUDA_SUCCESS);
        gpu.read(out, 2)
    };
    gpu.write(at, &[5, 7]);
    assert_eq!(told(), [5, 7]);
    let second = CUdeviceptr(at.0 + 4);
    let fill = gpu.api.cuMemsetD32Async.unwrap();
    ok!(fill(second, 9, 1, CUstream::null()));
    assert_eq!(told(), [5, 9]);
    let words = [1u32; 3];
    let copy = gpu.api.cuMemcpyHtoD.unwrap();
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        copy(at, words.as_ptr().cast(), 12)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        fill(second, 1, 2, CUstream::null())
    );
    assert_eq!(told(), [5, 9]);
    gpu.free(out);
    let write = gpu.function(module, "write");
    assert_eq!(
        gpu.launch(write, 1, 1, CUstream::null(), &[at.0]),
        CUresult::CUDA_SUCCESS
    );
    refused!(
        CUDA_ERROR_ILLEGAL_ADDRESS,
        (gpu.api.cuStreamSynchronize)(CUstream::null())
    );
}

#[test]
fn functions_are_found_by_name_while_their_module_is_loaded() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let mut function = CUfunction::null();
    refused!(
        CUDA_ERROR_NOT_FOUND,
        (gpu.api.cuModuleGetFunction)(&mut function, module, c"absent".as_ptr())
    );
    let sum = gpu.function(module, "sum");
    ok!((gpu.api.cuFuncLoad.unwrap())(sum));
    let mut name = std::ptr::null();
    ok!((gpu.api.cuFuncGetName.unwrap())(&mut name, sum));
    // SAFETY: the driver's string, valid while the module is loaded.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"sum");
    ok!((gpu.api.cuModuleUnload)(module));
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuFuncLoad.unwrap())(sum)
    );
    refused!(CUDA_ERROR_INVALID_HANDLE, (gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn a_function_tells_its_parameters_attributes_and_occupancy() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let sum = gpu.function(module, "sum");
    let info = gpu.api.cuFuncGetParamInfo.unwrap();
    let (mut offset, mut bytes) = (99, 99);
    ok!(info(sum, 1, &mut offset, &mut bytes));
    assert_eq!((offset, bytes), (8, 8));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        info(sum, 2, &mut offset, &mut bytes)
    );
    let attribute = |asked| {
        let mut value = -1;
        ok!((gpu.api.cuFuncGetAttribute.unwrap())(
            &mut value, asked, sum
        ));
        value
    };
    assert_eq!(
        attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        1024
    );
    assert_eq!(
        attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION),
        90
    );
    assert_eq!(
        attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        1024
    );
    let occupancy = |threads, shared| {
        let mut blocks = -1;
        ok!((gpu
            .api
            .cuOccupancyMaxActiveBlocksPerMultiprocessor
            .unwrap())(&mut blocks, sum, threads, shared));
        blocks
    };
    assert_eq!(occupancy(1024, 0), 2, "2048 threads");
    assert_eq!(occupancy(32, 0), 32, "32 blocks");
    assert_eq!(
        occupancy(32, 36 << 10),
        6,
        "228 KiB of shared memory, 38 KiB a block with what the system reserves"
    );
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}
