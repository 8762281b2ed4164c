//! A rank that is killed in a collective call of a pool, and what the others meet in it.

use std::fmt::Display;

use slabfence::driver::Stream;
use slabfence_tests::processes::READY;
use slabfence_tests::ranks::Member;

use super::Outcome;
use super::part::Part;
use super::scenario::{contract, round};
use super::stand::Exchanges;

/// The call in which the scenario has a rank killed.
pub fn of(part: &Part) -> Option<&'static str> {
    let calls = ["prepare", "reset", "retire", "close"];
    let name = part.name.strip_prefix("die-in-")?;
    calls.into_iter().find(|call| *call == name)
}

/// How a call ended, in words.
fn told(call: &str, ended: Result<(), impl Display>) {
    match ended {
        Ok(()) => println!("{call}: done"),
        Err(error) => println!("{call}: {error}"),
    }
}

/// The victim stands still once the call has made so many exchanges.
pub fn run(part: &Part, call: &str, member: &Member, left: &Exchanges) -> Outcome {
    let contract = contract(part, part.world);
    let (pool, channel) = member.channel(&contract, "decode")?;
    let stream = Stream::new(&member.device)?;
    round(member, &contract, &channel, &stream, 0)?;
    member.group.verdict("all have used it", &Ok(()))?;
    match part.is_victim() {
        true => left.until_killed(part.step),
        // A hub that is killed before may not have told this rank how the verdict was.
        false => println!("{READY}"),
    }
    let ended = match call {
        "prepare" => pool.prepare(&["more"]),
        "reset" => pool.reset(),
        "retire" => pool.retire(&["decode"]),
        _ => pool.close(),
    };
    told(call, ended);
    if part.is_victim() {
        return Err("the call has fewer exchanges".into());
    }
    told("close", pool.close());
    println!("abandoned: {:?}", pool.abandon()?);
    Ok(pool.close()?)
}
