//! Ranks as threads, and attention heads whose every byte says where it belongs.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use slabfence::Result;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::collective::AllGatherHeads;
use slabfence::driver::{Device, DeviceBuffer, Driver, Stream};
use slabfence::group::{Bootstrap, Group, Rank, ThreadBootstrap};
use slabfence::layout::DType;

use crate::shape::UNTOUCHED;

/// One rank of a test: its thread owns this.
pub struct Member {
    /// The rank's device; ranks beyond the machine's devices share them in turn.
    pub device: Device,
    /// How the rank reaches the others.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// The rank's place in the group.
    pub group: Group,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Member").field(&self.group).finish()
    }
}

impl Member {
    /// The rank as a number.
    pub fn rank(&self) -> u32 {
        self.group.me().0
    }

    /// The same rank in another group.
    pub fn of(&self, group: Group) -> Self {
        Self {
            device: self.device.clone(),
            bootstrap: Arc::clone(&self.bootstrap),
            group,
        }
    }

    /// Waits for all ranks of the test.
    ///
    /// # Panics
    ///
    /// When one does not come.
    pub fn meet(&self) {
        self.group.verdict("meet", &Ok(())).expect("all ranks");
    }

    /// Creates a pool.
    pub fn pool(&self, contract: &Contract) -> Result<Pool> {
        Pool::create(&self.device, self.group.clone(), contract)
    }

    /// Creates a pool and prepares one channel.
    pub fn channel(&self, contract: &Contract, name: &str) -> Result<(Pool, Channel)> {
        let pool = self.pool(contract)?;
        pool.prepare(&[name])?;
        let channel = pool.channel(name)?;
        Ok((pool, channel))
    }
}

/// Runs `body` as every rank of a group of `world` and gives what each returned, in rank order.
///
/// # Panics
///
/// When a rank panics or cannot be set up: these are tests.
pub fn on_ranks<T: Send>(
    driver: &Driver,
    world: u32,
    body: impl Fn(&Member) -> T + Sync,
) -> Vec<T> {
    let members: Vec<Arc<dyn Bootstrap>> = ThreadBootstrap::world(world)
        .into_iter()
        .map(|member| Arc::new(member) as Arc<dyn Bootstrap>)
        .collect();
    on_members(driver, members, Duration::from_secs(20), body)
}

/// [`on_ranks`] with bootstraps and a group timeout of the caller's.
///
/// # Panics
///
/// As [`on_ranks`].
pub fn on_members<T: Send>(
    driver: &Driver,
    members: Vec<Arc<dyn Bootstrap>>,
    timeout: Duration,
    body: impl Fn(&Member) -> T + Sync,
) -> Vec<T> {
    let drivers: Vec<Driver> = members.iter().map(|_| driver.clone()).collect();
    on_drivers(&drivers, members, timeout, body)
}

/// [`on_members`] with a driver of each rank's own.
///
/// # Panics
///
/// As [`on_ranks`].
pub fn on_drivers<T: Send>(
    drivers: &[Driver],
    members: Vec<Arc<dyn Bootstrap>>,
    timeout: Duration,
    body: impl Fn(&Member) -> T + Sync,
) -> Vec<T> {
    let devices = drivers[0].devices().expect("the machine's devices").len() as u32;
    let world = members.len() as u32;
    let body = &body;
    thread::scope(|scope| {
        let handles: Vec<_> = (0..world)
            .zip(members)
            .zip(drivers)
            .map(|((rank, bootstrap), driver)| {
                let device = Device::open(driver, rank % devices).expect("a device");
                let group = Group::new(bootstrap.clone(), Rank(rank), world).expect("a group");
                let member = Member {
                    device,
                    bootstrap,
                    group: group.with_timeout(timeout),
                };
                scope.spawn(move || body(&member))
            })
            .collect();
        let join =
            |handle: thread::ScopedJoinHandle<'_, T>| handle.join().expect("a rank's result");
        handles.into_iter().map(join).collect()
    })
}

/// A gather of bf16 heads with its buffers.
#[derive(Debug)]
pub struct Gather {
    /// The call.
    pub call: AllGatherHeads,
    input: DeviceBuffer,
    output: DeviceBuffer,
    world: u32,
    heads: u32,
    dim: u32,
}

impl Gather {
    /// Buffers for `batch` tokens of the contract's heads on this rank.
    pub fn new(member: &Member, contract: &Contract, batch: u32) -> Result<Self> {
        let world = member.group.world();
        let heads = contract.total_heads / world;
        let dim = contract.query_head_dim;
        let bytes = (batch * heads * dim * 2) as usize;
        let input = DeviceBuffer::new(&member.device, bytes)?;
        let output = DeviceBuffer::new(&member.device, bytes * world as usize)?;
        // The emulated machine's fresh memory holds what a failed operation leaves.
        output.fill(UNTOUCHED)?;
        Ok(Self {
            call: AllGatherHeads {
                input: input.ptr(),
                output: output.ptr(),
                batch,
                dtype: DType::Bf16,
                head_dim: None,
            },
            input,
            output,
            world,
            heads,
            dim,
        })
    }

    /// Element `index` of rank `rank`'s input in round `round`.
    fn element(rank: u32, round: u32, index: u32) -> u16 {
        (rank * 7919 + round * 104_729 + index * 31) as u16
    }

    /// Writes round `round` of this rank's input and clears the output.
    pub fn fill(&self, rank: u32, round: u32) -> Result<()> {
        let elements = self.call.batch * self.heads * self.dim;
        let bytes: Vec<u8> = (0..elements)
            .flat_map(|index| Self::element(rank, round, index).to_le_bytes())
            .collect();
        self.input.write(0, &bytes)?;
        self.output.fill(UNTOUCHED)
    }

    /// Enqueues the gather.
    pub fn enqueue(&self, channel: &Channel, stream: &Stream) -> Result<()> {
        // SAFETY: the buffers are as large as the call says and live until the caller has synchronised.
        unsafe { self.call.enqueue(channel, stream) }
    }

    /// The output's bytes.
    pub fn output(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.output.len()];
        self.output.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// What the output must be after round `round`.
    pub fn expected(&self, round: u32) -> Vec<u8> {
        let ranks: Vec<u32> = (0..self.world).collect();
        self.expected_of(&ranks, round)
    }

    /// What the output must be after round `round` if these have filled their inputs, each with its own number.
    pub fn expected_of(&self, ranks: &[u32], round: u32) -> Vec<u8> {
        let row = self.heads * self.dim;
        let mut bytes = Vec::new();
        for token in 0..self.call.batch {
            for &rank in ranks {
                for i in 0..row {
                    let element = Self::element(rank, round, token * row + i);
                    bytes.extend_from_slice(&element.to_le_bytes());
                }
            }
        }
        bytes
    }
}
