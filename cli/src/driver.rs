//! Which driver a command runs on: this machine's, or the emulated one.

use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use slabfence::driver::Driver;
use slabfence_emu::{Live, Machine, Profile};

use crate::failure::Failure;

/// What the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// A real driver with enough devices, else the emulated machine.
    Auto,
    /// The real driver.
    Cuda,
    /// The emulated machine.
    Emulated,
}

/// Profiles of the emulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    /// H200s that NVLink connects.
    #[value(name = "h200-nvlink")]
    H200Nvlink,
    /// RTX PRO 6000s that PCIe connects, without atomics between them.
    #[value(name = "sm120-pcie")]
    Sm120Pcie,
}

impl ProfileName {
    const fn name(self) -> &'static str {
        match self {
            Self::H200Nvlink => "h200-nvlink",
            Self::Sm120Pcie => "sm120-pcie",
        }
    }
}

/// How many ranks there shall be, and where they may run.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// Which driver.
    pub choice: Choice,
    /// Claims of an emulated machine.
    pub profile: ProfileName,
    /// Devices of an emulated machine, or the most to use of a real one.
    pub devices: Option<u32>,
    /// Ranks; `None`: up to four, as many as there are devices for, of those that divide `heads`.
    pub ranks: Option<u32>,
    /// Attention heads, which ranks divide among them.
    pub heads: usize,
    /// Whether several ranks may share a device.
    pub oversubscribe: bool,
}

/// Ranks where nothing says otherwise.
pub const DEFAULT_RANKS: u32 = 4;

/// How long an emulated driver may take to let go of what graphs held.
const SETTLING: Duration = Duration::from_secs(2);

/// An opened driver and the ranks' places on it.
#[derive(Debug)]
pub struct Opened {
    /// The driver. Goes before its machine.
    pub driver: Driver,
    /// Device ordinal of each rank.
    pub places: Vec<u32>,
    /// Names of the devices in use, by ordinal.
    pub devices: Vec<String>,
    /// Why the emulated machine was taken although nobody asked for it.
    pub instead: Option<String>,
    machine: Option<Machine>,
}

impl Opened {
    /// What it is, with its emulated nature in plain sight.
    pub fn describe(&self) -> String {
        let version = self.driver.version();
        let cuda = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
        match &self.machine {
            Some(machine) => format!("EMULATED {}, as {cuda}", machine.profile().name),
            None if self.driver.is_emulated() => format!("EMULATED libcuda.so.1, as {cuda}"),
            None => format!("libcuda.so.1, {cuda}"),
        }
    }

    /// Refuses several ranks on a real device unless they are threads.
    pub fn refuse_shared(&self, threads: bool) -> Result<(), Failure> {
        refuse_shared(self.shares_devices(), threads, self.driver.is_emulated())
    }

    /// Whether some ranks are on one device.
    pub fn shares_devices(&self) -> bool {
        self.places.len() > self.devices.len()
    }

    /// Ends a run: its outcome, unless something was left behind on an emulated machine.
    pub fn close<T, E: From<Failure>>(self, outcome: Result<T, E>) -> Result<T, E> {
        match (outcome, self.left_over()) {
            (outcome, None) => outcome,
            (Ok(_), Some(live)) => Err(E::from(Failure::Fault(format!(
                "the run ended and left something behind on the emulated machine: {live:?}"
            )))),
            (Err(failure), Some(live)) => {
                log::error!("left behind on the emulated machine: {live:?}");
                Err(failure)
            }
        }
    }

    /// What an emulated driver still holds. To be called when everything made with it has been dropped. What graphs held
    /// is let go by a thread of the driver's, which gets [`SETTLING`] to do so.
    fn left_over(self) -> Option<Live> {
        let Self {
            driver, machine, ..
        } = self;
        drop(driver);
        let machine = machine?;
        let deadline = Instant::now() + SETTLING;
        loop {
            slabfence::driver::drop_released();
            let live = machine.live();
            if live == Live::default() {
                return None;
            }
            if Instant::now() > deadline {
                return Some(live);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Opens the driver that the wish comes to.
pub fn open(wish: &Wish) -> Result<Opened, Failure> {
    match wish.choice {
        Choice::Cuda => open_real(wish),
        Choice::Emulated => open_emulated(wish, None),
        Choice::Auto => match open_real(wish) {
            Ok(opened) => Ok(opened),
            Err(why) => open_emulated(wish, Some(why.to_string())),
        },
    }
}

fn open_real(wish: &Wish) -> Result<Opened, Failure> {
    let driver = Driver::open()?;
    let there = driver.devices()?;
    let most = wish
        .devices
        .map_or(there.len(), |most| there.len().min(most as usize));
    let names = there
        .into_iter()
        .take(most)
        .map(|device| device.name)
        .collect();
    place(wish, driver, names, None, None)
}

fn open_emulated(wish: &Wish, instead: Option<String>) -> Result<Opened, Failure> {
    let name = wish.profile.name();
    let profile = Profile::named(name)
        .ok_or_else(|| Failure::Fault(format!("the emulator has no profile {name}")))?;
    let devices = wish.devices.or(wish.ranks).unwrap_or(DEFAULT_RANKS);
    let machine =
        Machine::new(profile, devices).map_err(|error| Failure::Use(error.to_string()))?;
    let api = machine
        .api()
        .map_err(|error| Failure::Fault(error.to_string()))?;
    let driver = Driver::from_api(api)?;
    let names = driver
        .devices()?
        .into_iter()
        .map(|device| device.name)
        .collect();
    place(wish, driver, names, Some(machine), instead)
}

fn place(
    wish: &Wish,
    driver: Driver,
    mut devices: Vec<String>,
    machine: Option<Machine>,
    instead: Option<String>,
) -> Result<Opened, Failure> {
    let there = devices.len() as u32;
    let ranks = ranks_on(wish, there)?;
    devices.truncate(ranks as usize);
    Ok(Opened {
        driver,
        places: (0..ranks).map(|rank| rank % there).collect(),
        devices,
        instead,
        machine,
    })
}

fn ranks_on(wish: &Wish, there: u32) -> Result<u32, Failure> {
    let too_few = |ranks: u32| {
        let noun = if there == 1 { "device" } else { "devices" };
        Failure::Use(format!(
            "{ranks} ranks need {ranks} devices, and there {} {there} {noun}: ask for fewer ranks, or, for tests, allow several on one device with --oversubscribe",
            if there == 1 { "is" } else { "are" }
        ))
    };
    if there == 0 {
        return Err(Failure::Use("the driver shows no device".to_owned()));
    }
    match wish.ranks {
        Some(ranks) if wish.oversubscribe || ranks <= there => Ok(ranks),
        Some(ranks) => Err(too_few(ranks)),
        None if wish.oversubscribe => Ok(DEFAULT_RANKS),
        None => (2..=there.min(DEFAULT_RANKS))
            .rev()
            .find(|ranks| wish.heads.is_multiple_of(*ranks as usize))
            .ok_or_else(|| match there {
                1 => Failure::Use("a group has at least 2 ranks, and there is 1 device: ask for more devices, or, for tests, allow several ranks on one with --oversubscribe".to_owned()),
                _ => Failure::Use(format!("{} heads cannot be divided among 2 to {} ranks", wish.heads, there.min(DEFAULT_RANKS))),
            }),
    }
}

fn refuse_shared(shared: bool, threads: bool, emulated: bool) -> Result<(), Failure> {
    if shared && !threads && !emulated {
        return Err(Failure::Use(
            "--oversubscribe on a real device needs --threads: kernels of two processes take turns on a device, and each would wait in its turn for the other".to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(ranks: Option<u32>, oversubscribe: bool) -> Wish {
        Wish {
            choice: Choice::Auto,
            profile: ProfileName::H200Nvlink,
            devices: None,
            ranks,
            heads: 64,
            oversubscribe,
        }
    }

    #[test]
    fn unasked_ranks_are_those_that_devices_and_heads_allow() {
        assert_eq!(ranks_on(&wish(None, false), 8), Ok(4));
        assert_eq!(ranks_on(&wish(None, false), 3), Ok(2));
        assert_eq!(
            ranks_on(
                &Wish {
                    heads: 12,
                    ..wish(None, false)
                },
                3
            ),
            Ok(3)
        );
        assert_eq!(ranks_on(&wish(None, true), 1), Ok(4));
        assert!(ranks_on(&wish(None, false), 1).is_err());
    }

    #[test]
    fn too_few_devices_are_refused_unless_ranks_may_share() {
        let said = ranks_on(&wish(Some(4), false), 2).unwrap_err().to_string();
        assert!(
            said.starts_with("4 ranks need 4 devices, and there are 2 devices"),
            "{said}"
        );
        assert_eq!(ranks_on(&wish(Some(4), true), 2), Ok(4));
        assert_eq!(ranks_on(&wish(Some(2), false), 2), Ok(2));
        assert!(ranks_on(&wish(Some(2), true), 0).is_err());
    }

    #[test]
    fn a_real_device_is_shared_by_threads_only() {
        let refused = |shared, threads, emulated| matches!(refuse_shared(shared, threads, emulated), Err(Failure::Use(words)) if words.contains("--threads"));
        assert!(refused(true, false, false));
        assert!(!refused(true, true, false));
        assert!(!refused(true, false, true));
        assert!(!refused(false, false, false));
    }

    #[test]
    fn an_emulated_machine_says_so() {
        let opened = open(&Wish {
            choice: Choice::Emulated,
            ..wish(Some(3), false)
        })
        .unwrap();
        assert!(
            opened.describe().starts_with("EMULATED h200-nvlink"),
            "{}",
            opened.describe()
        );
        assert_eq!(opened.places, [0, 1, 2]);
        assert!(opened.devices.iter().all(|name| name.contains("EMULATED")));
        assert_eq!(opened.left_over(), None);
    }
}
