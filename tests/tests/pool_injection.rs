//! Every driver call of a pool's life failed once, on one rank: all ranks learn of it, and in the end nothing is left.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use slabfence::channel::{Contract, Pool};
use slabfence::driver::Driver;
use slabfence::sys::{
    Api, CUdeviceptr, CUfunction, CUjit_option, CUmemAccessDesc, CUmemAllocationProp,
    CUmemGenericAllocationHandle, CUmemHostAlloc_flags, CUmodule, CUresult, CUstream,
    CUstream_flags, pfn,
};
use slabfence::{Error, Result};
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::ranks::{Member, on_ranks};

/// A call: the step of the pool's life that it belongs to, and its name.
type Place = (&'static str, &'static str);

thread_local! {
    static STEP: Cell<&'static str> = const { Cell::new("") };
    /// The calls of this thread so far.
    static CALLS: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
    /// Which of them fails.
    static FAILS: Cell<Option<usize>> = const { Cell::new(None) };
}

fn fails_now(call: &'static str) -> bool {
    CALLS.with_borrow_mut(|calls| {
        calls.push((STEP.get(), call));
        FAILS.get() == Some(calls.len() - 1)
    })
}

/// Puts a function before each entry that fails when its turn has come.
macro_rules! intercept {
    ($table:ident: $($entry:ident($($arg:ident: $type:ty),*);)*) => { $({
        static ORIGINAL: OnceLock<pfn::$entry> = OnceLock::new();
        unsafe extern "C" fn before($($arg: $type),*) -> CUresult {
            let fails = fails_now(stringify!($entry));
            // A failed wait must not let go of memory that is in use, and a release is never repeated.
            if fails && !["cuStreamSynchronize", "cuMemRelease"].contains(&stringify!($entry)) {
                return CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            }
            let original = ORIGINAL.get().expect("set before the table is used");
            // SAFETY: the caller's arguments, handed on as they are.
            let code = unsafe { original($($arg),*) };
            if fails { CUresult::CUDA_ERROR_OUT_OF_MEMORY } else { code }
        }
        // The same for an entry of every table and for one that a driver may lack.
        let original = Option::from($table.$entry).expect("a whole table");
        ORIGINAL.set(original).expect("one table");
        $table.$entry = (before as pfn::$entry).into();
    })* };
}

fn intercepted(mut api: Api) -> Api {
    intercept! { api:
        cuMemCreate(handle: *mut CUmemGenericAllocationHandle, bytes: usize, prop: *const CUmemAllocationProp, flags: u64);
        cuMemRelease(handle: CUmemGenericAllocationHandle);
        cuMemAddressReserve(address: *mut CUdeviceptr, bytes: usize, alignment: usize, hint: CUdeviceptr, flags: u64);
        cuMemAddressFree(address: CUdeviceptr, bytes: usize);
        cuMemMap(address: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: u64);
        cuMemUnmap(address: CUdeviceptr, bytes: usize);
        cuMemSetAccess(address: CUdeviceptr, bytes: usize, access: *const CUmemAccessDesc, count: usize);
        cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: CUmemHostAlloc_flags);
        cuMemHostGetDevicePointer(address: *mut CUdeviceptr, pointer: *mut c_void, flags: c_uint);
        cuMemcpyHtoDAsync(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
        cuMemcpyDtoHAsync(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
        cuMemsetD8Async(address: CUdeviceptr, value: u8, count: usize, stream: CUstream);
        cuStreamCreate(stream: *mut CUstream, flags: CUstream_flags);
        cuStreamSynchronize(stream: CUstream);
        cuModuleLoadDataEx(module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void);
        cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
        cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: CUfunction, block_size: c_int, shared_bytes: usize);
    }
    api
}

/// What the steps of a pool's life came to on one rank, and the calls that they made.
struct Life {
    results: Vec<Result<()>>,
    calls: Vec<Place>,
}

fn steps(member: &Member) -> Vec<Result<()>> {
    let mut results = Vec::new();
    let mut step = |name, body: &mut dyn FnMut() -> Result<()>| {
        STEP.set(name);
        let result = body();
        let fine = result.is_ok();
        results.push(result);
        fine
    };
    let contract = Contract::new(4, 64, 64, 8);
    let mut pool: Option<Pool> = None;
    let created = step("create", &mut || {
        pool = Some(member.pool(&contract)?);
        Ok(())
    });
    if let Some(pool) = pool.filter(|_| created) {
        // What has failed is tried again, but for the reset and the retirement, which leave a pool to close.
        let prepare = &mut || pool.prepare(&["a", "b"]);
        if !step("prepare", prepare) {
            step("prepare again", prepare);
        }
        if step("reset", &mut || pool.reset()) {
            step("retire", &mut || pool.retire(&["a"]));
        }
        let close = &mut || pool.close();
        if !step("close", close) {
            step("close again", close);
        }
    }
    STEP.set("drop");
    results
}

fn live(driver: &Driver, fails: Option<usize>) -> Vec<Life> {
    on_ranks(driver, 2, |member| {
        CALLS.take();
        FAILS.set(fails.filter(|_| member.rank() == 1));
        let results = steps(member);
        FAILS.set(None);
        let calls = CALLS.take();
        Life { results, calls }
    })
}

#[test]
fn a_driver_call_that_fails_anywhere_fails_its_step_on_all_ranks_and_leaks_nothing() {
    let machine = Machine::new(Profile::named("h200-nvlink").expect("a profile"), 2);
    let machine = machine.expect("a machine");
    let driver = Driver::from_api(intercepted(machine.api().expect("its table")));
    let driver = driver.expect("a driver");
    let undisturbed = live(&driver, None);
    assert!(
        undisturbed
            .iter()
            .all(|life| life.results.iter().all(Result::is_ok))
    );
    assert_eq!(machine.live(), Live::default());
    // The first and the last call of each name in each step.
    let calls = &undisturbed[1].calls;
    let mut turns = BTreeSet::new();
    for place in calls {
        turns.extend(calls.iter().position(|other| other == place));
        turns.extend(calls.iter().rposition(|other| other == place));
    }
    let names: BTreeSet<&str> = turns.iter().map(|&turn| calls[turn].1).collect();
    assert_eq!(names.len(), 17, "{names:?}");
    for turn in turns {
        let (step, call) = calls[turn];
        let lives = live(&driver, Some(turn));
        assert_eq!(
            machine.live(),
            Live::default(),
            "call {turn}, {step}: {call}"
        );
        let errors: Vec<Vec<String>> = lives
            .iter()
            .map(|life| {
                let errors = life
                    .results
                    .iter()
                    .filter_map(|result| result.as_ref().err());
                errors.map(Error::to_string).collect()
            })
            .collect();
        assert_eq!(errors[0], errors[1], "call {turn}, {step}: {call}");
        if step == "drop" {
            assert!(errors[0].is_empty());
            continue;
        }
        let [error] = &errors[0][..] else {
            panic!("call {turn}, {step}: {call}: {errors:?}");
        };
        assert!(error.starts_with(step), "call {turn}, {step}: {error}");
        assert!(error.contains("failed on rank 1: rank 1: "), "{error}");
        assert!(error.contains(call), "call {turn}, {call}: {error}");
    }
}
