//! What a check assumes.

/// What a [`Checker`](crate::Checker) assumes of the machine, and how much it keeps.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the devices have native atomics on each other's memory.
    pub native_atomics: bool,
    /// The assumption of `docs/memory-model.md`: what happened before a kernel began is performed, as seen from any GPU,
    /// before any access of that kernel. So every strong store of a kernel publishes all that was ordered before the kernel
    /// began, as if each thread had begun with a release fence of system scope. It publishes and does not acquire: who
    /// polls with a relaxed load still learns nothing. Without it only releases and fences publish.
    pub kernel_boundary: bool,
    /// Whether device r works for rank r alone, so that the device tells the rank where parameters do not.
    pub ranks_are_devices: bool,
    /// Findings that are kept; further ones are only counted.
    pub most_findings: usize,
}

impl Default for Options {
    /// No native atomics, the kernel boundary assumed, ranks told by parameters alone, 100 findings.
    fn default() -> Self {
        Self {
            native_atomics: false,
            kernel_boundary: true,
            ranks_are_devices: false,
            most_findings: 100,
        }
    }
}
