//! No two arrays of a channel overlap, whatever the world and the grid.

use slabfence::layout::{
    ALIGN, InboxLayout, LINE, MAX_GRID, MAX_WORLD, PHASES, SignalLayout, Slot, align_up,
};

/// Lines of a range, each to be claimed exactly once.
struct Lines {
    claimed: Vec<bool>,
}

impl Lines {
    fn new(bytes: usize) -> Self {
        assert_eq!(bytes % LINE, 0, "a range is whole lines");
        Self {
            claimed: vec![false; bytes / LINE],
        }
    }

    fn claim(&mut self, offset: usize) {
        assert_eq!(offset % LINE, 0, "offset {offset} is no multiple of a line");
        let line = self.claimed.get_mut(offset / LINE);
        let line = line.unwrap_or_else(|| panic!("offset {offset} lies outside the range"));
        assert!(!*line, "offset {offset} is claimed twice");
        *line = true;
    }

    fn assert_full(&self) {
        assert!(
            self.claimed.iter().all(|&claimed| claimed),
            "a line belongs to nothing"
        );
    }
}

/// Where the lines of a signal range lie, as [`SignalLayout`] has it.
struct Offsets {
    poison: usize,
    entry: [usize; 2],
    flags: [usize; 2],
    source: usize,
    bytes: usize,
}

impl Offsets {
    fn of(layout: &SignalLayout) -> Self {
        Self {
            poison: layout.poison(),
            entry: Slot::BOTH.map(|slot| layout.entry(slot)),
            flags: Slot::BOTH.map(|slot| layout.flags(slot)),
            source: layout.source(1),
            bytes: layout.bytes(),
        }
    }

    /// Every line belongs to one array.
    fn prove(&self, world: usize, grid: usize) {
        let mut lines = Lines::new(self.bytes);
        for source in 0..world {
            lines.claim(self.poison + source * self.source);
            for slot in 0..2 {
                lines.claim(self.entry[slot] + source * self.source);
                for row in 0..PHASES * grid {
                    lines.claim(self.flags[slot] + (row * world + source) * LINE);
                }
            }
        }
        lines.assert_full();
    }
}

#[test]
fn every_signal_line_has_one_owner_for_all_worlds_and_grids() {
    for world in 2..=MAX_WORLD {
        for grid in 1..=MAX_GRID {
            let layout = SignalLayout::new(world, grid).unwrap();
            (0..world).for_each(|source| assert_eq!(layout.source(source), source * LINE));
            Offsets::of(&layout).prove(world, grid);
        }
    }
}

/// Whether a proof fails, which it does by a panic.
fn fails(proof: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    std::panic::catch_unwind(proof).is_err()
}

#[test]
fn a_signal_layout_with_any_number_changed_is_refused() {
    let changes: [fn(&mut Offsets, usize); 7] = [
        |offsets, by| offsets.poison = offsets.poison.wrapping_add(by),
        |offsets, by| offsets.entry[0] = offsets.entry[0].wrapping_add(by),
        |offsets, by| offsets.entry[1] = offsets.entry[1].wrapping_add(by),
        |offsets, by| offsets.flags[0] = offsets.flags[0].wrapping_add(by),
        |offsets, by| offsets.flags[1] = offsets.flags[1].wrapping_add(by),
        |offsets, by| offsets.source = offsets.source.wrapping_add(by),
        |offsets, by| offsets.bytes = offsets.bytes.wrapping_add(by),
    ];
    let layout = SignalLayout::new(3, 2).unwrap();
    Offsets::of(&layout).prove(3, 2);
    for (at, change) in changes.into_iter().enumerate() {
        for by in [8, LINE, 2 * LINE, LINE.wrapping_neg()] {
            let mut offsets = Offsets::of(&layout);
            change(&mut offsets, by);
            assert!(
                fails(|| offsets.prove(3, 2)),
                "number {at}, changed by {by}"
            );
        }
    }
}

#[test]
fn signal_layouts_outside_the_bounds_do_not_exist() {
    for (world, grid) in [
        (0, 1),
        (1, 1),
        (MAX_WORLD + 1, 1),
        (2, 0),
        (2, MAX_GRID + 1),
        (usize::MAX, usize::MAX),
    ] {
        assert_eq!(
            SignalLayout::new(world, grid),
            None,
            "world {world}, grid {grid}"
        );
    }
}

#[test]
fn inbox_ranges_are_disjoint_aligned_and_large_enough() {
    let sizes = [
        0,
        1,
        16,
        ALIGN - 1,
        ALIGN,
        ALIGN + 1,
        3 * ALIGN,
        4096 + 16,
        1 << 20,
    ];
    for world in 2..=MAX_WORLD {
        for raw in sizes {
            for packets in sizes {
                let layout = InboxLayout::new(world, raw, packets).unwrap();
                Ranges::of(&layout, world).prove(raw, packets);
            }
        }
    }
}

/// Where an inbox's ranges lie, as [`InboxLayout`] has it.
#[derive(Clone)]
struct Ranges {
    raw: Vec<usize>,
    raw_stride: usize,
    packet: Vec<usize>,
    packet_stride: usize,
    bytes: usize,
}

impl Ranges {
    fn of(layout: &InboxLayout, world: usize) -> Self {
        Self {
            raw: (0..world).map(|source| layout.raw(source)).collect(),
            raw_stride: layout.raw_stride(),
            packet: (0..world).map(|source| layout.packet(source)).collect(),
            packet_stride: layout.packet_stride(),
            bytes: layout.bytes(),
        }
    }

    /// One range behind the other, aligned, with room for what was asked for.
    fn prove(&self, raw: usize, packets: usize) {
        let mut end = 0;
        for (starts, stride, least) in [
            (&self.raw, self.raw_stride, raw),
            (&self.packet, self.packet_stride, packets),
        ] {
            assert!(stride >= least && stride.is_multiple_of(ALIGN));
            for &start in starts {
                assert_eq!(start, end);
                end += stride;
            }
        }
        assert_eq!(self.bytes, end);
    }
}

#[test]
fn an_inbox_layout_with_any_number_changed_is_refused() {
    let ranges = Ranges::of(&InboxLayout::new(3, 300, 100).unwrap(), 3);
    ranges.prove(300, 100);
    let mut changed: Vec<Ranges> = Vec::new();
    let mut change = |edit: &dyn Fn(&mut Ranges)| {
        let mut other = ranges.clone();
        edit(&mut other);
        changed.push(other);
    };
    for source in 0..3 {
        change(&|ranges| ranges.raw[source] += ALIGN);
        change(&|ranges| ranges.packet[source] += ALIGN);
    }
    for by in [8, ALIGN] {
        change(&|ranges| ranges.raw_stride += by);
        change(&|ranges| ranges.packet_stride += by);
        change(&|ranges| ranges.bytes += by);
    }
    for (at, other) in changed.into_iter().enumerate() {
        assert!(fails(|| other.prove(300, 100)), "change {at}");
    }
    assert!(fails(|| Ranges::of(
        &InboxLayout::new(3, 300, 100).unwrap(),
        3
    )
    .prove(400, 100)));
}

#[test]
fn inbox_sizes_that_overflow_are_refused() {
    let half = usize::MAX / 2 + 1;
    assert_eq!(InboxLayout::new(2, usize::MAX, 0), None);
    assert_eq!(InboxLayout::new(2, 0, usize::MAX), None);
    assert_eq!(InboxLayout::new(2, half, half), None);
    assert_eq!(InboxLayout::new(16, usize::MAX / 16 + 1, 0), None);
    assert_eq!(InboxLayout::new(MAX_WORLD + 1, 128, 128), None);
}

#[test]
fn align_up_gives_the_next_multiple_and_never_wraps() {
    assert_eq!(align_up(0), Some(0));
    assert_eq!(align_up(1), Some(ALIGN));
    assert_eq!(align_up(ALIGN), Some(ALIGN));
    assert_eq!(align_up(ALIGN + 1), Some(2 * ALIGN));
    assert_eq!(
        align_up(usize::MAX - ALIGN + 1),
        Some(usize::MAX - ALIGN + 1)
    );
    assert_eq!(align_up(usize::MAX - ALIGN + 2), None);
}
