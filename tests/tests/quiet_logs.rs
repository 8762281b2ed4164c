//! What is logged: nothing by operations, every verdict at debug, and what kernels report once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Once;
use std::time::Duration;

use log::{Level, LevelFilter, Metadata, Record};
use slabfence::channel::{Contract, Pool};
use slabfence::driver::Stream;
use slabfence::group::Rank;
use slabfence_tests::graphs::capture;
use slabfence_tests::late::FAIL;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_ranks};

thread_local! {
    static LOGGED: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what each thread logs, at any level.
struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = (record.level(), record.args().to_string());
        LOGGED.with_borrow_mut(|lines| lines.push(line));
    }

    fn flush(&self) {}
}

fn logged() -> Vec<(Level, String)> {
    LOGGED.take()
}

fn logged_by<T>(body: impl FnOnce() -> T) -> Vec<(Level, String)> {
    logged();
    body();
    logged()
}

/// How what is said of a pool begins.
fn of(pool: &Pool) -> String {
    let number = pool.status().unwrap().number;
    format!("{}, pool {number}", pool.group().me())
}

fn log_here() {
    static LOG: Once = Once::new();
    LOG.call_once(|| {
        log::set_logger(&Log).unwrap();
        log::set_max_level(LevelFilter::Trace);
    });
}

/// What a call says of a pool, each line without how it begins.
fn said_of<T>(pool: &Pool, call: impl FnOnce(&Pool) -> T) -> Vec<String> {
    let begin = format!("{}: ", of(pool));
    let lines = logged_by(|| call(pool)).into_iter();
    let lines = lines.map(|(_, line)| line.strip_prefix(&begin).expect(&line).to_owned());
    lines.collect()
}

#[test]
fn operations_log_nothing_collective_calls_their_steps_and_faults_are_told_once() {
    log_here();
    let contract = Contract {
        warn: Duration::from_secs(30),
        fail: FAIL,
        ..Contract::new(4, 64, 64, 8)
    };
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        let me = of(&pool);
        let debug = |words: &str| (Level::Debug, format!("{me}: {words}"));
        let prepared = logged_by(|| pool.prepare(&["graph", "eager"]).unwrap());
        let expected = [
            "prepare: drain: all ranks agree",
            "prepare: names: all ranks agree",
            "prepare: initialise: all ranks agree",
            "prepared channel 'eager'",
            "prepared channel 'graph'",
        ];
        assert_eq!(prepared, expected.map(debug));
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 1).unwrap();
        let channel = pool.channel("eager").unwrap();
        let mut graph = None;
        let captured = logged_by(|| {
            graph = Some(capture(&pool, &stream, "graph", |channel| {
                gather.enqueue(channel, &stream).unwrap();
            }));
        });
        let expected = ["entered", "left"].map(|what| {
            let words = format!("capture scope 'graph' of channel 'graph' {what}");
            debug(&words)
        });
        assert_eq!(captured, expected);
        let graph = graph.expect("a graph");
        let mut exec = graph.instantiate().unwrap();
        let silence = logged_by(|| {
            for _ in 0..100 {
                gather.enqueue(&channel, &stream).unwrap();
                exec.launch(&stream).unwrap();
            }
            stream.synchronize().unwrap();
            pool.health().unwrap()
        });
        assert_eq!(silence, []);

        // Ranks differ.
        let other = Gather::new(member, &contract, 1 + member.rank()).unwrap();
        other.enqueue(&channel, &stream).unwrap();
        stream.synchronize().unwrap();
        let told = logged_by(|| {
            other.enqueue(&channel, &stream).unwrap_err();
            other.enqueue(&channel, &stream).unwrap_err();
            pool.status().unwrap();
        });
        let fault = channel.fault().unwrap().expect("a fault");
        assert_eq!(told, [(Level::Warn, fault.to_string())]);
        let place = format!("{me}, channel 'eager', ");
        assert!(told[0].1.starts_with(&place), "{}", told[0].1);

        let reset = logged_by(|| pool.reset().unwrap());
        let epochs = ["eager", "graph"].map(|name| {
            let words = format!("reset: rewrite: ranges of channel '{name}' at epoch ");
            debug(&words)
        });
        for (level, words) in epochs {
            let told = |line: &&(Level, String)| line.0 == level && line.1.starts_with(&words);
            assert_eq!(reset.iter().filter(told).count(), 1, "{reset:?}");
        }
        assert_eq!(reset.len(), 6, "{reset:?}");
        drop((exec, graph));
        let closed = logged_by(|| pool.close().unwrap());
        let steps = ["drain", "graphs", "unmap", "free"];
        let steps = steps.map(|step| debug(&format!("close: {step}: all ranks agree")));
        assert_eq!(closed, steps);
    });
}

/// A rank's pools of one process: of a target and of a draft model on one group, and of a subgroup, in which the ranks are
/// others.
#[test]
fn every_line_of_a_collective_step_tells_its_pool_among_those_of_a_process() {
    log_here();
    let contract = Contract::new(4, 64, 64, 8);
    let (_machine, driver) = machine(2);
    let numbers = on_ranks(&driver, 2, |member| {
        let swapped = member.group.subgroup(&[Rank(1), Rank(0)]).unwrap();
        let swapped = member.of(swapped.expect("a subgroup"));
        let mut numbers = Vec::new();
        let mut pools = Vec::new();
        for member in [member, member, &swapped] {
            let mut made = None;
            let lines = logged_by(|| made = Some(member.pool(&contract).unwrap()));
            let pool = made.expect("a pool");
            let begin = format!("{}: create: ", of(&pool));
            assert!(
                lines.iter().all(|(_, line)| line.starts_with(&begin)),
                "{lines:?}"
            );
            assert!(lines.len() > 10, "{lines:?}");
            numbers.push(pool.status().unwrap().number);
            pools.push(pool);
        }
        // A creation that fails has a number of its own.
        let other = Contract::new(4, 64, 64, 8 + member.rank());
        let lines = logged_by(|| member.pool(&other).unwrap_err());
        let begin = format!("rank {}, pool ", member.rank());
        for (_, line) in &lines {
            let number = line
                .strip_prefix(&begin)
                .and_then(|rest| rest.split_once(": create: "));
            let number: u64 = number.expect(line).0.parse().expect(line);
            assert!(numbers.iter().all(|&made| made < number), "{line}");
        }
        assert!(!lines.is_empty());

        let calls: [fn(&Pool); 6] = [
            |pool| pool.prepare(&["decode"]).unwrap(),
            |pool| pool.rollback(&pool.checkpoint().unwrap()).unwrap(),
            |pool| pool.reset().unwrap(),
            |pool| pool.retire(&["decode"]).unwrap(),
            |pool| drop(pool.prepare(&[""]).unwrap_err()),
            |pool| pool.close().unwrap(),
        ];
        for call in calls {
            let [target, draft, swapped] = [0, 1, 2].map(|one| said_of(&pools[one], call));
            assert!(!target.is_empty());
            assert_eq!((&draft, &swapped), (&target, &target));
        }
        let kept = member.pool(&contract).unwrap();
        let alone = said_of(&kept, |pool| pool.abandon().unwrap());
        assert!(alone[0].starts_with("abandon: "), "{alone:?}");
        numbers
    });
    let all: BTreeSet<u64> = numbers.iter().flatten().copied().collect();
    assert_eq!(all.len(), 6, "{numbers:?}");
}
