//! Errors that stay: a broken context says so at every call, and a pool on it can still be closed and abandoned.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use slabfence::Error;
use slabfence::driver::{Driver, Stream, drop_released};
use slabfence::group::{Bootstrap, Rank, ThreadBootstrap};
use slabfence::sys::CUresult;
use slabfence_emu::{Live, Machine};
use slabfence_tests::host::contract;
use slabfence_tests::probe::{Probe, is_illegal_address, machine};
use slabfence_tests::ranks::{Gather, Member, on_drivers, on_ranks};

/// Fails in this step, on all ranks in the words of rank 1 alone, which has this code.
fn fails(result: slabfence::Result<()>, step: &str, code: CUresult) {
    let Err(Error::Setup { phase, failures }) = result else {
        panic!("{step}: {result:?}");
    };
    let [(Rank(1), why)] = &failures[..] else {
        panic!("{step}: {failures:?}");
    };
    let words = format!("({})", code.0);
    assert!(
        why.starts_with("cuCtxSynchronize failed: ") && why.contains(&words),
        "{why}"
    );
    assert_eq!(phase, step);
}

#[test]
fn a_context_that_a_kernel_has_broken_is_told_of_by_every_call_and_its_pool_closes() {
    const CODE: CUresult = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    let (machine, driver) = machine(2);
    machine.may_fault();
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 1).unwrap();
        if member.rank() == 1 {
            let probe = Probe::new(&member.device).unwrap();
            let error = probe.poke(64, 5).unwrap_err();
            assert!(is_illegal_address(&error), "{error}");
            let error = gather.enqueue(&channel, &stream).unwrap_err();
            assert!(is_illegal_address(&error), "{error}");
        }
        member.meet();
        for _ in 0..2 {
            fails(pool.prepare(&["more"]), "prepare: drain", CODE);
            fails(pool.retire(&["decode"]), "retire: drain", CODE);
        }
        fails(pool.reset(), "reset: drain", CODE);
        pool.close().unwrap();
    });
    drop(driver);
    drop_released();
    // What could not be freed in the broken context has gone with it; none of it is the pool's memory.
    let live = Live {
        abandoned: 0,
        ..machine.live()
    };
    assert_eq!(live, Live::default());
    assert_eq!(machine.faults().len(), 1);
}

/// What rank 1's device says when it is waited for; zero: what it is.
static SAYS: AtomicU32 = AtomicU32::new(0);
type Synchronize = unsafe extern "C" fn() -> CUresult;
static SYNCHRONIZE: OnceLock<Synchronize> = OnceLock::new();

unsafe extern "C" fn synchronize() -> CUresult {
    let inner = SYNCHRONIZE.get().expect("set before the driver is made");
    match SAYS.load(Ordering::Acquire) {
        // SAFETY: as the caller's.
        0 => unsafe { inner() },
        code => CUresult(code),
    }
}

/// Both ranks of a machine, of which rank 1 waits by [`synchronize`].
fn with_a_voice(machine: &Machine, body: impl Fn(&Member) + Sync) {
    let mut api = machine.api().unwrap();
    let inner = api.cuCtxSynchronize.expect("the emulator's");
    SYNCHRONIZE.get_or_init(|| inner);
    let first = Driver::from_api(api.clone()).unwrap();
    api.cuCtxSynchronize = Some(synchronize);
    let drivers = [first, Driver::from_api(api).unwrap()];
    let members = ThreadBootstrap::world(2).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    on_drivers(&drivers, members.collect(), Duration::from_secs(20), body);
}

/// Has the device of rank 1 say this from now on, between all ranks.
fn says(member: &Member, code: CUresult) {
    member.meet();
    SAYS.store(code.0, Ordering::Release);
    member.meet();
}

#[test]
fn a_device_counts_as_at_rest_with_a_code_that_ends_its_context_and_with_no_other() {
    let ended = [
        4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911,
    ];
    let others = [1, 2, 3, 201, 600, 800, 900, 901, 999, 4242];
    let (machine, _) = machine(2);
    with_a_voice(&machine, |member| {
        let pool = || {
            says(member, CUresult::CUDA_SUCCESS);
            member.pool(&contract()).unwrap()
        };
        let kept = pool();
        for code in others.map(CUresult) {
            says(member, code);
            fails(kept.close(), "close: drain", code);
            if member.rank() == 1 {
                let error = kept.abandon().unwrap_err().to_string();
                assert!(error.contains(&format!("({})", code.0)), "{error}");
            }
        }
        says(member, CUresult::CUDA_SUCCESS);
        kept.close().unwrap();
        for code in ended.map(CUresult) {
            let pool = pool();
            says(member, code);
            pool.close().unwrap();
        }
    });
    drop_released();
    assert_eq!(machine.live(), Live::default());
}
