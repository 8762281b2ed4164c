//! What a child could do with its parent's pools and groups.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use slabfence::graph::Dump;
use slabfence::group::{Bootstrap, Group, Rank, ThreadBootstrap, UnixBootstrap};
use slabfence::{Error, status};

use super::{Attempt, Stage, no};

impl Stage<'_> {
    pub(super) fn pools(&self) -> Vec<Attempt> {
        let (pool, channel, stream) = (self.pool, self.channel, &self.stream);
        let device = &self.member.device;
        vec![
            ("Gather::fill", self.gather.fill(0, 7)),
            (
                "AllGatherHeads::enqueue",
                self.gather.enqueue(channel, stream),
            ),
            (
                "LseReduceScatter::enqueue",
                self.reduction.enqueue(channel, stream),
            ),
            ("Pool::create", no(self.member.pool(self.contract))),
            ("Pool::channel", no(pool.channel("decode"))),
            ("Pool::capture", no(pool.capture("decode", stream))),
            (
                "Pool::capture_labelled",
                no(pool.capture_labelled("decode", "label", stream)),
            ),
            ("Pool::fault_event", no(pool.fault_event())),
            ("Pool::health", no(pool.health())),
            ("Pool::faults", no(pool.faults())),
            ("Pool::warnings", no(pool.warnings())),
            ("Pool::ranges", no(pool.ranges())),
            ("Pool::status", no(pool.status())),
            (
                "Pool::status_within",
                no(pool.status_within(Duration::from_secs(1))),
            ),
            ("Pool::prepare", pool.prepare(&["x"])),
            ("Pool::retire", pool.retire(&["decode"])),
            ("Pool::checkpoint", no(pool.checkpoint())),
            ("Pool::rollback", pool.rollback(&self.checkpoint)),
            ("Pool::reset", pool.reset()),
            ("Pool::reset_above", pool.reset_above(1)),
            ("Pool::close", pool.close()),
            ("Pool::abandon", pool.abandon().map(|_| ())),
            ("Channel::verdict", no(channel.verdict())),
            ("Channel::fault", no(channel.fault())),
            ("Channel::warning", no(channel.warning())),
            ("Dump::of", no(Dump::of(device, &self.graph, &[pool]))),
        ]
    }

    pub(super) fn tickets(&self) -> Vec<Attempt> {
        let ticket = self.left.ticket();
        vec![
            ("Ticket::retry", ticket.retry()),
            ("Ticket::abandon", no(ticket.abandon())),
        ]
    }

    pub(super) fn groups(&self) -> Vec<Attempt> {
        let soon = Instant::now() + Duration::from_secs(1);
        let exchange = |bootstrap: &dyn Bootstrap| {
            let parts = bootstrap.all_gather(b"child", soon);
            no(parts.map_err(Error::from))
        };
        let group = |bootstrap| Group::new(bootstrap, Rank(0), 2);
        let new = Arc::new(ThreadBootstrap::world(2).remove(0));
        let join = UnixBootstrap::join(Path::new("/"), "child", Rank(0), 2, soon);
        vec![
            ("Group::verdict", self.member.group.verdict("x", &Ok(()))),
            (
                "Group::subgroup",
                no(self.member.group.subgroup(&[Rank(0), Rank(1)])),
            ),
            (
                "a new group",
                group(new).and_then(|group| group.verdict("x", &Ok(()))),
            ),
            ("UnixBootstrap::join", no(join)),
            ("status::serve", no(status::serve(Path::new("/")))),
            ("the bootstrap", exchange(&*self.member.bootstrap)),
            ("ThreadBootstrap", exchange(&self.threads[0])),
        ]
    }
}
