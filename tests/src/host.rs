//! One rank with a pool, and what it gathers with.

use std::time::Duration;

use slabfence::Result;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::Stream;

use crate::late::FAIL;
use crate::ranks::{Gather, Member};

/// The contract of small tests: 64 elements a head, two heads a rank of two, waits that nothing right comes near.
pub fn contract() -> Contract {
    Contract {
        fail: FAIL,
        ..Contract::new(4, 64, 64, 8)
    }
}

/// One rank with a pool and what it gathers with.
#[derive(Debug)]
pub struct Host<'a> {
    /// The rank.
    pub member: &'a Member,
    /// Its pool.
    pub pool: Pool,
    /// A gather of two tokens.
    pub gather: Gather,
    /// Where it runs.
    pub stream: Stream,
}

impl<'a> Host<'a> {
    /// A pool of [`contract`] with room for so many channels, and none yet.
    pub fn new(member: &'a Member, max_channels: u32) -> Self {
        Self::failing_after(member, max_channels, FAIL)
    }

    /// [`new`](Self::new) with another limit of waits.
    ///
    /// # Panics
    ///
    /// When there is no pool: these are tests.
    pub fn failing_after(member: &'a Member, max_channels: u32, fail: Duration) -> Self {
        let contract = Contract {
            max_channels,
            fail,
            ..contract()
        };
        Self::of(member, &contract)
    }

    /// A pool of this contract, without channels.
    ///
    /// # Panics
    ///
    /// As [`failing_after`](Self::failing_after).
    pub fn of(member: &'a Member, contract: &Contract) -> Self {
        Self {
            member,
            pool: member.pool(contract).expect("a pool"),
            gather: Gather::new(member, contract, 2).expect("buffers"),
            stream: Stream::new(&member.device).expect("a stream"),
        }
    }

    /// A channel that is prepared.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn channel(&self, name: &str) -> Channel {
        self.pool.channel(name).expect("a prepared channel")
    }

    /// Runs what enqueues one gather, and checks its result.
    ///
    /// # Panics
    ///
    /// When it is wrong.
    pub fn right(&self, round: u32, enqueue: impl FnOnce() -> Result<()>) {
        self.gather
            .fill(self.member.rank(), round)
            .expect("an input");
        enqueue().expect("an operation");
        self.stream.synchronize().expect("its end");
        let got = self.gather.output().expect("its result");
        assert!(got == self.gather.expected(round), "round {round}");
    }

    /// One eager gather, checked.
    pub fn eager(&self, channel: &Channel, round: u32) {
        self.right(round, || self.gather.enqueue(channel, &self.stream));
    }
}
