//! Creation of a pool: a transaction of phases, each closed by a verdict of all ranks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::collective::plan::Limits;
use crate::driver::{Apart, Device};
use crate::error::{Error, Result};
use crate::group::wire::Writer;
use crate::group::{Ended, Group, PeerIndex};
use crate::health::{Clock, HealthPage};
use crate::layout::Transport;

use super::agreement;
use super::close::{free_all, unmap_all};
use super::contract::Contract;
use super::identity::{self, Identity};
use super::kernels::Kernels;
use super::memory::{Cut, Memory, PeerMemory};
use super::pool::{Pool, settle};
use super::probe::Probe;
use super::registry;
use super::rest::Callers;
use super::shared::{Phase, Shared, State, Ties};
use super::ticket::Ticket;

impl Pool {
    /// Creates the pool on every rank of the group, or on none. Every rank calls this, with an equal contract.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] with the phase and every refusing rank's words; then nothing is left behind on any rank. The last
    /// phase is a first use of every path between the ranks; its words name what usually breaks one.
    /// [`Error::Timeout`] and [`Error::Bootstrap`] when the ranks did not reach one another. [`Error::Retained`] when what
    /// this rank or another had made could not be given back; until that is done, the group creates no other pool.
    pub fn create(device: &Device, group: Group, contract: &Contract) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let group = group.speaking_of(number);
        Ticket::none_pending(&group)?;
        let world = group.world();
        let staging = contract
            .staging(world)
            .map_err(|what| Error::Argument {
                operation: "Pool::create",
                what,
            })
            .and_then(|staging| Ok((staging, Cut::new(contract, world, staging)?)));
        let message = Writer::new().word(number).finish();
        let numbers = group.share_ref("create: arguments", staging.as_ref().map(|_| message))?;
        let (staging, cut) = staging?;
        let group = group.for_pool(agreement::pool_number(&numbers));

        let terms = group.exchange("create: contract", &agreement::terms(contract, &group))?;
        settle("create: contract", agreement::compare_terms(&terms))?;

        let identity = Identity::of(device).map(|identity| identity.write());
        let places = group.share("create: devices", identity)?;
        let places = settle(
            "create: devices",
            identity::place(&places, contract.oversubscribe),
        )?;
        let beside = identity::ranks_beside(&places, group.me());
        let there = capability(device, &group, contract, &places, beside);
        let (ordinals, kernels) = group.agree("create: capability", there)?;

        // Measuring a clock needs memory too.
        let memory = Clock::of(device).and_then(|clock| {
            let memory = Memory::allocate(device, contract, &cut)?;
            let page = HealthPage::new(device, contract.max_channels as usize, clock)?;
            let probe = Probe::new(device, contract.max_channels as usize)?;
            Ok((memory, page, probe))
        });
        let allocated = group.verdict("create: allocate", &memory);
        let (memory, page, probe) = match memory {
            Ok(made) => made,
            Err(error) => return Err(allocated.err().unwrap_or(error)),
        };
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
            event: OnceLock::new(),
            probe,
            peers: Vec::new(),
            turn: Mutex::default(),
            callers: Callers::default(),
            state: RwLock::new(State {
                phase: Phase::Busy("create"),
                ties: Ties::Tied,
                lanes: BTreeMap::new(),
                first_epochs: BTreeMap::new(),
            }),
            memory: RwLock::new(Some(memory)),
        };
        complete(shared, allocated, &places, &ordinals)
    }
}

/// The rest of the transaction, from the point where there is something to roll back.
fn complete(
    mut shared: Shared,
    allocated: Result<()>,
    places: &[Identity],
    ordinals: &[u32],
) -> Result<Pool> {
    if let Err(error) = allocated {
        // Nobody knows of this rank's memory.
        shared.tie(Ties::Loose)?;
        return Err(roll_back(shared, error));
    }
    match meet(&shared, places, ordinals) {
        Ok(peers) => shared.peers = peers,
        Err(error) => return Err(roll_back(shared, error)),
    }
    // Whoever passes this step may write to its peers. A rank that does not learn how it ended must therefore keep its
    // memory until all have met again: freed memory could be written to.
    match shared.group.verdict("create: commit", &Ok(())) {
        Err(error) => return Err(Ticket::keep(shared, error, None)),
        Ok(()) => shared.write()?.phase = Phase::Open,
    }
    let pool = Pool {
        shared: Arc::new(shared),
    };
    let group = &pool.shared.group;
    let shared = Arc::downgrade(&pool.shared);
    group.remains().made(group.pool(), shared);
    let Err(error) = pool.self_test() else {
        registry::add(&pool.shared);
        return Ok(pool);
    };
    match pool.close() {
        Ok(()) => Err(error),
        Err(left) => Err(Ticket::of(pool, error, Some(left))),
    }
}

/// Gives back what this rank has made before `error`, which is returned: as it is, or with what is left.
fn roll_back(shared: Shared, error: Error) -> Error {
    let agreed = matches!(error, Error::Setup { .. });
    let loose = matches!(shared.read().map(|state| state.ties), Ok(Ties::Loose));
    let left = match (agreed && !loose).then(|| unmap_all(&shared, "create: unmap")) {
        Some(Ok(())) => free_all(&shared, Some("create: free")),
        // All ranks keep what they have.
        Some(Err(Ended::Failed(left))) => Err(left),
        // No kernel has used a peer's memory yet, and the driver keeps what another process has mapped until it lets go:
        // nobody has to be asked.
        Some(Err(Ended::Missed(_))) | None => free_all(&shared, None),
    };
    match left {
        Ok(()) => error,
        Err(left) => Ticket::keep(shared, error, Some(left)),
    }
}

/// Exchanges memory with the peers.
fn meet(shared: &Shared, places: &[Identity], ordinals: &[u32]) -> Result<Vec<PeerMemory>> {
    let mut memory = shared
        .memory
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    let memory = memory.as_mut().ok_or(Error::Closed {
        what: "Pool::create",
    })?;
    exchange(&shared.group, places, ordinals, memory)
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
) -> Result<(Vec<u32>, Kernels)> {
    let refuse = |why: String| Error::Refused {
        operation: "Pool::create",
        why,
    };
    let info = device.info();
    let here = format!("device {} ({}, {:?})", info.ordinal, info.name, info.uuid);
    if !info.virtual_memory {
        return Err(refuse(format!(
            "{here} has no virtual memory management (cuMemCreate)"
        )));
    }
    let ordinals = identity::ordinals(places, group.me(), || {
        let devices = device.driver().devices()?.into_iter();
        Ok(devices.map(|info| (info.uuid, info.ordinal)).collect())
    })?;
    let mine = &places[group.me().index()];
    let elsewhere = places
        .iter()
        .any(|place| !place.shares_a_process_with(mine));
    if elsewhere && !info.posix_handles {
        return Err(refuse(format!(
            "{here} cannot export memory to other processes as file descriptors: run the ranks as threads of one"
        )));
    }
    for peer in group.peers() {
        let there = ordinals[peer.index()];
        if !device.is_accessible_from(there)? {
            return Err(refuse(format!(
                "device {there} ({:?}) of {} has no peer access to device {} ({:?}); {}",
                places[peer.index()].uuid,
                peer.rank(),
                info.ordinal,
                info.uuid,
                Apart::Denied
            )));
        }
    }
    let kernels = Kernels::load(device, contract.transport, group.world())?;
    kernels.check_residency(contract, beside)?;
    Ok((ordinals, kernels))
}
