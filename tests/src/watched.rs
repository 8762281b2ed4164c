//! An emulated machine on which nothing may go wrong: an access to memory that is not there is a test's failure even where
//! no result shows it.

use std::ops::Deref;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use slabfence_emu::Machine;
use slabfence_emu::held::{Held, HeldError};

/// A machine that, when it goes, must not have had a fault of a device.
#[derive(Debug)]
pub struct Watched {
    machine: Machine,
    faulty: AtomicBool,
    process: u32,
}

impl Watched {
    /// Watches a machine.
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            faulty: AtomicBool::new(false),
            process: process::id(),
        }
    }

    /// [`Machine::hold`]. A run says itself how it ended, so faults are its test's from now on.
    ///
    /// # Errors
    ///
    /// Those of the machine.
    pub fn hold(&self) -> Result<Held<'_>, HeldError> {
        self.may_fault();
        self.machine.hold()
    }

    /// The test does something wrong on purpose, and looks at the faults itself.
    pub fn may_fault(&self) {
        self.faulty.store(true, Ordering::Relaxed);
    }
}

impl Deref for Watched {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // In a forked child a machine must not be asked.
        let asked = !thread::panicking() && self.process == process::id();
        if asked && !*self.faulty.get_mut() {
            assert_eq!(self.machine.faults(), Vec::<String>::new(), "device faults");
        }
    }
}
