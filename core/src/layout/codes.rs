//! Codes that host and device share.

/// Defines an enum with fixed codes that `kernels/abi.cuh` repeats.
macro_rules! codes {
    ($(#[$meta:meta])* pub enum $name:ident { $( $(#[doc = $doc:literal])* $variant:ident = $code:literal, )* }) => {
        $(#[$meta])*
        #[repr(u32)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $( $(#[doc = $doc])* $variant = $code, )* }

        impl $name {
            /// Every variant with its name, for the generator of `kernels/abi.cuh`.
            pub const ALL: &'static [(&'static str, u32)] = &[$((stringify!($variant), $code)),*];

            /// The variant with this code, if there is one.
            pub const fn from_code(code: u32) -> Option<Self> {
                match code { $( $code => Some(Self::$variant), )* _ => None }
            }

            /// The variant's name: so documentation and status documents call it, and dumps of graphs, by [`ALL`](Self::ALL).
            pub const fn variant(self) -> &'static str {
                match self { $( Self::$variant => stringify!($variant), )* }
            }

            /// The code that device code knows.
            pub const fn code(self) -> u32 { self as u32 }
        }
    };
}

codes! {
    /// Kind of a kernel of ours.
    pub enum OperationKind {
        /// All-gather of attention heads.
        AllGatherHeads = 1,
        /// LSE-weighted reduce-scatter of partial attention outputs.
        LseReduceScatter = 2,
        /// Reference decode attention, local.
        Attention = 64,
        /// Reading of a device's clocks, local.
        Clock = 65,
    }
}

impl OperationKind {
    /// As its function is called, and messages and status documents call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllGatherHeads => "all_gather_heads",
            Self::LseReduceScatter => "lse_reduce_scatter",
            Self::Attention => "attention",
            Self::Clock => "clock",
        }
    }
}

codes! {
    /// How data cross from rank to rank.
    pub enum Transport {
        /// The source stores into the destination's inbox.
        Push = 1,
        /// The destination loads from the source's outbox.
        Pull = 2,
    }
}

codes! {
    /// Element type.
    pub enum DType {
        /// 32-bit float.
        F32 = 1,
        /// 16-bit float.
        F16 = 2,
        /// bfloat16.
        Bf16 = 3,
        /// 8-bit float, 4 exponent bits.
        F8E4M3 = 4,
        /// 8-bit float, 5 exponent bits.
        F8E5M2 = 5,
        /// Byte.
        U8 = 6,
    }
}

impl DType {
    /// Bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::F8E4M3 | Self::F8E5M2 | Self::U8 => 1,
        }
    }
}

codes! {
    /// Why an operation did not deliver.
    pub enum Cause {
        /// A peer's entry line did not come within the fail threshold.
        EntryTimeout = 1,
        /// A peer's data flag did not come within the fail threshold.
        DataTimeout = 2,
        /// A peer is in another operation: its tag differs.
        TagMismatch = 3,
        /// The operation started before an earlier one of its channel had ended.
        Overlap = 4,
        /// A peer reported a failure, which ended this operation too.
        PeerFailed = 5,
        /// The channel was poisoned when the operation started; it did nothing.
        Skipped = 6,
    }
}

/// Failure as one nonzero word: the cause in the top byte, below it the epoch.
pub const fn verdict_word(cause: Cause, epoch: u64) -> u64 {
    ((cause as u64) << 56) | (epoch & ((1 << 56) - 1))
}

/// Takes a [`verdict_word`] apart. `None` for zero and for codes that this version does not know.
pub const fn split_verdict(word: u64) -> Option<(Cause, u64)> {
    match Cause::from_code((word >> 56) as u32) {
        Some(cause) => Some((cause, word & ((1 << 56) - 1))),
        None => None,
    }
}
