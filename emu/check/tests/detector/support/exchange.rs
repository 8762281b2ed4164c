//! A small collective by the rules of `docs/protocol.md`: two ranks push rows to each other. 32 workers and a control
//! warp a block; row n of a block is 16 bytes of worker n.

use super::{
    checker, kernel, launch,
    machine::{End, Outcome, Schedule, Stream, run},
    memory,
};
use slabfence_emu_check::{Options, Region, RegionKind, Writers};
use slabfence_emu_exec::{Kernel, Launch};
use std::sync::Arc;

/// Largest grid of these tests.
const BLOCKS: u64 = 4;
const LINE: u64 = 128;
const ROWS: u64 = BLOCKS * 32 * 16;

/// The kernel. Each step is on a line of its own, for mutations to replace.
pub const BODY: &str = "
    ld.param.u64 %d1, [p0];
    ld.relaxed.gpu.global.u64 %d20, [%d1];
    and.b64 %d21, %d20, 1;
    setp.eq.u64 %p1, %d21, 1;
    ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2]; selp.b64 %d22, %d3, %d2, %p1;
    ld.param.u64 %d2, [p3]; ld.param.u64 %d3, [p4]; selp.b64 %d23, %d3, %d2, %p1;
    ld.param.u64 %d2, [p5]; ld.param.u64 %d3, [p6]; selp.b64 %d24, %d3, %d2, %p1;
    ld.param.u64 %d2, [p7]; ld.param.u64 %d3, [p8]; selp.b64 %d25, %d3, %d2, %p1;
    ld.param.u64 %d2, [p9]; ld.param.u64 %d3, [p10]; selp.b64 %d26, %d3, %d2, %p1;
    ld.param.u64 %d2, [p11]; ld.param.u64 %d3, [p12]; selp.b64 %d27, %d3, %d2, %p1;
    ld.param.u64 %d28, [p13]; ld.param.u64 %d29, [p14];
    mul.wide.u32 %d30, %r2, 128; add.u64 %d23, %d23, %d30; add.u64 %d26, %d26, %d30;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra CONTROL;
    mad.lo.u32 %r4, %r2, 32, %r1; mul.wide.u32 %d31, %r4, 16;
    add.u64 %d32, %d28, %d31; add.u64 %d33, %d27, %d31; add.u64 %d34, %d24, %d31; add.u64 %d35, %d29, %d31;
    ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d32];
    st.global.v4.u32 [%d33], {%r5, %r6, %r7, %r8};
    bar.sync 1, 64;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 bra ARRIVED;
    st.release.sys.global.u64 [%d26], %d20;
POLL:
    ld.acquire.sys.global.u64 %d36, [%d23];
    setp.ne.u64 %p4, %d36, %d20;
    @%p4 bra POLL;
ARRIVED:
    bar.sync 2, 32;
    ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d34];
    st.global.v4.u32 [%d35], {%r5, %r6, %r7, %r8};
    bra DONE;
CONTROL:
    setp.ne.u32 %p5, %r1, 32;
    @%p5 bra ENTERED;
    setp.ne.u32 %p6, %r2, 0;
    @%p6 bra ENTERED;
    st.relaxed.sys.global.v2.u64 [%d25], {%d20, %d20};
ENTERED:
    bar.sync 1, 64;
    @%p5 bra DONE;
    atom.add.acq_rel.gpu.global.u64 %d37, [%d1+128], 1;
    cvt.u64.u32 %d38, %r3; sub.u64 %d38, %d38, 1;
    setp.ne.u64 %p7, %d37, %d38;
    @%p7 bra MEET;
    st.relaxed.gpu.global.u64 [%d1+128], 0;
    add.u64 %d39, %d20, 1;
    atom.exch.relaxed.gpu.global.b64 %d40, [%d1], %d39;
MEET:
    setp.ne.u32 %p6, %r2, 0;
    @%p6 bra DONE;
LOOK:
    ld.acquire.sys.global.v2.u64 {%d41, %d42}, [%d22];
    setp.ne.u64 %p8, %d41, %d20;
    @%p8 bra LOOK;
    setp.ne.u64 %p8, %d42, %d20;
    @%p8 bra LOOK;
DONE:
    ret;";

/// The body with one thing changed. What is to be changed must be there.
pub fn mutated(from: &str, to: &str) -> String {
    assert!(BODY.contains(from), "{from}");
    BODY.replacen(from, to, 1)
}

/// The memory of a rank, from its base.
const LOCAL: u64 = 0;
const ENTRY: u64 = 0x1_0000;
const FLAGS: u64 = 0x2_0000;
const INBOX: u64 = 0x3_0000;
const INPUT: u64 = 0x5_0000;
const OUTPUT: u64 = 0x6_0000;
/// Between two slots of a kind.
const SLOT: u64 = 0x8000;

fn base(rank: u32) -> u64 {
    0x10_0000_0000 * (u64::from(rank) + 1)
}

/// The regions of both ranks; rank r is on device r.
fn regions() -> Vec<Region> {
    let mut regions = Vec::new();
    for rank in 0..2 {
        let region = |offset, len, kind, slot: Option<u32>, writers| {
            let kind: RegionKind = kind;
            let slot_name = slot.map_or(String::new(), |slot| format!(" slot {slot}"));
            Region {
                kind,
                slot,
                writers,
                channel: kind.is_slab().then_some(7),
                rank: kind.is_slab().then_some(rank),
                initialised: !matches!(kind, RegionKind::Inbox | RegionKind::Buffer),
                ..Region::buffer(
                    base(rank) + offset,
                    len,
                    rank,
                    format!("{}{slot_name} of rank {rank}", kind.name()),
                )
            }
        };
        let own = Writers::Rank(rank);
        let peer = Writers::Rank(1 - rank);
        regions.push(region(LOCAL, 8, RegionKind::Epoch, None, own));
        regions.push(region(LOCAL + 8, 120, RegionKind::Counter, None, own));
        regions.push(region(LOCAL + 128, 8, RegionKind::Ticket, None, own));
        for slot in 0..2 {
            let at = SLOT * u64::from(slot);
            let slot = Some(slot);
            regions.push(region(ENTRY + at, LINE, RegionKind::Entry, slot, peer));
            regions.push(region(
                FLAGS + at,
                BLOCKS * LINE,
                RegionKind::Flag,
                slot,
                peer,
            ));
            regions.push(region(INBOX + at, ROWS, RegionKind::Inbox, slot, peer));
        }
        let anyone = Writers::Anyone;
        let input = region(INPUT, ROWS, RegionKind::Buffer, None, anyone);
        regions.push(Region {
            initialised: true,
            ..input
        });
        regions.push(region(OUTPUT, ROWS, RegionKind::Buffer, None, anyone));
    }
    regions
}

/// One operation of a rank.
fn operation(kernel: &Arc<Kernel>, rank: u32, grid: u32) -> Launch {
    let (own, peer) = (base(rank), base(1 - rank));
    let mut params = vec![own + LOCAL];
    for (base, kinds) in [(own, [ENTRY, FLAGS, INBOX]), (peer, [ENTRY, FLAGS, INBOX])] {
        for kind in kinds {
            params.extend([base + kind, base + kind + SLOT]);
        }
    }
    params.extend([own + INPUT, own + OUTPUT]);
    launch(kernel, grid, 64, &params)
}

/// How an exchange is run.
pub struct Exchange {
    pub body: String,
    pub grids: Vec<u32>,
    pub options: Options,
    pub resident: usize,
    pub epoch: u64,
    /// What the flags hold at first.
    pub flags: u64,
    pub regions: Vec<Region>,
}

impl Exchange {
    pub fn new(body: &str) -> Self {
        Self {
            body: body.to_owned(),
            grids: vec![2, 2, 4, 1, 2, 2],
            options: Options::default(),
            resident: usize::MAX,
            epoch: 2,
            flags: 0,
            regions: regions(),
        }
    }

    /// Both ranks, with this seed. Checks the values too where the run ends.
    pub fn run(&self, seed: u64) -> Outcome {
        let kernel = kernel(15, &self.body);
        let mut memory = memory(&self.regions);
        for rank in 0..2 {
            memory.put(base(rank) + LOCAL, self.epoch);
            for slot in 0..2 {
                memory.put(base(rank) + FLAGS + slot * SLOT, self.flags);
            }
            for word in 0..ROWS / 8 {
                memory.put(base(rank) + INPUT + 8 * word, input(rank, word));
            }
        }
        let streams = [0, 1].map(|rank| {
            let launches = self
                .grids
                .iter()
                .map(|&grid| operation(&kernel, rank, grid));
            Stream::grids(rank, launches)
        });
        let schedule = Schedule {
            resident: self.resident,
            ..Schedule::of(seed)
        };
        let checker = checker(self.options.clone(), &self.regions);
        let outcome = run(&mut memory, checker, &streams, schedule);
        if outcome.findings.is_empty() && matches!(outcome.end, End::Done) {
            for rank in 0..2 {
                let output = memory.get(base(rank) + OUTPUT + 8);
                assert_eq!(output, input(1 - rank, 1));
            }
        }
        outcome
    }
}

fn input(rank: u32, word: u64) -> u64 {
    u64::from(rank + 1) << 32 | word
}
