//! Which rules hold.

/// The rules of the model that can be taken away. Only `kernel_boundary` is a question of what to believe; the others
/// are PTX, and taking one away shows what it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A retired kernel's accesses are performed before any access of a later kernel of its stream, as seen from any GPU:
    /// the one assumption beyond the text of PTX.
    pub kernel_boundary: bool,
    /// Moral strength asks whether scopes include each other's threads.
    pub scopes: bool,
    /// A read-modify-write passes on the heads of the message that it read.
    pub chains: bool,
    /// A fence ends acquire patterns and begins release patterns.
    pub fences: bool,
    /// `fence.sc` orders itself after earlier morally strong ones.
    pub sc_order: bool,
    /// A barrier of a block orders what its threads did before it.
    pub barriers: bool,
    /// Reads of one location do not go back in time (for morally strong reads).
    pub coherence: bool,
}

impl Rules {
    /// What this project assumes: PTX and the kernel boundary.
    pub const ASSUMED: Self = Self {
        kernel_boundary: true,
        scopes: true,
        chains: true,
        fences: true,
        sc_order: true,
        barriers: true,
        coherence: true,
    };

    /// The text of PTX alone.
    pub const PTX: Self = Self {
        kernel_boundary: false,
        ..Self::ASSUMED
    };
}
