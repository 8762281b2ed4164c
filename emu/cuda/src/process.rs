//! The one machine of this process, as environment variables describe it.

use std::sync::OnceLock;

use slabfence_emu::{Machine, Profile};

use crate::visible;

/// Must be `1`: a program that finds this library by accident must not take it for a driver.
const WANTED: &str = "CUDA_EMU";
/// Devices, 1 to 16. One where it is not set.
const DEVICES: &str = "CUDA_EMU_DEVICES";
/// Which of them this process sees, in its order: the variable of every CUDA driver. All where it is not set.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// A profile's name. The first one where it is not set.
const PROFILE: &str = "CUDA_EMU_PROFILE";
/// What goes to standard error: `error`, `warn`, `off`. Errors where it is not set.
const LOG: &str = "CUDA_EMU_LOG";

/// The profile that the variables ask for, and the devices that are seen.
fn asked(variable: impl Fn(&str) -> Option<String>) -> Result<(Profile, Vec<u32>), String> {
    if variable(WANTED).as_deref() != Some("1") {
        return Err(format!(
            "this libcuda.so.1 is slabfence's emulated driver: set {WANTED}=1 to use it"
        ));
    }
    let devices = variable(DEVICES).unwrap_or_else(|| "1".to_owned());
    let count: u32 = devices
        .parse()
        .ok()
        .filter(|count| (1..=16).contains(count))
        .ok_or_else(|| format!("{DEVICES}={devices}: a number from 1 to 16 is wanted"))?;
    let name = variable(PROFILE).unwrap_or_else(|| Profile::NAMES[0].to_owned());
    let known = Profile::NAMES.join(", ");
    let profile = Profile::named(&name)
        .ok_or_else(|| format!("{PROFILE}={name}: known profiles are {known}"))?;
    let Some(list) = variable(VISIBLE) else {
        return Ok((profile, (0..count).collect()));
    };
    let uuids: Vec<[u8; 16]> = (0..count).map(|device| profile.uuid(device)).collect();
    match visible::seen(&list, &uuids) {
        none if none.is_empty() => Err(format!("{VISIBLE}={list} shows no device of {count}")),
        seen => Ok((profile, seen)),
    }
}

fn make() -> Option<Machine> {
    let filter = env_logger::Env::new().filter_or(LOG, "error");
    // Fails where somebody has set a logger already: then that one is used.
    let _ = env_logger::Builder::new().parse_env(filter).try_init();
    let variable =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let made = asked(variable).and_then(|(profile, devices)| {
        Machine::seeing(profile, &devices).map_err(|error| error.to_string())
    });
    made.inspect_err(|why| log::error!("{why}")).ok()
}

/// Makes the machine if it is not there; whether it is. It lives as long as the process: nothing ends its threads, and
/// nothing waits for them when the process exits.
pub fn machine() -> bool {
    static MACHINE: OnceLock<Option<Machine>> = OnceLock::new();
    MACHINE.get_or_init(make).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Result<(&'static str, Vec<u32>), String> {
        let found = |name: &str| {
            set.iter()
                .find(|(set, _)| *set == name)
                .map(|(_, value)| (*value).to_owned())
        };
        asked(found).map(|(profile, devices)| (profile.name, devices))
    }

    #[test]
    fn a_machine_is_made_only_for_who_asks() {
        let refused = with(&[(DEVICES, "2")]).unwrap_err();
        assert_eq!(
            refused,
            "this libcuda.so.1 is slabfence's emulated driver: set CUDA_EMU=1 to use it"
        );
        assert!(with(&[(WANTED, "0")]).is_err());
        assert_eq!(with(&[(WANTED, "1")]), Ok(("h200-nvlink", vec![0])));
        let both = [(WANTED, "1"), (DEVICES, "3"), (PROFILE, "sm120-pcie")];
        assert_eq!(with(&both), Ok(("sm120-pcie", vec![0, 1, 2])));
    }

    #[test]
    fn devices_are_seen_as_the_list_has_them() {
        let seen = |list| {
            let set = [(WANTED, "1"), (DEVICES, "3"), (VISIBLE, list)];
            with(&set).map(|(_, seen)| seen)
        };
        assert_eq!(seen("2,0"), Ok(vec![2, 0]));
        assert_eq!(
            seen("GPU-454d5500-6832-3030-2d6e-766c696e6b02,1"),
            Ok(vec![2, 1])
        );
        for list in ["", "3", "0,0"] {
            let told = format!("CUDA_VISIBLE_DEVICES={list} shows no device of 3");
            assert_eq!(seen(list), Err(told));
        }
    }

    #[test]
    fn wrong_variables_are_told() {
        for number in ["two", "0", "17"] {
            let devices = with(&[(WANTED, "1"), (DEVICES, number)]).unwrap_err();
            let told = format!("CUDA_EMU_DEVICES={number}: a number from 1 to 16 is wanted");
            assert_eq!(devices, told);
        }
        let profile = with(&[(WANTED, "1"), (PROFILE, "h100")]).unwrap_err();
        assert_eq!(
            profile,
            "CUDA_EMU_PROFILE=h100: known profiles are h200-nvlink, sm120-pcie"
        );
    }
}
