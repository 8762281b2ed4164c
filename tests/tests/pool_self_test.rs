//! The first use of every path, at the end of a pool's creation.

use core::mem::offset_of;
use std::cell::Cell;
use std::ffi::{c_uint, c_void};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slabfence::channel::{Contract, Part};
use slabfence::driver::Driver;
use slabfence::layout::{LINE, LocalBlock, Transport, started_word};
use slabfence::sys::{Api, CUdeviceptr, CUfunction, CUresult, CUstream, pfn};
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::ranks::on_ranks;

/// What goes wrong on this thread's rank.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// Collectives are taken and never run, like stores that go nowhere.
    Launches,
    /// The first byte of every upload of this many bytes is another, like stores that are misdirected.
    Uploads(usize),
}

thread_local! {
    static BROKEN: Cell<Broken> = const { Cell::new(Broken::Nothing) };
}

/// The functions of the machine whose turn it is: those of another are another's.
static LAUNCH: Mutex<Option<pfn::cuLaunchKernel>> = Mutex::new(None);
static UPLOAD: Mutex<Option<pfn::cuMemcpyHtoDAsync>> = Mutex::new(None);
static TURN: Mutex<()> = Mutex::new(());

fn original<F: Copy>(of: &Mutex<Option<F>>) -> F {
    let function = *of.lock().unwrap_or_else(PoisonError::into_inner);
    function.expect("set before the table is used")
}

unsafe extern "C" fn launch(
    function: CUfunction,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: CUstream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    // The clock check of set-up runs a warp.
    if BROKEN.get() == Broken::Launches && block_x > 32 {
        return CUresult::CUDA_SUCCESS;
    }
    let original = original(&LAUNCH);
    // SAFETY: the caller's arguments, handed on as they are.
    unsafe {
        original(
            function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, params,
            extra,
        )
    }
}

unsafe extern "C" fn upload(
    to: CUdeviceptr,
    from: *const c_void,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    let original = original(&UPLOAD);
    if BROKEN.get() != Broken::Uploads(bytes) {
        // SAFETY: as above.
        return unsafe { original(to, from, bytes, stream) };
    }
    // SAFETY: the driver reads these bytes, so they are there.
    let mut wrong = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec();
    wrong[0] ^= 0x10;
    // SAFETY: the copy of pageable memory is taken before the call returns.
    unsafe { original(to, wrong.as_ptr().cast(), bytes, stream) }
}

fn intercepted(mut api: Api) -> Api {
    *LAUNCH.lock().unwrap_or_else(PoisonError::into_inner) = Some(api.cuLaunchKernel);
    api.cuLaunchKernel = launch;
    *UPLOAD.lock().unwrap_or_else(PoisonError::into_inner) = api.cuMemcpyHtoDAsync;
    api.cuMemcpyHtoDAsync = Some(upload);
    api
}

const FAIL: Duration = Duration::from_millis(300);
/// Where no wait is to fail, however busy the machine.
const PATIENT: Duration = Duration::from_secs(60);
/// What one rank uploads in a self test: two heads of 16 bytes.
const OWN: usize = 32;

fn contract(transport: Transport, fail: Duration) -> Contract {
    Contract {
        transport,
        fail,
        ..Contract::new(4, 64, 64, 8)
    }
}

/// Creates a pool on two ranks, of which rank 1 is broken so. What every rank learns.
fn errors(broken: Broken, transport: Transport, fail: Duration) -> [String; 2] {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = Machine::new(Profile::named("h200-nvlink").expect("a profile"), 2);
    let machine = machine.expect("a machine");
    let driver = Driver::from_api(intercepted(machine.api().expect("its table")));
    let driver = driver.expect("a driver");
    let errors = on_ranks(&driver, 2, |member| {
        if member.rank() == 1 {
            BROKEN.set(broken);
        }
        let begin = Instant::now();
        let created = member.pool(&contract(transport, fail));
        BROKEN.set(Broken::Nothing);
        let error = created.err().map(|error| error.to_string());
        assert!(begin.elapsed() < Duration::from_secs(60));
        error.unwrap_or_default()
    });
    assert_eq!(machine.live(), Live::default());
    errors.try_into().expect("two ranks")
}

#[test]
fn a_rank_whose_stores_do_not_arrive_is_named_with_the_usual_causes() {
    for transport in [Transport::Push, Transport::Pull] {
        let [here, there] = errors(Broken::Launches, transport, FAIL);
        assert_eq!(here, there);
        assert!(
            here.starts_with("create: self test, exchange failed on rank 0: rank 0: "),
            "{here}"
        );
        assert!(here.contains("rank 1 did not enter"), "{here}");
        for cause in ["ACS", "IOMMU", "MIG", "container"] {
            assert!(here.contains(cause), "{cause}: {here}");
        }
    }
}

#[test]
fn data_that_arrive_changed_are_told_by_source_slot_and_place() {
    for transport in [Transport::Push, Transport::Pull] {
        let [here, there] = errors(Broken::Uploads(OWN), transport, PATIENT);
        assert_eq!(here, there);
        // Rank 1 sees its own changed pattern as well.
        assert!(
            here.starts_with("create: self test, compare failed on ranks 0, 1: "),
            "{here}"
        );
        for to in [0, 1] {
            let words = format!(
                "what rank 1 sent to rank {to} by way of slot A is not what came: 1 of 32 bytes differ, the first at 0: "
            );
            assert_eq!(here.matches(&words).count(), 1, "{here}");
        }
    }
}

#[test]
fn a_channel_after_the_self_test_is_as_if_there_had_been_none() {
    let (machine, driver) = machine(2);
    let words = on_ranks(&driver, 2, |member| {
        let pool = member
            .pool(&contract(Transport::Push, PATIENT))
            .expect("a pool");
        pool.prepare(&["a"]).expect("a channel");
        let probe = Probe::new(&member.device).expect("kernels");
        let own = pool.ranges().expect("ranges").into_iter().filter(|range| {
            let kept = [Part::Local, Part::Poison, Part::Entry, Part::Flags];
            range.owner == member.group.me() && kept.contains(&range.part)
        });
        let mut set = Vec::new();
        for range in own {
            // Entry, flag and poison lines begin with what is compared.
            let step = match range.part {
                Part::Local => 8,
                _ => LINE,
            };
            for offset in (0..range.bytes).step_by(step) {
                let word = probe.peek(range.base + offset).expect("a word");
                if word != 0 {
                    set.push((range.part, offset, word));
                }
            }
        }
        drop(probe);
        pool.close().expect("closed");
        set
    });
    let epoch = (Part::Local, offset_of!(LocalBlock, epoch) as u64, 2);
    let started = offset_of!(LocalBlock, started) as u64;
    let started = (Part::Local, started, started_word(0, 2));
    assert_eq!(words, [[epoch, started], [epoch, started]]);
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}
