//! Strong accesses: what they take from others, what they publish, what they mean to the protocol.

use slabfence_emu_exec::AccessKind;

use crate::{
    RegionKind, Rule,
    access::{Scene, Target, place},
    cell::Visitor,
    protocol,
    registry::{Stamp, Synchronised},
    word::{Head, Word, chain},
};

impl Scene<'_> {
    /// A strong load of one word by all lanes of the warp, `first` is that of lane 0. It is taken for one, unless a lane has
    /// something to remember: what the word publishes, until it acquires it, or what a wait of its may have ended on.
    pub(crate) fn words(&mut self, element: u32, first: Stamp, target: &mut Target<'_>) {
        let size = self.access.size;
        let offset = target.offset + u64::from(element * size);
        let view = &self.warp.view;
        let known = |head: &Head| view.covers(head.lane, head.time);
        let awaited = target.kind().is_some_and(RegionKind::is_awaited);
        let word = target.shadow.known_word(offset, size);
        if !awaited && word.is_none_or(|word| word.heads.iter().all(known)) {
            return self.word(0, element, first.of_all(), target);
        }
        for lane in 0..32 {
            self.word(usize::from(lane), element, first.of_lane(lane), target);
        }
    }

    /// A strong access to one word.
    pub(crate) fn word(
        &mut self,
        lane: usize,
        element: u32,
        stamp: Stamp,
        target: &mut Target<'_>,
    ) {
        let size = self.access.size;
        let within = u64::from(element * size);
        let (address, offset) = (target.address + within, target.offset + within);
        let (region, kind) = (target.region, target.kind());
        let at = place(
            region.map(|region| &**region),
            target.address,
            target.offset,
            offset,
        );
        let (word, mixed) = target.shadow.word(offset, size);
        if let (Some(earlier), true) = (mixed, kind.is_some_and(RegionKind::is_signal)) {
            let earlier = (!earlier.is_none()).then_some(earlier);
            let detail = || format!("{size} bytes here, otherwise before");
            self.findings
                .report(Rule::MixedSize, self.registry, (earlier, stamp), at, detail);
        }
        if self.torn(lane, word, stamp, kind) {
            let earlier = (!word.write.is_none()).then_some(word.write);
            let elements = self.access.elements;
            let detail = || format!("{elements} elements of {size} bytes");
            self.findings.report(
                Rule::TornVector,
                self.registry,
                (earlier, stamp),
                at,
                detail,
            );
        }
        let linked = !word.link.is_none()
            && (word.link.lane() == stamp.lane() || self.registry.mutual(word.link, stamp));
        let loads = self.access.kind == AccessKind::Load || self.access.returns;
        if loads
            && self.warp.reads(
                lane,
                address,
                word.published(linked),
                self.acquires(),
                self.registry,
            )
        {
            let on = Synchronised::Acquired {
                region: region.cloned(),
                address,
                pc: self.pc,
            };
            self.warp.synchronised(self.registry, on);
            self.learnt = true;
        }
        self.learn_from_value(lane, element, kind);
        let stores = self.stores(lane);
        let keeps = self.keeps(lane);
        if stores && !keeps {
            // What it stores itself is no longer what a wait of its ended on.
            self.warp.forget_look(lane, address);
        }
        if self.looks(lane, kind) {
            let by = Visitor::new(stamp, self.warp.view(lane));
            let number = self.operation.number();
            let look = kind.and_then(|kind| protocol::looked(kind, address, word, &by, number));
            if let Some(look) = look {
                protocol::remember(&mut self.warp.thread(lane).looks, look);
            }
        }
        self.findings.forgotten += std::mem::take(&mut word.forgotten);
        if !stores {
            return;
        }
        let modifies = self.access.kind == AccessKind::ReadModifyWrite;
        if let Some(kind) = kind.filter(|_| !keeps) {
            let by = Visitor::new(stamp, self.warp.view(lane));
            // A read-modify-write that saw the last store comes after it.
            let saw = modifies && linked;
            for (rule, earlier, detail) in protocol::overwritten(kind, word, &by, saw) {
                let sides = (Some(earlier), stamp);
                self.findings
                    .report(rule, self.registry, sides, at, || detail.to_owned());
            }
            protocol::replace_users(kind, word, &by);
            // Who tells of a failure has left its waits for that.
            self.warp.poisoned |= kind == RegionKind::Poison;
        }
        let releases = self.releases();
        let boundary = self.options.kernel_boundary;
        let mut heads = self.warp.publishes(lane, address, releases, boundary);
        if modifies {
            let before = match linked {
                true => std::mem::take(&mut word.heads),
                false => Vec::new(),
            };
            chain(&mut heads, before, releases.is_some(), self.registry);
        }
        if releases.is_some() {
            let on = Synchronised::Released {
                region: region.cloned(),
                address,
                pc: self.pc,
            };
            self.warp.synchronised(self.registry, on);
        }
        let mut number = self.operation.number();
        let mut unread = false;
        if kind == Some(RegionKind::Packets) {
            unread = self.is_packet(lane, element, number);
            // A scrub is nobody's.
            number = number.filter(|_| unread);
        }
        if keeps {
            // The value is still that of whoever stored it.
            (word.heads, word.link) = (heads, stamp);
            return;
        }
        *word = Word {
            message: word.message + 1,
            write: stamp,
            link: stamp,
            vector: self.access.elements > 1,
            heads,
            number,
            unread,
            users: std::mem::take(&mut word.users),
            ..*word
        };
    }

    /// Whether a vector reads what another may be storing element by element. Entry lines are made for that: each element
    /// names the epoch. A packet never is a vector.
    fn torn(&self, lane: usize, word: &Word, stamp: Stamp, kind: Option<RegionKind>) -> bool {
        let vector = self.access.elements > 1;
        match kind {
            Some(RegionKind::Entry) => false,
            Some(RegionKind::Packets) => vector,
            _ => {
                let by = Visitor::new(stamp, self.warp.view(lane));
                vector && !self.stores(lane) && word.vector && !by.after(word.write)
            }
        }
    }

    /// Whether what a lane reads may be what a wait of its ends on: by a load, or by a read-modify-write that leaves the value
    /// as it is or acquires what it takes. One that only releases waits for room, not for what another has stored, and a
    /// `cas` that fails has not found what it waits for.
    fn looks(&self, lane: usize, kind: Option<RegionKind>) -> bool {
        let awaited = kind.is_some_and(RegionKind::is_awaited);
        match self.access.kind {
            AccessKind::Load => true,
            _ if !awaited || !self.access.returns || !self.stores(lane) => false,
            _ => self.keeps(lane) || self.acquires().is_some(),
        }
    }

    /// The epoch numbers the operation; a poison word that is set excuses what waits end on.
    fn learn_from_value(&mut self, lane: usize, element: u32, kind: Option<RegionKind>) {
        let Some(row) = self.access.loaded.get(element as usize) else {
            return;
        };
        match kind {
            Some(RegionKind::Epoch) => {
                let again = self.warp.epoch.replace(row[lane]);
                if let Some(bound) = &mut self.operation.bound {
                    bound.several |= again.is_some_and(|before| before != row[lane]);
                    bound.first.get_or_insert(row[lane]);
                }
            }
            Some(RegionKind::Poison) if row[lane] != 0 => self.warp.poisoned = true,
            _ => {}
        }
    }

    /// Whether what is stored carries its operation's stamp.
    fn is_packet(&self, lane: usize, element: u32, number: Option<u64>) -> bool {
        let (rows, element) = (self.access.stored, element as usize);
        let stamp = match self.access.size {
            16 => rows.get(2 * element + 1).map(|row| row[lane] >> 32),
            8 => rows.get(element).map(|row| row[lane] >> 32),
            _ => rows.get(element).map(|row| row[lane]),
        };
        let (Some(stamp), Some(number)) = (stamp, number) else {
            return false;
        };
        stamp as u32 == number as u32
    }
}
