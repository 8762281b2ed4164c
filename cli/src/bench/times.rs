//! The three ways in which an operation is timed.

use std::time::{Duration, Instant};

use slabfence::Result;
use slabfence::driver::{Event, GraphExec};

use super::rank::{Bench, OPERATIONS};

/// Replays before the timed ones.
const WARM_UP: u32 = 20;
/// Timed operations that the host waits for, one by one.
const BLOCKING: u32 = 200;
/// Timed replays of which each begins at rest.
pub(super) const ALONE: u32 = 40;

impl Bench<'_> {
    /// Microseconds an operation of each replay, by events around it. The replays follow one another, and each operation
    /// keeps the ranks together. Where ranks share a device, each begins at rest: a launch that waits for room in the
    /// driver's queues would keep the others' launches back, for which those in the queues wait.
    pub(super) fn replays(&self, exec: &mut GraphExec, replays: u32) -> Result<Vec<f64>> {
        if self.shares_queues {
            return self.alone(exec, replays);
        }
        let device = self.pool.device();
        for _ in 0..WARM_UP {
            exec.launch(&self.stream)?;
        }
        let events = (0..=replays)
            .map(|_| Event::timed(device))
            .collect::<Result<Vec<_>>>()?;
        events[0].record(&self.stream)?;
        for event in &events[1..] {
            exec.launch(&self.stream)?;
            event.record(&self.stream)?;
        }
        self.stream.synchronize()?;
        let pairs = events.windows(2);
        let times = pairs.map(|pair| Ok(micros(pair[1].since(&pair[0])?) / f64::from(OPERATIONS)));
        times.collect()
    }

    /// Microseconds an operation of replays that each begin when all ranks are at rest.
    pub(super) fn alone(&self, exec: &mut GraphExec, replays: u32) -> Result<Vec<f64>> {
        let device = self.pool.device();
        let mut times = Vec::with_capacity(replays as usize);
        for _ in 0..replays {
            let (begin, end) = (Event::timed(device)?, Event::timed(device)?);
            self.group.verdict("measure: at rest", &Ok(()))?;
            begin.record(&self.stream)?;
            exec.launch(&self.stream)?;
            end.record(&self.stream)?;
            self.stream.synchronize()?;
            times.push(micros(end.since(&begin)?) / f64::from(OPERATIONS));
        }
        Ok(times)
    }

    /// Microseconds from the call of one operation until the host knows that it has ended.
    pub(super) fn blocking(&self) -> Result<Vec<f64>> {
        let mut times = Vec::with_capacity(BLOCKING as usize);
        for run in 0..WARM_UP + BLOCKING {
            let begin = Instant::now();
            self.enqueue()?;
            self.stream.synchronize()?;
            if run >= WARM_UP {
                times.push(micros(begin.elapsed()));
            }
        }
        Ok(times)
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
