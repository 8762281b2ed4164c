//! This machine's real driver, for tests whose ranks are threads. What such a test is told instead is why there is none.

use std::io::{self, Write};
use std::process;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use slabfence::driver::{Device, Driver};

/// One test at a time: each expects the devices for itself. It has the name of the test that has them, for the watchdog.
static TURN: Mutex<()> = Mutex::new(());
static NAME: Mutex<String> = Mutex::new(String::new());

/// The driver, while this lives for one test alone.
#[derive(Debug)]
pub struct Hardware {
    /// The driver. Its devices reach each other.
    pub driver: Driver,
    /// How many devices there are: one at least.
    pub devices: u32,
    _turn: MutexGuard<'static, ()>,
}

impl Hardware {
    /// Waits for the other tests of this process and opens the driver.
    ///
    /// # Errors
    ///
    /// Why nothing can be tested here, in words.
    pub fn open() -> Result<Self, String> {
        // A test that failed says nothing about the next.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let name = thread::current().name().unwrap_or("a test").to_owned();
        *NAME.lock().unwrap_or_else(PoisonError::into_inner) = name;
        more_queues();
        let driver = Driver::open().map_err(|error| error.to_string())?;
        let devices = driver.devices().map_err(|error| error.to_string())?.len() as u32;
        for at in 0..devices {
            let device = Device::open(&driver, at).map_err(|error| error.to_string())?;
            for peer in (0..devices).filter(|&peer| peer != at) {
                match device.is_accessible_from(peer) {
                    Ok(true) => {}
                    Ok(false) => return Err(format!("device {peer} does not reach device {at}")),
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        match devices {
            0 => Err("the driver has no device".to_owned()),
            _ => Ok(Self {
                driver,
                devices,
                _turn: turn,
            }),
        }
    }
}

/// Ranks that share a device have more streams there than the driver's eight queues. Streams of one queue wait for each
/// other, which ranks that wait for each other must not.
#[allow(
    unsafe_code,
    reason = "the call is unsafe beside readers of the environment"
)]
fn more_queues() {
    static ONCE: Once = Once::new();
    // SAFETY: every test begins here, before it loads the driver: nothing else reads the environment.
    ONCE.call_once(|| unsafe { std::env::set_var("CUDA_DEVICE_MAX_CONNECTIONS", "32") });
}

/// Ends the process if it is still there when `limit` has passed since the first call, and says which test it was in. A
/// driver call that waits for a kernel has no bound of its own; without the process its kernels end too.
pub fn ends_within(limit: Duration) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        thread::spawn(move || {
            thread::sleep(limit);
            let name = NAME.lock().unwrap_or_else(PoisonError::into_inner);
            // Past the test harness, which would keep it; nobody is told where there is no standard error.
            let words = format!("NOT AT ITS END after {limit:?}, in {name}: the process ends here");
            let _ = writeln!(io::stderr().lock(), "{words}");
            // No handler runs: those of a driver may wait for the very kernel.
            process::abort();
        });
    });
}
