//! A rank that leaves early, in any way but by being killed, while the other's kernel uses its memory.

use std::process;
use std::time::Duration;

use slabfence::channel::{Channel, Contract};
use slabfence::driver::Stream;
use slabfence_tests::ranks::{Gather, Member};

use super::ending::{Things, after_main};
use super::part::Part;
use super::{Outcome, PATIENCE, stand};

/// With `:1` the leaving rank has begun its part of the operation, and the other has not; else the other waits for it.
pub fn run(part: &Part, member: &Member) -> Outcome {
    // Whether a kernel ends at its limit: not where both ranks take part and no process ends.
    let ends = ["leave-exit", "leave-return"].contains(&part.name.as_str());
    let late = part.step == 0 || ends;
    let contract = Contract {
        fail: match late {
            true => Duration::from_secs(5),
            false => PATIENCE,
        },
        max_channels: 2,
        max_grid: 4,
        concurrent_operations: 2,
        transport: part.transport(),
        ..Contract::new(2 * part.world, 16, 16, 2)
    };
    let pool = member.pool(&contract)?;
    pool.prepare(&["decode", "after"])?;
    let (decode, after) = (pool.channel("decode")?, pool.channel("after")?);
    let stream = Stream::new(&member.device)?;
    let gather = Gather::new(member, &contract, 1)?;
    gather.fill(member.rank(), 1)?;
    let leaves = part.is_victim();
    let first = leaves == (part.step == 1);
    if first {
        gather.enqueue(&decode, &stream)?;
    }
    stand::until_told()?;
    if !leaves {
        if !first {
            gather.enqueue(&decode, &stream)?;
        }
        // The peer's memory is its owner's no more, and stays mapped here.
        let (other, later) = (
            Stream::new(&member.device)?,
            Gather::new(member, &contract, 1)?,
        );
        later.fill(member.rank(), 1)?;
        if late {
            later.enqueue(&after, &other)?;
        }
        stream.synchronize()?;
        tell(&gather, &decode)?;
        other.synchronize()?;
        if late {
            tell(&later, &after)?;
        }
        println!("{:?}", pool.abandon()?);
        return Ok(());
    }
    match part.name.as_str() {
        "leave-exit" => {
            println!("exit");
            process::exit(0);
        }
        "leave-return" => {
            let things: Things = vec![Box::new((pool, decode, after)), Box::new((gather, stream))];
            after_main(things, None);
            return Ok(());
        }
        "leave-drop" => drop((pool, decode, after)),
        _ => println!("{:?}", pool.abandon()?),
    }
    // The others go on before this process ends.
    stand::until_told()?;
    if first {
        stream.synchronize()?;
        if gather.output()? != gather.expected(1) {
            return Err("the operation is wrong".into());
        }
    }
    Ok(())
}

/// How an operation ended.
fn tell(gather: &Gather, channel: &Channel) -> Outcome {
    match channel.fault()? {
        None if gather.output()? == gather.expected(1) => println!("right"),
        None => return Err("neither right nor a fault".into()),
        Some(fault) => println!("{:?} by {:?}", fault.cause, fault.late_rank),
    }
    Ok(())
}
