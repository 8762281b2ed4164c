//! How much a scenario may have its ranks do.

use super::file::{File, Step};
use super::plan::{Capture, Grid, Task, Work};
use super::read::Reader;
use crate::failure::Failure;

/// Most operations of all ranks.
const MOST_OPERATIONS: u64 = 4096;
/// Most threads of all launches: those of four of the largest grids of the largest blocks. Of kernels that do anything, no
/// run of more comes to its end within its limit of instructions.
const MOST_THREADS: u64 = 1 << 28;

impl Grid {
    fn threads(&self) -> u64 {
        let sizes = self.grid.iter().chain(&self.block);
        sizes.map(|&size| u64::from(size)).product()
    }
}

impl Reader<'_> {
    /// Refuses steps that are too many, or have too many threads.
    pub(super) fn amount(
        &self,
        file: &File,
        steps: &[Task],
        graphs: &[Capture],
    ) -> Result<(), Failure> {
        // Operations, and their threads.
        let once = |task: &Task| match &task.work {
            Work::Launch(grid) => (1, grid.threads()),
            Work::Replay(graph) => {
                let launches = &graphs[*graph].launches;
                let threads = launches.iter().map(Grid::threads).sum();
                (launches.len() as u64, threads)
            }
            Work::Fill { .. } | Work::Copy { .. } => (1, 0),
            Work::Record(_) | Work::Wait(_) => (0, 0),
        };
        let (mut operations, mut threads) = (0u64, 0u64);
        for (task, step) in steps.iter().zip(file.step.get_ref()) {
            let (some, their) = once(task);
            let times = u64::from(task.times);
            operations = operations.saturating_add(some * times);
            threads = threads.saturating_add(their.saturating_mul(times));
            if threads > MOST_THREADS {
                let words = format!(
                    "{threads} threads up to here, blocks by threads by times; the launches of a scenario have at most {MOST_THREADS}"
                );
                return Err(self.at_size(step, words));
            }
        }
        if operations == 0 || operations > MOST_OPERATIONS {
            let words = format!("{operations} operations; there can be 1 to {MOST_OPERATIONS}");
            return Err(self.wrong(&file.step, words));
        }
        Ok(())
    }

    /// At what makes a step as large as it is.
    fn at_size(&self, step: &Step, words: String) -> Failure {
        match (&step.times, &step.replay, &step.launch) {
            (Some(times), ..) => self.wrong(times, words),
            (_, Some(graph), _) => self.wrong(graph, words),
            (.., Some(launch)) => self.wrong(&launch.grid, words),
            _ => self.wrong(&step.rank, words),
        }
    }
}
