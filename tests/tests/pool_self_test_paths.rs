//! One path among three ranks that does not work, in one direction: the creation of a pool fails on all ranks and says which.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slabfence::channel::Contract;
use slabfence::driver::Driver;
use slabfence::layout::{Slot, Transport};
use slabfence::sys::{Api, CUdeviceptr, CUmemAccessDesc, CUresult, pfn};
use slabfence_emu::{Live, Lost, Machine, Profile};
use slabfence_tests::ranks::on_ranks;

const WORLD: u32 = 3;
/// Where a wait is to fail: no rank that merely comes late on a busy machine waits that long.
const FAIL: Duration = Duration::from_millis(500);
/// Where none is to.
const PATIENT: Duration = Duration::from_secs(60);

/// What the devices of two ranks lose at one of the first one's mappings.
#[derive(Clone, Copy)]
struct Loss {
    owner: u32,
    user: u32,
    /// Which of the mappings that the owner lets the user reach: signal memory, then both slots' staging memory.
    mapping: usize,
    lost: Lost,
}

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

/// How a path does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// Nothing that is written to flags and entry lines arrives.
    Flags,
    /// Flags arrive, and the data of this slot do not.
    Data(Slot),
}

/// What is lost when the path by which `reader` gets what `writer` has does not work so.
fn loss(writer: u32, reader: u32, broken: Broken, transport: Transport) -> Loss {
    let mapping = match broken {
        Broken::Flags => 0,
        Broken::Data(slot) => 1 + slot as usize,
    };
    match (broken, transport) {
        // The reader has to fetch them.
        (Broken::Data(_), Transport::Pull) => Loss {
            owner: writer,
            user: reader,
            mapping,
            lost: Lost::Loads,
        },
        _ => Loss {
            owner: reader,
            user: writer,
            mapping,
            lost: Lost::Stores,
        },
    }
}

/// Creates a pool on three ranks that lose this; what every rank learns. Then creates one with nothing lost.
fn errors(loss: Loss, transport: Transport, fail: Duration) -> Vec<String> {
    let machine = Machine::new(Profile::named("h200-nvlink").expect("a profile"), WORLD);
    let machine = machine.expect("a machine");
    let mut api: Api = machine.api().expect("its table");
    let original = api.cuMemSetAccess.replace(grant).expect("an entry");
    let place = || MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    *place() = Some((machine, original));
    let driver = Driver::from_api(api).expect("a driver");
    let contract = |fail| Contract {
        transport,
        fail,
        ..Contract::new(6, 64, 64, 4)
    };
    let errors = on_ranks(&driver, WORLD, |member| {
        if member.rank() == loss.owner {
            LOSS.set(Some((loss, 0)));
        }
        let begin = Instant::now();
        let created = member.pool(&contract(fail));
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

/// Every path between two ranks.
fn paths() -> impl Iterator<Item = (u32, u32)> {
    let all = (0..WORLD).flat_map(|writer| (0..WORLD).map(move |reader| (writer, reader)));
    all.filter(|(writer, reader)| writer != reader)
}

fn each_path_is_told(transport: Transport) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for (writer, reader) in paths() {
        for broken in [Broken::Flags, Broken::Data(Slot::A), Broken::Data(Slot::B)] {
            let (fail, step, path) = match broken {
                Broken::Flags => (
                    FAIL,
                    "exchange",
                    format!("what rank {writer} writes to rank {reader} does not arrive: "),
                ),
                Broken::Data(slot) => (
                    PATIENT,
                    "compare",
                    format!(
                        "what rank {writer} sent to rank {reader} by way of slot {slot:?} is not what came: "
                    ),
                ),
            };
            let errors = errors(loss(writer, reader, broken, transport), transport, fail);
            // One rank finds it, and no other path is suspected.
            let begin =
                format!("create: self test, {step} failed on rank {reader}: rank {reader}: ");
            for error in &errors {
                assert!(error.starts_with(&begin), "{broken:?}: {error}");
                assert_eq!(error, &errors[0]);
                assert_eq!(error.matches(&path).count(), 1, "{error}");
                for cause in ["ACS", "IOMMU", "MIG", "peer access", "container"] {
                    assert!(error.contains(cause), "{cause}: {error}");
                }
            }
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
