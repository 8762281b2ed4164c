//! All-gather of attention heads.

use crate::channel::Channel;
use crate::driver::{DevicePtr, Stream};
use crate::error::Result;
use crate::layout::{DType, GatherParams, Header, OperationKind};

use super::enqueue::enqueue;
use super::geometry::{GatherGeometry, PACK_BYTES};
use super::plan::{
    Entry, Extent, Limits, Operation, Params, Plan, check_apart, check_pointer, row_bytes,
};

/// Gathers every rank's heads: `[batch, total_heads / world, head_dim]` on each rank becomes
/// `[batch, total_heads, head_dim]` on all, the heads of rank r beginning at head `r × total_heads / world`.
///
/// Bytes are copied as they are, whatever they mean. Both arrays are contiguous, aligned to 16 bytes, and apart.
#[derive(Debug, Clone, Copy)]
pub struct AllGatherHeads {
    /// This rank's heads.
    pub input: DevicePtr,
    /// All heads.
    pub output: DevicePtr,
    /// Tokens; 1 to the contract's `max_batch`.
    pub batch: u32,
    /// Element type. Only its size matters.
    pub dtype: DType,
    /// Elements of a head; `None`: the contract's `query_head_dim`. A row is a multiple of 16 bytes.
    pub head_dim: Option<u32>,
}

impl Params for GatherParams {
    fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }
}

impl AllGatherHeads {
    /// Enqueues the operation on `stream`, or records it into the graph that the stream captures: one kernel node. Every
    /// rank does the same, in the same order among the operations of the channel.
    ///
    /// Inside a capture scope of this thread the operation goes to the scope's channel.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) for what the contract does not allow,
    /// [`Error::Refused`](crate::Error::Refused) for a stream that the capture rules do not allow,
    /// [`Error::Fault`](crate::Error::Fault) when an earlier operation of the channel failed.
    ///
    /// # Safety
    ///
    /// The addresses are of live memory of the stated shapes, in reach of the channel's device, until the operation, or
    /// every execution of the graph, has ended; nothing else writes the inputs or touches the output meanwhile.
    #[allow(unsafe_code, reason = "the caller's addresses cannot be checked")]
    pub unsafe fn enqueue(&self, channel: &Channel, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's contract is the same.
        unsafe { enqueue(self, channel, stream) }
    }
}

impl Operation for AllGatherHeads {
    const KIND: OperationKind = OperationKind::AllGatherHeads;
    type Params = GatherParams;

    fn plan(&self, limits: &Limits, header: Header) -> Result<Plan<GatherParams>, String> {
        limits.check_batch(self.batch)?;
        let dim = self.head_dim.unwrap_or(limits.query_head_dim);
        let row = row_bytes(dim, self.dtype)?;
        let geometry = GatherGeometry::new(self.batch, limits.heads, row, limits.max_grid)?;
        limits.check_staging(geometry.staged_bytes())?;
        check_pointer("input", self.input, PACK_BYTES)?;
        check_pointer("output", self.output, PACK_BYTES)?;
        let input = Extent {
            name: "input",
            start: self.input,
            bytes: geometry.staged_bytes(),
        };
        let output = Extent {
            name: "output",
            start: self.output,
            bytes: geometry.staged_bytes() * u64::from(limits.world),
        };
        check_apart(output, &[input])?;
        Ok(Plan {
            entry: Entry::Gather,
            grid: geometry.grid,
            dtype: self.dtype,
            shape: [
                self.batch.into(),
                limits.heads.into(),
                dim.into(),
                geometry.packs.into(),
                geometry.token_packs.into(),
                0,
                0,
                0,
            ],
            params: GatherParams {
                header,
                input: self.input.raw(),
                output: self.output.raw(),
                packs: geometry.packs,
                token_packs: geometry.token_packs,
                reserved: 0,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{header, limits, pointer};
    use super::*;

    fn call() -> AllGatherHeads {
        AllGatherHeads {
            input: pointer(0x10_0000),
            output: pointer(0x20_0000),
            batch: 8,
            dtype: DType::Bf16,
            head_dim: None,
        }
    }

    fn refused(call: AllGatherHeads, words: &str) {
        let said = call.plan(&limits(), header()).unwrap_err();
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn a_call_comes_to_the_packs_of_its_shape() {
        let plan = call().plan(&limits(), header()).unwrap();
        assert_eq!(
            (plan.entry, plan.grid, plan.dtype),
            (Entry::Gather, 9, DType::Bf16)
        );
        assert_eq!(
            (plan.params.input, plan.params.output),
            (0x10_0000, 0x20_0000)
        );
        assert_eq!((plan.params.packs, plan.params.token_packs), (2304, 288));
        let bytes = AllGatherHeads {
            dtype: DType::F8E4M3,
            head_dim: Some(64),
            ..call()
        };
        let plan = bytes.plan(&limits(), header()).unwrap();
        assert_eq!(
            (plan.params.packs, plan.params.token_packs, plan.grid),
            (128, 16, 1)
        );
    }

    #[test]
    fn what_the_contract_or_the_hardware_cannot_do_is_refused_with_values() {
        refused(AllGatherHeads { batch: 0, ..call() }, "batch is 0");
        refused(
            AllGatherHeads { batch: 9, ..call() },
            "batch is 9, the contract's max_batch is 8",
        );
        refused(
            AllGatherHeads {
                dtype: DType::F32,
                ..call()
            },
            "stages 73728 bytes, the contract's slots hold 36864",
        );
        refused(
            AllGatherHeads {
                head_dim: Some(4),
                ..call()
            },
            "a row of 4 Bf16 elements has 8 bytes",
        );
        refused(
            AllGatherHeads {
                input: pointer(0),
                ..call()
            },
            "input is null",
        );
        refused(
            AllGatherHeads {
                input: pointer(0x10_0004),
                ..call()
            },
            "input at 0x100004 is not aligned to 16 bytes",
        );
        refused(
            AllGatherHeads {
                output: pointer(0x20_0008),
                ..call()
            },
            "output at 0x200008 is not aligned to 16 bytes",
        );
    }

    #[test]
    fn an_output_over_the_input_is_refused_to_the_byte() {
        // Input 36864 bytes, output four times that.
        refused(
            AllGatherHeads {
                output: pointer(0x10_0000 + 36848),
                ..call()
            },
            "overlaps",
        );
        refused(
            AllGatherHeads {
                output: pointer(0x10_0000 - 147456 + 16),
                ..call()
            },
            "overlaps",
        );
        for apart in [0x10_0000 + 36864, 0x10_0000 - 147456] {
            let call = AllGatherHeads {
                output: pointer(apart),
                ..call()
            };
            assert!(call.plan(&limits(), header()).is_ok());
        }
        refused(
            AllGatherHeads {
                output: pointer(u64::MAX - 15),
                ..call()
            },
            "address space",
        );
        refused(
            AllGatherHeads {
                input: pointer(u64::MAX - 15),
                ..call()
            },
            "address space",
        );
    }
}
