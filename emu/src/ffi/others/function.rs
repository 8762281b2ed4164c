//! More of functions: what they are told, how they are launched, and how many blocks of them fit.

use std::ffi::{c_int, c_uint, c_void};

use slabfence_sys::{CUfunction, CUfunction_attribute, CUmodule, CUstream};

use crate::code::{Code, Status};
use crate::ffi::launch::launch;
use crate::ffi::pointer::{handle, put, put_if, raw};
use crate::launch::Geometry;
use crate::machine::State;

/// The highest `CUfunc_cache`.
const LAST_CACHE: c_uint = 3;
/// `CU_FUNCTION_LOADING_STATE_LOADED`.
const LOADED: c_uint = 1;
/// Threads of a warp: blocks are tried in steps of it.
const WARP: u32 = 32;

/// `cuFuncSetAttribute`.
pub(super) fn set_attribute(
    state: &mut State,
    function: u64,
    told: CUfunction_attribute,
    value: c_int,
) -> Status {
    use CUfunction_attribute as F;
    let most = state.profile.shared_per_cta_optin;
    let found = state.modules.functions.get_mut(function)?;
    match told {
        F::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            let room = most.saturating_sub(found.kernel.static_shared_bytes());
            let asked = u32::try_from(value).ok().filter(|&asked| asked <= room);
            found.dynamic_shared = asked.ok_or(Code::INVALID_VALUE)?;
            Ok(())
        }
        // A preference: blocks have the shared memory that they ask for.
        F::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT if (-1..=100).contains(&value) => {
            Ok(())
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The largest dynamic shared memory with which `blocks` blocks fit a multiprocessor.
fn available(state: &State, function: u64, blocks: c_int, threads: c_int) -> Status<u32> {
    let found = state.modules.functions.get(function)?;
    let positive = |n: c_int| {
        u32::try_from(n)
            .ok()
            .filter(|&n| n > 0)
            .ok_or(Code::INVALID_VALUE)
    };
    let (blocks, threads) = (positive(blocks)?, positive(threads)?);
    let fits = |shared: u32| state.occupancy(found, threads, shared) >= blocks;
    if threads > found.kernel.max_threads_per_block() || !fits(0) {
        return Err(Code::INVALID_VALUE);
    }
    // Fewer blocks fit, the more of it each has.
    let (mut low, mut high) = (0, state.profile.shared_per_cta_optin + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle
        } else {
            high = middle
        }
    }
    Ok(low)
}

/// Dynamic shared memory of a block by its threads, as the caller of an occupancy function tells it.
type SharedOf = Option<unsafe extern "C" fn(c_int) -> usize>;

/// The block size with the most resident threads, and the grid that fills the device with such blocks.
fn potential(
    state: &State,
    function: u64,
    of: SharedOf,
    shared: usize,
    limit: c_int,
) -> Status<(c_int, c_int)> {
    let found = state.modules.functions.get(function)?;
    let limit = u32::try_from(limit).map_err(|_| Code::INVALID_VALUE)?;
    let most = found.kernel.max_threads_per_block();
    let most = if limit == 0 { most } else { most.min(limit) };
    let mut best = (0, 0, 0);
    for threads in (1..=most.div_ceil(WARP))
        .rev()
        .map(|warps| most.min(warps * WARP))
    {
        let shared = match of {
            // SAFETY: the caller gives it to be called with numbers of threads, during this call.
            Some(of) => unsafe { of(threads as c_int) },
            None => shared,
        };
        let Ok(shared) = u32::try_from(shared) else {
            continue;
        };
        let blocks = state.occupancy(found, threads, shared);
        if blocks * threads > best.0 {
            best = (blocks * threads, blocks, threads);
        }
    }
    let (_, blocks, threads) = best;
    Ok(((blocks * state.profile.sm_count) as c_int, threads as c_int))
}

functions! {
    fn cuFuncSetAttribute(call, function: CUfunction, told: CUfunction_attribute, value: c_int) {
        let (state, _) = call.split();
        state.ready()?;
        set_attribute(state, handle(function.as_ptr()), told, value)
    }

    fn cuFuncSetCacheConfig(call, function: CUfunction, config: c_uint) {
        let (state, _) = call.split();
        state.ready()?;
        state.modules.functions.get(handle(function.as_ptr()))?;
        if config > LAST_CACHE { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuFuncGetModule(call, module: *mut CUmodule, function: CUfunction) {
        let (state, _) = call.split();
        state.ready()?;
        put(module, CUmodule::from_ptr(raw(state.modules.module_of(handle(function.as_ptr()))?)))
    }

    fn cuFuncIsLoaded(call, loading: *mut c_uint, function: CUfunction) {
        let (state, _) = call.split();
        state.ready()?;
        state.modules.functions.get(handle(function.as_ptr()))?;
        put(loading, LOADED)
    }

    fn cuLaunchCooperativeKernel(call, function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: CUstream, params: *mut *mut c_void)
    {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let geometry = Geometry { grid, block, shared, cooperative: true };
        launch(call, function, geometry, stream, params, std::ptr::null_mut())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(call, blocks: *mut c_int, function: CUfunction,
        threads: c_int, shared: usize, flags: c_uint)
    {
        // The one flag there is turns off a way of caching that the machine does not have.
        let (state, _) = call.split();
        state.ready()?;
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        put(blocks, crate::ffi::function::blocks(state, handle(function.as_ptr()), threads, shared)?)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(call, bytes: *mut usize, function: CUfunction, blocks: c_int,
        threads: c_int)
    {
        let (state, _) = call.split();
        state.ready()?;
        put(bytes, available(state, handle(function.as_ptr()), blocks, threads)? as usize)
    }

    fn cuOccupancyMaxPotentialBlockSize(call, grid: *mut c_int, block: *mut c_int, function: CUfunction, of: SharedOf,
        shared: usize, limit: c_int)
    {
        let (state, _) = call.split();
        state.ready()?;
        let (blocks, threads) = potential(state, handle(function.as_ptr()), of, shared, limit)?;
        put_if(grid, blocks);
        put(block, threads)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(call, grid: *mut c_int, block: *mut c_int, function: CUfunction,
        of: SharedOf, shared: usize, limit: c_int, flags: c_uint)
    {
        let (state, _) = call.split();
        state.ready()?;
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let (blocks, threads) = potential(state, handle(function.as_ptr()), of, shared, limit)?;
        put_if(grid, blocks);
        put(block, threads)
    }
}
