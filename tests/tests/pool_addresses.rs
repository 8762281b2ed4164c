//! Every slab address of a captured operation is the start of the range that it should be: of the right kind, slot, owner
//! and writer. Whatever the kernels do later, they do it to these addresses.

use std::mem::offset_of;

use slabfence::channel::Contract;
use slabfence::driver::{CaptureMode, Stream};
use slabfence::layout::{
    GatherParams, Header, MAGIC, MAX_WORLD, PeerAddresses, SlotAddresses, Transport,
};
use slabfence::sys::{RangeKind, RangeNote};
use slabfence_emu::Machine;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_ranks};

const WORLD: u32 = 3;
const NONE: u32 = RangeNote::NONE;

/// The parameter block of a gather captured on channel `name`.
fn captured(member: &Member, contract: &Contract, name: &str) -> Vec<u8> {
    let pool = member.pool(contract).unwrap();
    pool.prepare(&["a", "b"]).unwrap();
    let stream = Stream::new(&member.device).unwrap();
    let gather = Gather::new(member, contract, 1).unwrap();
    let scope = pool.capture(name, &stream).unwrap();
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    gather
        .enqueue(&pool.channel(name).unwrap(), &stream)
        .unwrap();
    let graph = stream.end_capture().unwrap();
    scope.finish().unwrap();
    let nodes = graph.nodes().unwrap();
    let kernel = nodes[0].kernel().unwrap();
    let params = kernel.params.as_ref().unwrap();
    assert_eq!(params.len(), 1);
    params[0].bytes.clone()
    // The pool stays: the test looks at its ranges.
}

struct Block<'a> {
    machine: &'a Machine,
    bytes: Vec<u8>,
}

impl Block<'_> {
    fn word(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes[offset..offset + 8].try_into().unwrap())
    }

    fn half(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.bytes[offset..offset + 4].try_into().unwrap())
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

fn addresses(transport: Transport) {
    let (machine, driver) = machine(WORLD);
    let contract = Contract {
        transport,
        ..Contract::new(6, 64, 64, 8)
    };
    let blocks = on_ranks(&driver, WORLD, |member| captured(member, &contract, "b"));
    for (me, bytes) in (0..WORLD).zip(blocks) {
        assert_eq!(bytes.len(), size_of::<GatherParams>());
        let block = Block {
            machine: &machine,
            bytes,
        };
        assert_eq!(block.word(0), MAGIC);
        assert_eq!(block.half(offset_of!(Header, rank)), me);
        assert_eq!(block.half(offset_of!(Header, world)), WORLD);
        let local = offset_of!(Header, local);
        block.is(local, RangeKind::LOCAL, NONE, me, NONE);
        let poison = offset_of!(Header, poison);
        block.is(poison, RangeKind::SIGNAL, NONE, me, 0);
        for slot in 0..2 {
            let at = offset_of!(Header, own) + slot as usize * size_of::<SlotAddresses>();
            block.slot(at, transport, slot, me, 0);
        }
        for peer in 0..MAX_WORLD as u32 {
            let at = offset_of!(Header, peers) + peer as usize * size_of::<PeerAddresses>();
            if peer == me || peer >= WORLD {
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
}

#[test]
fn a_push_knows_its_part_of_every_peers_inbox_and_no_outbox() {
    addresses(Transport::Push);
}

#[test]
fn a_pull_knows_every_peers_outbox_and_no_inbox() {
    addresses(Transport::Pull);
}
