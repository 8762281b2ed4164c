//! A whole path at once: loads, stores, barriers, atomics, and a flag between two blocks.

use crate::support::{Buffer, Memory, compile, launch, module, run};

#[test]
fn a_flag_carries_data_between_blocks() {
    // Block 1 writes 64 values, meets in a barrier and raises the flag; block 0 waits for it and adds them up.
    let text = module(
        3,
        "
        .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>;
        ld.param.u64 %rd1, [p0];
        ld.param.u64 %rd2, [p1];
        ld.param.u64 %rd3, [p2];
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, %ctaid.x;
        mul.wide.u32 %rd4, %r1, 4;
        add.s64 %rd5, %rd1, %rd4;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 bra WAIT;
        add.s32 %r3, %r1, 100;
        st.global.u32 [%rd5], %r3;
        bar.sync 0;
        setp.ne.u32 %p2, %r1, 0;
        @%p2 bra END;
        mov.u64 %rd6, 7;
        st.release.sys.global.b64 [%rd2], %rd6;
        bra END;
    WAIT:
        setp.ne.u32 %p2, %r1, 0;
        @%p2 bra JOIN;
    POLL:
        ld.acquire.sys.global.b64 %rd7, [%rd2];
        setp.ne.u64 %p3, %rd7, 7;
        @%p3 bra POLL;
    JOIN:
        bar.sync 0;
        ld.global.u32 %r4, [%rd5];
        atom.add.relaxed.gpu.global.u32 %r5, [%rd3], %r4;
        red.relaxed.gpu.global.add.u32 [%rd3+4], 1;
    END:
        ret;",
    );
    let kernel = compile(&text, "k");
    let mut memory = Memory::default();
    let data = Buffer::new(0x7000_0000_0000, 256);
    let flag = Buffer::new(0x7000_0001_0000, 8);
    let sum = Buffer::new(0x7000_0002_0000, 8);
    memory.buffers.extend([data, flag, sum]);
    let launch = launch(
        &kernel,
        2,
        64,
        &[0x7000_0000_0000, 0x7000_0001_0000, 0x7000_0002_0000],
    );
    run(&mut memory, &[launch]).done();
    assert_eq!(memory.buffers[2].u32(0), (100..164).sum::<u32>());
    assert_eq!(memory.buffers[2].u32(1), 64);
    assert_eq!(memory.buffers[1].u64(0), 7);
}
