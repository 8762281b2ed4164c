//! A slot is one of two names; no number becomes one.

use slabfence::layout::{SignalLayout, Slot};

fn main() {
    let _ = 1_usize as Slot;
    let _: Slot = 1.into();
    if let Some(layout) = SignalLayout::new(2, 1) {
        let _ = layout.entry(1);
    }
}
