//! Copies and fills.

use cudarc::driver::sys::{self, CUmemorytype};

use super::{bytes, context, filled};

/// A copy of rows between device memory and host memory.
fn rows(
    from: (sys::CUdeviceptr, usize),
    to: (*mut u8, usize),
    width: usize,
    height: usize,
) -> sys::CUDA_MEMCPY2D {
    sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: from.0,
        srcArray: std::ptr::null_mut(),
        srcPitch: from.1,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: to.0.cast(),
        dstDevice: 0,
        dstArray: std::ptr::null_mut(),
        dstPitch: to.1,
        WidthInBytes: width,
        Height: height,
    }
}

guest_test! {
    fn rows_are_copied_by_their_pitches_and_offsets() {
        let _context = context(0);
        let (mut at, mut pitch) = (0, 0);
        ok!(sys::cuMemAllocPitch_v2(&mut at, &mut pitch, 5, 4, 4));
        assert_eq!(pitch, 512);
        ok!(sys::cuMemsetD8_v2(at, 0, 4 * pitch));
        for row in 0..4u8 {
            ok!(sys::cuMemsetD8_v2(at + u64::from(row) * 512 + 1, 10 + row, 3));
        }
        let mut host = [0u8; 12];
        let mut copy = rows((at, pitch), (host.as_mut_ptr(), 4), 3, 2);
        (copy.srcXInBytes, copy.srcY, copy.dstY) = (1, 2, 1);
        ok!(sys::cuMemcpy2D_v2(&copy));
        assert_eq!(host, [0, 0, 0, 0, 12, 12, 12, 0, 13, 13, 13, 0]);
        // Rows that are longer than their distance would overlap.
        copy.dstPitch = 2;
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuMemcpy2D_v2(&copy));
        copy.dstPitch = 4;
        copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
        refused!(CUDA_ERROR_NOT_SUPPORTED, sys::cuMemcpy2D_v2(&copy));
    }
}

guest_test! {
    fn fills_are_by_elements_of_one_two_and_four_bytes() {
        let context = context(0);
        let at = filled(12, 0);
        ok!(sys::cuMemsetD16_v2(at + 2, 0x0201, 2));
        ok!(sys::cuMemsetD32_v2(at + 8, 0x06050403, 1));
        assert_eq!(bytes(at, 12), [0, 0, 1, 2, 1, 2, 0, 0, 3, 4, 5, 6]);
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuMemsetD16_v2(at + 1, 0, 1));
        let stream = context.new_stream().unwrap();
        ok!(sys::cuMemsetD16Async(at, 0x0807, 1, stream.cu_stream()));
        stream.synchronize().unwrap();
        assert_eq!(bytes(at, 4), [7, 8, 1, 2]);
    }
}

guest_test! {
    fn a_copy_finds_out_what_its_addresses_are() {
        let context = context(0);
        let (at, to) = (filled(8, 3), filled(8, 0));
        ok!(sys::cuMemcpyDtoD_v2(to + 4, at, 4));
        assert_eq!(bytes(to, 8), [0, 0, 0, 0, 3, 3, 3, 3]);
        let mut host = [9u8, 8, 7, 6];
        ok!(sys::cuMemcpy(at, host.as_mut_ptr().expose_provenance() as u64, 2));
        ok!(sys::cuMemcpy(host[2..].as_mut_ptr().expose_provenance() as u64, to + 4, 2));
        assert_eq!((bytes(at, 3), host), (vec![9, 8, 3], [9, 8, 3, 3]));
        let stream = context.new_stream().unwrap();
        ok!(sys::cuMemcpyAsync(to, at, 3, stream.cu_stream()));
        stream.synchronize().unwrap();
        assert_eq!(bytes(to, 4), [9, 8, 3, 0]);
    }
}

guest_test! {
    fn copies_cross_devices() {
        let (there, here) = (context(1), context(0));
        there.bind_to_thread().unwrap();
        let from = filled(4, 5);
        here.bind_to_thread().unwrap();
        let to = filled(4, 0);
        ok!(sys::cuMemcpyPeer(to, here.cu_ctx(), from, there.cu_ctx(), 3));
        assert_eq!(bytes(to, 4), [5, 5, 5, 0]);
        refused!(CUDA_ERROR_INVALID_CONTEXT, sys::cuMemcpyPeer(to, std::ptr::null_mut(), from, there.cu_ctx(), 3));
    }
}

guest_test! {
    fn memory_in_use_is_told() {
        let context = context(0);
        let (free, total) = context.mem_get_info().unwrap();
        assert_eq!(total, 4 << 30);
        let at = filled(3 << 20, 0);
        assert_eq!(context.mem_get_info().unwrap(), (free - (3 << 20), total));
        ok!(sys::cuMemFree_v2(at));
        assert_eq!(context.mem_get_info().unwrap(), (free, total));
    }
}

guest_test! {
    fn several_attributes_of_a_pointer_are_told_at_once() {
        use sys::CUpointer_attribute as P;
        let context = context(0);
        let mut host = std::ptr::null_mut();
        ok!(sys::cuMemAllocHost_v2(&mut host, 64));
        let at = host.expose_provenance() as u64;
        let (mut kind, mut of): (u32, sys::CUcontext) = (0, std::ptr::null_mut());
        let mut asked = [P::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, P::CU_POINTER_ATTRIBUTE_CONTEXT];
        let mut data = [(&raw mut kind).cast(), (&raw mut of).cast()];
        ok!(sys::cuPointerGetAttributes(2, asked.as_mut_ptr(), data.as_mut_ptr(), at));
        assert_eq!((kind, of), (CUmemorytype::CU_MEMORYTYPE_HOST as u32, context.cu_ctx()));
        ok!(sys::cuMemFreeHost(host));
    }
}
