//! Modules.

use std::ffi::{c_char, c_uint, c_void};

use slabfence_sys::{CUdeviceptr, CUfunction, CUjit_option, CUmodule};

use super::pointer::{get, handle, list, put, put_if, put_text, raw, text, text_in_place};
use crate::code::{Code, Status};
use crate::slots::Call;

/// The first four bytes of images that are no PTX text: ELF, and a fat binary.
const BINARY: [[u8; 4]; 2] = [*b"\x7fELF", 0xba55_ed50_u32.to_le_bytes()];

/// Where the caller wants the compiler's complaints.
#[derive(Clone, Copy)]
pub(super) struct ErrorLog {
    buffer: *mut c_char,
    room: usize,
    /// The option's value, which the driver sets to the bytes written.
    filled: *mut *mut c_void,
}

pub(super) fn error_log(options: &[CUjit_option], values: *mut *mut c_void) -> Status<ErrorLog> {
    let mut log = ErrorLog::none();
    for (at, &option) in options.iter().enumerate() {
        let value: *mut c_void = get(values.wrapping_add(at))?;
        match option {
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER => log.buffer = value.cast(),
            // The number travels in the pointer; it is an unsigned int.
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => {
                (log.room, log.filled) = (value.addr() as u32 as usize, values.wrapping_add(at));
            }
            _ => {}
        }
    }
    Ok(log)
}

impl ErrorLog {
    /// Nowhere.
    pub(super) fn none() -> ErrorLog {
        ErrorLog {
            buffer: std::ptr::null_mut(),
            room: 0,
            filled: std::ptr::null_mut(),
        }
    }

    fn write(self, message: &str) -> Status {
        let wanted = !self.buffer.is_null() && self.room > 0;
        let written = if wanted {
            put_text(self.buffer, self.room, message)?
        } else {
            0
        };
        put_if(self.filled, std::ptr::without_provenance_mut(written));
        Ok(())
    }
}

/// Gives the text of an image, which the caller gives by its address, to who uses it where it lies.
pub(super) fn image_text<R>(
    image: *const c_void,
    log: ErrorLog,
    use_it: impl FnOnce(&str) -> Status<R>,
) -> Status<R> {
    // A text shorter than four bytes has its NUL among them, and is read no further.
    let mut start = [0u8; 4];
    for (at, byte) in start.iter_mut().enumerate() {
        *byte = get(image.cast::<u8>().wrapping_add(at))?;
        if *byte == 0 {
            break;
        }
    }
    if BINARY.contains(&start) {
        log.write("the image is a binary: the emulated driver takes PTX text only")?;
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    text_in_place(image.cast(), use_it)
}

/// Loads a module into the current context; gives its handle.
pub(super) fn load(call: &mut Call<'_>, ptx: &str, log: ErrorLog) -> Status<u64> {
    let (state, thread) = call.split();
    let device = state.working(thread)?;
    match state.load_module(device, ptx) {
        Ok(loaded) => {
            log.write("")?;
            Ok(loaded)
        }
        Err(refused) => {
            log::warn!("emulator: module refused: {}", refused.message);
            log.write(&refused.message)?;
            Err(refused.code)
        }
    }
}

entries! {
    fn cuModuleLoadDataEx(call, module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut CUjit_option,
        values: *mut *mut c_void)
    {
        let (state, thread) = call.split();
        state.working(thread)?;
        if module.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let log = error_log(&list(options.cast_const(), count as usize)?, values)?;
        state.refuse_unsafe(thread)?;
        let loaded = image_text(image, log, |ptx| load(call, ptx, log))?;
        put(module, CUmodule::from_ptr(raw(loaded)))
    }

    fn cuModuleUnload(call, module: CUmodule) {
        let (state, thread) = call.split();
        state.working(thread)?;
        state.refuse_unsafe(thread)?;
        state.unload_module(handle(module.as_ptr()))
    }

    fn cuModuleGetFunction(call, function: *mut CUfunction, module: CUmodule, name: *const c_char) {
        let (state, thread) = call.split();
        state.working(thread)?;
        let found = state.modules.function(handle(module.as_ptr()), &text(name)?)?;
        put(function, CUfunction::from_ptr(raw(found)))
    }

    fn cuModuleGetGlobal(call, at: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char) {
        let (state, thread) = call.split();
        state.working(thread)?;
        let (base, len) = state.modules.global(handle(module.as_ptr()), &text(name)?)?;
        put_if(at, CUdeviceptr(base));
        put_if(bytes, len as usize);
        Ok(())
    }
}
