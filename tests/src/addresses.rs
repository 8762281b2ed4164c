//! The slab addresses in the parameter block of a captured operation, and what each must be.

use std::mem::offset_of;

use slabfence::Result;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::{CaptureMode, Stream};
use slabfence::layout::{
    GatherParams, Header, MAGIC, MAX_WORLD, PeerAddresses, SlotAddresses, Transport,
};
use slabfence::sys::{RangeKind, RangeNote};
use slabfence_emu::Machine;

use crate::ranks::{Gather, Member};

const NONE: u32 = RangeNote::NONE;

/// The parameter block of a gather captured on channel `name`.
///
/// # Panics
///
/// When the capture is not one kernel with one parameter.
pub fn captured(member: &Member, contract: &Contract, pool: &Pool, name: &str) -> Result<Vec<u8>> {
    let stream = Stream::new(&member.device)?;
    let gather = Gather::new(member, contract, 1)?;
    let scope = pool.capture(name, &stream)?;
    stream.begin_capture(CaptureMode::ThreadLocal)?;
    gather.enqueue(&pool.channel(name)?, &stream)?;
    let graph = stream.end_capture()?;
    scope.finish()?;
    let nodes = graph.nodes()?;
    let kernel = nodes[0].kernel().expect("a kernel");
    let params = kernel.params.as_ref().expect("a kernel with parameters");
    assert_eq!((nodes.len(), params.len()), (1, 1));
    Ok(params[0].bytes.clone())
}

struct Block<'a> {
    machine: &'a Machine,
    bytes: &'a [u8],
}

impl Block<'_> {
    fn word(&self, offset: usize) -> u64 {
        let bytes = self.bytes[offset..offset + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    }

    fn half(&self, offset: usize) -> u32 {
        let bytes = self.bytes[offset..offset + 4].try_into();
        u32::from_le_bytes(bytes.expect("four bytes"))
    }

    /// Checks that the word at `offset` is the start of such a range.
    fn is(&self, offset: usize, kind: RangeKind, slot: u32, owner: u32, source: u32) {
        let address = self.word(offset);
        let note = self.machine.announced(address);
        let note = note.unwrap_or_else(|| panic!("{address:#x} at {offset} is in no range"));
        assert_eq!(
            (note.base, note.kind, note.slot, note.rank, note.source),
            (address, kind, slot, owner, source),
            "word at {offset}"
        );
        assert_eq!(note.channel, self.word(offset_of!(Header, channel)));
    }

    fn is_zero(&self, offset: usize) {
        assert_eq!(self.word(offset), 0, "word at {offset}");
    }

    /// One rank's slot; `source` is who writes there for the holder of this block.
    fn slot(&self, at: usize, transport: Transport, slot: u32, owner: u32, source: u32) {
        self.is(
            at + offset_of!(SlotAddresses, entry),
            RangeKind::SIGNAL,
            slot,
            owner,
            source,
        );
        let flags = at + offset_of!(SlotAddresses, flags);
        self.is(flags, RangeKind::SIGNAL, slot, owner, NONE);
        let (inbox, outbox) = (
            at + offset_of!(SlotAddresses, inbox),
            at + offset_of!(SlotAddresses, outbox),
        );
        match transport {
            Transport::Push => {
                self.is(inbox, RangeKind::INBOX, slot, owner, source);
                self.is_zero(outbox);
            }
            _ => {
                self.is(outbox, RangeKind::OUTBOX, slot, owner, owner);
                self.is_zero(inbox);
            }
        }
        self.is_zero(at + offset_of!(SlotAddresses, packets));
    }
}

/// Checks every slab address in rank `me`'s parameter block of a gather: each is the start of a range of the right kind,
/// slot, owner and writer, as it was announced to `machine`.
///
/// # Panics
///
/// When one is not.
pub fn check(machine: &Machine, bytes: &[u8], me: u32, world: u32, transport: Transport) {
    assert_eq!(bytes.len(), size_of::<GatherParams>());
    let block = Block { machine, bytes };
    assert_eq!(block.word(0), MAGIC);
    assert_eq!(block.half(offset_of!(Header, rank)), me);
    assert_eq!(block.half(offset_of!(Header, world)), world);
    let local = offset_of!(Header, local);
    // The local block begins with the epoch.
    block.is(local, RangeKind::EPOCH, NONE, me, NONE);
    let poison = offset_of!(Header, poison);
    block.is(poison, RangeKind::SIGNAL, NONE, me, 0);
    for slot in 0..2 {
        let at = offset_of!(Header, own) + slot as usize * size_of::<SlotAddresses>();
        block.slot(at, transport, slot, me, 0);
    }
    for peer in 0..MAX_WORLD as u32 {
        let at = offset_of!(Header, peers) + peer as usize * size_of::<PeerAddresses>();
        if peer == me || peer >= world {
            (0..size_of::<PeerAddresses>())
                .step_by(8)
                .for_each(|word| block.is_zero(at + word));
            continue;
        }
        let poison = at + offset_of!(PeerAddresses, poison);
        block.is(poison, RangeKind::SIGNAL, NONE, peer, me);
        for slot in 0..2 {
            let at = at + slot as usize * size_of::<SlotAddresses>();
            block.slot(at, transport, slot, peer, me);
        }
    }
}
