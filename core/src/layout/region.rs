//! Where the arrays of a channel lie inside its ranges. Host side only: kernels get addresses.

use super::signal::{LINE, MAX_GRID, MAX_WORLD, PHASES, SLOTS};

/// Alignment of every range and array.
pub const ALIGN: usize = LINE;

/// Rounds up to [`ALIGN`].
pub const fn align_up(bytes: usize) -> Option<usize> {
    match bytes.checked_add(ALIGN - 1) {
        Some(sum) => Some(sum & !(ALIGN - 1)),
        None => None,
    }
}

/// Which of the two staging slots. Selected on the device by the epoch; the host only ever names both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Even epochs.
    A,
    /// Odd epochs.
    B,
}

impl Slot {
    /// Both, in the order of the parameter blocks.
    pub const BOTH: [Slot; SLOTS] = [Slot::A, Slot::B];
}

/// Offsets inside a channel's signal range: poison lines, entry lines, data flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalLayout {
    world: usize,
    grid: usize,
}

impl SignalLayout {
    /// `None` unless `2 ≤ world ≤ 16` and `1 ≤ grid ≤ 128`.
    pub const fn new(world: usize, grid: usize) -> Option<Self> {
        if world < 2 || world > MAX_WORLD || grid < 1 || grid > MAX_GRID {
            return None;
        }
        Some(Self { world, grid })
    }

    /// Offset of the poison lines, one a source.
    pub const fn poison(&self) -> usize {
        0
    }

    /// Offset of a slot's entry lines, one a source.
    pub const fn entry(&self, slot: Slot) -> usize {
        (1 + slot as usize) * self.world * LINE
    }

    /// Offset of a slot's data flags, `[phase][cta][source]`.
    pub const fn flags(&self, slot: Slot) -> usize {
        (1 + SLOTS) * self.world * LINE + slot as usize * self.flag_bytes()
    }

    /// Offset of one source's line in an array of lines.
    pub const fn source(&self, source: usize) -> usize {
        source * LINE
    }

    /// Bytes of a slot's data flags.
    pub const fn flag_bytes(&self) -> usize {
        PHASES * self.grid * self.world * LINE
    }

    /// Bytes of the whole range.
    pub const fn bytes(&self) -> usize {
        (1 + SLOTS) * self.world * LINE + SLOTS * self.flag_bytes()
    }
}

/// Proves that arrays, each an offset, a length and a stride, do not overlap: for every one, offset + length × stride ≤ the
/// next one's offset, and for the last, ≤ the bytes of the range.
pub(super) const fn prove_disjoint(arrays: &[(usize, usize, usize)], bytes: usize) {
    let mut index = 0;
    while index < arrays.len() {
        let (offset, length, stride) = arrays[index];
        index += 1;
        let limit = if index < arrays.len() {
            arrays[index].0
        } else {
            bytes
        };
        assert!(
            offset + length * stride <= limit,
            "an array reaches into what follows it"
        );
    }
}

// At the largest sizes.
const _: () = {
    let Some(l) = SignalLayout::new(MAX_WORLD, MAX_GRID) else {
        panic!("largest layout")
    };
    let flags = PHASES * MAX_GRID * MAX_WORLD;
    prove_disjoint(
        &[
            (l.poison(), MAX_WORLD, LINE),
            (l.entry(Slot::A), MAX_WORLD, LINE),
            (l.entry(Slot::B), MAX_WORLD, LINE),
            (l.flags(Slot::A), flags, LINE),
            (l.flags(Slot::B), flags, LINE),
        ],
        l.bytes(),
    );
};

/// Offsets inside one slot of a channel's inbox: every source's raw range, then every source's packet range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxLayout {
    world: usize,
    raw: usize,
    packets: usize,
}

impl InboxLayout {
    /// `raw_bytes`: what one source may push in one operation; `packet_bytes`: one source's packet range (0: none).
    /// `None` when the sum overflows.
    pub const fn new(world: usize, raw_bytes: usize, packet_bytes: usize) -> Option<Self> {
        let (Some(raw), Some(packets)) = (align_up(raw_bytes), align_up(packet_bytes)) else {
            return None;
        };
        let Some(both) = raw.checked_add(packets) else {
            return None;
        };
        if world > MAX_WORLD || both.checked_mul(world).is_none() {
            return None;
        }
        Some(Self {
            world,
            raw,
            packets,
        })
    }

    /// Bytes between two sources' raw ranges.
    pub const fn raw_stride(&self) -> usize {
        self.raw
    }

    /// Bytes between two sources' packet ranges.
    pub const fn packet_stride(&self) -> usize {
        self.packets
    }

    /// Offset of one source's raw range.
    pub const fn raw(&self, source: usize) -> usize {
        source * self.raw
    }

    /// Offset of one source's packet range.
    pub const fn packet(&self, source: usize) -> usize {
        self.world * self.raw + source * self.packets
    }

    /// Bytes of the whole slot.
    pub const fn bytes(&self) -> usize {
        self.world * (self.raw + self.packets)
    }
}

// At sizes that are no multiple of a line.
const _: () = {
    let Some(l) = InboxLayout::new(MAX_WORLD, 4 * LINE + 1, LINE - 1) else {
        panic!("an inbox")
    };
    prove_disjoint(
        &[
            (l.raw(0), MAX_WORLD, l.raw_stride()),
            (l.packet(0), MAX_WORLD, l.packet_stride()),
        ],
        l.bytes(),
    );
};
