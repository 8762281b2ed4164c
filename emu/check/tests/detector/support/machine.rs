//! A small machine: streams of operations on some devices, run by a seeded scheduler under a checker.

use super::memory::Memory;
use slabfence_emu_check::{Checker, Finding, Op, Remembered, Rule, Touch};
use slabfence_emu_exec::{Cta, Env, Fault, Launch, Step};
use std::{collections::VecDeque, sync::Arc};

/// What a stream does next.
#[derive(Clone)]
pub enum Work {
    Grid(Arc<Launch>),
    Task(Vec<Touch>),
}

/// A stream of a device. Its operations run one after the other.
#[derive(Clone)]
pub struct Stream {
    pub device: u32,
    pub work: VecDeque<Work>,
}

impl Stream {
    pub fn new(device: u32, work: impl IntoIterator<Item = Work>) -> Self {
        let work = work.into_iter().collect();
        Self { device, work }
    }

    pub fn grids(device: u32, launches: impl IntoIterator<Item = Launch>) -> Self {
        Self::new(device, launches.into_iter().map(grid))
    }
}

pub fn grid(launch: Launch) -> Work {
    launch.validate().unwrap();
    Work::Grid(Arc::new(launch))
}

/// How a run ended.
pub enum End {
    Done,
    Stuck,
    Fault(Box<Fault>, Option<Box<Finding>>),
}

pub struct Outcome {
    pub findings: Vec<Finding>,
    /// What the checker had no room to remember.
    pub forgotten: u64,
    pub remembered: Remembered,
    pub crowded: u64,
    pub end: End,
}

impl Outcome {
    pub fn rules(&self) -> Vec<Rule> {
        let mut rules: Vec<_> = self.findings.iter().map(|finding| finding.rule).collect();
        rules.sort();
        rules.dedup();
        rules
    }

    pub fn has(&self, rule: Rule) -> bool {
        self.findings.iter().any(|finding| finding.rule == rule)
    }

    pub fn find(&self, rule: Rule) -> &Finding {
        let found = self.findings.iter().find(|finding| finding.rule == rule);
        found.unwrap_or_else(|| panic!("no `{rule}` in {}", self.text()))
    }

    pub fn text(&self) -> String {
        let all: Vec<_> = self.findings.iter().map(Finding::to_string).collect();
        all.join("\n")
    }

    /// Ended, and nothing was found.
    pub fn clean(self) {
        assert!(
            matches!(self.end, End::Done),
            "did not end: {}",
            self.text()
        );
        assert!(self.findings.is_empty(), "{}", self.text());
    }
}

/// xorshift64*
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

/// A grid that runs.
struct Running {
    op: Op,
    ctas: Vec<Cta>,
    waiting: Vec<[u32; 3]>,
}

/// Steps in which no warp ended or came to a barrier before the machine counts as stuck.
const IDLE: u32 = 50_000;

/// In which order things happen.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub seed: u64,
    /// Blocks of a stream that are resident at most.
    pub resident: usize,
    /// Instructions that a warp executes in one turn at most.
    pub fuel: u64,
}

impl Schedule {
    /// Everything resident, short turns.
    pub fn of(seed: u64) -> Self {
        Self {
            seed,
            resident: usize::MAX,
            fuel: 16,
        }
    }
}

/// Runs streams to their end. Operations get the numbers 100 × stream + n.
pub fn run(
    memory: &mut Memory,
    mut checker: Checker,
    streams: &[Stream],
    schedule: Schedule,
) -> Outcome {
    let mut random = Random::new(schedule.seed);
    let mut streams = streams.to_vec();
    let mut running: Vec<Option<Running>> = streams.iter().map(|_| None).collect();
    let mut ops: Vec<u64> = (0..streams.len() as u64).map(|n| 100 * n).collect();
    let mut last: Vec<Option<Op>> = vec![None; streams.len()];
    let mut stalls = vec![0u64; streams.len()];
    let (mut time, mut idle) = (1000, 0);
    let end = loop {
        if streams.iter().all(|stream| stream.work.is_empty())
            && running.iter().all(Option::is_none)
        {
            break End::Done;
        }
        if idle > IDLE {
            break End::Stuck;
        }
        idle += 1;
        let at = random.below(streams.len() as u64) as usize;
        if stalls[at] > 0 {
            stalls[at] -= 1;
            continue;
        }
        if random.below(64) == 0 {
            stalls[at] = random.below(400);
        }
        let device = streams[at].device;
        let Some(grid) = &mut running[at] else {
            let Some(work) = streams[at].work.pop_front() else {
                continue;
            };
            ops[at] += 1;
            let op = ops[at];
            let after: Vec<Op> = last[at].into_iter().collect();
            last[at] = Some(op);
            idle = 0;
            match work {
                Work::Task(touches) => {
                    checker.task(op, device, &after, &touches);
                    checker.followed(op, usize::from(!streams[at].work.is_empty()));
                }
                Work::Grid(launch) => {
                    checker.begin(op, device, &after);
                    running[at] = Some(start(launch, op, &mut random));
                }
            }
            continue;
        };
        while grid.ctas.len() < schedule.resident
            && let Some(ctaid) = grid.waiting.pop()
        {
            let launch = grid.ctas.first().map(|cta| Arc::clone(cta.launch()));
            let launch = launch.unwrap_or_else(|| unreachable!());
            grid.ctas.push(Cta::new(&launch, ctaid, 0));
        }
        let cta = random.below(grid.ctas.len() as u64) as usize;
        let warp = random.below(grid.ctas[cta].warps() as u64) as usize;
        if !grid.ctas[cta].runnable(warp) {
            continue;
        }
        let mut env = Env {
            memory,
            hook: &mut checker,
            globaltimer: time,
            clock: time,
            executed: 0,
        };
        let step = grid.ctas[cta].step(warp, &mut env, 1 + random.below(schedule.fuel) as u32);
        time += 10;
        match step {
            Step::Fault(fault) => {
                let finding = checker.fault(grid.op, &fault, None, || None);
                break End::Fault(fault, finding.map(Box::new));
            }
            // A poll may take several steps.
            Step::Ran | Step::Polled => {}
            _ => idle = 0,
        }
        if grid.ctas[cta].done() {
            let done = grid.ctas.swap_remove(cta);
            if let (true, Some(ctaid)) = (grid.ctas.is_empty(), grid.waiting.pop()) {
                grid.ctas.push(Cta::new(done.launch(), ctaid, 0));
            }
        }
        if grid.ctas.is_empty() {
            checker.end(grid.op);
            checker.followed(grid.op, usize::from(!streams[at].work.is_empty()));
            running[at] = None;
        }
    };
    Outcome {
        forgotten: checker.forgotten(),
        remembered: checker.remembered(),
        crowded: checker.crowded(),
        findings: checker.finish(),
        end,
    }
}

fn start(launch: Arc<Launch>, op: Op, random: &mut Random) -> Running {
    let launch = Arc::new(Launch {
        tag: op,
        ..Launch::clone(&launch)
    });
    let mut waiting: Vec<_> = (0..launch.grid[0]).map(|x| [x, 0, 0]).collect();
    for at in (1..waiting.len()).rev() {
        waiting.swap(at, random.below(at as u64 + 1) as usize);
    }
    let first = waiting.pop().unwrap();
    Running {
        op,
        ctas: vec![Cta::new(&launch, first, 0)],
        waiting,
    }
}
