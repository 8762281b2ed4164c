//! Memory of a module's variables: one piece for all of them, since every pool loads the same modules again.

use crate::code::{Code, Status};
use crate::memory::Memory;
use crate::va::{Kind, PAGE, Range};

/// Variables begin at multiples of this, as allocations of the driver do; more is asked for where one needs it.
const ALIGN: u64 = 256;

/// The piece of memory that a module's variables share.
pub(crate) struct Variables {
    device: u32,
    base: u64,
    /// Whole pages.
    bytes: u64,
}

impl Memory {
    /// Gives variables of these sizes and alignments memory; their addresses. `None` for a module without any.
    pub(crate) fn place(
        &mut self,
        device: u32,
        variables: &[(u64, u64)],
    ) -> Status<Option<(Variables, Vec<u64>)>> {
        let mut end = 0u64;
        let mut offsets = Vec::with_capacity(variables.len());
        for &(size, align) in variables {
            let align = align.clamp(ALIGN, PAGE);
            // Behind each is something that is nobody's, so that no access goes beyond one into the next.
            let next = end
                .checked_next_multiple_of(align)
                .and_then(|offset| Some((offset, offset.checked_add(size)?.checked_add(1)?)));
            let (offset, behind) = next.ok_or(Code::OUT_OF_MEMORY)?;
            offsets.push(offset);
            end = behind;
        }
        if offsets.is_empty() {
            return Ok(None);
        }
        let bytes = end
            .checked_next_multiple_of(PAGE)
            .ok_or(Code::OUT_OF_MEMORY)?;
        self.charge(device, bytes)?;
        let base = self
            .back(bytes)
            .inspect_err(|_| self.used[device as usize] -= bytes)?;
        let own = 1 << device;
        for (&(size, _), offset) in variables.iter().zip(&offsets) {
            self.map.insert(Range {
                base: base + offset,
                len: size,
                kind: Kind::Global,
                device,
                read: own,
                write: own,
                id: 0,
                stored: Default::default(),
            });
        }
        let addresses = offsets.iter().map(|offset| base + offset).collect();
        let piece = Variables {
            device,
            base,
            bytes,
        };
        Ok(Some((piece, addresses)))
    }

    /// Frees what [`place`](Memory::place) gave.
    pub(crate) fn free_variables(&mut self, piece: &Variables) -> Status {
        let &Variables {
            device,
            base,
            bytes,
        } = piece;
        let variables = self.map.within(base, bytes).map(|range| range.base);
        for variable in variables.collect::<Vec<u64>>() {
            self.map.remove(variable);
        }
        self.used[device as usize] -= bytes;
        self.map
            .span()
            .clear(base, bytes)
            .map_err(|_| Code::OPERATING_SYSTEM)?;
        self.map.give(base, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_share_pages_none_reaches_the_next_and_all_go_at_once() {
        let mut memory = Memory::new(&[0], 1 << 30, 2 << 20).expect("addresses");
        assert!(memory.place(0, &[]).is_ok_and(|none| none.is_none()));
        let wanted = [(256, 4), (256, 4), (1, 1024), (5000, 8)];
        let placed = memory.place(0, &wanted).expect("memory");
        let (piece, addresses) = placed.expect("variables");
        assert_eq!(addresses.len(), wanted.len());
        for (&at, (size, align)) in addresses.iter().zip(wanted) {
            assert!(at.is_multiple_of(align.max(ALIGN)));
            assert!(memory.map.check(0, at, size, true));
            assert!(!memory.map.check(0, at, size + 1, false));
        }
        assert_eq!(memory.used, [2 * PAGE]);
        memory.free_variables(&piece).expect("freed");
        assert_eq!((memory.used[0], memory.map.ranges().count()), (0, 0));
        assert!(memory.map.removed_at(addresses[2]).is_some());
    }
}
