//! How held work is run.

/// Who goes on next in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Everybody in turn. The seed changes nothing.
    RoundRobin,
    /// Anybody, a few instructions at a time. Now and then a device, a block or a warp is stalled: for a while, or until
    /// nobody else can go on.
    Random,
    /// Every warp has a priority, and the highest goes on; at this many instructions of the run it loses its priority to all
    /// others (probabilistic concurrency testing). Finds with a known probability what needs so many reorderings.
    Priorities {
        /// Places at which priorities change.
        changes: u32,
    },
    /// As [`Priorities`](Self::Priorities) for seeds that are one above a multiple of three, as [`Random`](Self::Random)
    /// for all others.
    Mixed {
        /// Places at which priorities change.
        changes: u32,
    },
}

impl Policy {
    /// The policy of a seed, which is not `Mixed`.
    pub(super) fn of(self, seed: u64) -> Policy {
        match self {
            Policy::Mixed { changes } if seed % 3 == 1 => Policy::Priorities { changes },
            Policy::Mixed { .. } => Policy::Random,
            policy => policy,
        }
    }
}

/// What happens when nobody can go on but by the passing of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It is a deadlock: the run ends with everybody who waits.
    None,
    /// Time passes, in ever longer steps, so that bounded waits end as they do on a wedged machine. A deadlock is only what
    /// still waits after twelve virtual days.
    Time,
}

/// How held work is run. A plan and a seed determine a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Who goes on next.
    pub policy: Policy,
    /// Most blocks that a device has resident at once, if fewer than it has room for.
    pub residency: Option<u32>,
    /// Whether blocks become resident in a drawn order, on drawn multiprocessors, or in the order of their indices.
    /// Round robin draws nothing.
    pub drawn_dispatch: bool,
    /// Virtual nanoseconds that a warp-instruction takes: what `%globaltimer` shows. A large value makes bounded waits end
    /// while the others are about to come.
    pub tick: u64,
    /// What happens when nobody can go on.
    pub patience: Patience,
    /// Whether accesses are watched for races, stale words and memory that is not theirs.
    pub detect: bool,
    /// Whether the detector takes a kernel to begin behind whatever ended before it, as seen from any device (the
    /// assumption of `docs/memory-model.md`).
    pub kernel_boundary: bool,
    /// Whether device r works for rank r alone: findings and waits then tell the rank of every operation, else only of those
    /// with the parameters of the library's operations.
    pub ranks_are_devices: bool,
    /// Warp-instructions after which a run is given up.
    pub limit: u64,
}

impl Plan {
    /// A plan of a policy: a nanosecond an instruction, drawn dispatch, no cap, deadlocks reported at once, everything
    /// watched, and a limit of 50 million instructions a run.
    pub const fn new(policy: Policy) -> Plan {
        Plan {
            policy,
            residency: None,
            drawn_dispatch: true,
            tick: 1,
            patience: Patience::None,
            detect: true,
            kernel_boundary: true,
            ranks_are_devices: false,
            limit: 50_000_000,
        }
    }

    /// Whether dispatch is drawn.
    pub(super) fn draws(&self) -> bool {
        self.drawn_dispatch && self.policy != Policy::RoundRobin
    }
}
