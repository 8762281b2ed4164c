//! Small kernels of other protocols, in `testdata/protocols`: two ranks exchange rows of 32 words. Each text begins with
//! what it does.

/// The parameter block of all of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Own flags: zeroed lines of 128 bytes, two for each CTA that can be.
    pub own_flags: u64,
    /// The peer's.
    pub peer_flags: u64,
    /// Own staging slots.
    pub own_stage: [u64; 2],
    /// The peer's.
    pub peer_stage: [u64; 2],
    /// Own counters, zeroed, one line of 128 bytes a CTA.
    pub counters: u64,
    /// Rows to send.
    pub input: u64,
    /// Where the peer's rows go.
    pub output: u64,
    /// Calls so far, as the host counts them.
    pub calls: i32,
    /// Rows.
    pub rows: u32,
    /// Zero.
    pub reserved: u64,
}

/// One call on both ranks. All have one warp a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// CTAs.
    pub grid: u32,
    /// Rows.
    pub rows: u32,
    /// Which slot the host passes as the first.
    pub slot: usize,
    /// Calls so far, as the host counts them.
    pub calls: i32,
}

/// Calls of a kernel of another protocol, back to back.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Stable name.
    pub name: &'static str,
    /// Its PTX text.
    pub ptx: &'static str,
    /// The entry.
    pub entry: &'static str,
    /// What both ranks call.
    pub calls: &'static [Call],
    /// Whether both ranks have the first rank's counters.
    pub shared_counter: bool,
    /// What must be found, each of them; none when it is right.
    pub rules: &'static [&'static str],
}

/// Calls of one CTA and one row with these slots and counts.
const fn call(slot: usize, calls: i32) -> Call {
    Call {
        grid: 1,
        rows: 1,
        slot,
        calls,
    }
}

/// Calls of eight rows with these CTAs.
const fn rows(grid: u32) -> Call {
    Call {
        grid,
        rows: 8,
        slot: 0,
        calls: 0,
    }
}

macro_rules! protocols {
    ($($name:literal: $file:literal, $shared:literal, $calls:expr, $rules:expr;)*) => {
        /// All of them: each wrong use beside a right one.
        pub const PROTOCOLS: &[Protocol] = &[$(Protocol {
            name: $name,
            ptx: include_str!(concat!("../../../testdata/protocols/", $file, ".ptx")),
            entry: $file,
            calls: &$calls,
            shared_counter: $shared,
            rules: &$rules,
        },)*];
    };
}

protocols! {
    "host-slot": "host_slot", false, [call(0, 0), call(1, 1), call(0, 2), call(1, 3)], [];
    "host-slot-odd-replay": "host_slot", false, [call(0, 0), call(1, 1), call(0, 2), call(0, 3), call(1, 4), call(0, 5)], ["race"];
    "signed-index": "signed_index", false, [call(0, 0), call(0, 1), call(0, 2)], [];
    "signed-index-minus-one": "signed_index", false, [call(0, i32::MIN), call(0, i32::MIN + 1)], ["wrong-region"];
    "cta-parity-equal-grids": "cta_parity", false, [rows(4), rows(4), rows(4)], [];
    "cta-parity-changing-grids": "cta_parity", false, [rows(4), rows(1), rows(4)], ["race"];
    "pairwise-barrier": "pairwise_barrier", false, [call(0, 0), call(0, 1), call(0, 2)], ["race"];
    "pairwise-barrier-repaired": "pairwise_barrier_repaired", false, [call(0, 0), call(0, 1), call(0, 2)], [];
    "device-counter": "device_counter", true, [call(0, 0)], ["gpu-scope-peer-atomic", "peer-atomic"];
}
