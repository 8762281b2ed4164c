//! What can happen to the messages of an exchange on their way to one rank.

use crate::envelope;

/// How they come to differ from what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The last bit of a neighbour's.
    LastBit,
    /// A byte of what a neighbour's says of itself: form, version, step, pool, sender, number, digests.
    Head,
    /// The length that a neighbour's gives of its step's name.
    Length,
    /// A neighbour's ends early.
    Cut,
    /// Bytes come behind a neighbour's.
    Extended,
    /// A neighbour's is empty.
    Empty,
    /// All are.
    AllEmpty,
    /// A part more than ranks, in front.
    MoreInFront,
    /// A part more than ranks, at the end.
    MoreAtTheEnd,
    /// The first is not there.
    Fewer,
    /// None is.
    None,
    /// The own one is in a neighbour's place, and that one in its.
    Exchanged,
    /// Those of two others are in each other's place; of two ranks, as [`Exchanged`](Self::Exchanged).
    Swapped,
    /// The own one is also in a neighbour's place.
    Echoed,
    /// A neighbour's is anything.
    Noise,
    /// All are.
    AllNoise,
    /// As many parts as it happens, with anything in them.
    Anything,
}

impl Damage {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::LastBit,
        Self::Head,
        Self::Length,
        Self::Cut,
        Self::Extended,
        Self::Empty,
        Self::AllEmpty,
        Self::MoreInFront,
        Self::MoreAtTheEnd,
        Self::Fewer,
        Self::None,
        Self::Exchanged,
        Self::Swapped,
        Self::Echoed,
        Self::Noise,
        Self::AllNoise,
        Self::Anything,
    ];

    /// Of which rank the message is the first that comes wrong to rank `me`; `None` where the own one is not in its place, or
    /// there are not as many as ranks.
    pub(super) fn strikes(self, me: usize, world: usize) -> Option<usize> {
        let next = (me + 1) % world;
        let beyond = (next + 1) % world;
        match self {
            Self::LastBit
            | Self::Head
            | Self::Length
            | Self::Cut
            | Self::Extended
            | Self::Empty
            | Self::Echoed
            | Self::Noise => Some(next),
            Self::Swapped => (beyond != me).then_some(next.min(beyond)),
            Self::AllEmpty
            | Self::MoreInFront
            | Self::MoreAtTheEnd
            | Self::Fewer
            | Self::None
            | Self::Exchanged
            | Self::AllNoise
            | Self::Anything => None,
        }
    }

    /// Does it to the parts that come to rank `me`. What is drawn depends on `seed` alone.
    pub fn apply(self, parts: &mut Vec<Vec<u8>>, me: usize, seed: u64) {
        let draw = &mut Draw(seed);
        let next = (me + 1) % parts.len();
        let beyond = (next + 1) % parts.len();
        match self {
            Self::LastBit => {
                if let Some(last) = parts[next].last_mut() {
                    *last ^= 1;
                }
            }
            Self::Head => {
                let at = draw.below(head(&parts[next]));
                parts[next][at] ^= 1 << draw.below(8);
            }
            Self::Length => {
                let length = [0, 1, 1 << 32, i64::MAX as u64, u64::MAX][draw.below(5)];
                let at = envelope::step_at(&parts[next]).unwrap_or(0);
                parts[next][at..at + 8].copy_from_slice(&u64::to_le_bytes(length));
            }
            Self::Cut => {
                let end = draw.below(parts[next].len());
                parts[next].truncate(end);
            }
            Self::Extended => {
                let more = draw.bytes(1, 64);
                parts[next].extend(more);
            }
            Self::Empty => parts[next].clear(),
            Self::AllEmpty => parts.iter_mut().for_each(Vec::clear),
            Self::MoreInFront => parts.insert(0, parts[next].clone()),
            Self::MoreAtTheEnd => parts.push(parts[next].clone()),
            Self::Fewer => drop(parts.remove(0)),
            Self::None => parts.clear(),
            Self::Exchanged => parts.swap(me, next),
            Self::Swapped => parts.swap(next, beyond),
            Self::Echoed => parts[next] = parts[me].clone(),
            Self::Noise => parts[next] = draw.bytes(0, 256),
            Self::AllNoise => parts.fill_with(|| draw.bytes(0, 256)),
            Self::Anything => {
                let count = draw.below(2 * parts.len() + 1);
                parts.resize_with(count, Vec::new);
                parts.fill_with(|| draw.bytes(0, 256));
            }
        }
    }
}

/// Bytes in front of a message's payload.
fn head(message: &[u8]) -> usize {
    let step = envelope::step_at(message);
    let mut rest = step.and_then(|at| message.get(at..)).unwrap_or_default();
    let payload = envelope::text(&mut rest).map_or(0, |_| rest.len().saturating_sub(4 * 8));
    message.len() - payload
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below this.
    fn below(&mut self, end: usize) -> usize {
        (self.word() % end as u64) as usize
    }

    /// So many bytes at least, and fewer than that.
    fn bytes(&mut self, least: usize, end: usize) -> Vec<u8> {
        let count = least + self.below(end - least);
        (0..count).map(|_| self.word() as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Envelope;

    fn message(from: u64) -> Vec<u8> {
        let message = Envelope {
            form: 1,
            version: "1.2.3".to_owned(),
            step: "step".to_owned(),
            pool: 7,
            from,
            number: from + 11,
            payload: vec![from as u8; 5],
        };
        message.write()
    }

    #[test]
    fn every_damage_changes_what_comes_and_by_one_seed_in_one_way() {
        for (world, damage) in [2, 3].into_iter().flat_map(|w| Damage::ALL.map(|d| (w, d))) {
            let sent: Vec<Vec<u8>> = (0..world).map(message).collect();
            for (seed, me) in (0..100).flat_map(|seed| [(seed, 0), (seed, world as usize - 1)]) {
                let damaged = || {
                    let mut parts = sent.clone();
                    damage.apply(&mut parts, me, seed);
                    parts
                };
                assert_ne!(damaged(), sent, "{damage:?}, seed {seed}");
                assert_eq!(damaged(), damaged());
            }
        }
    }

    #[test]
    fn a_damaged_head_leaves_the_payload() {
        let sent: Vec<Vec<u8>> = (0..2).map(message).collect();
        for seed in 0..1000 {
            let mut parts = sent.clone();
            Damage::Head.apply(&mut parts, 0, seed);
            assert_eq!((&parts[0], &parts[1][81..]), (&sent[0], &sent[1][81..]));
        }
        assert_eq!(sent[1].len(), 81 + 5);
    }
}
