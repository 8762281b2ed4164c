//! What a rank looks at.

use std::time::Duration;

use slabfence::channel::ChannelStatus;
use slabfence::layout::{Cause, split_verdict};

use crate::exchange::Exchange;

use super::{DECODE, Seat, Terms, Work, soon};

/// How long a look at a device that other operations occupy may take.
const LOOK: Duration = Duration::from_secs(5);

impl Seat<'_> {
    fn outputs(&self, work: Work) -> impl Iterator<Item = (u32, &Exchange)> {
        let graph = 1..1 + self.graph.exchanges.len();
        let places = match work {
            Work::Eager => 0..1,
            Work::Replay | Work::Again => graph,
        };
        self.numbered().skip(places.start).take(places.len())
    }

    /// Compares the outputs with what they must be, bit by bit.
    pub fn check_right(&self, work: Work) {
        for (operation, exchange) in self.outputs(work) {
            exchange.check(operation, &exchange.read().unwrap());
        }
    }

    /// Holds that every byte of the outputs is 0xff.
    pub fn check_failed(&self, work: Work) {
        for (operation, exchange) in self.outputs(work) {
            let bytes = exchange.read().unwrap();
            let other = bytes.iter().position(|&byte| byte != 0xff);
            assert_eq!(other, None, "{self:?}, operation {operation}, {work:?}");
        }
    }

    /// What the device tells of [`DECODE`] beside whatever runs there.
    pub fn status(&self) -> ChannelStatus {
        let status = self.pool.status_within(LOOK).unwrap();
        assert_eq!(status.unanswered, None, "{self:?}");
        let mut channels = status.channels.into_iter();
        channels.find(|channel| channel.name == DECODE).unwrap()
    }

    /// Waits until an operation of [`DECODE`] runs: all of it has begun, and it waits for the others.
    pub fn runs(&self) {
        soon("running", || self.status().running == Some(true));
    }

    /// Epoch of the next operation on [`DECODE`].
    pub fn epoch(&self) -> u64 {
        self.status().epoch.unwrap()
    }

    /// The verdict of [`DECODE`], zero where there is none. Nothing may be waiting.
    pub fn verdict(&self) -> u64 {
        let verdict = self.channel.verdict().unwrap().raw();
        let to = self.words.ptr().raw();
        self.probe.enqueue_copy(to, verdict).unwrap();
        self.rest();
        self.words.load(0).unwrap()
    }

    /// The verdict that the graph has copied at its end.
    pub fn copied(&self) -> u64 {
        self.words.load(8).unwrap()
    }

    /// Holds that the verdict is this one.
    pub fn check_verdict(&self, cause: Cause, epoch: u64) {
        assert_eq!(
            split_verdict(self.verdict()),
            Some((cause, epoch)),
            "{self:?}"
        );
    }

    /// Says how long something took, for who reads what a run on hardware prints.
    pub fn took(&self, what: &str, time: Duration) {
        let Terms { transport, .. } = self.terms;
        println!(
            "rank {}, {transport:?}: {what} after {time:.1?}",
            self.rank()
        );
    }
}
