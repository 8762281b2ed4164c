//! Set-up and close again and again, between processes.

use std::process;
use std::time::Duration;

use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{Stream, drop_released};
use slabfence::layout::Transport;
use slabfence_emu::Machine;
use slabfence_tests::graphs::capture;
use slabfence_tests::processes::memory_of;
use slabfence_tests::ranks::{Gather, Member};
use slabfence_tests::usage::Usage;

use super::Outcome;
use super::exchange;
use super::part::Part;
use super::scenario::round;

/// After so many, what is made once and kept is there.
const WARM_UP: u32 = 10;
/// Every so many, the pool is used too, of both transports in turn: eagerly and by a graph.
const USED: u32 = 7;
/// What a rank imports of each peer: signal memory, and two inboxes or outboxes.
const SHARED: u32 = 3;

/// Makes a pool, sometimes uses it, and closes it, as often as the scenario says; an error where this leaves more in the
/// process than the first few times did.
pub fn run(part: &Part, member: &Member, machine: &Machine) -> Outcome {
    let mut before = None;
    for n in 0..part.step {
        if n == WARM_UP {
            drop_released();
            // The device's context and stream stay.
            before = Some((meanwhile(member, Usage::still)?, machine.live()));
        }
        cycle(member, n)?;
        let memory = memory_of(process::id()).ok_or("no /proc")?;
        let live = machine.live();
        if !memory.is_empty() || before.is_some_and(|(_, before)| live != before) {
            return Err(format!("cycle {n} leaves {live:?}, memory files {memory:?}").into());
        }
    }
    drop_released();
    let (before, _) = before.ok_or("fewer cycles than those before the first look")?;
    let after = meanwhile(member, || Usage::settled(&before))?;
    if !after.is_that(&before) {
        return Err(format!("{after:?} after {before:?}").into());
    }
    let peers = member.group.world() - 1;
    match exchange::imported() == part.step * peers * SHARED {
        true => Ok(()),
        false => Err(format!("{} imports", exchange::imported()).into()),
    }
}

/// Looks while the other ranks do so too: what they do shows at the hub's, and they leave behind it.
fn meanwhile<T>(member: &Member, look: impl FnOnce() -> T) -> slabfence::Result<T> {
    member.group.verdict("all are between cycles", &Ok(()))?;
    let seen = look();
    member.group.verdict("all have looked", &Ok(()))?;
    Ok(seen)
}

fn cycle(member: &Member, n: u32) -> Outcome {
    let mut contract = Contract {
        fail: Duration::from_secs(120),
        max_channels: 2,
        max_grid: 4,
        ..Contract::new(2 * member.group.world(), 16, 16, 2)
    };
    if n % 2 == 1 {
        contract.transport = Transport::Pull;
    }
    let (pool, channel) = member.channel(&contract, "decode")?;
    if n.is_multiple_of(USED) {
        work(member, &contract, &pool, &channel, n)?;
    }
    Ok(pool.close()?)
}

fn work(member: &Member, contract: &Contract, pool: &Pool, channel: &Channel, n: u32) -> Outcome {
    let stream = Stream::new(&member.device)?;
    round(member, contract, channel, &stream, n)?;
    let gather = Gather::new(member, contract, 1)?;
    let graph = capture(pool, &stream, "decode", |channel| {
        gather.enqueue(channel, &stream).expect("recorded");
    });
    let mut exec = graph.instantiate()?;
    gather.fill(member.rank(), n)?;
    exec.launch(&stream)?;
    stream.synchronize()?;
    if gather.output()? != gather.expected(n) {
        return Err(format!("the replay of cycle {n} is wrong").into());
    }
    Ok(())
}
