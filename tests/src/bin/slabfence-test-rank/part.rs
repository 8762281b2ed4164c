//! What the process was told to be.

use std::time::Duration;

use super::{PATIENCE, SHORT_PATIENCE};

/// `NAME[:STEP][:hub]` as the scenario, and the rank's place.
#[derive(Debug)]
pub struct Part {
    pub name: String,
    /// The number in the scenario's name.
    pub step: u32,
    hub: bool,
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
        let (mut step, mut hub) = (0, false);
        for word in words {
            match word {
                "hub" => hub = true,
                number => step = number.parse()?,
            }
        }
        Ok(Self {
            name,
            step,
            hub,
            folder: folder.clone(),
            rank: rank.parse()?,
            world: world.parse()?,
        })
    }

    /// Where the scenario has a victim, it is the last rank, or rank 0 for one with `hub`.
    pub fn is_victim(&self) -> bool {
        match self.hub {
            true => self.rank == 0,
            false => self.rank == self.world - 1,
        }
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
