//! Scopes, and where threads are in the tree that scopes cut.

use std::fmt;

/// Which threads an order holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The block (a cluster of one block too).
    Cta,
    /// The device.
    Gpu,
    /// All devices and the host.
    Sys,
}

/// Where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// On a device.
    Device {
        /// The device.
        gpu: u32,
        /// The block, by its number on that device.
        cta: u32,
    },
    /// On the host.
    Host,
}

impl Scope {
    /// Whether this scope of a thread at `from` includes a thread at `to`. Every scope includes the thread itself, which
    /// places cannot tell: callers compare threads first.
    pub fn includes(self, from: Place, to: Place) -> bool {
        match (self, from, to) {
            (Self::Sys, _, _) => true,
            (_, Place::Host, _) | (_, _, Place::Host) => false,
            (Self::Gpu, Place::Device { gpu: a, .. }, Place::Device { gpu: b, .. }) => a == b,
            (Self::Cta, a, b) => a == b,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cta => "cta",
            Self::Gpu => "gpu",
            Self::Sys => "sys",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(gpu: u32, cta: u32) -> Place {
        Place::Device { gpu, cta }
    }

    #[test]
    fn a_scope_includes_what_it_is_named_after() {
        let here = at(0, 0);
        let cases = [
            (at(0, 0), [true, true, true]),
            (at(0, 1), [false, true, true]),
            (at(1, 0), [false, false, true]),
            (Place::Host, [false, false, true]),
        ];
        for (there, expected) in cases {
            let got = [Scope::Cta, Scope::Gpu, Scope::Sys].map(|s| s.includes(here, there));
            assert_eq!(got, expected, "{there:?}");
        }
    }

    #[test]
    fn only_the_system_scope_reaches_between_host_threads() {
        assert!(Scope::Sys.includes(Place::Host, Place::Host));
        assert!(!Scope::Gpu.includes(Place::Host, Place::Host));
        assert!(!Scope::Cta.includes(Place::Host, Place::Host));
    }
}
