//! Emulated drivers that pose as others than the profiles' own.

use slabfence_emu::Profile;

/// A driver's version as it counts it, and the newest PTX ISA that its compiler reads.
pub type Version = (i32, (u32, u32));

/// CUDA 12.2.
pub const V12_2: Version = (12_020, (8, 2));
/// CUDA 12.4.
pub const V12_4: Version = (12_040, (8, 4));
/// CUDA 13.0.
pub const V13_0: Version = (13_000, (9, 0));

/// H200s with a driver of this version.
///
/// # Panics
///
/// Never: the profile is known.
pub fn posing((driver_version, ptx_version): Version) -> Profile {
    Profile {
        driver_version,
        ptx_version,
        ..Profile::named("h200-nvlink").expect("a known profile")
    }
}
