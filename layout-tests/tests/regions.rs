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

#[test]
fn every_signal_line_has_one_owner_for_all_worlds_and_grids() {
    for world in 2..=MAX_WORLD {
        for grid in 1..=MAX_GRID {
            let layout = SignalLayout::new(world, grid).unwrap();
            let mut lines = Lines::new(layout.bytes());
            for source in 0..world {
                lines.claim(layout.poison() + layout.source(source));
                for slot in Slot::BOTH {
                    lines.claim(layout.entry(slot) + layout.source(source));
                    for row in 0..PHASES * grid {
                        lines.claim(layout.flags(slot) + (row * world + source) * LINE);
                    }
                }
            }
            lines.assert_full();
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
                let mut end = 0;
                for source in 0..world {
                    assert_eq!(layout.raw(source), end);
                    assert!(
                        layout.raw_stride() >= raw && layout.raw_stride().is_multiple_of(ALIGN)
                    );
                    end += layout.raw_stride();
                }
                for source in 0..world {
                    assert_eq!(layout.packet(source), end);
                    assert!(
                        layout.packet_stride() >= packets
                            && layout.packet_stride().is_multiple_of(ALIGN)
                    );
                    end += layout.packet_stride();
                }
                assert_eq!(layout.bytes(), end);
            }
        }
    }
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
