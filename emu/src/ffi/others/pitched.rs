//! Copies of rows: two and three dimensions of ordinary memory.

use std::ffi::c_uint;

use slabfence_sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUdeviceptr, CUmemorytype, CUstream};

use crate::code::{Code, Status};
use crate::ffi::copy::Copy;
use crate::ffi::pointer::{address, get, put};

/// The same copy as one of three dimensions.
fn flat(copy: CUDA_MEMCPY2D) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: copy.srcXInBytes,
        srcY: copy.srcY,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice,
        srcArray: copy.srcArray,
        srcPitch: copy.srcPitch,
        dstXInBytes: copy.dstXInBytes,
        dstY: copy.dstY,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice,
        dstArray: copy.dstArray,
        dstPitch: copy.dstPitch,
        WidthInBytes: copy.WidthInBytes,
        Height: copy.Height,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    }
}

/// One end of a copy: the first byte, bytes from row to row and from plane to plane, whether it must be device memory.
#[derive(Clone, Copy)]
struct End {
    start: u64,
    row: u64,
    plane: u64,
    device: bool,
}

impl End {
    fn new(
        kind: CUmemorytype,
        host: u64,
        device: CUdeviceptr,
        skip: [usize; 3],
        pitch: usize,
        height: usize,
    ) -> Status<End> {
        let (start, device) = match kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => (host, false),
            CUmemorytype::CU_MEMORYTYPE_DEVICE => (device.0, true),
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => (device.0, false),
            CUmemorytype::CU_MEMORYTYPE_ARRAY => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_VALUE),
        };
        let row = pitch as u64;
        let plane = row.checked_mul(height as u64).ok_or(Code::INVALID_VALUE)?;
        let [x, y, z] = skip.map(|skip| skip as u64);
        let end = End {
            start,
            row,
            plane,
            device,
        };
        Ok(End {
            start: end.at(y, z)?.checked_add(x).ok_or(Code::INVALID_VALUE)?,
            ..end
        })
    }

    /// The address of a row.
    fn at(self, y: u64, z: u64) -> Status<u64> {
        let down = self.row.checked_mul(y).zip(self.plane.checked_mul(z));
        let skip = down.and_then(|(rows, planes)| rows.checked_add(planes));
        skip.and_then(|skip| self.start.checked_add(skip))
            .ok_or(Code::INVALID_VALUE)
    }
}

/// The copies that one of rows consists of: a single one where the rows of both ends follow each other.
fn rows(copy: &CUDA_MEMCPY3D) -> Status<Vec<Copy>> {
    let (width, height, depth) = (
        copy.WidthInBytes as u64,
        copy.Height as u64,
        copy.Depth as u64,
    );
    if height > 1 && (copy.srcPitch < copy.WidthInBytes || copy.dstPitch < copy.WidthInBytes) {
        return Err(Code::INVALID_VALUE);
    }
    let from_skip = [copy.srcXInBytes, copy.srcY, copy.srcZ];
    let from = End::new(
        copy.srcMemoryType,
        address(copy.srcHost),
        copy.srcDevice,
        from_skip,
        copy.srcPitch,
        copy.srcHeight,
    )?;
    let to_skip = [copy.dstXInBytes, copy.dstY, copy.dstZ];
    let to = End::new(
        copy.dstMemoryType,
        address(copy.dstHost),
        copy.dstDevice,
        to_skip,
        copy.dstPitch,
        copy.dstHeight,
    )?;
    let one = |y, z, len| {
        let (device_to, device_from) = (to.device, from.device);
        Ok(Copy {
            to: to.at(y, z)?,
            from: from.at(y, z)?,
            len,
            device_to,
            device_from,
        })
    };
    if depth == 1 && from.row == width && to.row == width {
        return Ok(vec![one(
            0,
            0,
            width.checked_mul(height).ok_or(Code::INVALID_VALUE)?,
        )?]);
    }
    let all = (0..depth).flat_map(|z| (0..height).map(move |y| (y, z)));
    all.map(|(y, z)| one(y, z, width)).collect()
}

/// A copy that is one run of bytes, as a node has it.
pub(super) fn one_copy(copy: CUDA_MEMCPY3D) -> Status<Copy> {
    match rows(&copy)?.as_slice() {
        [only] if only.len > 0 => Ok(*only),
        [_, _, ..] => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    }
}

functions! {
    fn cuMemAllocPitch_v2(call, to: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element: c_uint) {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        if to.is_null() || pitch.is_null() || width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(Code::INVALID_VALUE);
        }
        state.refuse_unsafe(thread)?;
        let row = width.checked_next_multiple_of(512).ok_or(Code::OUT_OF_MEMORY)?;
        let bytes = row.checked_mul(height).ok_or(Code::OUT_OF_MEMORY)?;
        put(to, CUdeviceptr(state.memory.alloc(device, bytes as u64)?))?;
        put(pitch, row)
    }

    fn cuMemcpy2D_v2(call, copy: *const CUDA_MEMCPY2D) {
        rows(&flat(get(copy)?))?.into_iter().try_for_each(|copy| copy.now(call))
    }

    fn cuMemcpy2DUnaligned_v2(call, copy: *const CUDA_MEMCPY2D) {
        rows(&flat(get(copy)?))?.into_iter().try_for_each(|copy| copy.now(call))
    }

    fn cuMemcpy2DAsync_v2(call, copy: *const CUDA_MEMCPY2D, stream: CUstream) {
        rows(&flat(get(copy)?))?.into_iter().try_for_each(|copy| copy.later(call, stream))
    }

    fn cuMemcpy3D_v2(call, copy: *const CUDA_MEMCPY3D) {
        rows(&get(copy)?)?.into_iter().try_for_each(|copy| copy.now(call))
    }

    fn cuMemcpy3DAsync_v2(call, copy: *const CUDA_MEMCPY3D, stream: CUstream) {
        rows(&get(copy)?)?.into_iter().try_for_each(|copy| copy.later(call, stream))
    }
}
