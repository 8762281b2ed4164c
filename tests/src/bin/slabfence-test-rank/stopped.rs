//! A rank that is stopped (SIGSTOP) in the middle of a run, and continued later.

use core::ffi::c_void;
use core::ptr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::group::Rank;
use slabfence::health::FaultReport;
use slabfence_tests::processes::READY;
use slabfence_tests::ranks::{Gather, Member};

use super::part::Part;
use super::{Outcome, PATIENCE};

/// Rounds before and after.
const ROUNDS: u32 = 10;

/// Epoch of a channel's first operation.
const FIRST_EPOCH: u64 = 2;

/// Before its operation of the middle round the victim stops, on its stream; the others say when they are warned.
pub fn run(part: &Part, member: &Member) -> Outcome {
    let contract = Contract {
        warn: Duration::from_millis(200),
        fail: PATIENCE,
        transport: part.transport(),
        ..Contract::new(2 * part.world, 64, 64, 8)
    };
    let (pool, channel) = member.channel(&contract, "decode")?;
    let stream = Stream::new(&member.device)?;
    let gather = Gather::new(member, &contract, 2)?;
    for round in 0..2 * ROUNDS {
        let middle = round == ROUNDS;
        gather.fill(member.rank(), round)?;
        if middle && part.is_victim() {
            stop_in(&stream)?;
        }
        gather.enqueue(&channel, &stream)?;
        if middle && !part.is_victim() {
            let begin = Instant::now();
            // On a busy machine anybody may be late, also in an earlier round.
            let of_the_victim = |warning: FaultReport| {
                warning.epoch == FIRST_EPOCH + u64::from(round)
                    && warning.late_ranks.contains(&Rank(part.world - 1))
            };
            while !channel.warning()?.is_some_and(of_the_victim) {
                if begin.elapsed() > PATIENCE {
                    return Err("no warning".into());
                }
                thread::sleep(Duration::from_millis(1));
            }
            if stream.query()? {
                return Err("the operation has ended".into());
            }
            println!("{READY}");
            println!("warned");
        }
        stream.synchronize()?;
        if gather.output()? != gather.expected(round) {
            return Err(format!("round {round} is wrong").into());
        }
    }
    println!("faults: {:?}", pool.faults()?);
    Ok(pool.close()?)
}

/// Enqueues what stops this process.
#[allow(unsafe_code, reason = "a host function")]
fn stop_in(stream: &Stream) -> Outcome {
    let device = stream.device();
    let _guard = device.bind()?;
    let enqueue = device.driver().api().cuLaunchHostFunc()?;
    // SAFETY: the stream is live, and the function does not use its argument.
    let code = unsafe { enqueue(stream.raw(), Some(stop), ptr::null_mut()) };
    match code.is_success() {
        true => Ok(()),
        false => Err(format!("cuLaunchHostFunc: {code:?}").into()),
    }
}

unsafe extern "C" fn stop(_: *mut c_void) {
    // Or else the others are not warned, and say so.
    let _ = kill_process(getpid(), Signal::STOP);
    // Another thread may be the one that takes the signal, and this one run on until it has.
    thread::sleep(Duration::from_millis(500));
}
