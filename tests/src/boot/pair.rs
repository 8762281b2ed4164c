//! Two ranks of the group, in an order that no sorting gives.

use std::time::Duration;

use slabfence::Result;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::Stream;
use slabfence::group::Rank;

use crate::late::FAIL;
use crate::ranks::{Gather, Member};

use super::Boot;

/// A rank in its pair.
#[derive(Debug)]
pub(super) struct Pair {
    pool: Pool,
    channel: Channel,
    gather: Gather,
    /// The pair's ranks in the whole group, in the pair's order.
    order: [u32; 2],
    me: u32,
    round: u32,
}

impl Pair {
    /// Forms [2, 1] and [3, 0] of every four ranks, [1, 0] of two that are left.
    pub fn form(boot: &Boot, member: &Member) -> Result<Self> {
        let (me, world) = (member.rank(), member.group.world());
        let first = me / 4 * 4;
        let order = match me % 4 {
            _ if first + 4 > world => [first + 1, first],
            1 | 2 => [first + 2, first + 1],
            _ => [first + 3, first],
        };
        let group = member.group.subgroup(&order.map(Rank))?;
        let group = group.expect("a pair");
        let names: Vec<u64> = order
            .into_iter()
            .map(|rank| member_name(member, rank))
            .collect();
        assert_eq!(group.members(), names);
        let contract = Contract {
            transport: boot.transport,
            oversubscribe: boot.oversubscribe,
            max_grid: 4,
            warn: Duration::ZERO,
            fail: FAIL,
            ..Contract::new(4, 32, 32, 8)
        };
        let pair = member.of(group);
        // One pair after the other: where ranks are threads, a creation allocates beside no operation that waits.
        let mut made = None;
        for first in 0..world {
            if order[0] == first {
                made = Some(pair.channel(&contract, "pair:eager")?);
            }
            member.meet();
        }
        let (pool, channel) = made.expect("a first rank in the group");
        Ok(Self {
            pool,
            channel,
            gather: Gather::new(&pair, &contract, 5)?,
            order,
            me,
            round: 0,
        })
    }

    /// Writes the next round's input.
    pub fn supply(&mut self) -> Result<()> {
        self.round += 1;
        self.gather.fill(self.me, self.round)
    }

    /// On a stream that nothing orders with those of the models.
    pub fn enqueue(&self, stream: &Stream) -> Result<()> {
        self.gather.enqueue(&self.channel, stream)
    }

    /// Compares the round's output with the bytes of both ranks in the pair's order.
    pub fn check(&self) -> Result<()> {
        let wanted = self.gather.expected_of(&self.order, self.round);
        assert_eq!(self.pool.faults()?, []);
        let at = (self.me, self.order, self.round);
        assert!(self.gather.output()? == wanted, "{at:?}");
        Ok(())
    }

    /// Gives everything back, the group included: the pool is the last that has it.
    pub fn close(self) -> Result<()> {
        self.pool.close()
    }
}

/// A rank's name in the caller's world.
fn member_name(member: &Member, rank: u32) -> u64 {
    let name = member.group.member(Rank(rank));
    name.expect("a rank of the group")
}
