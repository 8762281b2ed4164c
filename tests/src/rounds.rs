//! Many operations queued without waiting: every one has its own input and its own copy of the output in page-locked
//! memory, so that each is checked, and no host call comes between them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use slabfence::Result;
use slabfence::driver::{PinnedBuffer, Stream};

use crate::exchange::Exchange;
use crate::ranks::Member;
use crate::shape::Shape;

/// Collectives that are executed in rounds, each with a fresh input in every round.
#[derive(Debug)]
pub struct Rounds {
    /// The collectives, in the order of their shapes.
    pub exchanges: Vec<Exchange>,
    rounds: u32,
    inputs: PinnedBuffer,
    outputs: PinnedBuffer,
    collected: RefCell<Vec<(u32, usize)>>,
    /// What outputs must be: a schedule after another is checked against the same.
    wanted: RefCell<BTreeMap<(u32, usize), Vec<u8>>>,
}

impl Rounds {
    /// Buffers for `rounds` rounds of these collectives.
    pub fn new(member: &Member, shapes: &[Shape], rounds: u32) -> Result<Self> {
        let exchanges = shapes
            .iter()
            .map(|&shape| Exchange::new(member, shape))
            .collect::<Result<Vec<_>>>()?;
        let total = |len: fn(&Exchange) -> usize| {
            rounds as usize * exchanges.iter().map(len).sum::<usize>()
        };
        let this = Self {
            inputs: PinnedBuffer::new(&member.device, total(|e| e.input.len()))?,
            outputs: PinnedBuffer::new(&member.device, total(|e| e.output.len()))?,
            exchanges,
            rounds,
            collected: RefCell::default(),
            wanted: RefCell::default(),
        };
        for round in 0..rounds {
            for (index, exchange) in this.exchanges.iter().enumerate() {
                let operation = this.operation(round, index);
                let input = exchange
                    .shape
                    .input(exchange.world, exchange.rank, operation);
                this.inputs
                    .write(this.at(round, index, |e| e.input.len()), &input)?;
            }
        }
        Ok(this)
    }

    /// Number of an execution among all: no two have the same inputs.
    fn operation(&self, round: u32, index: usize) -> u32 {
        round * self.exchanges.len() as u32 + index as u32
    }

    fn at(&self, round: u32, index: usize, len: fn(&Exchange) -> usize) -> usize {
        assert!(round < self.rounds, "round {round} of {}", self.rounds);
        let lens = self.exchanges.iter().map(len);
        let (all, before): (usize, usize) = (lens.clone().sum(), lens.take(index).sum());
        round as usize * all + before
    }

    /// Enqueues the copy of a round's input of exchange `index`.
    pub fn supply(&self, round: u32, index: usize, stream: &Stream) -> Result<()> {
        let exchange = &self.exchanges[index];
        let (at, bytes) = (
            self.at(round, index, |e| e.input.len()),
            exchange.input.len(),
        );
        // SAFETY: the tests keep this value until the stream is at rest; the copy is in no graph.
        unsafe {
            exchange
                .input
                .write_async(0, &self.inputs, at, bytes, stream)
        }
    }

    /// Enqueues the copy of exchange `index`'s output to the round's place.
    pub fn collect(&self, round: u32, index: usize, stream: &Stream) -> Result<()> {
        let exchange = &self.exchanges[index];
        let (at, bytes) = (
            self.at(round, index, |e| e.output.len()),
            exchange.output.len(),
        );
        self.collected.borrow_mut().push((round, index));
        // SAFETY: as for `supply`.
        unsafe {
            exchange
                .output
                .read_async(0, &self.outputs, at, bytes, stream)
        }
    }

    /// Forgets the outputs that were collected so far.
    pub fn forget(&mut self) {
        self.collected.get_mut().clear();
    }

    /// Compares every output that was collected since the last check with what it must be, and says which is wrong first.
    pub fn compare(&self) -> std::result::Result<(), String> {
        let mut known = self.wanted.borrow_mut();
        for &(round, index) in self.collected.borrow().iter() {
            let exchange = &self.exchanges[index];
            let mut got = vec![0; exchange.output.len()];
            let at = self.at(round, index, |e| e.output.len());
            let read = self.outputs.read(at, &mut got);
            read.map_err(|error| error.to_string())?;
            let operation = self.operation(round, index);
            let (world, rank) = (exchange.world, exchange.rank);
            let wanted = known
                .entry((round, index))
                .or_insert_with(|| exchange.shape.expected(world, rank, operation));
            if let Some(at) = (0..got.len()).find(|&at| got[at] != wanted[at]) {
                return Err(format!(
                    "rank {rank} of {world}, operation {operation}, {:?}: byte {at} is {:#04x}, not {:#04x}",
                    exchange.shape, got[at], wanted[at]
                ));
            }
        }
        Ok(())
    }

    /// Checks every output that was collected since the last check, and gives their number. The stream is at rest.
    ///
    /// # Panics
    ///
    /// At the first wrong output.
    pub fn check(&self) -> Result<usize> {
        let collected = self.collected.take();
        for &(round, index) in &collected {
            let exchange = &self.exchanges[index];
            let mut got = vec![0; exchange.output.len()];
            self.outputs
                .read(self.at(round, index, |e| e.output.len()), &mut got)?;
            exchange.check(self.operation(round, index), &got);
        }
        Ok(collected.len())
    }
}
