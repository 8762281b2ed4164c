//! A serving engine's boot as one rank lives it, from its groups to a shutdown in the wrong order: what repairs have to pass
//! that passed their own tests. The same on emulated machines and real drivers, with ranks as threads and as processes.
//!
//! Ranks may share a device, where copies, allocations and frees of one stand behind an operation of another that waits. So
//! the ranks meet between those and the operations.

mod captures;
mod engine;
mod model;
mod pair;
mod serve;
mod shutdown;

use slabfence::Result;
use slabfence::layout::Transport;

use crate::ranks::Member;

use engine::Engine;

/// A boot, the same on all ranks.
#[derive(Debug, Clone, Copy)]
pub struct Boot {
    /// Of the target model and of the pairs; the draft model has the other.
    pub transport: Transport,
    /// Whether ranks share devices.
    pub oversubscribe: bool,
    /// Steps of the engine; 8 and more have a step of every kind.
    pub steps: u32,
}

impl Boot {
    /// Lives through it as `member`, whose group has an even number of ranks. When it returns, the rank has nothing left.
    ///
    /// # Panics
    ///
    /// At an output that is wrong, an operation on a channel that is not its own, a rank that does not come, and a call that should
    /// be refused and is not.
    pub fn run(&self, member: Member) -> Result<()> {
        let mut engine = Engine::start(self, member)?;
        engine.warm_up()?;
        engine.profile(2)?;
        // Leaves the words of the first two epochs: a channel that gets its ranges must begin beyond them.
        engine.profile(0)?;
        engine.capture()?;
        let quarter = self.steps / 4;
        for step in 0..self.steps {
            if step == 2 * quarter {
                engine.fail_and_reset()?;
            }
            if step == 3 * quarter {
                engine.part()?;
            }
            engine.step()?;
        }
        engine.shut_down()
    }
}
