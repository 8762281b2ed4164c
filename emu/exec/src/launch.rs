//! One launch of a kernel.

use crate::Kernel;
use std::{fmt, sync::Arc};

/// One launch of a kernel: what all its blocks share.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// The parameter block, [`Kernel::param_bytes`] long.
    pub params: Arc<[u8]>,
    /// Dynamic shared memory of a block in bytes.
    pub dynamic_shared: u32,
    /// Address of each of the module's globals, in the order of `Module::globals`.
    pub globals: Arc<[u64]>,
    /// Streaming multiprocessors of the device (`%nsmid`).
    pub multiprocessors: u32,
    /// Whatever the machine wants a [`Hook`](crate::Hook) to see of this launch (also `%gridid`).
    pub tag: u64,
}

/// Why a launch cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchError {
    /// What is wrong, with the values.
    pub message: String,
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LaunchError {}

impl Launch {
    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Checks that the launch fits its kernel: dimensions, size of the parameter block, number of globals.
    ///
    /// [`Cta::new`](crate::Cta::new) may only be given a launch that passes.
    pub fn validate(&self) -> Result<(), LaunchError> {
        let refuse = |message: String| Err(LaunchError { message });
        let kernel = &self.kernel;
        if self.grid.contains(&0) || self.block.contains(&0) {
            return refuse(format!(
                "`{}`: grid {:?} or block {:?} is empty",
                kernel.name(),
                self.grid,
                self.block
            ));
        }
        let threads = self.threads();
        let most = u64::from(kernel.max_threads_per_block());
        if threads > most {
            return refuse(format!(
                "`{}`: {threads} threads per block, at most {most}",
                kernel.name()
            ));
        }
        if let Some(required) = kernel.required_threads()
            && required != self.block
        {
            return refuse(format!(
                "`{}`: block {:?}, but .reqntid is {required:?}",
                kernel.name(),
                self.block
            ));
        }
        if self.params.len() != kernel.param_bytes() as usize {
            return refuse(format!(
                "`{}`: {} bytes of parameters, it takes {}",
                kernel.name(),
                self.params.len(),
                kernel.param_bytes()
            ));
        }
        if self.globals.len() != kernel.globals() {
            return refuse(format!(
                "`{}`: {} addresses of globals, its module has {}",
                kernel.name(),
                self.globals.len(),
                kernel.globals()
            ));
        }
        Ok(())
    }
}
