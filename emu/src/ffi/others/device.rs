//! More of what devices say of themselves.

use std::ffi::{c_char, c_int};

use slabfence_sys::CUdevice;

use crate::code::Code;
use crate::ffi::pointer::{put, put_text, text};

fn bus_id(board: u32) -> String {
    format!("0000:{:02X}:00.0", 1 + board)
}

functions! {
    fn cuDeviceGetPCIBusId(call, name: *mut c_char, len: c_int, device: CUdevice) {
        let (state, _) = call.split();
        let board = state.memory.board(state.device(device.0)?);
        let room = usize::try_from(len).map_err(|_| Code::INVALID_VALUE)?;
        put_text(name, room, &bus_id(board)).map(drop)
    }

    fn cuDeviceGetByPCIBusId(call, device: *mut CUdevice, name: *const c_char) {
        let (state, _) = call.split();
        state.ready()?;
        let asked = text(name)?;
        let mut all = 0..state.devices.len() as u32;
        let found = all.find(|&device| bus_id(state.memory.board(device)).eq_ignore_ascii_case(&asked));
        put(device, CUdevice(found.ok_or(Code::INVALID_DEVICE)? as c_int))
    }

    fn cuDeviceComputeCapability(call, major: *mut c_int, minor: *mut c_int, device: CUdevice) {
        let (state, _) = call.split();
        state.device(device.0)?;
        let capability = state.profile.compute_capability;
        put(major, capability.0 as c_int)?;
        put(minor, capability.1 as c_int)
    }
}
