//! What a failed creation has left in the parent: a ticket.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use slabfence::channel::{Contract, Pool, Ticket};
use slabfence::driver::Device;
use slabfence::group::{Group, ThreadBootstrap};
use slabfence::{Error, Result};
use slabfence_tests::lossy::lossy;

use crate::Outcome;

/// How long the two ranks wait for each other.
const PATIENCE: Duration = Duration::from_secs(60);

/// A pool of two threads of this process, of which rank 1, this thread, did not learn how its creation ended. Rank 0 waits
/// for it.
pub struct Left {
    ticket: Box<Ticket>,
    /// Rank 0.
    other: Option<JoinHandle<Result<Pool>>>,
}

impl Left {
    pub fn new(
        device: &Device,
        contract: &Contract,
    ) -> std::result::Result<Self, Box<dyn std::error::Error>> {
        let contract = Contract {
            total_heads: 2,
            oversubscribe: true,
            ..contract.clone()
        };
        let groups: Result<Vec<Group>> = ThreadBootstrap::world(2)
            .into_iter()
            .map(|inner| {
                let rank = inner.rank();
                let group = Group::new(lossy(inner, "create: commit", true), rank, 2)?;
                Ok(group.with_timeout(PATIENCE))
            })
            .collect();
        let [first, second] = <[Group; 2]>::try_from(groups?).map_err(|_| "not two groups")?;
        let other = {
            let (device, contract) = (device.clone(), contract.clone());
            thread::spawn(move || Pool::create(&device, first, &contract))
        };
        match Pool::create(device, second, &contract) {
            Err(Error::Retained { ticket, .. }) => Ok(Self {
                ticket,
                other: Some(other),
            }),
            other => Err(format!("no ticket: {other:?}").into()),
        }
    }

    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// In a child, which has no such thread.
    pub fn forget_thread(&mut self) {
        std::mem::forget(self.other.take());
    }

    /// In the parent: gives everything back.
    pub fn settle(&mut self) -> Outcome {
        let Some(other) = self.other.take() else {
            return Ok(());
        };
        let until = Instant::now() + PATIENCE;
        while let Err(error) = self.ticket.retry() {
            if Instant::now() > until {
                return Err(error.into());
            }
        }
        match other.join() {
            Ok(Err(Error::Setup { .. })) => Ok(()),
            other => Err(format!("a rank's creation ended with {other:?}").into()),
        }
    }
}
