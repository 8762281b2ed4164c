//! Paths between processes that do not work: what one rank does to the memory that it has imported of another is lost.

use std::ffi::c_void;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use slabfence::channel::{Contract, Pool};
use slabfence::driver::{Device, Driver};
use slabfence::group::{Bootstrap, Group, Rank, UnixBootstrap};
use slabfence::sys::{
    Api, CUdeviceptr, CUmemAccessDesc, CUmemAllocationHandleType, CUmemGenericAllocationHandle,
    CUresult, pfn,
};
use slabfence_emu::Machine;
use slabfence_tests::paths::one_of_each;

use super::part::Part;
use super::{Outcome, PATIENCE};

/// Where a wait is to fail: no rank that merely comes late on a busy machine waits that long.
const FAIL: Duration = Duration::from_secs(4);
/// Mappings of each peer's memory.
const MAPPINGS: usize = 3;

/// Which of this rank's imports is to lose something.
struct Chosen {
    /// Imports until that one, and it.
    left: usize,
    /// Whether it is the one that is being mapped.
    now: bool,
    /// Who has the machine is told where it is mapped, and says when it loses.
    tell: Sender<u64>,
    done: Receiver<()>,
}

static CHOSEN: Mutex<Option<Chosen>> = Mutex::new(None);
static IMPORT: OnceLock<pfn::cuMemImportFromShareableHandle> = OnceLock::new();
static ACCESS: OnceLock<pfn::cuMemSetAccess> = OnceLock::new();

fn with_chosen(act: impl FnOnce(&mut Chosen)) {
    let mut chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(chosen) = chosen.as_mut() {
        act(chosen);
    }
}

#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn import(
    handle: *mut CUmemGenericAllocationHandle,
    descriptor: *mut c_void,
    form: CUmemAllocationHandleType,
) -> CUresult {
    let Some(original) = IMPORT.get() else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    with_chosen(|chosen| {
        chosen.now = chosen.left == 1;
        chosen.left = chosen.left.saturating_sub(1);
    });
    // SAFETY: the caller's arguments, by the caller's word.
    unsafe { original(handle, descriptor, form) }
}

#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn access(
    at: CUdeviceptr,
    bytes: usize,
    to: *const CUmemAccessDesc,
    count: usize,
) -> CUresult {
    let Some(original) = ACCESS.get() else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    // SAFETY: the caller's arguments, by the caller's word.
    let code = unsafe { original(at, bytes, to, count) };
    with_chosen(|chosen| {
        if std::mem::take(&mut chosen.now) {
            chosen.tell.send(at.0).expect("who has the machine");
            chosen.done.recv().expect("a mapping that loses");
        }
    });
    code
}

/// A driver of which the test learns where imports are mapped.
fn watched(mut api: Api) -> Api {
    if let Some(original) = api.cuMemImportFromShareableHandle {
        IMPORT.get_or_init(|| original);
        api.cuMemImportFromShareableHandle = Some(import);
    }
    if let Some(original) = api.cuMemSetAccess {
        ACCESS.get_or_init(|| original);
        api.cuMemSetAccess = Some(access);
    }
    api
}

/// Creates a pool with each of the paths broken, and prints what this rank was told; then one with all of them whole.
pub fn run(part: &Part, bootstrap: UnixBootstrap, machine: &Machine) -> Outcome {
    let driver = Driver::from_api(watched(machine.api()?))?;
    let device = Device::open(&driver, part.ordinal()?)?;
    let bootstrap: Arc<dyn Bootstrap> = Arc::new(bootstrap);
    let group = Group::new(bootstrap, Rank(part.rank), part.world)?.with_timeout(PATIENCE);
    for path in one_of_each() {
        let contract = Contract {
            transport: path.transport,
            fail: path.limit(FAIL),
            ..Contract::new(2 * part.world, 64, 64, 4)
        };
        let loss = path.loss();
        let create = || Pool::create(&device, group.clone(), &contract);
        if loss.user != part.rank {
            tell(create())?;
            continue;
        }
        // A rank imports the memory of the next one first.
        let before = (loss.owner + part.world - part.rank - 1) % part.world;
        let (tell_where, asked) = mpsc::channel();
        let (lost, done) = mpsc::channel();
        let chosen = Chosen {
            left: before as usize * MAPPINGS + loss.mapping + 1,
            now: false,
            tell: tell_where,
            done,
        };
        *CHOSEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(chosen);
        let created = thread::scope(|scope| {
            scope.spawn(|| {
                for at in asked {
                    machine
                        .lose(loss.lost, device.ordinal(), at)
                        .expect("a mapping");
                    lost.send(()).expect("who imports");
                }
            });
            let created = create();
            *CHOSEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
            created
        });
        tell(created)?;
    }
    Pool::create(&device, group, &Contract::new(2 * part.world, 64, 64, 4))?.close()?;
    Ok(())
}

fn tell(created: slabfence::Result<Pool>) -> Outcome {
    match created {
        Ok(pool) => {
            pool.close()?;
            Err("a path that does not work is not told".into())
        }
        Err(error) => {
            println!("{error}");
            Ok(())
        }
    }
}
