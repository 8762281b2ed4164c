//! Which of a device's clocks bounds waits.

use std::thread;
use std::time::{Duration, Instant};

use crate::channel::kernels::load_image;
use crate::driver::{Device, PinnedBuffer, Stream};
use crate::error::{Error, Result};
use crate::layout::{ABI, ClockParams, MAGIC, OperationKind, Preamble};

/// Time between two readings.
const APART: Duration = Duration::from_millis(5);
/// How far a rate may be from the host's, plus or minus one part in this many, beyond what the readings leave open.
const TOLERANCE: f64 = 8.0;

/// A clock that kernels can read, and its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Clock {
    /// `%globaltimer`, in nanoseconds.
    GlobalTimer,
    /// `%clock64`, at this many ticks a second. The rate changes with the device's, so limits are approximate.
    Cycles { rate: f64 },
}

/// One reading: the device's clocks, and between which times of the host they were read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    before: Instant,
    after: Instant,
    global: u64,
    cycles: u64,
}

impl Clock {
    /// Compares the device's clocks with the host's.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when neither advances.
    pub(crate) fn of(device: &Device) -> Result<Self> {
        let kernel = load_image(device, "clock")?.kernel("sf_clock")?;
        let output = PinnedBuffer::new(device, 16)?;
        let stream = Stream::new(device)?;
        let params = ClockParams {
            preamble: Preamble {
                magic: MAGIC,
                abi: ABI,
                operation: OperationKind::Clock.code(),
            },
            output: output.ptr().raw(),
            reserved: 0,
        };
        let read = || -> Result<Reading> {
            let before = Instant::now();
            // SAFETY: the kernel writes 16 bytes to a buffer of 16 that outlives it: the stream is synchronised.
            unsafe { kernel.launch(&stream, 1, 32, &params)? };
            stream.synchronize()?;
            Ok(Reading {
                before,
                after: Instant::now(),
                global: output.load(0)?,
                cycles: output.load(8)?,
            })
        };
        // The first launch may set things up, between the reading and the host's knowing of it.
        read()?;
        let first = read()?;
        thread::sleep(APART);
        let second = read()?;
        judge(first, second).ok_or_else(|| Error::Refused {
            operation: "Pool::create",
            why: format!(
                "neither clock of device {} ({}) advances, so waits could not be bounded",
                device.ordinal(),
                device.info().name
            ),
        })
    }

    /// The code of parameter blocks.
    pub(crate) const fn code(self) -> u32 {
        match self {
            Self::GlobalTimer => 0,
            Self::Cycles { .. } => 1,
        }
    }

    /// A limit in ticks: at least 1 unless it is zero, which means never.
    pub(crate) fn ticks(self, limit: Duration) -> u64 {
        let ticks = match self {
            Self::GlobalTimer => u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            // A conversion that saturates.
            Self::Cycles { rate } => (limit.as_secs_f64() * rate) as u64,
        };
        ticks.max(u64::from(!limit.is_zero()))
    }

    /// The time that ticks stand for.
    pub(crate) fn duration(self, ticks: u64) -> Duration {
        match self {
            Self::GlobalTimer => Duration::from_nanos(ticks),
            Self::Cycles { rate } => {
                Duration::try_from_secs_f64(ticks as f64 / rate).unwrap_or(Duration::MAX)
            }
        }
    }
}

/// The global timer if it kept the host's time between the readings, else the cycle counter if it advanced.
fn judge(first: Reading, second: Reading) -> Option<Clock> {
    // The readings lie between these two spans apart, however late the host learnt of them.
    let least = second.before.duration_since(first.after).as_secs_f64() * 1e9;
    let most = second.after.duration_since(first.before).as_secs_f64() * 1e9;
    let global = second.global.wrapping_sub(first.global) as f64;
    if (least * (1.0 - 1.0 / TOLERANCE)..=most * (1.0 + 1.0 / TOLERANCE)).contains(&global) {
        return Some(Clock::GlobalTimer);
    }
    let cycles = second.cycles.wrapping_sub(first.cycles) as i64;
    // The largest rate that the readings allow: a limit is then never shorter than asked for.
    (cycles > 0).then(|| Clock::Cycles {
        rate: cycles as f64 / (least.max(1.0) / 1e9),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two readings 5 ms apart, each known to the host after 1 ms, of clocks that advance by these.
    fn judged(global: u64, cycles: u64) -> Option<Clock> {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let reading = |ms: u64, global: u64, cycles: u64| Reading {
            before: at(ms),
            after: at(ms + 1),
            global,
            cycles,
        };
        judge(
            reading(0, u64::MAX - 10, 7),
            reading(6, global.wrapping_add(u64::MAX - 10), 7 + cycles),
        )
    }

    #[test]
    fn a_global_timer_that_keeps_time_is_taken_also_across_its_wrap() {
        for nanoseconds in [5_000_000, 6_000_000, 7_000_000] {
            assert_eq!(judged(nanoseconds, 9_000_000), Some(Clock::GlobalTimer));
        }
    }

    #[test]
    fn a_global_timer_of_another_rate_gives_way_to_the_cycles() {
        for nanoseconds in [0, 4_000_000, 8_000_000, 7_000_000_000] {
            let clock = judged(nanoseconds, 9_000_000);
            assert_eq!(clock, Some(Clock::Cycles { rate: 1.8e9 }));
        }
    }

    #[test]
    fn a_device_without_a_clock_is_refused() {
        assert_eq!(judged(0, 0), None);
    }

    #[test]
    fn limits_become_ticks_and_back() {
        let cycles = Clock::Cycles { rate: 2e9 };
        assert_eq!(cycles.ticks(Duration::from_millis(5)), 10_000_000);
        assert_eq!(cycles.duration(10_000_000), Duration::from_millis(5));
        assert_eq!(cycles.ticks(Duration::MAX), u64::MAX);
        assert_eq!(cycles.code(), 1);
        let global = Clock::GlobalTimer;
        assert_eq!(global.ticks(Duration::from_micros(3)), 3000);
        assert_eq!(global.duration(3000), Duration::from_micros(3));
        assert_eq!(global.ticks(Duration::MAX), u64::MAX);
        for clock in [cycles, global] {
            assert_eq!(clock.ticks(Duration::ZERO), 0, "zero is never");
        }
        assert_eq!(
            cycles.ticks(Duration::from_nanos(0) + Duration::from_nanos(1)),
            2
        );
    }
}
