//! Two calls of one channel at once, warp by warp: what a call finds that has warps of two epochs.

use crate::support::memory::Memory;
use crate::support::shipped::{Collective, all};
use crate::support::{machine::Work, memory};
use core::mem::offset_of;
use slabfence::layout::{Cause, LocalBlock, split_verdict};
use slabfence_emu_exec::{Access, Cta, CtaBarrier, Env, Fence, Hook, Launch, Site, Space, Step};
use std::sync::Arc;

/// The last warp of a CTA, and one that moves rows.
const CONTROL: usize = 8;
const WORKER: usize = 3;
/// Rounds after which ranks that have not ended wait for ever, and instructions before which a warp has begun. Both take
/// far fewer.
const ENOUGH: usize = 1000;

/// Sees `retired` being read, which a warp reads last of the counters.
struct Begun(bool);

impl Hook for Begun {
    const CHECKING: bool = true;

    fn access(&mut self, _: &Site<'_>, access: &Access<'_>) {
        let lane = access.lanes.trailing_zeros() as usize;
        let retired = Collective::base(0) + offset_of!(LocalBlock, retired) as u64;
        self.0 |= access.space == Space::Global && access.addresses[lane] == retired;
    }

    fn fence(&mut self, _: &Site<'_>, _: u32, _: Fence) {}
    fn cta_barrier(&mut self, _: &Site<'_>, _: CtaBarrier<'_>) {}
    fn warp_barrier(&mut self, _: &Site<'_>, _: u32) {}
    fn exit(&mut self, _: &Site<'_>, _: u32) {}
}

/// A call of one rank.
struct Call(Vec<Cta>);

impl Call {
    fn new(launch: &Arc<Launch>) -> Self {
        let ctas = (0..launch.grid[0]).map(|x| Cta::new(launch, [x, 0, 0], 0));
        Self(ctas.collect())
    }

    fn done(&self) -> bool {
        self.0.iter().all(Cta::done)
    }

    /// One step of a warp; whether it has read `retired`.
    fn step(&mut self, memory: &mut Memory, cta: usize, warp: usize, fuel: u32) -> bool {
        let mut hook = Begun(false);
        let mut env = Env {
            memory,
            hook: &mut hook,
            globaltimer: 1,
            clock: 1,
            executed: 0,
        };
        let step = self.0[cta].step(warp, &mut env, fuel);
        assert!(!matches!(step, Step::Fault(_)), "{step:?}");
        hook.0
    }

    /// One turn of every warp of a CTA.
    fn turn(&mut self, memory: &mut Memory, cta: usize) {
        for warp in 0..=CONTROL {
            self.step(memory, cta, warp, 100);
        }
    }

    /// Lets a warp read the epoch and the overlap guard, and no more.
    fn begin(&mut self, memory: &mut Memory, cta: usize, warp: usize) {
        let begun = (0..ENOUGH).any(|_| self.step(memory, cta, warp, 1));
        assert!(begun, "warp {warp} of CTA {cta} does not begin");
    }
}

/// Runs calls together until all have ended, or wait for ever.
fn finish(memory: &mut Memory, calls: &mut [&mut Call]) -> bool {
    for _ in 0..ENOUGH {
        for call in &mut *calls {
            for cta in 0..call.0.len() {
                call.turn(memory, cta);
            }
        }
        if calls.iter().all(|call| call.done()) {
            return true;
        }
    }
    false
}

/// Two different operations on two streams of rank 0 and on one of rank 1. Warps that `early` names (CTA and warp) of
/// the second one of rank 0 read the counters before the first has begun, the others when it has ended. The ranks'
/// verdicts; `None` when they wait for ever.
fn overlapped(
    first: &Collective,
    second: &Collective,
    early: &[(usize, usize)],
) -> Option<[Option<Cause>; 2]> {
    let mut memory = memory(&first.regions());
    for rank in 0..2 {
        Collective::begin_at(&memory, rank, 2);
    }
    let call = |collective: &Collective, rank: usize| {
        let streams = collective.streams();
        let Some(Work::Grid(launch)) = streams[rank].work.front() else {
            panic!("no operation");
        };
        Call::new(launch)
    };
    let mut late = call(second, 0);
    for &(cta, warp) in early {
        late.begin(&mut memory, cta, warp);
    }
    let [mut here, mut there] = [call(first, 0), call(first, 1)];
    assert!(finish(&mut memory, &mut [&mut here, &mut there]));
    // Who came early arrives early: the exchange of the last to arrive finds the epoch that it expects.
    for _ in 0..ENOUGH / 10 {
        late.turn(&mut memory, early[0].0);
    }
    let mut peer = call(second, 1);
    let ended = finish(&mut memory, &mut [&mut late, &mut peer]);
    let verdict = |rank| {
        let status = offset_of!(LocalBlock, status) as u64;
        split_verdict(memory.get(Collective::base(rank) + status)).map(|(cause, _)| cause)
    };
    ended.then(|| [0, 1].map(verdict))
}

/// An operation of two CTAs, and another one.
fn pairs() -> Vec<[Collective; 2]> {
    let pair = |collective: Collective| {
        let grids = vec![2];
        let [first, mut second] = [(); 2].map(|()| Collective {
            grids: grids.clone(),
            batch: 3,
            heads: 8,
            ..collective.clone()
        });
        second.tag = !first.tag;
        [first, second]
    };
    all(2).into_iter().map(pair).collect()
}

/// Rank 0 has found the overlap, and rank 1 knows.
fn is_told(verdicts: Option<[Option<Cause>; 2]>) -> bool {
    matches!(
        verdicts,
        Some([
            Some(Cause::Overlap),
            Some(Cause::PeerFailed | Cause::Skipped)
        ])
    )
}

/// The text with the line that `find` finds in every entry rewritten.
fn rewritten(
    collective: &Collective,
    rewrite: impl Fn(&str, &str) -> Option<String>,
) -> Collective {
    let mut epoch = "";
    let mut found = 0;
    let lines = collective.ptx.lines().map(|line| {
        if line.contains("ld.relaxed.gpu.global.u64") && epoch.is_empty() {
            epoch = register(line);
        }
        if line.starts_with('}') {
            epoch = "";
        }
        match rewrite(line, epoch) {
            Some(line) => {
                found += 1;
                line
            }
            None => line.to_owned(),
        }
    });
    let ptx = lines.collect::<Vec<_>>().join("\n");
    let entries = collective.ptx.matches(".visible .entry").count();
    assert_eq!(found, entries, "one place in each entry");
    Collective {
        ptx,
        ..collective.clone()
    }
}

/// The register that a line writes.
fn register(line: &str) -> &str {
    let operands = line.trim().split_once(char::is_whitespace);
    let first = operands.and_then(|(_, operands)| operands.split(',').next());
    first.expect("operands").trim()
}

#[test]
fn a_warp_that_starts_before_the_others_is_told_from_them() {
    let early = [(0, WORKER)];
    for [first, second] in pairs() {
        let verdicts = overlapped(&first, &second, &early);
        assert!(is_told(verdicts), "{}: {verdicts:?}", first.entry);
        let blind = rewritten(&second, |line, epoch| {
            let load = line.contains("ld.shared.u64");
            load.then(|| format!("\tmov.b64 {}, {epoch};", register(line)))
        });
        let untold = overlapped(&first, &blind, &early);
        assert_eq!(untold, Some([None; 2]), "{}", first.entry);
    }
}

#[test]
fn a_cta_that_starts_before_the_others_is_told_from_them() {
    let early: Vec<_> = (0..=CONTROL).map(|warp| (1, warp)).collect();
    for [first, second] in pairs() {
        let verdicts = overlapped(&first, &second, &early);
        assert!(is_told(verdicts), "{}: {verdicts:?}", first.entry);
        // CTA 1 finds the flag of the first operation and takes its rows; the peer's waits for one that never comes.
        let blind = rewritten(&second, |line, _| {
            let shifts = line.contains("shl.b64") && line.ends_with(", 40;");
            shifts.then(|| format!("\tmov.b64 {}, 0;", register(line)))
        });
        assert_eq!(overlapped(&first, &blind, &early), None, "{}", first.entry);
    }
}
