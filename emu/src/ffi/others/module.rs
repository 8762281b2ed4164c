//! More ways to load a module, and what is in it.

use std::ffi::{c_char, c_uint, c_void};

use slabfence_sys::{CUfunction, CUmodule};

use crate::code::{Code, Status};
use crate::ffi::module::{ErrorLog, image_text, load};
use crate::ffi::pointer::{handle, put, put_list, raw, text};

/// `CU_MODULE_EAGER_LOADING`.
const EAGER: c_uint = 1;

/// The text of an image in a file.
pub(super) fn file_text(name: *const c_char) -> Status<String> {
    let name = text(name)?;
    let mut bytes = std::fs::read(&name).map_err(|error| {
        log::warn!("emulator: {name} cannot be read: {error}");
        Code::FILE_NOT_FOUND
    })?;
    bytes.push(0);
    let text = |text: &str| Ok(text.to_owned());
    image_text(bytes.as_ptr().cast(), ErrorLog::none(), text)
}

functions! {
    fn cuModuleLoad(call, module: *mut CUmodule, name: *const c_char) {
        let (state, thread) = call.split();
        state.working(thread)?;
        state.refuse_unsafe(thread)?;
        if module.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let loaded = load(call, &file_text(name)?, ErrorLog::none())?;
        put(module, CUmodule::from_ptr(raw(loaded)))
    }

    fn cuModuleLoadData(call, module: *mut CUmodule, image: *const c_void) {
        let (state, thread) = call.split();
        state.working(thread)?;
        state.refuse_unsafe(thread)?;
        if module.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let log = ErrorLog::none();
        let loaded = image_text(image, log, |ptx| load(call, ptx, log))?;
        put(module, CUmodule::from_ptr(raw(loaded)))
    }

    fn cuModuleGetLoadingMode(call, mode: *mut c_uint) {
        call.split().0.ready()?;
        put(mode, EAGER)
    }

    fn cuModuleGetFunctionCount(call, count: *mut c_uint, module: CUmodule) {
        let (state, thread) = call.split();
        state.working(thread)?;
        put(count, state.modules.functions_of(handle(module.as_ptr()))?.len() as c_uint)
    }

    fn cuModuleEnumerateFunctions(call, to: *mut CUfunction, room: c_uint, module: CUmodule) {
        let (state, thread) = call.split();
        state.working(thread)?;
        let all = state.modules.functions_of(handle(module.as_ptr()))?;
        put_list(to, room as usize, all.into_iter().map(|value| CUfunction::from_ptr(raw(value))))
    }
}
