//! One rank of a multi-process test: `slabfence-test-rank SCENARIO FOLDER RANK WORLD`. Prints what the scenario is about,
//! and last whether anything is left.

mod attempts;
mod boot;
mod broken;
mod calls;
mod cycles;
mod ending;
mod exchange;
mod exits;
mod forked;
mod gate;
mod inject;
mod leave;
mod part;
mod replayed;
mod scenario;
mod stand;
mod stopped;
mod subgroups;

use std::path::Path;
use std::time::{Duration, Instant};

use slabfence::group::{Rank, UnixBootstrap};
use slabfence_emu::{Live, Machine};
use slabfence_tests::drivers::posing;
use slabfence_tests::processes::{TOGETHER, memory_of};

use part::Part;

/// How long ranks wait for one another.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long they do where one never comes.
const SHORT_PATIENCE: Duration = Duration::from_secs(5);

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let part = Part::read(std::env::args().skip(1))?;
    let apart = ["apart", "subgroups"].contains(&part.name.as_str());
    // While there is one thread.
    if apart && !stand::in_a_network_of_its_own()? {
        println!("{TOGETHER}");
    }
    let mut profile = posing(part.driver);
    if part.makes_many_pools() {
        profile.granularity = 1 << 16;
    }
    let machine = Machine::seeing(profile, &part.devices())?;
    if part.name == "never" {
        stand::until_told()?;
    }
    if part.name == "narrow-hub" && part.is_victim() {
        stand::with_few_files(part.step as usize)?;
    }
    let deadline = Instant::now() + part.patience_to_join();
    let (rank, folder) = (Rank(part.rank), Path::new(&part.folder));
    match UnixBootstrap::join(folder, "job", rank, part.world, deadline) {
        Err(error) => println!("join: {error}"),
        Ok(bootstrap) => match scenario::run(&part, bootstrap, &machine) {
            Ok(()) => println!("done"),
            Err(error) => match error.downcast_ref() {
                Some(forked::Child { right }) => {
                    // As a child of a host does whose objects go out of scope.
                    drop(machine);
                    forked::leave(*right)
                }
                None => println!("failed: {error}"),
            },
        },
    }
    slabfence::driver::drop_released();
    if !machine.faults().is_empty() {
        println!("faults: {:?}", machine.faults());
    }
    stand::with_all_files()?;
    let files = memory_of(std::process::id()).ok_or("no /proc")?;
    match machine.live() {
        live if live == Live::default() && files.is_empty() => println!("nothing left"),
        live => println!("left: memory files {files:?}, {live:?}"),
    }
    Ok(())
}
