//! A serving engine's boot by ranks that are processes.

use std::fs;

use slabfence_tests::boot::Boot;
use slabfence_tests::ranks::Member;

use super::Outcome;
use super::part::Part;

pub fn run(part: &Part, member: Member) -> Outcome {
    let before = open_files()?;
    let boot = Boot {
        transport: part.transport(),
        oversubscribe: false,
        steps: 16,
    };
    boot.run(member)?;
    // Those of the group have gone with it.
    let after = open_files()?;
    match after <= before {
        true => Ok(()),
        false => Err(format!("{after} open files, {before} before").into()),
    }
}

fn open_files() -> std::io::Result<usize> {
    Ok(fs::read_dir("/proc/self/fd")?.count())
}
