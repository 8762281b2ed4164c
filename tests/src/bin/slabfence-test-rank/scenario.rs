//! What the ranks do once they have met.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};
use slabfence::Error;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{Device, Driver, Stream};
use slabfence::group::{Bootstrap, Group, Rank, UnixBootstrap};
use slabfence::layout::Transport;
use slabfence_emu::Machine;
use slabfence_tests::addresses::{captured, check};
use slabfence_tests::ranks::{Gather, Member};

use super::boot;
use super::broken;
use super::calls;
use super::cycles;
use super::ending;
use super::exchange;
use super::exits;
use super::forked;
use super::gate::{self, Gated};
use super::inject;
use super::leave;
use super::part::Part;
use super::replayed;
use super::stand::{self, Exchanges, Standing};
use super::stopped;
use super::subgroups;
use super::{Outcome, PATIENCE};

/// Rounds of an undisturbed run.
const ROUNDS: u32 = 30;

unsafe extern "C" {
    safe fn signal(number: i32, handler: usize) -> usize;
}

pub fn run(part: &Part, bootstrap: UnixBootstrap, machine: &Machine) -> Outcome {
    if part.name.starts_with("inject") {
        return inject::run(part, bootstrap, machine);
    }
    if part.name == "broken" {
        return broken::run(part, bootstrap, machine);
    }
    let driver = Driver::from_api(exchange::watched(gate::gated(machine.api()?)))?;
    if part.name == "subgroups" {
        return subgroups::run(part, bootstrap, &driver);
    }
    let mut bootstrap: Arc<dyn Bootstrap> = Arc::new(bootstrap);
    let group = |bootstrap: &Arc<dyn Bootstrap>| -> slabfence::Result<Group> {
        let group = Group::new(Arc::clone(bootstrap), Rank(part.rank), part.world)?;
        Ok(group.with_timeout(part.patience()))
    };
    // A rank that has not joined yet when the others end meets nobody, and cannot know why.
    group(&bootstrap)?
        .with_timeout(PATIENCE)
        .verdict("all have joined", &Ok(()))?;
    let left = Arc::new(Exchanges::default());
    match part.name.as_str() {
        "die-in-setup" if part.is_victim() => {
            left.until_killed(part.step);
            bootstrap = Arc::new(Standing::before(bootstrap, &left));
        }
        _ if calls::of(part).is_some() => bootstrap = Arc::new(Standing::before(bootstrap, &left)),
        "die-with-child" if part.is_victim() => {
            forked::companion()?;
            stand::until_killed();
        }
        "absent" if part.is_victim() => stand::until_killed(),
        "fork" => bootstrap = Arc::new(Gated(bootstrap)),
        "paused" => stand::until_told()?,
        "full" if part.is_victim() => fill_up()?,
        "narrow" if part.is_victim() => stand::with_few_files(part.step as usize)?,
        _ => {}
    }
    let member = Member {
        device: Device::open(&driver, part.ordinal()?)?,
        group: group(&bootstrap)?,
        bootstrap,
    };
    match part.name.as_str() {
        "boot" => return boot::run(part, member),
        "exchange" => return exchange::run(part, &member),
        "replayed" => return replayed::run(part, &member),
        "stopped" => return stopped::run(part, &member),
        "exits" | "exits-asked" => return exits::run(part, &member),
        "cycles" => return cycles::run(part, &member, machine),
        "end-exit" | "end-static" | "end-return" => return ending::run(part, member),
        "leave-exit" | "leave-return" | "leave-drop" | "leave-abandon" => {
            return leave::run(part, &member);
        }
        _ => {}
    }
    if let Some(call) = calls::of(part) {
        return calls::run(part, call, &member, &left);
    }
    let contract = contract(part, part.world);
    let (pool, channel) = match member.channel(&contract, "decode") {
        Err(Error::Retained { cause, ticket, .. }) if part.name == "die-in-setup" => {
            println!("abandoned: {:?}", ticket.abandon()?);
            return Err(cause);
        }
        other => other?,
    };
    let pool = Arc::new(pool);
    member.group.verdict("all are set up", &Ok(()))?;
    let stream = Stream::new(&member.device)?;
    round(&member, &contract, &channel, &stream, 0)?;
    match part.name.as_str() {
        "die-mid-run" | "die-in-operation" | "die-awaited" | "die-awaited-pull" => {
            return bereaved(part, &member, &contract, &pool, &channel, &stream);
        }
        "fork" => forked::try_everything(part, &member, &contract, &pool, &channel)?,
        "push" | "pull" => {
            let block = captured(&member, &contract, &pool, "decode")?;
            check(machine, &block, part.rank, part.world, contract.transport);
        }
        _ => {}
    }
    for n in 1..ROUNDS {
        round(&member, &contract, &channel, &stream, n)?;
    }
    pool.reset()?;
    round(&member, &contract, &channel, &stream, ROUNDS)?;
    if part.name == "fork" {
        forked::try_while_held(&member, &contract, &pool, &channel)?;
    }
    pool.close()?;
    if part.name == "die-after" {
        match part.is_victim() {
            true => stand::until_killed(),
            // A hub that has closed may still have to tell the others how that ended.
            false => stand::until_told()?,
        }
    }
    Ok(())
}

pub fn contract(part: &Part, world: u32) -> Contract {
    let mut contract = Contract::new(2 * world, 64, 64, 8);
    if ["pull", "die-awaited-pull"].contains(&part.name.as_str()) {
        contract.transport = Transport::Pull;
    }
    // Far longer than ranks that go on together can be apart.
    contract.fail = match part.name.as_str() {
        "die-mid-run" | "die-in-operation" | "die-awaited" | "die-awaited-pull" => {
            Duration::from_secs(5)
        }
        _ => PATIENCE,
    };
    if part.name.starts_with("die-awaited") {
        contract.warn = Duration::from_millis(100);
    }
    contract
}

/// From here on this process can write nothing to files, those of the emulated machine's memory included: as on a full
/// disk, each attempt is an error.
fn fill_up() -> Outcome {
    const SIGXFSZ: i32 = 25;
    const SIG_IGN: usize = 1;
    const SIG_ERR: usize = usize::MAX;
    if signal(SIGXFSZ, SIG_IGN) == SIG_ERR {
        return Err("the signal is not ignored".into());
    }
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(setrlimit(Resource::Fsize, none)?)
}

pub fn round(
    member: &Member,
    contract: &Contract,
    channel: &Channel,
    stream: &Stream,
    n: u32,
) -> Outcome {
    let gather = Gather::new(member, contract, 2)?;
    gather.fill(member.rank(), n)?;
    gather.enqueue(channel, stream)?;
    stream.synchronize()?;
    match gather.output()? == gather.expected(n) {
        true => Ok(()),
        false => Err(format!("round {n} is wrong").into()),
    }
}

/// What the others meet after the victim has been killed between two operations, in one, or while they wait for it in one.
fn bereaved(
    part: &Part,
    member: &Member,
    contract: &Contract,
    pool: &Pool,
    channel: &Channel,
    stream: &Stream,
) -> Outcome {
    let gather = Gather::new(member, contract, 2)?;
    gather.fill(member.rank(), 1)?;
    if part.is_victim() {
        if part.name == "die-in-operation" {
            gather.enqueue(channel, stream)?;
        }
        stand::until_killed();
    }
    let awaited = part.name.starts_with("die-awaited");
    if awaited {
        gather.enqueue(channel, stream)?;
        // The kernel waits for the victim when it has warned of it.
        let begin = Instant::now();
        while pool.warnings()?.is_empty() {
            if begin.elapsed() > PATIENCE {
                return Err("no warning".into());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    stand::until_told()?;
    if !awaited {
        gather.enqueue(channel, stream)?;
    }
    stream.synchronize()?;
    if channel.fault()?.is_none() {
        // The victim may have done its part before it died; then the others have what they need.
        if part.name != "die-in-operation" || gather.output()? != gather.expected(1) {
            return Err("no fault".into());
        }
        gather.enqueue(channel, stream)?;
        stream.synchronize()?;
    }
    let fault = channel.fault()?.ok_or("no fault")?;
    println!(
        "fault: late rank {:?}, {:?}, waited {} ms",
        fault.late_rank,
        fault.cause,
        fault.waited.as_millis()
    );
    println!(
        "reset: {}",
        pool.reset().expect_err("a dead rank resets nothing")
    );
    println!(
        "close: {}",
        pool.close().expect_err("a dead rank closes nothing")
    );
    println!("abandoned: {:?}", pool.abandon()?);
    pool.close()?;
    Ok(())
}
