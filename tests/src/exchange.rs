//! One collective with its buffers on one rank.

use slabfence::Result;
use slabfence::channel::Channel;
use slabfence::collective::{AllGatherHeads, LseReduceScatter};
use slabfence::driver::{DeviceBuffer, Stream};

use crate::ranks::Member;
use crate::shape::{Kind, Shape, UNTOUCHED};

/// A collective with its buffers on one rank.
#[derive(Debug)]
pub struct Exchange {
    /// What it is.
    pub shape: Shape,
    /// Ranks.
    pub world: u32,
    /// This rank.
    pub rank: u32,
    /// Elements, then log-sum-exps.
    pub input: DeviceBuffer,
    /// The result.
    pub output: DeviceBuffer,
}

impl Exchange {
    /// Buffers for the collective.
    pub fn new(member: &Member, shape: Shape) -> Result<Self> {
        let (world, rank) = (member.group.world(), member.rank());
        let device = &member.device;
        let input = shape.input(world, rank, 0);
        let output = match shape.kind {
            Kind::Gather => input.len() * world as usize,
            Kind::Reduce(_, _, to) => shape.array(to, shape.heads),
        };
        let exchange = Self {
            shape,
            world,
            rank,
            input: DeviceBuffer::new(device, input.len())?,
            output: DeviceBuffer::new(device, output)?,
        };
        exchange.output.fill(UNTOUCHED)?;
        Ok(exchange)
    }

    /// Writes the input of `operation` and clears the output. Waits.
    pub fn supply(&self, operation: u32) -> Result<()> {
        let input = self.shape.input(self.world, self.rank, operation);
        self.input.write(0, &input)?;
        self.output.fill(UNTOUCHED)
    }

    /// Enqueues the collective.
    ///
    /// # Panics
    ///
    /// When the input wraps around the address space.
    pub fn enqueue(&self, channel: &Channel, stream: &Stream) -> Result<()> {
        let Shape {
            kind,
            dtype,
            batch,
            heads,
            dim,
            ..
        } = self.shape;
        let (input, output) = (self.input.ptr(), self.output.ptr());
        match kind {
            Kind::Gather => {
                let call = AllGatherHeads {
                    input,
                    output,
                    batch,
                    dtype,
                    head_dim: Some(dim),
                };
                // SAFETY: the buffers are as large as the call says, and the tests keep them until the stream is at rest.
                unsafe { call.enqueue(channel, stream) }
            }
            Kind::Reduce(base, input_layout, output_layout) => {
                let lse = self.shape.array(input_layout, heads * self.world) as u64;
                let call = LseReduceScatter {
                    input,
                    lse: input.offset(lse).expect("an address inside the input"),
                    output,
                    batch,
                    dtype,
                    head_dim: Some(dim),
                    base,
                    input_layout,
                    output_layout,
                };
                // SAFETY: as above.
                unsafe { call.enqueue(channel, stream) }
            }
        }
    }

    /// The output's bytes. Nothing that writes them may be running.
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.output.len()];
        self.output.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Compares an output with what `operation` must give.
    ///
    /// # Panics
    ///
    /// At the first difference, with its place and the operation, if any, that the bytes there are of.
    pub fn check(&self, operation: u32, got: &[u8]) {
        let wanted = self.shape.expected(self.world, self.rank, operation);
        assert_eq!(got.len(), wanted.len());
        if got == wanted {
            return;
        }
        let wrong = got.iter().zip(&wanted).filter(|(a, b)| a != b).count();
        let at = got
            .iter()
            .zip(&wanted)
            .position(|(a, b)| a != b)
            .unwrap_or(0)
            & !15;
        let end = (at + 16).min(got.len());
        let nearby = operation.saturating_sub(64)..operation.saturating_add(64);
        let other = nearby.into_iter().find(|&other| {
            self.shape.expected(self.world, self.rank, other)[at..end] == got[at..end]
        });
        panic!(
            "rank {} of {}, operation {operation}, {:?}: {wrong} of {} bytes are wrong, the first at {at}: {:02x?}, not {:02x?}; \
             those of operation: {other:?}",
            self.rank,
            self.world,
            self.shape,
            got.len(),
            &got[at..end],
            &wanted[at..end],
        );
    }
}
