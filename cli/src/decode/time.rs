//! Times of operations in graphs, on a real driver.

use serde::{Deserialize, Serialize};
use slabfence::Result;
use slabfence::channel::Pool;
use slabfence::driver::{CaptureMode, Event, GraphExec};

use super::setup::time_channel;
use super::step::Step;

/// Operations of one kind in a graph that is only measured.
const OPERATIONS: u32 = 40;
/// Replays before the measured ones.
const WARM_UP: u32 = 20;
/// Measured replays.
const REPLAYS: u32 = 200;

/// Microseconds, from events around replays.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// One gather, in a graph of gathers.
    pub gather: f64,
    /// One reduce-scatter, in a graph of reduce-scatters.
    pub reduce: f64,
    /// One replay of the whole step, attention included.
    pub step: f64,
}

impl Times {
    /// The slower of each.
    pub fn slowest(self, other: Self) -> Self {
        Self {
            gather: self.gather.max(other.gather),
            reduce: self.reduce.max(other.reduce),
            step: self.step.max(other.step),
        }
    }
}

/// Measures on all ranks at once.
pub fn measure(step: &Step<'_>, pool: &Pool, whole: &mut GraphExec) -> Result<Times> {
    let each = f64::from(OPERATIONS);
    Ok(Times {
        gather: repeated(step, pool, || step.gather(0, 0))? / each,
        reduce: repeated(step, pool, || step.reduce(0))? / each,
        step: replays(step, whole)?,
    })
}

/// Microseconds of a graph of [`OPERATIONS`] times the same.
fn repeated(step: &Step<'_>, pool: &Pool, enqueue: impl Fn() -> Result<()>) -> Result<f64> {
    let scope = pool.capture(&time_channel(step.batch), step.stream)?;
    step.stream.begin_capture(CaptureMode::ThreadLocal)?;
    let enqueued = (0..OPERATIONS).try_for_each(|_| enqueue());
    let graph = step.stream.end_capture();
    scope.finish()?;
    enqueued?;
    replays(step, &mut graph?.instantiate()?)
}

/// Microseconds of one replay.
fn replays(step: &Step<'_>, exec: &mut GraphExec) -> Result<f64> {
    let device = step.stream.device();
    let (start, end) = (Event::timed(device)?, Event::timed(device)?);
    for _ in 0..WARM_UP {
        exec.launch(step.stream)?;
    }
    start.record(step.stream)?;
    for _ in 0..REPLAYS {
        exec.launch(step.stream)?;
    }
    end.record(step.stream)?;
    end.synchronize()?;
    Ok(end.since(&start)?.as_secs_f64() * 1e6 / f64::from(REPLAYS))
}
