//! Launches.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use slabfence_sys::{CUfunction, CUlaunchAttributeID, CUlaunchConfig, CUstream};

use super::pointer::{get, handle, list};
use crate::code::{Code, Status};
use crate::graph::Task;
use crate::launch::Geometry;
use crate::machine::State;
use crate::slots::Call;

/// Markers in the `extra` array of a launch, which holds the whole parameter block.
const PARAM_END: usize = 0;
const PARAM_BUFFER_POINTER: usize = 1;
const PARAM_BUFFER_SIZE: usize = 2;

/// The packed form of parameters: address and bytes of the block.
fn packed(extra: *mut *mut c_void) -> Status<(*const u8, usize)> {
    let (mut block, mut bytes) = (std::ptr::null(), None);
    for pair in 0..2 {
        let key: *mut c_void = get(extra.wrapping_add(2 * pair))?;
        match key.addr() {
            PARAM_END => break,
            PARAM_BUFFER_POINTER => {
                block = get(extra.wrapping_add(2 * pair + 1))?
                    .cast::<u8>()
                    .cast_const()
            }
            PARAM_BUFFER_SIZE => {
                bytes = Some(get(get(extra.wrapping_add(2 * pair + 1))?.cast::<usize>())?)
            }
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    Ok((block, bytes.ok_or(Code::INVALID_VALUE)?))
}

/// Reads a kernel's parameter block from either form in which a launch may give it.
pub(super) fn parameters(
    state: &State,
    function: u64,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Status<Arc<[u8]>> {
    let kernel = &state.modules.functions.get(function)?.kernel;
    let mut block = vec![0u8; kernel.param_bytes() as usize];
    if kernel.params().is_empty() {
        return Ok(block.into());
    }
    if params.is_null() == extra.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    if !extra.is_null() {
        let (from, bytes) = packed(extra)?;
        if bytes != block.len() {
            return Err(Code::INVALID_VALUE);
        }
        return Ok(list(from, bytes)?.into());
    }
    for (at, param) in kernel.params().iter().enumerate() {
        let from: *mut c_void = get(params.wrapping_add(at))?;
        let value = list(from.cast::<u8>().cast_const(), param.size as usize)?;
        block[param.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    Ok(block.into())
}

pub(super) fn launch(
    call: &mut Call<'_>,
    function: CUfunction,
    geometry: Geometry,
    stream: CUstream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Status {
    let (state, thread) = call.split();
    let current = state.working(thread)?;
    let index = state.stream(thread, handle(stream.as_ptr()))?;
    if state.streams.get(index)?.device != current {
        return Err(Code::INVALID_HANDLE);
    }
    let function = handle(function.as_ptr());
    let block = parameters(state, function, params, extra)?;
    let task = state.kernel_task(function, current, geometry, block)?;
    state.submit(index, Task::Kernel(task))
}

entries! {
    fn cuLaunchKernel(call, function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint, stream: CUstream, params: *mut *mut c_void,
        extra: *mut *mut c_void)
    {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(call, function, Geometry { grid, block, shared, cooperative: false }, stream, params, extra)
    }

    fn cuLaunchKernelEx(call, config: *const CUlaunchConfig, function: CUfunction, params: *mut *mut c_void,
        extra: *mut *mut c_void)
    {
        let config = get(config)?;
        let mut cooperative = false;
        for attribute in list(config.attrs.cast_const(), config.numAttrs as usize)? {
            use CUlaunchAttributeID as A;
            match attribute.id {
                // SAFETY: the id says that this member of the union is set; any bits are an int.
                A::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => cooperative = unsafe { attribute.value.cooperative } != 0,
                // Hints, and leave to overlap that this machine does not take: a kernel starts when its predecessor
                // has ended, which `griddepcontrol.wait` then finds to be so.
                A::CU_LAUNCH_ATTRIBUTE_IGNORE
                | A::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
                | A::CU_LAUNCH_ATTRIBUTE_PRIORITY
                | A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
                | A::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {}
                _ => return Err(Code::NOT_SUPPORTED),
            }
        }
        let geometry = Geometry {
            grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
            block: [config.blockDimX, config.blockDimY, config.blockDimZ],
            shared: config.sharedMemBytes,
            cooperative,
        };
        launch(call, function, geometry, config.hStream, params, extra)
    }
}
