//! LSE-weighted reduce-scatter of partial attention outputs.

use crate::channel::Channel;
use crate::driver::{DevicePtr, Stream};
use crate::error::Result;
use crate::layout::{DType, Header, OperationKind, ReduceParams};

use super::enqueue::enqueue;
use super::geometry::{PACK_BYTES, ReduceGeometry, reciprocal};
use super::plan::{
    Entry, Extent, Limits, Operation, Params, Plan, check_apart, check_pointer, row_bytes,
};

/// Base of the logarithm in a log-sum-exp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LseBase {
    /// Natural: `ln Σ exp(score)`.
    E,
    /// Binary: `log2 Σ exp(score)`.
    Two,
}

/// Where the row of a head and a token lies. Rows themselves are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `[batch, heads, head_dim]`.
    TokenMajor,
    /// `[heads, capacity, head_dim]`: room for `capacity` tokens a head, of which the first `batch` are meant.
    HeadMajor {
        /// Tokens that there is room for; at least the batch.
        capacity: u32,
    },
}

/// Combines partial attention outputs over disjoint shards of the keys, and scatters the heads.
///
/// Rank s has, for every token and head, an output `o_s` and the log-sum-exp `l_s` of its scores. With `m = max l_s` and
/// `w_s = exp(l_s − m)` (or `2^(l_s − m)`), the result is `Σ w_s o_s / Σ w_s` in 32-bit floats, summed in rank order and
/// rounded once. A rank whose log-sum-exp is NaN or infinite has an empty shard and counts for nothing, whatever its output;
/// with all shards empty the result is zero. Rank r gets the heads from `r × total_heads / world` on.
#[derive(Debug, Clone, Copy)]
pub struct LseReduceScatter {
    /// Partial outputs of all heads, `input_layout`, aligned to 16 bytes.
    pub input: DevicePtr,
    /// Their log-sum-exp, f32, contiguous `[batch, total_heads]`, aligned to 4 bytes.
    pub lse: DevicePtr,
    /// Combined outputs of this rank's heads, `output_layout`, aligned to 16 bytes, apart from both inputs.
    pub output: DevicePtr,
    /// Tokens; 1 to the contract's `max_batch`.
    pub batch: u32,
    /// Element type: f32, f16 or bf16.
    pub dtype: DType,
    /// Elements of a head; `None`: the contract's `value_head_dim`. A row is a multiple of 16 bytes.
    pub head_dim: Option<u32>,
    /// Base of `lse`.
    pub base: LseBase,
    /// Where the input's rows lie.
    pub input_layout: Layout,
    /// Where the output's rows lie.
    pub output_layout: Layout,
}

/// Bytes from one token, and from one head, to the next, and from the first byte to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Strides {
    token: u64,
    head: u64,
    extent: u64,
}

impl Layout {
    fn strides(self, name: &str, batch: u32, heads: u32, row: u64) -> Result<Strides, String> {
        let (token, head) = match self {
            Self::TokenMajor => (u64::from(heads).checked_mul(row), Some(row)),
            Self::HeadMajor { capacity } if capacity < batch => {
                return Err(format!(
                    "{name} has room for {capacity} tokens a head, batch is {batch}"
                ));
            }
            Self::HeadMajor { capacity } => (Some(row), u64::from(capacity).checked_mul(row)),
        };
        let too_large = || format!("{name} does not fit the address space");
        let (token, head) = token.zip(head).ok_or_else(too_large)?;
        let tokens = u64::from(batch - 1).checked_mul(token);
        let rows = u64::from(heads - 1).checked_mul(head).zip(tokens);
        let extent = rows
            .and_then(|(heads, tokens)| heads.checked_add(tokens))
            .and_then(|last| last.checked_add(row));
        Ok(Strides {
            token,
            head,
            extent: extent.ok_or_else(too_large)?,
        })
    }
}

impl Params for ReduceParams {
    fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }
}

impl LseReduceScatter {
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

impl Operation for LseReduceScatter {
    const KIND: OperationKind = OperationKind::LseReduceScatter;
    type Params = ReduceParams;

    fn plan(&self, limits: &Limits, header: Header) -> Result<Plan<ReduceParams>, String> {
        if !matches!(self.dtype, DType::F32 | DType::F16 | DType::Bf16) {
            return Err(format!(
                "dtype is {:?}; weights apply to F32, F16 and Bf16 only",
                self.dtype
            ));
        }
        limits.check_batch(self.batch)?;
        let dim = self.head_dim.unwrap_or(limits.value_head_dim);
        let row = row_bytes(dim, self.dtype)?;
        let geometry = ReduceGeometry::new(self.batch, limits.heads, row, limits.max_grid)?;
        limits.check_staging(limits.reduce_staging(geometry.part_bytes))?;
        let total = limits.heads * limits.world;
        let input = self.input_layout.strides("input", self.batch, total, row)?;
        let output = self
            .output_layout
            .strides("output", self.batch, limits.heads, row)?;
        check_pointer("input", self.input, PACK_BYTES)?;
        check_pointer("lse", self.lse, size_of::<f32>() as u64)?;
        check_pointer("output", self.output, PACK_BYTES)?;
        let extent = |name, start, bytes| Extent { name, start, bytes };
        let lse_bytes = u64::from(self.batch) * u64::from(total) * size_of::<f32>() as u64;
        check_apart(
            extent("output", self.output, output.extent),
            &[
                extent("input", self.input, input.extent),
                extent("lse", self.lse, lse_bytes),
            ],
        )?;
        let lse_base2 = u32::from(self.base == LseBase::Two);
        Ok(Plan {
            entry: Entry::Reduce(self.dtype),
            grid: geometry.grid,
            dtype: self.dtype,
            shape: [
                self.batch.into(),
                limits.heads.into(),
                dim.into(),
                geometry.row_packs.into(),
                geometry.row_threads_log2.into(),
                geometry.lse_offset,
                geometry.part_bytes,
                lse_base2.into(),
            ],
            params: ReduceParams {
                header,
                input: self.input.raw(),
                lse: self.lse.raw(),
                output: self.output.raw(),
                in_token_stride: input.token,
                in_head_stride: input.head,
                out_token_stride: output.token,
                out_head_stride: output.head,
                lse_offset: geometry.lse_offset,
                part_bytes: geometry.part_bytes,
                batch: self.batch,
                heads: limits.heads,
                row_packs: geometry.row_packs,
                row_threads_log2: geometry.row_threads_log2,
                lse_base2,
                reserved0: 0,
                heads_reciprocal: reciprocal(limits.heads),
                reserved1: 0,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{header, limits, pointer};
    use super::*;

    fn call() -> LseReduceScatter {
        LseReduceScatter {
            input: pointer(0x10_0000),
            lse: pointer(0x30_0004),
            output: pointer(0x40_0000),
            batch: 8,
            dtype: DType::Bf16,
            head_dim: None,
            base: LseBase::E,
            input_layout: Layout::TokenMajor,
            output_layout: Layout::TokenMajor,
        }
    }

    fn refused(call: LseReduceScatter, words: &str) {
        let said = call.plan(&limits(), header()).unwrap_err();
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn a_call_comes_to_the_rows_and_strides_of_its_shape() {
        // 4 ranks × 4 heads, rows of 512 bf16 = 1024 bytes.
        let plan = call().plan(&limits(), header()).unwrap();
        let p = plan.params;
        assert_eq!((plan.entry, plan.grid), (Entry::Reduce(DType::Bf16), 8));
        assert_eq!(
            (p.input, p.lse, p.output),
            (0x10_0000, 0x30_0004, 0x40_0000)
        );
        assert_eq!((p.in_token_stride, p.in_head_stride), (16 * 1024, 1024));
        assert_eq!((p.out_token_stride, p.out_head_stride), (4 * 1024, 1024));
        assert_eq!((p.lse_offset, p.part_bytes), (32768, 32896));
        assert_eq!(
            (p.batch, p.heads, p.row_packs, p.row_threads_log2),
            (8, 4, 64, 6)
        );
        assert_eq!(p.lse_base2, 0);
    }

    #[test]
    fn head_major_rows_are_strided_by_their_capacity_on_either_side() {
        let layout = Layout::HeadMajor { capacity: 11 };
        let both = LseReduceScatter {
            input_layout: layout,
            output_layout: layout,
            base: LseBase::Two,
            ..call()
        };
        let p = both.plan(&limits(), header()).unwrap().params;
        assert_eq!((p.in_token_stride, p.in_head_stride), (1024, 11 * 1024));
        assert_eq!((p.out_token_stride, p.out_head_stride), (1024, 11 * 1024));
        assert_eq!(p.lse_base2, 1);
        let strides = layout.strides("input", 8, 16, 1024).unwrap();
        assert_eq!(strides.extent, (15 * 11 + 8) * 1024);
        let packed = Layout::TokenMajor.strides("input", 8, 16, 1024).unwrap();
        assert_eq!(packed.extent, 8 * 16 * 1024);
    }

    #[test]
    fn what_the_contract_or_the_hardware_cannot_do_is_refused_with_values() {
        refused(
            LseReduceScatter {
                dtype: DType::F8E4M3,
                ..call()
            },
            "dtype is F8E4M3",
        );
        refused(
            LseReduceScatter { batch: 9, ..call() },
            "batch is 9, the contract's max_batch is 8",
        );
        refused(
            LseReduceScatter {
                dtype: DType::F32,
                ..call()
            },
            "stages 65664 bytes, the contract's slots hold 36864",
        );
        refused(
            LseReduceScatter {
                input_layout: Layout::HeadMajor { capacity: 7 },
                ..call()
            },
            "input has room for 7 tokens a head, batch is 8",
        );
        refused(
            LseReduceScatter {
                output_layout: Layout::HeadMajor { capacity: 7 },
                ..call()
            },
            "output has room for 7 tokens",
        );
        refused(
            LseReduceScatter {
                input: pointer(0x10_0004),
                ..call()
            },
            "input at 0x100004 is not aligned to 16 bytes",
        );
        refused(
            LseReduceScatter {
                lse: pointer(0x30_0002),
                ..call()
            },
            "lse at 0x300002 is not aligned to 4",
        );
        refused(
            LseReduceScatter {
                output: pointer(0x40_0008),
                ..call()
            },
            "output at 0x400008 is not aligned to 16 bytes",
        );
        refused(
            LseReduceScatter {
                head_dim: Some(9),
                ..call()
            },
            "a row of 9 Bf16 elements has 18 bytes",
        );
        refused(
            LseReduceScatter {
                output: pointer(0x10_0000),
                ..call()
            },
            "overlaps input",
        );
        refused(
            LseReduceScatter {
                output: pointer(0x30_0000),
                ..call()
            },
            "overlaps lse",
        );
    }

    #[test]
    fn a_pull_stages_one_part_for_every_rank() {
        let mut pull = limits();
        pull.transport = crate::layout::Transport::Pull;
        pull.staging = 4 * 32896;
        assert!(call().plan(&pull, header()).is_ok());
        pull.staging -= 1;
        let said = call().plan(&pull, header()).unwrap_err();
        assert!(said.contains("stages 131584 bytes"), "{said}");
    }
}
