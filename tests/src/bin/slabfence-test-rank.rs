//! One rank of a multi-process test: `slabfence-test-rank SCENARIO FOLDER RANK WORLD`. Prints what the scenario is about.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{Device, Stream};
use slabfence::group::{Bootstrap, Group, Rank, UnixBootstrap};
use slabfence::layout::Transport;
use slabfence::{Error, Result};
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::processes::READY;
use slabfence_tests::ranks::{Gather, Member};

/// How long ranks wait for one another.
const PATIENCE: Duration = Duration::from_secs(30);
/// Rounds of an undisturbed run.
const ROUNDS: u32 = 30;

type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

/// What the process was told to be.
struct Part {
    scenario: String,
    rank: u32,
    world: u32,
}

impl Part {
    /// Where the scenario has a victim, it is the last rank, or rank 0 for one that ends in `-hub`.
    fn is_victim(&self) -> bool {
        match self.scenario.ends_with("-hub") {
            true => self.rank == 0,
            false => self.rank == self.world - 1,
        }
    }
}

/// Stands still until killed.
fn stand() -> ! {
    println!("{READY}");
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

fn round(
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

fn run(part: &Part, bootstrap: UnixBootstrap, machine: &Machine) -> Outcome {
    let driver = slabfence::driver::Driver::from_api(machine.api()?)?;
    let bootstrap: Arc<dyn Bootstrap> = Arc::new(bootstrap);
    let group = Group::new(Arc::clone(&bootstrap), Rank(part.rank), part.world)?;
    let member = Member {
        device: Device::open(&driver, part.rank)?,
        bootstrap,
        group: group.with_timeout(PATIENCE),
    };
    let kind = part.scenario.trim_end_matches("-hub");
    if kind == "die-in-setup" {
        // A rank that has not joined yet when the others end meets nobody, and cannot know why.
        member.group.verdict("all have joined", &Ok(()))?;
        if part.is_victim() {
            stand();
        }
    }
    let mut contract = Contract::new(2 * part.world, 64, 64, 8);
    if kind == "pull" {
        contract.transport = Transport::Pull;
    }
    if kind == "die-mid-run" {
        contract.warn = Duration::from_millis(100);
        contract.fail = Duration::from_secs(1);
    }
    let (pool, channel) = member.channel(&contract, "decode")?;
    let stream = Stream::new(&member.device)?;
    round(&member, &contract, &channel, &stream, 0)?;
    match kind {
        "die-mid-run" => return bereaved(part, &member, &contract, &pool, &channel, &stream),
        "fork" => forked(&member, &contract, &pool, &channel, &stream)?,
        _ => {}
    }
    for n in 1..ROUNDS {
        round(&member, &contract, &channel, &stream, n)?;
    }
    pool.reset()?;
    round(&member, &contract, &channel, &stream, ROUNDS)?;
    pool.close()?;
    Ok(())
}

/// What the others meet after the victim has been killed between two operations.
fn bereaved(
    part: &Part,
    member: &Member,
    contract: &Contract,
    pool: &Pool,
    channel: &Channel,
    stream: &Stream,
) -> Outcome {
    if part.is_victim() {
        stand();
    }
    let gather = Gather::new(member, contract, 2)?;
    gather.enqueue(channel, stream)?;
    stream.synchronize()?;
    let fault = channel.fault()?.ok_or("no fault")?;
    println!("fault: late rank {:?}, {:?}", fault.late_rank, fault.cause);
    println!(
        "reset: {}",
        pool.reset().expect_err("a dead rank resets nothing")
    );
    println!(
        "close: {}",
        pool.close().expect_err("a dead rank closes nothing")
    );
    Ok(())
}

unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn _exit(code: i32) -> !;
}

/// Marks the way out of a forked child: everything is dropped on it, and nothing of it may reach the parent.
#[derive(Debug)]
struct Child {
    right: bool,
}

impl std::fmt::Display for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Child {}

/// Forks, as hosts do; the child tries everything and ends, the parent goes on as if nothing had been.
fn forked(
    member: &Member,
    contract: &Contract,
    pool: &Pool,
    channel: &Channel,
    stream: &Stream,
) -> Outcome {
    let gather = Gather::new(member, contract, 2)?;
    match fork() {
        -1 => Err("no fork".into()),
        0 => {
            let soon = Instant::now() + Duration::from_secs(1);
            let exchange = member.bootstrap.all_gather(b"child", soon);
            let results: Vec<(&str, Result<()>)> = vec![
                ("buffer", Gather::new(member, contract, 2).map(|_| ())),
                ("input", gather.fill(0, 7)),
                ("enqueue", gather.enqueue(channel, stream)),
                ("capture", pool.capture("decode", stream).map(|_| ())),
                ("wait", stream.synchronize()),
                ("prepare", pool.prepare(&["x"])),
                ("reset", pool.reset()),
                ("close", pool.close()),
                ("group", member.group.verdict("x", &Ok(()))),
                ("pool", member.pool(contract).map(|_| ())),
                ("bootstrap", exchange.map(|_| ()).map_err(Error::from)),
            ];
            let words = Error::Forked.to_string();
            let mut right = true;
            for (what, result) in results {
                let said = result.as_ref().err().map(Error::to_string);
                if !said.as_ref().is_some_and(|said| said.contains(&words)) {
                    eprintln!("{what} in a forked child: {said:?}");
                    right = false;
                }
            }
            Err(Box::new(Child { right }))
        }
        child => {
            let pid = rustix::process::Pid::from_raw(child);
            let options = rustix::process::WaitOptions::empty();
            let ended = rustix::process::waitpid(pid, options)?.ok_or("no child")?;
            match ended.1.exit_status() {
                Some(0) => Ok(()),
                _ => Err(format!("the child ended with {:?}", ended.1).into()),
            }
        }
    }
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, scenario, folder, rank, world] = &arguments[..] else {
        return Err("slabfence-test-rank SCENARIO FOLDER RANK WORLD".into());
    };
    let part = Part {
        scenario: scenario.clone(),
        rank: rank.parse()?,
        world: world.parse()?,
    };
    let profile = Profile::named("h200-nvlink").ok_or("no profile")?;
    let machine = Machine::new(profile, part.world)?;
    let deadline = Instant::now() + PATIENCE;
    let (rank, folder) = (Rank(part.rank), Path::new(folder));
    let bootstrap = match UnixBootstrap::join(folder, "job", rank, part.world, deadline) {
        Ok(bootstrap) => bootstrap,
        Err(error) => {
            println!("join: {error}");
            return Ok(());
        }
    };
    match run(&part, bootstrap, &machine) {
        Err(error) if error.is::<Child>() => {
            // The machine's threads are the parent's: it can be neither used nor dropped here.
            let right = error
                .downcast_ref::<Child>()
                .is_some_and(|child| child.right);
            _exit(i32::from(!right))
        }
        Err(error) => println!("failed: {error}"),
        // What a dead rank may still be written to stays until the process ends.
        Ok(()) if part.scenario.starts_with("die-mid-run") => {}
        Ok(()) => {
            slabfence::driver::drop_released();
            match machine.live() {
                live if live == Live::default() => println!("done"),
                live => println!("left behind: {live:?}"),
            }
        }
    }
    Ok(())
}
