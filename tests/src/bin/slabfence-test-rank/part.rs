//! What the process was told to be.

use std::time::Duration;

use slabfence::layout::Transport;
use slabfence_tests::drivers::{V12_2, V12_4, V13_0, Version};

use super::{PATIENCE, SHORT_PATIENCE};

/// `NAME[:STEP][:hub][:pull][:renumbered][:alone][:cuda=VERSION]` as the scenario, and the rank's place.
#[derive(Debug)]
pub struct Part {
    pub name: String,
    /// The number in the scenario's name.
    pub step: u32,
    hub: bool,
    /// Whether ranks pull, where the scenario leaves it open.
    pub pull: bool,
    /// Whether ranks number the devices differently.
    renumbered: bool,
    /// Whether a rank sees no device but its own.
    alone: bool,
    /// What the driver poses as.
    pub driver: Version,
    pub folder: String,
    pub rank: u32,
    pub world: u32,
}

impl Part {
    pub fn read(
        arguments: impl Iterator<Item = String>,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let arguments: Vec<String> = arguments.collect();
        let [scenario, folder, rank, world] = &arguments[..] else {
            return Err("slabfence-test-rank SCENARIO FOLDER RANK WORLD".into());
        };
        let mut words = scenario.split(':');
        let name = words.next().unwrap_or_default().to_owned();
        let (mut step, mut hub, mut pull) = (0, false, false);
        let (mut renumbered, mut alone) = (false, false);
        let mut driver = V13_0;
        for word in words {
            match word {
                "hub" => hub = true,
                "pull" => pull = true,
                "renumbered" => renumbered = true,
                "alone" => alone = true,
                "cuda=12.2" => driver = V12_2,
                "cuda=12.4" => driver = V12_4,
                "cuda=13.0" => driver = V13_0,
                number => step = number.parse()?,
            }
        }
        Ok(Self {
            name,
            step,
            hub,
            pull,
            renumbered,
            alone,
            driver,
            folder: folder.clone(),
            rank: rank.parse()?,
            world: world.parse()?,
        })
    }

    /// How ranks exchange rows, where the scenario leaves it open.
    pub fn transport(&self) -> Transport {
        match self.pull {
            true => Transport::Pull,
            false => Transport::Push,
        }
    }

    /// The devices of the host that this rank sees, in its order. Rank N is on device N of the host, whatever it calls that.
    /// Where ranks number devices differently, rank 0 sees two that no rank is on, and all of them backwards; another rank
    /// sees those that ranks are on, from its own on.
    pub fn devices(&self) -> Vec<u32> {
        match self.renumbered {
            _ if self.alone => vec![self.rank],
            false => (0..self.world).collect(),
            true if self.rank == 0 => (0..self.world + 2).rev().collect(),
            true => (0..self.world)
                .map(|n| (self.rank + n) % self.world)
                .collect(),
        }
    }

    /// What this rank calls its own device.
    pub fn ordinal(&self) -> Result<u32, Box<dyn std::error::Error>> {
        let devices = self.devices();
        let mine = devices.iter().position(|&device| device == self.rank);
        Ok(mine.ok_or("the rank does not see its device")?.try_into()?)
    }

    /// Where the scenario has a victim, it is the last rank, or rank 0 for one with `hub`.
    pub fn is_victim(&self) -> bool {
        match self.hub {
            true => self.rank == 0,
            false => self.rank == self.world - 1,
        }
    }

    /// Whether small allocations do: pools are made again and again.
    pub fn makes_many_pools(&self) -> bool {
        matches!(self.name.as_str(), "cycles" | "inject" | "inject-abandon")
    }

    /// How long this rank waits for the others to join.
    pub fn patience_to_join(&self) -> Duration {
        match self.name.as_str() {
            "never" | "narrow-hub" => SHORT_PATIENCE,
            _ => PATIENCE,
        }
    }

    /// How long it waits for the others in each later step.
    pub fn patience(&self) -> Duration {
        match self.name.as_str() {
            "absent" => SHORT_PATIENCE,
            _ => PATIENCE,
        }
    }
}
