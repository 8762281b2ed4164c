//! What kernels report through host-mapped memory, readable while a device hangs.

mod report;

pub use report::FaultReport;
