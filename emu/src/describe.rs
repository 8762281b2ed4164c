//! What a host says of memory that it laid out itself.

/// What held runs call a range of memory, and what they know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name in what is found.
    pub name: String,
    /// Devices that it is mapped on beside its own, a bit each. An atomic of less than system scope is found there, whoever
    /// executes it.
    pub mapped: u32,
}
