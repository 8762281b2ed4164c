//! Subgroups whose parent has gone.

use std::fs;
use std::sync::Arc;

use slabfence::driver::{Device, Driver, Stream};
use slabfence::group::{Bootstrap, Group, Rank, UnixBootstrap};
use slabfence_tests::ranks::{Gather, Member};

use super::part::Part;
use super::{Outcome, PATIENCE};

const ROUNDS: u32 = 5;

/// Ranks {0, 2} and {1, 3} of four, and then 2 and 1 in this order.
pub fn run(part: &Part, bootstrap: UnixBootstrap, driver: &Driver) -> Outcome {
    let bootstrap: Arc<dyn Bootstrap> = Arc::new(bootstrap);
    let parent = Group::new(bootstrap, Rank(part.rank), part.world)?.with_timeout(PATIENCE);
    let half = [part.rank % 2, part.rank % 2 + 2];
    let mut formed = vec![form(&parent, &half)?];
    match part.rank {
        1 | 2 => formed.push(form(&parent, &[2, 1])?),
        _ if parent.subgroup(&[])?.is_some() => return Err("a subgroup of others".into()),
        _ => {}
    }
    // That of the job's hub.
    if fs::read_dir(&part.folder)?.count() != 1 {
        return Err("sockets have stayed where nobody comes any more".into());
    }
    parent.verdict("looked", &Ok(()))?;
    drop(parent);
    for (group, order) in formed {
        let device = Device::open(driver, part.rank)?;
        let member = Member {
            device,
            bootstrap: Arc::clone(group.bootstrap()),
            group,
        };
        let contract = super::scenario::contract(part, 2);
        let (pool, channel) = member.channel(&contract, "decode")?;
        let stream = Stream::new(&member.device)?;
        let gather = Gather::new(&member, &contract, 2)?;
        for round in 0..ROUNDS {
            gather.fill(part.rank, round)?;
            gather.enqueue(&channel, &stream)?;
            stream.synchronize()?;
            if gather.output()? != gather.expected_of(&order, round) {
                return Err(format!("round {round} of {order:?} is wrong").into());
            }
        }
        pool.close()?;
    }
    Ok(())
}

fn form(parent: &Group, ranks: &[u32]) -> Result<(Group, Vec<u32>), Box<dyn std::error::Error>> {
    let places: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
    let group = parent.subgroup(&places)?.ok_or("no subgroup")?;
    Ok((group, ranks.to_vec()))
}
