//! Everything that host and device code agree on, defined once.
//!
//! `cargo xtask abi` writes `kernels/abi.cuh` from the structs and codes here; every offset is asserted at compile time
//! on both sides, and `layout-tests` reads the same numbers back out of the shipped images.

mod codes;
mod health;
mod local;
mod macros;
mod params;
mod region;
mod signal;

pub use codes::{Cause, DType, OperationKind, Transport, split_verdict, verdict_word};
pub use health::{ChannelHealth, FaultRecord, HealthHeader};
pub use local::{
    LocalBlock, NORM_ROWS, NormCounter, STARTED_EPOCH_BITS, started_warps, started_word,
};
pub use macros::{DeviceStruct, DeviceType, Field};
pub use params::{
    ABI, AttentionParams, ClockParams, GatherParams, Header, MAGIC, PeerAddresses, Preamble,
    ReduceParams, SlotAddresses,
};
pub use region::{ALIGN, InboxLayout, SignalLayout, Slot, align_up};
pub use signal::{EntryLine, FlagLine, LINE, MAX_GRID, MAX_WORLD, PHASES, PoisonLine, SLOTS};

/// Number, name and value of every constant that `kernels/abi.cuh` repeats.
pub const CONSTANTS: &[(&str, u64)] = &[
    ("ABI", ABI as u64),
    ("MAGIC", MAGIC),
    ("LINE", LINE as u64),
    ("MAX_WORLD", MAX_WORLD as u64),
    ("SLOTS", SLOTS as u64),
    ("PHASES", PHASES as u64),
    ("MAX_GRID", MAX_GRID as u64),
    ("NORM_ROWS", NORM_ROWS as u64),
    ("STARTED_EPOCH_BITS", STARTED_EPOCH_BITS as u64),
];

/// One shared struct, without its type.
#[derive(Debug, Clone, Copy)]
pub struct StructInfo {
    /// Name.
    pub name: &'static str,
    /// Doc comment, one entry a line.
    pub doc: &'static [&'static str],
    /// Bytes.
    pub size: usize,
    /// Alignment.
    pub align: usize,
    /// Fields in order.
    pub fields: &'static [Field],
}

const fn info<T: DeviceStruct>() -> StructInfo {
    StructInfo {
        name: T::NAME,
        doc: T::DOC,
        size: size_of::<T>(),
        align: align_of::<T>(),
        fields: T::FIELDS,
    }
}

/// Every shared struct, parts before wholes.
pub const STRUCTS: &[StructInfo] = &[
    info::<EntryLine>(),
    info::<FlagLine>(),
    info::<PoisonLine>(),
    info::<NormCounter>(),
    info::<LocalBlock>(),
    info::<FaultRecord>(),
    info::<ChannelHealth>(),
    info::<HealthHeader>(),
    info::<Preamble>(),
    info::<SlotAddresses>(),
    info::<PeerAddresses>(),
    info::<Header>(),
    info::<GatherParams>(),
    info::<ReduceParams>(),
    info::<AttentionParams>(),
    info::<ClockParams>(),
];

/// The shared code tables: name of the enum, then name and value of each code.
pub const CODES: &[(&str, &[(&str, u32)])] = &[
    ("OperationKind", OperationKind::ALL),
    ("Transport", Transport::ALL),
    ("DType", DType::ALL),
    ("Cause", Cause::ALL),
];
