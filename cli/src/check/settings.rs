//! How everything is run.

use std::path::PathBuf;

use slabfence_emu::Profile;
use slabfence_emu::held::{Plan, Policy};

use super::case;
use crate::failure::Failure;
use crate::plain;

/// How seeds schedule: most at random, every third by priorities.
const POLICY: Policy = Policy::Mixed { changes: 3 };

/// What holds for all runs of a check.
#[derive(Debug)]
pub struct Settings {
    /// The seeds.
    pub seeds: Vec<u64>,
    /// A file whose entries take the place of shipped ones, and its text.
    pub ptx: Option<(PathBuf, String)>,
    /// Name of the machine's profile, if one was asked for.
    pub profile: Option<String>,
    /// Whether the kernel boundary is assumed.
    pub kernel_boundary: bool,
    /// Most CTAs that a device has resident at once, if fewer than it has room for.
    pub resident: Option<u32>,
}

impl Settings {
    /// The plan of all runs.
    pub fn plan(&self) -> Plan {
        Plan {
            kernel_boundary: self.kernel_boundary,
            residency: self.resident,
            ..Plan::new(POLICY)
        }
    }

    /// The profile of the machine that shipped kernels run on.
    pub fn profile(&self) -> Result<Profile, Failure> {
        case::profile(self.profile.as_deref().unwrap_or(case::PROFILE))
    }

    /// The text that takes the place of shipped entries.
    pub fn text(&self) -> Option<&str> {
        self.ptx.as_ref().map(|(_, text)| text.as_str())
    }

    /// What a command needs, apart from what is checked and by which seed, to run the same.
    pub fn arguments(&self) -> String {
        let mut words = String::new();
        if let Some(name) = &self.profile {
            words += &format!(" --profile {name}");
        }
        if let Some((path, _)) = &self.ptx {
            words += &format!(" --ptx {}", plain::shell(path));
        }
        if !self.kernel_boundary {
            words += " --without-kernel-boundary";
        }
        if let Some(count) = self.resident {
            words += &format!(" --resident {count}");
        }
        words
    }
}
