//! A fault in a replay, and graphs that are right after the reset.

use slabfence::channel::{Channel, Contract};
use slabfence::driver::Stream;
use slabfence_tests::events::count;
use slabfence_tests::graphs::capture;
use slabfence_tests::ranks::{Gather, Member};

use super::part::Part;
use super::{Outcome, PATIENCE};

/// Rounds before the fault and after the reset.
const ROUNDS: u32 = 3;

/// Graphs of two channels; the victim meets the replay of one with what is no graph.
pub fn run(part: &Part, member: &Member) -> Outcome {
    let contract = Contract {
        fail: PATIENCE,
        transport: part.transport(),
        ..Contract::new(2 * part.world, 64, 64, 8)
    };
    let pool = member.pool(&contract)?;
    let names = ["a", "b"];
    pool.prepare(&names)?;
    let event = pool.fault_event()?;
    let stream = Stream::new(&member.device)?;
    let [a, b] = [2, 5].map(|batch| Gather::new(member, &contract, batch));
    let gathers = [a?, b?];
    let graphs = [0, 1].map(|index| {
        capture(&pool, &stream, names[index], |channel| {
            let enqueued = gathers[index].enqueue(channel, &stream);
            enqueued.expect("an operation of the contract");
        })
    });
    let [a, b] = graphs.each_ref().map(|graph| graph.instantiate());
    let mut execs = [a?, b?];
    let mut rounds = |first: u32| -> Outcome {
        for round in first..first + ROUNDS {
            for (gather, exec) in gathers.iter().zip(&mut execs) {
                gather.fill(member.rank(), round)?;
                exec.launch(&stream)?;
                stream.synchronize()?;
                if gather.output()? != gather.expected(round) {
                    return Err(format!("round {round} is wrong").into());
                }
            }
        }
        Ok(())
    };
    rounds(0)?;
    let channel: Channel = pool.channel("a")?;
    let mut exec = graphs[0].instantiate()?;
    match part.is_victim() {
        true => gathers[0].enqueue(&channel, &stream)?,
        false => exec.launch(&stream)?,
    }
    stream.synchronize()?;
    let told = count(event);
    let fault = channel.fault()?.ok_or("no fault")?;
    println!("{told} told, epoch {}, {:?}", fault.epoch, fault.cause);
    pool.reset()?;
    rounds(100)?;
    drop((exec, execs, graphs));
    Ok(pool.close()?)
}
