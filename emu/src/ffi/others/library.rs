//! Libraries: modules that are asked for kernels. One is loaded into the context that is current, and is that module.

use std::ffi::{c_char, c_int, c_uint, c_void};

use slabfence_sys::{
    CUdevice, CUdeviceptr, CUfunction_attribute, CUjit_option, CUkernel, CUmodule,
};

use crate::code::{Code, Status};
use crate::ffi::function::{attribute, parameter};
use crate::ffi::module::{ErrorLog, error_log, image_text, load};
use crate::ffi::others::function::set_attribute;
use crate::ffi::others::module::file_text;
use crate::ffi::pointer::{handle, list, put, put_if, put_list, raw, text};
use crate::machine::State;

/// The device that a kernel is on must be the one asked about.
fn on(state: &State, kernel: CUkernel, device: CUdevice) -> Status<u64> {
    let value = handle(kernel.as_ptr());
    match state.modules.functions.get(value)?.device == state.device(device.0)? {
        true => Ok(value),
        false => Err(Code::INVALID_DEVICE),
    }
}

functions! {
    fn cuLibraryLoadData(call, library: *mut *mut c_void, image: *const c_void, options: *mut CUjit_option,
        values: *mut *mut c_void, count: c_uint, _library_options: *mut c_uint, _library_values: *mut *mut c_void,
        _library_count: c_uint)
    {
        let (state, thread) = call.split();
        state.working(thread)?;
        state.refuse_unsafe(thread)?;
        if library.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let log = error_log(&list(options.cast_const(), count as usize)?, values)?;
        let loaded = image_text(image, log, |ptx| load(call, ptx, log))?;
        put(library, raw(loaded))
    }

    fn cuLibraryLoadFromFile(call, library: *mut *mut c_void, name: *const c_char, options: *mut CUjit_option,
        values: *mut *mut c_void, count: c_uint, _library_options: *mut c_uint, _library_values: *mut *mut c_void,
        _library_count: c_uint)
    {
        let (state, thread) = call.split();
        state.working(thread)?;
        state.refuse_unsafe(thread)?;
        if library.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let log: ErrorLog = error_log(&list(options.cast_const(), count as usize)?, values)?;
        let loaded = load(call, &file_text(name)?, log)?;
        put(library, raw(loaded))
    }

    fn cuLibraryUnload(call, library: *mut c_void) {
        let (state, thread) = call.split();
        state.ready()?;
        state.refuse_unsafe(thread)?;
        state.unload_module(handle(library))
    }

    fn cuLibraryGetKernel(call, kernel: *mut CUkernel, library: *mut c_void, name: *const c_char) {
        let (state, _) = call.split();
        state.ready()?;
        let found = state.modules.function(handle(library), &text(name)?)?;
        put(kernel, CUkernel::from_ptr(raw(found)))
    }

    fn cuLibraryGetKernelCount(call, count: *mut c_uint, library: *mut c_void) {
        let (state, _) = call.split();
        state.ready()?;
        put(count, state.modules.functions_of(handle(library))?.len() as c_uint)
    }

    fn cuLibraryEnumerateKernels(call, to: *mut CUkernel, room: c_uint, library: *mut c_void) {
        let (state, _) = call.split();
        state.ready()?;
        let all = state.modules.functions_of(handle(library))?;
        put_list(to, room as usize, all.into_iter().map(|value| CUkernel::from_ptr(raw(value))))
    }

    fn cuLibraryGetModule(call, module: *mut CUmodule, library: *mut c_void) {
        let (state, thread) = call.split();
        state.working(thread)?;
        state.modules.functions_of(handle(library))?;
        put(module, CUmodule::from_ptr(library))
    }

    fn cuLibraryGetGlobal(call, at: *mut CUdeviceptr, bytes: *mut usize, library: *mut c_void, name: *const c_char) {
        let (state, thread) = call.split();
        state.working(thread)?;
        let (base, len) = state.modules.global(handle(library), &text(name)?)?;
        put_if(at, CUdeviceptr(base));
        put_if(bytes, len as usize);
        Ok(())
    }

    fn cuKernelGetLibrary(call, library: *mut *mut c_void, kernel: CUkernel) {
        let (state, _) = call.split();
        state.ready()?;
        put(library, raw(state.modules.module_of(handle(kernel.as_ptr()))?))
    }

    fn cuKernelGetName(call, name: *mut *const c_char, kernel: CUkernel) {
        let (state, _) = call.split();
        state.ready()?;
        put(name, state.modules.functions.get(handle(kernel.as_ptr()))?.name.as_ptr())
    }

    fn cuKernelGetParamInfo(call, kernel: CUkernel, index: usize, offset: *mut usize, bytes: *mut usize) {
        let (state, _) = call.split();
        state.ready()?;
        let (at, size) = parameter(state, handle(kernel.as_ptr()), index)?;
        put_if(bytes, size);
        put(offset, at)
    }

    fn cuKernelGetAttribute(call, value: *mut c_int, asked: CUfunction_attribute, kernel: CUkernel, device: CUdevice) {
        let (state, _) = call.split();
        let kernel = on(state, kernel, device)?;
        put(value, attribute(state, kernel, asked)?)
    }

    fn cuKernelSetAttribute(call, attribute: CUfunction_attribute, value: c_int, kernel: CUkernel, device: CUdevice) {
        let (state, _) = call.split();
        let kernel = on(state, kernel, device)?;
        set_attribute(state, kernel, attribute, value)
    }
}
