//! Which region an address is in, with what is remembered of its memory.

use std::sync::Arc;

use crate::{Region, shadow::Shadow, sweep::Marks};

/// A region and its shadow. Offsets in the shadow count from the multiple of 16 at or below the base, so that aligned
/// words are aligned there.
#[derive(Debug)]
pub(crate) struct Tract {
    pub(crate) region: Arc<Region>,
    pub(crate) shadow: Shadow,
}

/// All regions, and those that are gone.
#[derive(Debug)]
pub(crate) struct Map {
    tracts: Vec<Tract>,
    gone: Vec<Region>,
    /// Where addresses were found last, by the line that they lie in: those who poll come back to few lines.
    recent: [usize; RECENT],
}

/// Lines, of so many bytes, whose region is looked for at one place first.
const RECENT: usize = 256;
const LINE: u64 = 128;

/// Within how many bytes of a region an address is told by it.
const NEAR: u64 = 1 << 32;
/// How many regions that are gone are remembered.
const REMEMBERED: usize = 1024;

impl Tract {
    fn new(region: Region) -> Self {
        let shadow = Shadow::new(region.initialised);
        let region = Arc::new(region);
        Self { region, shadow }
    }

    /// Offset of an address in the shadow.
    pub(crate) fn offset(&self, address: u64) -> u64 {
        address - (self.region.base & !15)
    }

    /// Bytes from `address` to the region's end.
    pub(crate) fn room(&self, address: u64) -> u64 {
        self.region.end() - address
    }
}

impl Default for Map {
    fn default() -> Self {
        Self {
            tracts: Vec::new(),
            gone: Vec::new(),
            recent: [0; RECENT],
        }
    }
}

impl Map {
    /// Enters a region, in place of what was known of its addresses.
    pub(crate) fn insert(&mut self, region: Region) {
        if region.len == 0 {
            return;
        }
        self.cut(region.base, region.end());
        let at = self
            .tracts
            .partition_point(|tract| tract.region.base < region.base);
        self.tracts.insert(at, Tract::new(region));
    }

    /// Takes regions out, as far as they lie in a range.
    pub(crate) fn remove(&mut self, base: u64, len: u64) {
        for region in self.cut(base, base.saturating_add(len)) {
            if self.gone.len() == REMEMBERED {
                self.gone.remove(0);
            }
            self.gone.push(region);
        }
    }

    /// Says that what is in a range held something before anybody accessed it.
    pub(crate) fn written(&mut self, base: u64, len: u64) {
        self.parts(base, len, |tract, from, to| {
            let (from, to) = (tract.offset(from), tract.offset(to));
            tract.shadow.written(from, to);
        });
    }

    /// What of a range holds nothing, as spans of offsets in it. Where no region is, nobody knows of anything missing.
    pub(crate) fn unwritten(&mut self, base: u64, len: u64) -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        self.parts(base, len, |tract, from, to| {
            let origin = tract.region.base & !15;
            let found = tract
                .shadow
                .unwritten(from - origin, to - origin)
                .into_iter();
            let span = |(from, to)| (origin + from - base, origin + to - base);
            spans.extend(found.map(span));
        });
        spans
    }

    /// Says that a range holds nothing, whoever has written it.
    pub(crate) fn empty(&mut self, base: u64, len: u64) {
        self.parts(base, len, |tract, from, to| {
            let (from, to) = (tract.offset(from), tract.offset(to));
            tract.shadow.empty(from, to);
        });
    }

    /// Looks at the regions of a range, each with the addresses of its part of it.
    fn parts(&mut self, base: u64, len: u64, mut look: impl FnMut(&mut Tract, u64, u64)) {
        let end = base.saturating_add(len);
        let first = self
            .tracts
            .partition_point(|tract| tract.region.end() <= base);
        let inside = |tract: &&mut Tract| tract.region.base < end;
        for tract in self.tracts[first..].iter_mut().take_while(inside) {
            let (from, to) = (base.max(tract.region.base), end.min(tract.region.end()));
            look(tract, from, to);
        }
    }

    /// Cuts a range out of all regions; gives the parts in it.
    fn cut(&mut self, base: u64, end: u64) -> Vec<Region> {
        let first = self
            .tracts
            .partition_point(|tract| tract.region.end() <= base);
        let mut inside = Vec::new();
        while let Some(tract) = self.tracts.get(first + inside.len()) {
            if tract.region.base >= end {
                break;
            }
            inside.push(Region::clone(&tract.region));
        }
        let mut rest = Vec::new();
        for region in &mut inside {
            for (from, to) in [(region.base, base), (end, region.end())] {
                if from < to {
                    let (base, len) = (from, to - from);
                    rest.push(Tract::new(Region {
                        base,
                        len,
                        ..region.clone()
                    }));
                }
            }
            let (from, to) = (region.base.max(base), region.end().min(end));
            (region.base, region.len) = (from, to - from);
        }
        self.tracts.splice(first..first + inside.len(), rest);
        inside
    }

    /// Marks whom its memory remembers.
    pub(crate) fn mark(&self, marks: &mut Marks) {
        self.tracts
            .iter()
            .for_each(|tract| tract.shadow.mark(marks));
    }

    /// The index of the region that holds an address; `hint` is where to look first.
    pub(crate) fn find(&self, address: u64, hint: usize) -> Option<usize> {
        let holds = |tract: &Tract| address.wrapping_sub(tract.region.base) < tract.region.len;
        if self.tracts.get(hint).is_some_and(holds) {
            return Some(hint);
        }
        let next = self
            .tracts
            .partition_point(|tract| tract.region.base <= address);
        let at = next.checked_sub(1)?;
        holds(&self.tracts[at]).then_some(at)
    }

    /// The same; where the last one of its line was found is looked after `hint`.
    #[inline]
    pub(crate) fn locate(&mut self, address: u64, hint: usize) -> Option<usize> {
        let tract = self.tracts.get(hint);
        if tract.is_some_and(|tract| address.wrapping_sub(tract.region.base) < tract.region.len) {
            return Some(hint);
        }
        // Mixed, since ranks have the same at addresses that differ in high bits alone.
        let line = ((address / LINE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % RECENT;
        let at = self.find(address, self.recent[line])?;
        self.recent[line] = at;
        Some(at)
    }

    pub(crate) fn tract(&mut self, index: usize) -> &mut Tract {
        &mut self.tracts[index]
    }

    pub(crate) fn region_at(&self, address: u64) -> Option<&Region> {
        self.find(address, 0).map(|at| &*self.tracts[at].region)
    }

    pub(crate) fn tract_at(&mut self, address: u64) -> Option<&mut Tract> {
        let at = self.find(address, 0)?;
        self.tracts.get_mut(at)
    }

    /// Where the first region above an address starts.
    pub(crate) fn next(&self, address: u64) -> Option<u64> {
        let next = self
            .tracts
            .partition_point(|tract| tract.region.base <= address);
        Some(self.tracts.get(next)?.region.base)
    }

    /// What was at an address.
    pub(crate) fn gone_at(&self, address: u64) -> Option<&Region> {
        let held = |region: &&Region| address.wrapping_sub(region.base) < region.len;
        self.gone.iter().rev().find(held)
    }

    /// Where an address is that is in no region, by the region that it is nearest to: addresses themselves differ between
    /// processes. `None` if it is near none.
    pub(crate) fn nearby(&self, address: u64) -> Option<String> {
        let next = self
            .tracts
            .partition_point(|tract| tract.region.base <= address);
        let below = next.checked_sub(1).map(|at| &self.tracts[at].region);
        let past =
            below.map(|below| (address - below.end().min(address), below, "past the end of"));
        let above = self.tracts.get(next).map(|tract| &tract.region);
        let before = above.map(|above| (above.base - address, above, "before"));
        let near = past.into_iter().chain(before);
        let (far, region, side) = near.min_by_key(|(far, ..)| *far)?;
        (far < NEAR).then(|| format!("{far} bytes {side} {}", region.title()))
    }

    /// The same in words, also of what is no address at all.
    pub(crate) fn nowhere(&self, address: u64) -> String {
        let nothing = || format!("nothing is at {address:#x}");
        self.nearby(address).unwrap_or_else(nothing)
    }
}
