//! What kernels report through host-mapped memory, readable while a device hangs.

mod clock;
mod page;
mod report;
mod watch;

pub(crate) use clock::Clock;
pub(crate) use page::{HealthPage, MOMENT, Slip};
pub use report::FaultReport;
pub(crate) use watch::FaultEvent;

/// State of a pool on this rank since its creation or last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    /// Nothing has happened.
    Healthy,
    /// Some wait went past the warning limit; nothing has failed.
    Warned,
    /// Some operation failed; its channel refuses operations until the pool is reset.
    Failed,
}
