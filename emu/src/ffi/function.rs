//! What functions say of themselves.

use std::ffi::{c_char, c_int};

use slabfence_sys::{CUfunction, CUfunction_attribute, CUkernel};

use super::pointer::{handle, put, put_if};
use crate::code::{Code, Status};
use crate::machine::State;

/// An attribute's value.
pub(super) fn attribute(
    state: &State,
    function: u64,
    asked: CUfunction_attribute,
) -> Status<c_int> {
    use CUfunction_attribute as F;
    let found = state.modules.functions.get(function)?;
    let kernel = &found.kernel;
    let statically = kernel.static_shared_bytes();
    let (major, minor) = state.profile.compute_capability;
    Ok(match asked {
        F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => kernel.max_threads_per_block() as c_int,
        F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => statically as c_int,
        F::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => 0,
        F::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => kernel.local_bytes() as c_int,
        F::CU_FUNC_ATTRIBUTE_NUM_REGS => kernel.registers() as c_int,
        F::CU_FUNC_ATTRIBUTE_PTX_VERSION => found.ptx_version,
        F::CU_FUNC_ATTRIBUTE_BINARY_VERSION => (major * 10 + minor) as c_int,
        F::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA => 0,
        F::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => found.dynamic_shared as c_int,
        F::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => -1,
        F::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// Offset and bytes of a parameter.
pub(super) fn parameter(state: &State, function: u64, index: usize) -> Status<(usize, usize)> {
    let found = state.modules.functions.get(function)?;
    let param = found
        .kernel
        .params()
        .get(index)
        .ok_or(Code::INVALID_VALUE)?;
    Ok((param.offset as usize, param.size as usize))
}

/// How many blocks fit one multiprocessor.
pub(super) fn blocks(state: &State, function: u64, threads: c_int, shared: usize) -> Status<c_int> {
    let found = state.modules.functions.get(function)?;
    let threads = u32::try_from(threads).ok().filter(|&n| n > 0);
    let threads = threads.ok_or(Code::INVALID_VALUE)?;
    let shared = u32::try_from(shared).map_err(|_| Code::INVALID_VALUE)?;
    if threads > found.kernel.max_threads_per_block() {
        return Ok(0);
    }
    Ok(state.occupancy(found, threads, shared) as c_int)
}

entries! {
    fn cuFuncGetAttribute(call, value: *mut c_int, asked: CUfunction_attribute, function: CUfunction) {
        let (state, _) = call.split();
        state.ready()?;
        put(value, attribute(state, handle(function.as_ptr()), asked)?)
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
        let (at, size) = parameter(state, handle(function.as_ptr()), index)?;
        put_if(bytes, size);
        put(offset, at)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(call, to: *mut c_int, function: CUfunction, threads: c_int,
        shared: usize)
    {
        let (state, _) = call.split();
        state.ready()?;
        put(to, blocks(state, handle(function.as_ptr()), threads, shared)?)
    }
}
