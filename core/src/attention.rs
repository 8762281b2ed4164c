//! Reference decode attention over one shard of the keys: what a runtime has a tuned kernel for. No collective.

use crate::channel::kernels::{element, load_image};
use crate::collective::LseBase;
use crate::driver::{Device, DevicePtr, Kernel, Stream};
use crate::error::{Error, Result};
use crate::layout::{ABI, AttentionParams, DType, MAGIC, OperationKind, Preamble};

/// Threads of a CTA; one CTA a token and head.
const BLOCK_THREADS: u32 = 128;
/// Largest key or value dimension: what a CTA keeps on chip.
const MAX_DIM: u32 = 1024;
/// Bytes of a vector load of keys.
const PACK_BYTES: u64 = 16;
const OPERATION: &str = "attention";

/// The attention kernels, loaded on one device.
#[derive(Debug, Clone)]
pub struct AttentionKernels {
    f32: Kernel,
    f16: Kernel,
    bf16: Kernel,
}

impl AttentionKernels {
    /// Loads them.
    pub fn load(device: &Device) -> Result<Self> {
        let module = load_image(device, "attention")?;
        let kernel = |dtype| module.kernel(&format!("sf_attention_{}", element(dtype)));
        Ok(Self {
            f32: kernel(DType::F32)?,
            f16: kernel(DType::F16)?,
            bf16: kernel(DType::Bf16)?,
        })
    }

    fn get(&self, dtype: DType) -> Option<&Kernel> {
        match dtype {
            DType::F32 => Some(&self.f32),
            DType::F16 => Some(&self.f16),
            DType::Bf16 => Some(&self.bf16),
            _ => None,
        }
    }
}

/// Attention of `batch × heads` queries over `keys` keys: `softmax(scale · q·k) · v`, and the log-sum-exp of the scaled
/// scores in the wanted base, so that [`LseReduceScatter`](crate::collective::LseReduceScatter) can combine shards.
///
/// All tokens of the batch see the same keys. With no keys the output is zero and the log-sum-exp minus infinity. Strides
/// count elements.
#[derive(Debug, Clone, Copy)]
pub struct Attention {
    /// Queries `[batch, heads, key_dim]`, contiguous.
    pub query: DevicePtr,
    /// Keys: key j of head h at `j × key_stride + h × key_head_stride`. Rows aligned to 16 bytes.
    pub key: DevicePtr,
    /// Values, addressed likewise with the value strides.
    pub value: DevicePtr,
    /// Outputs `[batch, heads, value_dim]`, contiguous.
    pub output: DevicePtr,
    /// Log-sum-exp `[batch, heads]`, f32.
    pub lse: DevicePtr,
    /// From one key to the next.
    pub key_stride: u64,
    /// From one head's keys to the next head's; 0: all heads share them.
    pub key_head_stride: u64,
    /// From one value to the next.
    pub value_stride: u64,
    /// From one head's values to the next head's; 0: all heads share them.
    pub value_head_stride: u64,
    /// Tokens, at least one.
    pub batch: u32,
    /// Heads, at least one.
    pub heads: u32,
    /// Keys of this shard; may be none.
    pub keys: u32,
    /// Elements of a query and of a key, up to 1024; a row is a multiple of 16 bytes.
    pub key_dim: u32,
    /// Elements of a value, up to 1024.
    pub value_dim: u32,
    /// Factor of the scores, usually `1/√key_dim`.
    pub scale: f32,
    /// Base of the log-sum-exp. The weights are those of the natural softmax in either base.
    pub base: LseBase,
    /// Element type: f32, f16 or bf16.
    pub dtype: DType,
}

impl Attention {
    /// Enqueues the kernel on `stream`, or records it into the graph that the stream captures.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for shapes, types and alignments that the kernel does not handle.
    ///
    /// # Safety
    ///
    /// The addresses are of live memory of the stated shapes, in reach of the kernels' device, until the kernel, or every
    /// execution of the graph, has ended; so are `kernels`. Nothing else writes the inputs or touches the outputs
    /// meanwhile.
    #[allow(unsafe_code, reason = "the caller's addresses cannot be checked")]
    pub unsafe fn enqueue(&self, kernels: &AttentionKernels, stream: &Stream) -> Result<()> {
        let (grid, params) = self.plan().map_err(argument)?;
        let kernel = kernels.get(self.dtype).ok_or_else(|| {
            argument(format!(
                "dtype is {:?}; it must be F32, F16 or Bf16",
                self.dtype
            ))
        })?;
        // SAFETY: the addresses and the kernels' module live by the caller's contract; shapes and alignments are checked.
        unsafe { kernel.launch(stream, grid, BLOCK_THREADS, &params) }
    }

    fn plan(&self) -> Result<(u32, AttentionParams), String> {
        let bytes = self.dtype.bytes() as u64;
        for (name, value) in [("batch", self.batch), ("heads", self.heads)] {
            if value == 0 {
                return Err(format!("{name} is 0"));
            }
        }
        for (name, dim) in [("key_dim", self.key_dim), ("value_dim", self.value_dim)] {
            if dim == 0 || dim > MAX_DIM {
                return Err(format!("{name} is {dim}; it must be 1 to {MAX_DIM}"));
            }
        }
        for (name, elements) in [
            ("key_dim", self.key_dim.into()),
            ("key_stride", self.key_stride),
            ("key_head_stride", self.key_head_stride),
        ] {
            if elements % (PACK_BYTES / bytes) != 0 {
                return Err(format!(
                    "{name} is {elements} elements of {bytes} bytes, not a multiple of {PACK_BYTES} bytes"
                ));
            }
        }
        let mut pointers = vec![
            ("query", self.query, bytes),
            ("output", self.output, bytes),
            ("lse", self.lse, 4),
        ];
        if self.keys > 0 {
            pointers.extend([("key", self.key, PACK_BYTES), ("value", self.value, bytes)]);
        }
        for (name, pointer, alignment) in pointers {
            if pointer.is_null() || !pointer.is_aligned_to(alignment) {
                return Err(format!(
                    "{name} at {pointer} is null or not aligned to {alignment} bytes"
                ));
            }
        }
        let grid = self.batch.checked_mul(self.heads);
        let grid = grid.filter(|&grid| grid <= i32::MAX as u32);
        let grid = grid.ok_or("batch × heads exceeds 2^31 − 1 CTAs")?;
        Ok((grid, self.params()))
    }

    fn params(&self) -> AttentionParams {
        AttentionParams {
            preamble: Preamble {
                magic: MAGIC,
                abi: ABI,
                operation: OperationKind::Attention.code(),
            },
            query: self.query.raw(),
            key: self.key.raw(),
            value: self.value.raw(),
            output: self.output.raw(),
            lse: self.lse.raw(),
            key_stride: self.key_stride,
            key_head_stride: self.key_head_stride,
            value_stride: self.value_stride,
            value_head_stride: self.value_head_stride,
            batch: self.batch,
            heads: self.heads,
            keys: self.keys,
            key_dim: self.key_dim,
            value_dim: self.value_dim,
            // The kernel works with powers of two: exp(x) = 2^(x log2 e).
            scale_log2: self.scale * std::f32::consts::LOG2_E,
            lse_factor: match self.base {
                LseBase::E => std::f32::consts::LN_2,
                LseBase::Two => 1.0,
            },
            reserved0: 0,
            reserved1: [0; 4],
        }
    }
}

fn argument(what: String) -> Error {
    Error::Argument {
        operation: OPERATION,
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Attention {
        let at = DevicePtr::from_raw;
        Attention {
            query: at(0x1000),
            key: at(0x2000),
            value: at(0x3002),
            output: at(0x4000),
            lse: at(0x5000),
            key_stride: 64,
            key_head_stride: 0,
            value_stride: 33,
            value_head_stride: 5,
            batch: 3,
            heads: 4,
            keys: 7,
            key_dim: 64,
            value_dim: 33,
            scale: 0.125,
            base: LseBase::E,
            dtype: DType::Bf16,
        }
    }

    fn refused(call: Attention, words: &str) {
        let said = call.plan().unwrap_err();
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn one_cta_a_token_and_head_with_scores_in_base_two() {
        let (grid, params) = call().plan().unwrap();
        assert_eq!(grid, 12);
        assert_eq!(params.scale_log2, 0.125 * std::f32::consts::LOG2_E);
        assert_eq!(params.lse_factor, std::f32::consts::LN_2);
        assert_eq!(params.preamble.operation, 64);
        let two = Attention {
            base: LseBase::Two,
            ..call()
        };
        let (_, params) = two.plan().unwrap();
        assert_eq!(params.scale_log2, 0.125 * std::f32::consts::LOG2_E);
        assert_eq!(params.lse_factor, 1.0);
    }

    #[test]
    fn what_the_kernel_does_not_handle_is_refused_by_name() {
        refused(Attention { heads: 0, ..call() }, "heads is 0");
        let dim = |key_dim| Attention { key_dim, ..call() };
        refused(dim(0), "key_dim is 0");
        refused(dim(1032), "key_dim is 1032; it must be 1 to 1024");
        refused(dim(12), "key_dim is 12 elements of 2 bytes");
        let stride = |key_stride| Attention {
            key_stride,
            ..call()
        };
        refused(stride(65), "key_stride is 65 elements");
        let key = |address| Attention {
            key: DevicePtr::from_raw(address),
            ..call()
        };
        refused(key(0x2008), "key at 0x2008 is null or not aligned to 16");
        let none = Attention { keys: 0, ..key(0) };
        assert!(none.plan().is_ok());
        let many = Attention {
            batch: 1 << 20,
            heads: 1 << 11,
            ..call()
        };
        refused(many, "CTAs");
    }
}
