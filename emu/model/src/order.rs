//! Memory orders.

/// A memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// An ordinary access.
    Weak,
    /// `.volatile`: strong, relaxed, system scope.
    Volatile,
    /// `.relaxed`
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`
    AcqRel,
}

impl Order {
    /// Whether an operation of this order can end an acquire pattern.
    pub fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel)
    }

    /// Whether an operation of this order can begin a release pattern.
    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel)
    }
}
