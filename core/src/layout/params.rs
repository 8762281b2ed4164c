//! Parameter blocks of the kernels. Nothing in them names a slot, an epoch or a flag value: both slots' addresses are
//! there, and the kernel selects by the epoch that it reads from device memory.

use super::macros::device_struct;

/// First word of every parameter block of ours, so that a graph's reader can tell it: `slabfnc1` in ASCII.
pub const MAGIC: u64 = u64::from_le_bytes(*b"slabfnc1");
/// Version of the layouts in this module. Part of every operation tag.
pub const ABI: u32 = 1;

device_struct! {
    /// Start of every parameter block.
    pub struct Preamble [size = 16, align = 8] {
        /// [`MAGIC`](super::MAGIC).
        magic: u64 = 0,
        /// [`ABI`](super::ABI).
        abi: u32 = 8,
        /// An [`OperationKind`](super::OperationKind).
        operation: u32 = 12,
    }
}

device_struct! {
    /// Addresses that belong to one staging slot.
    ///
    /// In `Header::own`: bases of this rank's own memory. In `Header::peers[p]`: what this rank may touch at rank p.
    pub struct SlotAddresses [size = 40, align = 8] {
        /// Own: entry lines, one a source. Peer: this rank's entry line there.
        entry: u64 = 0,
        /// Data flags `[phase][cta][source]`, `flag_grid` CTAs and `world` sources.
        flags: u64 = 8,
        /// Own: outbox to fill. Peer: its outbox, readable only.
        outbox: u64 = 16,
        /// Own: raw ranges, source s at `s * inbox_stride`. Peer: this rank's raw range there.
        inbox: u64 = 24,
        /// Own: packet ranges, source s at `s * packet_stride`. Peer: this rank's packet range there. 0: none.
        packets: u64 = 32,
    }
}

device_struct! {
    /// What this rank may touch at one peer. All zero at the own rank's index.
    pub struct PeerAddresses [size = 88, align = 8] {
        /// By slot.
        slot: [SlotAddresses; 2] = 0,
        /// This rank's poison line there.
        poison: u64 = 80,
    }
}

device_struct! {
    /// Common start of the parameter blocks of all collectives.
    pub struct Header [size = 1624, align = 8] {
        /// Magic, layout version, operation.
        preamble: Preamble = 0,
        /// The channel's identity, equal on all ranks.
        channel: u64 = 16,
        /// Operation tag: low half goes into the entry line, the 16 bits above into the ticket.
        tag: u64 = 24,
        /// This rank.
        rank: u32 = 32,
        /// Ranks of the group.
        world: u32 = 36,
        /// A [`Transport`](super::Transport).
        transport: u32 = 40,
        /// A [`DType`](super::DType).
        dtype: u32 = 44,
        /// CTAs that the flag arrays have room for.
        flag_grid: u32 = 48,
        /// 0: waits are measured by `%globaltimer` (ns); 1: by `%clock64`.
        clock: u32 = 52,
        /// Ticks after which a wait leaves a warning record; 0: never.
        warn_ticks: u64 = 56,
        /// Ticks after which a wait fails; 0: never.
        fail_ticks: u64 = 64,
        /// Bytes between the raw ranges of two sources in the own inbox.
        inbox_stride: u64 = 72,
        /// Bytes between the packet ranges of two sources in the own inbox.
        packet_stride: u64 = 80,
        /// Packets of one packet range; 0: the pool has none.
        packet_capacity: u32 = 88,
        /// Bytes of a packet: 16 or 8.
        packet_bytes: u32 = 92,
        /// The channel's [`LocalBlock`](super::LocalBlock).
        local: u64 = 96,
        /// The channel's [`ChannelHealth`](super::ChannelHealth), host-mapped.
        health: u64 = 104,
        /// The pool's [`HealthHeader`](super::HealthHeader), host-mapped.
        health_header: u64 = 112,
        /// Own poison lines, one a source (the own one too).
        poison: u64 = 120,
        /// Own addresses by slot.
        own: [SlotAddresses; 2] = 128,
        /// Peers' addresses by rank.
        peers: [PeerAddresses; 16] = 208,
        /// Room for later fields; zero.
        reserved: u64 = 1616,
    }
}

device_struct! {
    /// `all_gather_heads`: `[B, H/W, D]` on each rank to `[B, H, D]`, in units of 16-byte packs.
    pub struct GatherParams [size = 1656, align = 8] {
        /// Common start.
        header: Header = 0,
        /// This rank's heads, contiguous.
        input: u64 = 1624,
        /// All heads, contiguous, rank-major within a token.
        output: u64 = 1632,
        /// Packs of one rank: B × H/W × row packs.
        packs: u32 = 1640,
        /// Packs of one rank in one token: H/W × row packs.
        token_packs: u32 = 1644,
        /// Zero.
        reserved: u64 = 1648,
    }
}

device_struct! {
    /// `lse_reduce_scatter`: partial `[B, H, D]` with LSE `[B, H]` to `[B, H/W, D]`. Strides in bytes.
    pub struct ReduceParams [size = 1728, align = 8] {
        /// Common start.
        header: Header = 0,
        /// Partial outputs of all heads.
        input: u64 = 1624,
        /// Their log-sum-exp, f32, contiguous `[B, H]`.
        lse: u64 = 1632,
        /// Combined outputs of this rank's heads.
        output: u64 = 1640,
        /// Input: from one token to the next.
        in_token_stride: u64 = 1648,
        /// Input: from one head to the next.
        in_head_stride: u64 = 1656,
        /// Output: from one token to the next.
        out_token_stride: u64 = 1664,
        /// Output: from one head to the next.
        out_head_stride: u64 = 1672,
        /// From the start of a staged part (one source's for one destination) to its LSE values.
        lse_offset: u64 = 1680,
        /// Bytes of a staged part: payload and LSE.
        part_bytes: u64 = 1688,
        /// Tokens B.
        batch: u32 = 1696,
        /// Heads of one rank, H/W.
        heads: u32 = 1700,
        /// 16-byte packs of a row.
        row_packs: u32 = 1704,
        /// Base-2 logarithm of the threads that share a row.
        row_threads_log2: u32 = 1708,
        /// 0: LSE in base e, 1: in base 2.
        lse_base2: u32 = 1712,
        /// Zero. A field that is read where `lse_base2` is not would make nvcc read both at once, with a hint that only newer
        /// drivers know.
        reserved0: u32 = 1716,
        /// `(2^32 - 1) / heads`.
        heads_reciprocal: u32 = 1720,
        /// Zero.
        reserved1: u32 = 1724,
    }
}

device_struct! {
    /// Reference decode attention over one shard of keys. No collective. Strides in elements.
    pub struct AttentionParams [size = 152, align = 8] {
        /// Magic, layout version, operation.
        preamble: Preamble = 0,
        /// Queries `[B, H, key_dim]`, contiguous.
        query: u64 = 16,
        /// Keys: key j of head h at `j * key_stride + h * key_head_stride`.
        key: u64 = 24,
        /// Values, addressed likewise.
        value: u64 = 32,
        /// Partial outputs `[B, H, value_dim]`, contiguous.
        output: u64 = 40,
        /// Log-sum-exp `[B, H]`, f32.
        lse: u64 = 48,
        /// Elements from one key to the next.
        key_stride: u64 = 56,
        /// Elements from one head's keys to the next head's; 0: all heads share them.
        key_head_stride: u64 = 64,
        /// Elements from one value to the next.
        value_stride: u64 = 72,
        /// Elements from one head's values to the next head's; 0: all heads share them.
        value_head_stride: u64 = 80,
        /// Tokens B.
        batch: u32 = 88,
        /// Heads H.
        heads: u32 = 92,
        /// Keys of this shard; 0: the output is zero and the LSE minus infinity.
        keys: u32 = 96,
        /// Elements of a query or key.
        key_dim: u32 = 100,
        /// Elements of a value.
        value_dim: u32 = 104,
        /// Score scale times log2(e): scores are kept in base 2 whatever the base of the LSE.
        scale_log2: f32 = 108,
        /// Factor from a base-2 LSE to the wanted base: ln 2, or 1.
        lse_factor: f32 = 112,
        /// Zero.
        reserved0: u32 = 116,
        /// Zero.
        reserved1: [u64; 4] = 120,
    }
}

device_struct! {
    /// Reading of a device's clocks. No collective.
    pub struct ClockParams [size = 32, align = 8] {
        /// Magic, layout version, operation.
        preamble: Preamble = 0,
        /// Where two u64 go: `%globaltimer`, then `%clock64`.
        output: u64 = 16,
        /// Zero.
        reserved: u64 = 24,
    }
}
