//! What is logged: nothing by operations, every verdict at debug, and what kernels report once.

use std::cell::RefCell;
use std::time::Duration;

use log::{Level, LevelFilter, Metadata, Record};
use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence_tests::graphs::capture;
use slabfence_tests::late::FAIL;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_ranks};

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

fn debug(member: &Member, words: &str) -> (Level, String) {
    (Level::Debug, format!("rank {}: {words}", member.rank()))
}

#[test]
fn operations_log_nothing_collective_calls_their_steps_and_faults_are_told_once() {
    log::set_logger(&Log).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let contract = Contract {
        warn: Duration::from_secs(30),
        fail: FAIL,
        ..Contract::new(4, 64, 64, 8)
    };
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        let prepared = logged_by(|| pool.prepare(&["graph", "eager"]).unwrap());
        let expected = [
            "prepare: drain: all ranks agree",
            "prepare: names: all ranks agree",
            "prepare: initialise: all ranks agree",
            "prepared channel 'eager'",
            "prepared channel 'graph'",
        ];
        assert_eq!(prepared, expected.map(|words| debug(member, words)));
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
            debug(member, &words)
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
        let place = format!("rank {}, channel 'eager', ", member.rank());
        assert!(told[0].1.starts_with(&place), "{}", told[0].1);

        let reset = logged_by(|| pool.reset().unwrap());
        let epochs = ["eager", "graph"].map(|name| {
            let words = format!("reset: rewrite: ranges of channel '{name}' at epoch ");
            debug(member, &words)
        });
        for (level, words) in epochs {
            let told = |line: &&(Level, String)| line.0 == level && line.1.starts_with(&words);
            assert_eq!(reset.iter().filter(told).count(), 1, "{reset:?}");
        }
        assert_eq!(reset.len(), 6, "{reset:?}");
        drop((exec, graph));
        let closed = logged_by(|| pool.close().unwrap());
        let steps = ["drain", "graphs", "unmap", "free"];
        let steps = steps.map(|step| debug(member, &format!("close: {step}: all ranks agree")));
        assert_eq!(closed, steps);
    });
}
