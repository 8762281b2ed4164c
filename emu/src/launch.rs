//! What makes a launch acceptable.

use std::sync::Arc;

use slabfence_emu_exec::Launch;

use crate::code::{Code, Status};
use crate::graph::KernelTask;
use crate::machine::State;
use crate::module::Function;
use crate::occupancy::Room;

/// Shared memory that a block may use without opting in, bytes.
pub(crate) const SHARED_LIMIT: u32 = 48 << 10;

/// The geometry of a launch as the driver's functions take it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    /// Blocks in x, y, z.
    pub(crate) grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory of a block, bytes.
    pub(crate) shared: u32,
    /// Whether all blocks must be resident at once.
    pub(crate) cooperative: bool,
}

impl State {
    /// How many blocks of a function fit one multiprocessor.
    pub(crate) fn occupancy(&self, function: &Function, threads: u32, shared: u32) -> u32 {
        Room::of(&self.profile).fits(Room::block(&function.kernel, threads, shared))
    }

    /// Checks a launch of a function on a device and makes its task. `params` is the parameter block.
    pub(crate) fn kernel_task(
        &self,
        function: u64,
        on: u32,
        geometry: Geometry,
        params: Arc<[u8]>,
    ) -> Status<KernelTask> {
        let found = self.modules.functions.get(function)?;
        if found.device != on {
            return Err(Code::INVALID_HANDLE);
        }
        let Geometry {
            grid,
            block,
            shared,
            cooperative,
        } = geometry;
        let within = |have: [u32; 3], most: [u32; 3]| {
            have.iter()
                .zip(most)
                .all(|(&n, most)| (1..=most).contains(&n))
        };
        if !within(grid, [i32::MAX as u32, 65535, 65535]) || !within(block, [1024, 1024, 64]) {
            return Err(Code::INVALID_VALUE);
        }
        if shared > found.dynamic_shared {
            return Err(Code::INVALID_VALUE);
        }
        let launch = Launch {
            kernel: found.kernel.clone(),
            grid,
            block,
            params,
            dynamic_shared: shared,
            globals: found.globals.clone(),
            multiprocessors: self.profile.sm_count,
            tag: function,
        };
        if let Err(error) = launch.validate() {
            log::warn!("emulator: launch refused: {error}");
            return Err(Code::INVALID_VALUE);
        }
        let fit = self.occupancy(found, launch.threads() as u32, shared);
        if fit == 0 {
            return Err(Code::LAUNCH_OUT_OF_RESOURCES);
        }
        let blocks: u64 = grid.iter().map(|&n| u64::from(n)).product();
        if cooperative && blocks > u64::from(fit) * u64::from(self.profile.sm_count) {
            return Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
        Ok(KernelTask {
            function,
            device: on,
            taken: self.memory.take(&launch.params),
            launch: Arc::new(launch),
            cooperative,
        })
    }
}
