//! One path among three ranks that does not work, in one direction: the creation of a pool fails on all ranks and says which.
//! Between threads, where the owner lets the others in, and between processes, which import.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slabfence::channel::Contract;
use slabfence::driver::Driver;
use slabfence::layout::{Slot, Transport};
use slabfence::sys::{Api, CUdeviceptr, CUmemAccessDesc, CUresult, pfn};
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::paths::{Broken, Loss, Path, one_of_each, pairs};
use slabfence_tests::processes::{Folder, Ranks};
use slabfence_tests::ranks::on_ranks;

const WORLD: u32 = 3;
/// Where a wait is to fail: no rank that merely comes late on a busy machine waits that long.
const FAIL: Duration = Duration::from_millis(500);
/// Where none is to.
const PATIENT: Duration = Duration::from_secs(60);

thread_local! {
    /// What this thread's rank, the owner, is to lose, and how many of its mappings the user has been let reach.
    static LOSS: Cell<Option<(Loss, usize)>> = const { Cell::new(None) };
}

/// The machine whose turn it is, and its own function.
static MACHINE: Mutex<Option<(Machine, pfn::cuMemSetAccess)>> = Mutex::new(None);

unsafe extern "C" fn grant(
    at: CUdeviceptr,
    bytes: usize,
    access: *const CUmemAccessDesc,
    count: usize,
) -> CUresult {
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((machine, original)) = &*machine else {
        return CUresult::CUDA_ERROR_DEINITIALIZED;
    };
    // SAFETY: the caller's arguments, handed on as they are.
    let code = unsafe { original(at, bytes, access, count) };
    let Some((loss, seen)) = LOSS.get() else {
        return code;
    };
    // SAFETY: the driver has read it.
    let device = unsafe { (*access).location.id };
    if device == loss.user as i32 {
        LOSS.set(Some((loss, seen + 1)));
        if seen == loss.mapping {
            machine.lose(loss.lost, loss.user, at.0).expect("a mapping");
        }
    }
    code
}

/// Creates a pool on three ranks where this path does not work; what every rank learns. Then creates one with nothing lost.
fn errors(path: Path) -> Vec<String> {
    let loss = path.loss();
    let machine = Machine::new(Profile::named("h200-nvlink").expect("a profile"), WORLD);
    let machine = machine.expect("a machine");
    let mut api: Api = machine.api().expect("its table");
    let original = api.cuMemSetAccess.replace(grant).expect("an entry");
    let place = || MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    *place() = Some((machine, original));
    let driver = Driver::from_api(api).expect("a driver");
    let contract = |fail| Contract {
        transport: path.transport,
        fail,
        ..Contract::new(6, 64, 64, 4)
    };
    let errors = on_ranks(&driver, WORLD, |member| {
        if member.rank() == loss.owner {
            LOSS.set(Some((loss, 0)));
        }
        let begin = Instant::now();
        let created = member.pool(&contract(path.limit(FAIL)));
        assert!(begin.elapsed() < Duration::from_secs(60));
        LOSS.set(None);
        let error = created.expect_err("a path that does not work").to_string();
        member
            .pool(&contract(PATIENT))
            .expect("a pool")
            .close()
            .expect("closed");
        error
    });
    drop(driver);
    let (machine, _) = place().take().expect("set above");
    assert_eq!(
        (machine.live(), machine.faults()),
        (Live::default(), Vec::new())
    );
    errors
}

fn each_path_is_told(transport: Transport) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for (writer, reader) in pairs(WORLD) {
        for broken in [Broken::Flags, Broken::Data(Slot::A), Broken::Data(Slot::B)] {
            let path = Path {
                writer,
                reader,
                broken,
                transport,
            };
            path.told(errors(path).iter().map(String::as_str));
        }
    }
}

#[test]
fn one_push_path_of_six_that_does_not_work_is_told_to_all_ranks() {
    each_path_is_told(Transport::Push);
}

#[test]
fn one_pull_path_of_six_that_does_not_work_is_told_to_all_ranks() {
    each_path_is_told(Transport::Pull);
}

#[test]
fn paths_between_processes_that_do_not_work_are_told_to_all_ranks_and_nothing_is_left() {
    const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");
    let folder = Folder::new();
    let ranks = Ranks::start(PROGRAM, "broken", folder.path(), &[0, 1, 2], WORLD);
    let endings = ranks.finish();
    for ending in &endings {
        assert_eq!((ending.code, &ending.errors[..]), (Some(0), ""));
        let last: Vec<&str> = ending.out.iter().skip(6).map(String::as_str).collect();
        assert_eq!(last, ["done", "nothing left"], "{ending:?}");
    }
    for (line, path) in one_of_each().enumerate() {
        path.told(endings.iter().map(|ending| &ending.out[line][..]));
    }
    assert_eq!(folder.files(), 0);
}
