//! The private entries of the table, which only slabfence's emulated driver has.

use crate::generated::values::CUresult;

open_enum! {
    /// What an announced range of device memory is for.
    RangeKind: u32 {
        /// The range is no longer what was announced: its tag is removed.
        FORGET = 0,
        /// Counters, the verdict and other words of a channel: the owner's alone.
        LOCAL = 1,
        /// Entry lines, data flags and poison words: one writer per line.
        SIGNAL = 2,
        /// What peers pull: written by its owner.
        OUTBOX = 3,
        /// Raw payload pushed by one source.
        INBOX = 4,
        /// Packets of one source: never anything else.
        PACKETS = 5,
        /// The epoch of a channel: the owner's alone.
        EPOCH = 6,
        /// The ticket of a channel: the owner's alone.
        TICKET = 7,
    }
}

/// A range of device memory as the library lays it out, told to the emulated driver's checker.
///
/// The same memory may be announced by its owner and by those that map it: `rank` is the owner in
/// every case.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RangeNote {
    /// First byte, as a device address in the announcing process.
    pub base: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// What the range holds.
    pub kind: RangeKind,
    /// Slot 0 or 1, [`RangeNote::NONE`] where the range belongs to no slot.
    pub slot: u32,
    /// Rank of the owner.
    pub rank: u32,
    /// Rank of the one writer, [`RangeNote::NONE`] where several may write.
    pub source: u32,
    /// Identity of the channel.
    pub channel: u64,
    /// Phase of data flags, [`RangeNote::NONE`] for everything else.
    pub phase: u32,
    /// Zero.
    pub reserved: u32,
}

/// `slabfenceEmuVersion`: which emulated driver it is.
pub(crate) type EmuVersion = unsafe extern "C" fn() -> u32;

/// `slabfenceEmuAnnounceRange`: what a range of memory is for.
pub(crate) type EmuAnnounceRange = unsafe extern "C" fn(note: *const RangeNote) -> CUresult;

impl RangeNote {
    /// "No slot" in [`RangeNote::slot`], "no single writer" in [`RangeNote::source`], "no phase" in [`RangeNote::phase`].
    pub const NONE: u32 = u32::MAX;
}

layout!(
    RangeNote: size 48, align 8,
    base @ 0, bytes @ 8, kind @ 16, slot @ 20, rank @ 24, source @ 28, channel @ 32,
    phase @ 40, reserved @ 44,
);
