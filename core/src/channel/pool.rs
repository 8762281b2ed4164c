//! Creation of a pool: a transaction of phases, each closed by a verdict of all ranks.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use crate::collective::plan::Limits;
use crate::driver::Device;
use crate::error::{Error, Result};
use crate::group::wire::Writer;
use crate::group::{Group, PeerIndex};
use crate::health::{Clock, FaultReport, Health, HealthPage, Slip};
use crate::layout::Transport;

use super::agreement::{self, Failures, Identity};
use super::contract::Contract;
use super::kernels::Kernels;
use super::lane::{Channel, Lane};
use super::memory::{Cut, Memory, PeerMemory};
use super::shared::{Phase, Shared, State, Ties};

/// The channels of one contract on one group: memory, kernels, health records. Close it on all ranks; a pool that is
/// dropped without keeps its memory for the life of the process, since a peer may still write to it.
#[derive(Debug)]
pub struct Pool {
    pub(super) shared: Arc<Shared>,
}

impl Pool {
    /// Creates the pool on every rank of the group, or on none. Every rank calls this, with an equal contract.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] with the phase and every refusing rank's words; then nothing is left behind on any rank. The last
    /// phase is a first use of every path between the ranks; its words name what usually breaks one.
    /// [`Error::Timeout`] and [`Error::Bootstrap`] when the ranks did not reach one another.
    pub fn create(device: &Device, group: Group, contract: &Contract) -> Result<Self> {
        let world = group.world();
        let staging = contract
            .staging(world)
            .map_err(|what| Error::Argument {
                operation: "Pool::create",
                what,
            })
            .and_then(|staging| Ok((staging, Cut::new(contract, world, staging)?)));
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let message = Writer::new().word(number).finish();
        let numbers = group.share_ref("create: arguments", staging.as_ref().map(|_| message))?;
        let (staging, cut) = staging?;
        let group = group.for_pool(agreement::pool_number(&numbers));

        let terms = group.exchange("create: contract", &agreement::terms(contract, &group))?;
        settle("create: contract", agreement::compare_terms(&terms))?;

        let identity = Identity::of(device).write();
        let places = group.exchange("create: devices", &identity)?;
        let places = settle(
            "create: devices",
            agreement::place(&places, contract.oversubscribe),
        )?;
        let beside = agreement::ranks_beside(&places, group.me());
        let there = capability(device, &group, contract, &places, beside);
        let (ordinals, kernels, clock) = group.agree("create: capability", there)?;

        let memory = Memory::allocate(device, contract, &cut).and_then(|memory| {
            let page = HealthPage::new(device, contract.max_channels as usize, clock)?;
            Ok((memory, page))
        });
        let (mut memory, page) = group.agree("create: allocate", memory)?;
        let peers = meet(&group, &places, &ordinals, &mut memory)?;

        // Whoever passes this step may write to its peers. A rank that does not learn how it ended must therefore keep
        // its memory: freed memory could be written to.
        if let Err(error) = group.verdict("create: commit", &Ok(())) {
            log::error!("{error}; the memory of the pool is kept, since a peer may use it");
            mem::forget(memory);
            mem::forget(page);
            return Err(error);
        }
        let shared = Shared {
            number,
            device: device.clone(),
            limits: Limits {
                world,
                heads: contract.heads(world),
                query_head_dim: contract.query_head_dim,
                value_head_dim: contract.value_head_dim,
                max_batch: contract.max_batch,
                max_grid: contract.max_grid,
                transport: contract.transport,
                staging: match contract.transport {
                    Transport::Push => staging.inbox,
                    Transport::Pull => staging.outbox,
                },
            },
            contract: contract.clone(),
            group,
            cut,
            kernels: Arc::new(kernels),
            page: Arc::new(page),
            peers,
            turn: Mutex::default(),
            state: RwLock::new(State {
                phase: Phase::Open,
                ties: Ties::Tied,
                lanes: BTreeMap::new(),
                first_epochs: BTreeMap::new(),
                memory: Some(memory),
            }),
        };
        let pool = Self {
            shared: Arc::new(shared),
        };
        if let Err(error) = pool.self_test() {
            if let Err(left) = pool.close() {
                log::error!("after a failed self test: {left}");
            }
            return Err(error);
        }
        Ok(pool)
    }

    /// The ranks.
    pub fn group(&self) -> &Group {
        &self.shared.group
    }

    /// The agreed contract.
    pub fn contract(&self) -> &Contract {
        &self.shared.contract
    }

    /// The device of this rank.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// A prepared channel.
    pub fn channel(&self, name: &str) -> Result<Channel> {
        Ok(Channel {
            lane: self.lane(name, "Pool::channel")?,
            pool: Arc::clone(&self.shared),
        })
    }

    pub(super) fn lane(&self, name: &str, operation: &'static str) -> Result<Arc<Lane>> {
        let state = self.shared.read()?;
        state.phase.require_open(operation)?;
        state.lanes.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = state.lanes.keys().map(String::as_str).collect();
            Error::Refused {
                operation,
                why: format!(
                    "channel '{name}' is not prepared; prepare it on all ranks first (prepared: {known:?})"
                ),
            }
        })
    }

    /// What kernels have reported on this rank, by loads of host memory only: works while the device hangs.
    pub fn health(&self) -> Result<Health> {
        self.shared.page.health()
    }

    /// The first fault of every channel that has failed on this rank since the last reset.
    pub fn faults(&self) -> Result<Vec<FaultReport>> {
        self.reports(Slip::Fault)
    }

    /// The latest warning of every channel on which a wait took long since the last reset.
    pub fn warnings(&self) -> Result<Vec<FaultReport>> {
        self.reports(Slip::Warning)
    }

    fn reports(&self, slip: Slip) -> Result<Vec<FaultReport>> {
        let state = self.shared.read()?;
        let reports = state
            .lanes
            .values()
            .map(|lane| self.shared.report(lane, slip));
        reports.filter_map(Result::transpose).collect()
    }
}

/// Turns a finding that all ranks share into the error that all ranks return.
pub(super) fn settle<T>(phase: &'static str, finding: Result<T, Failures>) -> Result<T> {
    finding.map_err(|failures| Error::Setup { phase, failures })
}

/// Exchanges memory with the peers. After a failure that all ranks know of, no rank goes on to free what it has exported
/// before every rank has unmapped it.
fn meet(
    group: &Group,
    places: &[Identity],
    ordinals: &[u32],
    memory: &mut Memory,
) -> Result<Vec<PeerMemory>> {
    let met = exchange(group, places, ordinals, memory);
    if let Err(Error::Setup { .. }) = &met
        && let Err(error) = group.agree("create: unmap", memory.let_go())
    {
        log::error!("{error}");
    }
    met
}

fn exchange(
    group: &Group,
    places: &[Identity],
    ordinals: &[u32],
    memory: &mut Memory,
) -> Result<Vec<PeerMemory>> {
    let mine = &places[group.me().index()];
    let (near, far): (Vec<PeerIndex>, Vec<PeerIndex>) = group
        .peers()
        .partition(|peer| places[peer.index()].shares_a_process_with(mine));

    let records = group.exchange("create: exchange", &memory.records())?;
    let alone = places
        .iter()
        .all(|place| place.shares_a_process_with(&places[0]));
    let handed = match alone {
        true => Vec::new(),
        false => group.hand_over(&far, memory.export())?,
    };
    let mut handed: BTreeMap<usize, _> = far.iter().map(|peer| peer.index()).zip(handed).collect();
    let peers: Result<Vec<PeerMemory>> = group
        .peers()
        .map(|peer| {
            let descriptors = handed.remove(&peer.index());
            memory.accept(peer, &records[peer.index()], descriptors)
        })
        .collect();
    let peers = group.agree("create: accept", peers)?;

    // A process gives its own devices the right to what it has imported; to the threads of one, the owner does.
    let ordinals: Vec<u32> = near.iter().map(|peer| ordinals[peer.index()]).collect();
    group.agree("create: grant", memory.grant(&ordinals))?;
    Ok(peers)
}

/// What this rank's device must be able to do. The ranks' devices as this process numbers them, and the kernels.
fn capability(
    device: &Device,
    group: &Group,
    contract: &Contract,
    places: &[Identity],
    beside: u32,
) -> Result<(Vec<u32>, Kernels, Clock)> {
    let refuse = |why: String| Error::Refused {
        operation: "Pool::create",
        why,
    };
    let info = device.info();
    if !info.virtual_memory {
        return Err(refuse(format!(
            "device {} ({}) has no virtual memory management (cuMemCreate)",
            info.ordinal, info.name
        )));
    }
    let ordinals = agreement::ordinals(places, group.me(), || {
        let devices = device.driver().devices()?.into_iter();
        Ok(devices
            .map(|info| (info.uuid.bytes, info.ordinal))
            .collect())
    })?;
    let mine = &places[group.me().index()];
    let elsewhere = places
        .iter()
        .any(|place| !place.shares_a_process_with(mine));
    if elsewhere && !info.posix_handles {
        return Err(refuse(format!(
            "device {} ({}) cannot export memory to other processes as file descriptors: run the ranks as threads of one",
            info.ordinal, info.name
        )));
    }
    for peer in group.peers() {
        let there = ordinals[peer.index()];
        if !device.is_accessible_from(there)? {
            return Err(refuse(format!(
                "device {there} of {} cannot reach device {}; look at `nvidia-smi topo -p2p r`, IOMMU and ACS settings",
                peer.rank(),
                info.ordinal
            )));
        }
    }
    let kernels = Kernels::load(device, contract.transport, group.world())?;
    kernels.check_residency(contract, beside)?;
    Ok((ordinals, kernels, Clock::of(device)?))
}
