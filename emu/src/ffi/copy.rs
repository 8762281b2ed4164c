//! Copies and fills.

use std::ffi::{c_uint, c_void};

use slabfence_sys::{CUdeviceptr, CUstream};

use super::pointer::{address, handle};
use crate::code::{Code, Status};
use crate::graph::Task;
use crate::host;
use crate::operations::Source;
use crate::slots::Call;

/// One copy: both addresses, and which of them must be memory of the machine.
#[derive(Clone, Copy)]
pub(super) struct Copy {
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) len: u64,
    pub(super) device_to: bool,
    pub(super) device_from: bool,
}

impl Copy {
    /// A copy that the call's arguments describe, checked against what is mapped now.
    pub(super) fn check(self, state: &crate::machine::State, device: u32) -> Status<Task> {
        let memory = &state.memory;
        if self.to == 0 || self.from == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let checked = (
            self.device_to || memory.known(self.to),
            self.device_from || memory.known(self.from),
        );
        if checked.0 && !memory.copyable(device, self.to, self.len, true)
            || checked.1 && !memory.copyable(device, self.from, self.len, false)
        {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Task::Copy {
            to: self.to,
            from: Source::Address(self.from),
            len: self.len,
            checked,
        })
    }

    /// A copy that is done when the call returns: in order with the legacy stream.
    pub(super) fn now(self, call: &mut Call<'_>) -> Status {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        let task = self.check(state, device)?;
        let legacy = state.stream(thread, 0)?;
        state.refuse_legacy_in_capture(legacy)?;
        state.refuse_unsafe(thread)?;
        state.works("a blocking copy")?;
        let op = state.enqueue(legacy, task.work(), &[])?;
        call.wait(&[op])?;
        call.split().0.whole(device)
    }

    /// A copy in stream order. Pageable host memory is read before the call returns, and is written before it returns.
    pub(super) fn later(self, call: &mut Call<'_>, stream: CUstream) -> Status {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        if self.len == 0 {
            return Ok(());
        }
        let (device, captured) = (
            state.streams.get(index)?.device,
            state.streams.get(index)?.capture.is_some(),
        );
        let task = match self.check(state, device)? {
            Task::Copy {
                to,
                len,
                checked: (known_to, false),
                ..
            } if !captured => {
                let bytes = host::snapshot(self.from, len);
                Task::Copy {
                    to,
                    from: Source::Bytes(bytes.into()),
                    len,
                    checked: (known_to, false),
                }
            }
            task => task,
        };
        let pageable = !captured
            && matches!(
                task,
                Task::Copy {
                    checked: (false, _),
                    ..
                }
            );
        if pageable {
            state.works("a copy to pageable memory")?;
        }
        state.submit(index, task)?;
        if pageable {
            let tail = state.stream_tail(index)?;
            call.wait(&tail)?;
            call.split().0.whole(device)?;
        }
        Ok(())
    }
}

pub(super) fn fill(
    call: &mut Call<'_>,
    to: u64,
    element: [u8; 4],
    width: usize,
    count: usize,
    stream: CUstream,
) -> Status {
    let (state, thread) = call.split();
    let index = state.stream(thread, handle(stream.as_ptr()))?;
    if count == 0 {
        return Ok(());
    }
    let device = state.streams.get(index)?.device;
    let len = (count as u64)
        .checked_mul(width as u64)
        .ok_or(Code::INVALID_VALUE)?;
    if !to.is_multiple_of(width as u64) || !state.memory.copyable(device, to, len, true) {
        return Err(Code::INVALID_VALUE);
    }
    state.submit(
        index,
        Task::Fill {
            to,
            element,
            width,
            count: count as u64,
        },
    )
}

entries! {
    fn cuMemcpyHtoD(call, to: CUdeviceptr, from: *const c_void, bytes: usize) {
        let from = address(from);
        Copy { to: to.0, from, len: bytes as u64, device_to: true, device_from: false }.now(call)
    }

    fn cuMemcpyDtoH(call, to: *mut c_void, from: CUdeviceptr, bytes: usize) {
        let to = address(to);
        Copy { to, from: from.0, len: bytes as u64, device_to: false, device_from: true }.now(call)
    }

    fn cuMemcpyHtoDAsync(call, to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) {
        let from = address(from);
        Copy { to: to.0, from, len: bytes as u64, device_to: true, device_from: false }.later(call, stream)
    }

    fn cuMemcpyDtoHAsync(call, to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        let to = address(to);
        Copy { to, from: from.0, len: bytes as u64, device_to: false, device_from: true }.later(call, stream)
    }

    fn cuMemcpyDtoDAsync(call, to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        let (to, from) = (to.0, from.0);
        Copy { to, from, len: bytes as u64, device_to: true, device_from: true }.later(call, stream)
    }

    fn cuMemsetD8Async(call, at: CUdeviceptr, value: u8, count: usize, stream: CUstream) {
        fill(call, at.0, [value, 0, 0, 0], 1, count, stream)
    }

    fn cuMemsetD32Async(call, at: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) {
        fill(call, at.0, value.to_ne_bytes(), 4, count, stream)
    }
}
