//! Who takes part: an ordered list of ranks, and how they reach one another before memory is shared.

mod bootstrap;
mod descriptors;
mod envelope;
mod exchange;
mod rank;
mod remains;
mod speaker;
mod subgroup;
mod thread;
mod unix;
mod verdict;
pub(crate) mod wire;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::layout::MAX_WORLD;

pub use bootstrap::{Bootstrap, BootstrapError};
pub(crate) use exchange::Missed;
pub(crate) use rank::list;
pub use rank::{PeerIndex, Rank};
use remains::Remains;
pub(crate) use remains::read_remains;
pub(crate) use speaker::Speaker;
pub use thread::ThreadBootstrap;
pub use unix::UnixBootstrap;
pub(crate) use verdict::Ended;

/// How long a rank waits for the others in one exchange, unless the caller says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest wait: far beyond use, and every clock can add it.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// An ordered list of ranks, exactly as the caller gave it, and this process's place in it. A clone is the same group.
#[derive(Clone)]
pub struct Group {
    me: Rank,
    members: Arc<[u64]>,
    bootstrap: Arc<dyn Bootstrap>,
    timeout: Duration,
    /// One exchange at a time: the ranks' calls meet by their order.
    turn: Arc<Mutex<()>>,
    /// Which of the group's pools the exchanges are about; 0 before there is one.
    pool: u64,
    /// Number in this process of the pool that is spoken of; `None` before one is begun.
    number: Option<u64>,
    remains: Arc<Remains>,
}

impl Group {
    /// A group of `world` ranks (2 to 16) of which this is `me`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when there can be no such group or no such rank of it.
    pub fn new(bootstrap: Arc<dyn Bootstrap>, me: Rank, world: u32) -> Result<Self> {
        Self::of_members(bootstrap, me, (0..u64::from(world)).collect())
    }

    /// A group whose members have names in the caller's world, such as global ranks. The order is kept as it is, never
    /// sorted; pool creation checks that it is the same on all ranks.
    ///
    /// # Errors
    ///
    /// That of [`new`](Self::new), also when a name occurs twice.
    pub fn of_members(bootstrap: Arc<dyn Bootstrap>, me: Rank, members: Vec<u64>) -> Result<Self> {
        let refuse = |what: String| Error::Argument {
            operation: "Group::new",
            what,
        };
        let world = members.len();
        if !(2..=MAX_WORLD).contains(&world) {
            return Err(refuse(format!(
                "a group of {world}; it must have 2 to {MAX_WORLD} ranks"
            )));
        }
        if me.index() >= world {
            return Err(refuse(format!("{me} in a group of {world}")));
        }
        for (index, member) in members.iter().enumerate() {
            if members[..index].contains(member) {
                return Err(refuse(format!("member {member} occurs twice")));
            }
        }
        Ok(Self {
            me,
            members: members.into(),
            bootstrap,
            timeout: DEFAULT_TIMEOUT,
            turn: Arc::default(),
            pool: 0,
            number: None,
            remains: Arc::default(),
        })
    }

    /// Changes how long a rank waits for the others in one exchange of a collective host call (60 s). A year is the
    /// longest. All ranks need the same, since each has parts of its work end early enough for the others to be told of it;
    /// pools and subgroups refuse what differs.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// The same group for the exchanges of one pool, whose number all ranks have agreed on. Ranks in the same step of
    /// different pools then find out.
    pub(crate) fn for_pool(mut self, pool: u64) -> Self {
        self.pool = pool;
        self
    }

    /// The same group for what is said of one pool, which has this number in this process. Ranks may number it differently.
    pub(crate) fn speaking_of(mut self, number: u64) -> Self {
        self.number = Some(number);
        self
    }

    /// Whose the lines of its log are.
    pub(crate) fn speaker(&self) -> Speaker {
        Speaker {
            rank: self.me,
            pool: self.number,
        }
    }

    /// Which of the group's pools the exchanges are about; 0 before there is one.
    pub(crate) fn pool(&self) -> u64 {
        self.pool
    }

    /// What failed creations have left on this rank.
    pub(crate) fn remains(&self) -> &Remains {
        &self.remains
    }

    /// This rank.
    pub fn me(&self) -> Rank {
        self.me
    }

    /// Number of ranks.
    pub fn world(&self) -> u32 {
        self.members.len() as u32
    }

    /// The members' names in the caller's world, in rank order.
    pub fn members(&self) -> &[u64] {
        &self.members
    }

    /// The name of a rank in the caller's world, such as that of one which an error or a fault report names by its place
    /// here.
    pub fn member(&self, rank: Rank) -> Option<u64> {
        self.members.get(rank.index()).copied()
    }

    /// How long a rank waits for the others.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How the ranks reach one another. Exchanges of the caller's own need the same order on all ranks as the group's.
    pub fn bootstrap(&self) -> &Arc<dyn Bootstrap> {
        &self.bootstrap
    }

    /// Every other rank, beginning with the one after this: ranks that walk their peers do not all begin at the same.
    pub fn peers(&self) -> impl Iterator<Item = PeerIndex> + use<> {
        let (me, world) = (self.me.0, self.world());
        (1..world).map(move |step| PeerIndex(Rank((me + step) % world)))
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("me", &self.me)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(me: u32, members: &[u64]) -> Result<Group> {
        let bootstrap = ThreadBootstrap::world(members.len() as u32).pop();
        let bootstrap = Arc::new(bootstrap.unwrap_or_else(|| ThreadBootstrap::world(1).remove(0)));
        Group::of_members(bootstrap, Rank(me), members.to_vec())
    }

    #[test]
    fn peers_begin_after_me_and_leave_me_out() {
        let ranks = |me, world: u64| -> Vec<u32> {
            let members: Vec<u64> = (0..world).collect();
            let group = group(me, &members).unwrap();
            group.peers().map(|peer| peer.rank().0).collect()
        };
        assert_eq!(ranks(0, 4), [1, 2, 3]);
        assert_eq!(ranks(2, 4), [3, 0, 1]);
        assert_eq!(ranks(1, 2), [0]);
    }

    #[test]
    fn the_callers_order_is_kept() {
        let group = group(1, &[7, 2, 9]).unwrap();
        assert_eq!(group.members(), [7, 2, 9]);
        assert_eq!(group.member(Rank(2)), Some(9));
        assert_eq!(group.member(Rank(3)), None);
    }

    #[test]
    fn worlds_and_ranks_out_of_range_are_refused() {
        for (me, members) in [(0, vec![0]), (2, vec![0, 1]), (0, (0..17).collect())] {
            assert!(matches!(group(me, &members), Err(Error::Argument { .. })));
        }
        let twice = group(0, &[3, 4, 3]).unwrap_err().to_string();
        assert!(twice.contains("member 3 occurs twice"), "{twice}");
        assert!(group(15, &(0..16).collect::<Vec<_>>()).is_ok());
    }
}
