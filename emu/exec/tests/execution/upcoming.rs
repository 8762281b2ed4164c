//! Steps that end before accesses which others can notice, and what the next such access is.

use crate::support::{Buffer, Memory, compile, launch, module};
use slabfence_emu_exec::{
    Access, AccessKind, Cta, CtaBarrier, Env, Fence, Hook, Operation, Site, Space, Step,
};

const A: u64 = 0x7000_0000_0000;

/// Ends steps, if told to, and counts accesses.
#[derive(Default)]
struct Pauses {
    on: bool,
    accesses: u32,
}

impl Hook for Pauses {
    const CHECKING: bool = true;

    fn access(&mut self, _: &Site<'_>, _: &Access<'_>) {
        self.accesses += 1;
    }
    fn fence(&mut self, _: &Site<'_>, _: u32, _: Fence) {}
    fn cta_barrier(&mut self, _: &Site<'_>, _: CtaBarrier<'_>) {}
    fn warp_barrier(&mut self, _: &Site<'_>, _: u32) {}
    fn exit(&mut self, _: &Site<'_>, _: u32) {}

    fn pauses(&self) -> bool {
        self.on
    }
}

fn step(cta: &mut Cta, memory: &mut Memory, hook: &mut Pauses, fuel: u32) -> (Step, u64) {
    let mut env = Env {
        memory,
        hook,
        globaltimer: 0,
        clock: 0,
        executed: 0,
    };
    let step = cta.step(0, &mut env, fuel);
    (step, env.executed)
}

#[test]
fn a_paused_step_ends_before_the_next_strong_access_and_says_which_it_is() {
    let text = format!(
        ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p<4>; mov.u64 %d1, {A}; mov.u32 %r1, %laneid;
         ld.global.u32 %r3, [%d1];
         st.release.sys.global.u64 [%d1+16], 5;
         setp.eq.u32 %p1, %r1, 9;
         @%p1 ld.acquire.sys.global.u64 %d2, [%d1];
         setp.eq.u32 %p1, %r1, 1;
         @%p1 atom.add.relaxed.gpu.global.u32 %r5, [%d1+8], 3;
         ret;"
    );
    let kernel = compile(&module(0, &text), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 64));
    let mut cta = Cta::new(&launch(&kernel, 1, 2, &[]), [0; 3], 0);
    let mut hook = Pauses {
        on: true,
        ..Pauses::default()
    };
    assert_eq!(cta.upcoming(0), None);
    // Two moves and the weak load.
    assert_eq!(step(&mut cta, &mut memory, &mut hook, 100), (Step::Ran, 3));
    let next = cta.upcoming(0).unwrap();
    assert_eq!(
        (next.kind, next.lanes, next.bytes),
        (AccessKind::Store, 3, 8)
    );
    assert_eq!((next.space, next.addresses[1]), (Space::Global, A + 16));
    // It stays there.
    assert_eq!(step(&mut cta, &mut memory, &mut hook, 100), (Step::Ran, 0));
    assert_eq!((hook.accesses, memory.buffers[0].u64(2)), (1, 0));
    hook.on = false;
    assert_eq!(step(&mut cta, &mut memory, &mut hook, 1), (Step::Ran, 1));
    assert_eq!(memory.buffers[0].u64(2), 5);
    // The acquire is in no lane, so nothing stops there.
    hook.on = true;
    assert_eq!(step(&mut cta, &mut memory, &mut hook, 100), (Step::Ran, 3));
    let next = cta.upcoming(0).unwrap();
    assert_eq!((next.operation, next.returns), (Some(Operation::Add), true));
    assert_eq!((next.lanes, next.addresses[1]), (2, A + 8));
    hook.on = false;
    assert_eq!(step(&mut cta, &mut memory, &mut hook, 100).0, Step::CtaDone);
    assert_eq!((hook.accesses, memory.buffers[0].u32(2)), (3, 3));
}

#[test]
fn a_paused_step_ends_before_a_fence_of_sc_and_before_no_other() {
    let text = "fence.acq_rel.sys; fence.sc.gpu; ret;";
    let kernel = compile(&module(0, text), "k");
    let mut memory = Memory::default();
    let mut cta = Cta::new(&launch(&kernel, 1, 32, &[]), [0; 3], 0);
    let mut hook = Pauses {
        on: true,
        ..Pauses::default()
    };
    assert_eq!(cta.upcoming(0), None);
    assert_eq!(step(&mut cta, &mut memory, &mut hook, 100), (Step::Ran, 1));
    let next = cta.upcoming(0).unwrap();
    assert_eq!(
        (next.kind, next.lanes, next.addresses[31]),
        (AccessKind::ReadModifyWrite, u32::MAX, u64::MAX)
    );
    assert_eq!(step(&mut cta, &mut memory, &mut hook, 100), (Step::Ran, 0));
    hook.on = false;
    assert_eq!(step(&mut cta, &mut memory, &mut hook, 100).0, Step::CtaDone);
}
