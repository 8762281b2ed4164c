//! The end of a process that has everything: an open pool, a kernel that waits, a graph, a capture scope.

use std::any::Any;
use std::cell::RefCell;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use slabfence::channel::{CaptureScope, Contract};
use slabfence::driver::Stream;
use slabfence_tests::graphs::capture;
use slabfence_tests::ranks::{Gather, Member};

use super::part::Part;
use super::scenario::round;
use super::{Outcome, stand};

pub type Things = Vec<Box<dyn Any + Send>>;

/// Dropped never.
static KEPT: Mutex<Things> = Mutex::new(Vec::new());

thread_local! {
    /// Dropped when the main thread ends, after everything of `main`.
    static OF_MAIN: RefCell<(Things, Option<CaptureScope>)> = const { RefCell::new((Vec::new(), None)) };
}

/// Drops these when the main thread ends. The emulated driver ends with `main`, before: what the drops would unmap or free
/// there cannot show in this process.
pub fn after_main(things: Things, scope: Option<CaptureScope>) {
    OF_MAIN.set((things, scope));
}

/// Each rank waits for the other in a channel of its own, to which that never comes.
const CHANNELS: [&str; 4] = ["decode", "scope", "wait 0", "wait 1"];

pub fn run(part: &Part, member: Member) -> Outcome {
    let contract = Contract {
        // Whoever waited for the kernel would be found out.
        fail: Duration::from_secs(600),
        max_channels: 4,
        max_grid: 4,
        ..Contract::new(2 * part.world, 16, 16, 2)
    };
    let pool = member.pool(&contract)?;
    pool.prepare(&CHANNELS)?;
    let (decode, wait) = (pool.channel("decode")?, CHANNELS[2 + part.rank as usize]);
    let stream = Stream::new(&member.device)?;
    round(&member, &contract, &decode, &stream, 0)?;
    let gather = Gather::new(&member, &contract, 1)?;
    let graph = capture(&pool, &stream, "decode", |channel| {
        gather.enqueue(channel, &stream).expect("recorded");
    });
    let mut exec = graph.instantiate()?;
    gather.fill(member.rank(), 1)?;
    exec.launch(&stream)?;
    stream.synchronize()?;
    if gather.output()? != gather.expected(1) {
        return Err("the replay is wrong".into());
    }
    let busy = Stream::new(&member.device)?;
    let waiting = Gather::new(&member, &contract, 1)?;
    waiting.enqueue(&pool.channel(wait)?, &busy)?;
    let scope = pool.capture("scope", &stream)?;
    stand::until_told()?;
    if busy.query()? {
        return Err("the kernel does not wait".into());
    }
    let things: Things = vec![
        Box::new(pool),
        Box::new((decode, gather, waiting)),
        Box::new((graph, exec)),
        Box::new((stream, busy)),
        Box::new(member),
    ];
    match part.name.as_str() {
        "end-return" => after_main(things, Some(scope)),
        _ => {
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(things);
            after_main(Vec::new(), Some(scope));
        }
    }
    if part.name == "end-exit" {
        println!("exit");
        process::exit(0);
    }
    Ok(())
}
