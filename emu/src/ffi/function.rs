//! What functions say of themselves.

use std::ffi::{c_char, c_int};

use slabfence_sys::{CUfunction, CUfunction_attribute, CUkernel};

use super::pointer::{handle, put, put_if};
use crate::code::Code;
use crate::launch::SHARED_LIMIT;

entries! {
    fn cuFuncGetAttribute(call, value: *mut c_int, asked: CUfunction_attribute, function: CUfunction) {
        use CUfunction_attribute as F;
        let (state, _) = call.split();
        state.ready()?;
        let found = state.modules.functions.get(handle(function.as_ptr()))?;
        let kernel = &found.kernel;
        let statically = kernel.static_shared_bytes();
        let (major, minor) = state.profile.compute_capability;
        put(value, match asked {
            F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => kernel.max_threads_per_block() as c_int,
            F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => statically as c_int,
            F::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => 0,
            F::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => kernel.local_bytes() as c_int,
            F::CU_FUNC_ATTRIBUTE_NUM_REGS => kernel.registers() as c_int,
            F::CU_FUNC_ATTRIBUTE_PTX_VERSION => found.ptx_version,
            F::CU_FUNC_ATTRIBUTE_BINARY_VERSION => (major * 10 + minor) as c_int,
            F::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA => 0,
            F::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => SHARED_LIMIT.saturating_sub(statically) as c_int,
            F::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => -1,
            F::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuKernelGetFunction(call, function: *mut CUfunction, kernel: CUkernel) {
        // Kernels of this machine are functions, as those that a node is made of.
        let (state, _) = call.split();
        state.ready()?;
        state.modules.functions.get(handle(kernel.as_ptr()))?;
        put(function, CUfunction::from_ptr(kernel.as_ptr()))
    }

    fn cuFuncLoad(call, function: CUfunction) {
        // Modules are decoded when they are loaded: nothing is left to do.
        let (state, _) = call.split();
        state.ready()?;
        state.modules.functions.get(handle(function.as_ptr())).map(drop)
    }

    fn cuFuncGetName(call, name: *mut *const c_char, function: CUfunction) {
        let (state, _) = call.split();
        state.ready()?;
        let found = state.modules.functions.get(handle(function.as_ptr()))?;
        put(name, found.name.as_ptr())
    }

    fn cuFuncGetParamInfo(call, function: CUfunction, index: usize, offset: *mut usize, bytes: *mut usize) {
        let (state, _) = call.split();
        state.ready()?;
        let found = state.modules.functions.get(handle(function.as_ptr()))?;
        let param = found.kernel.params().get(index).ok_or(Code::INVALID_VALUE)?;
        put_if(bytes, param.size as usize);
        put(offset, param.offset as usize)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(call, blocks: *mut c_int, function: CUfunction, threads: c_int,
        shared: usize)
    {
        let (state, _) = call.split();
        state.ready()?;
        let found = state.modules.functions.get(handle(function.as_ptr()))?;
        let threads = u32::try_from(threads).ok().filter(|&n| n > 0).ok_or(Code::INVALID_VALUE)?;
        let shared = u32::try_from(shared).map_err(|_| Code::INVALID_VALUE)?;
        let refused = threads > found.kernel.max_threads_per_block();
        put(blocks, if refused { 0 } else { state.occupancy(found, threads, shared) as c_int })
    }
}
