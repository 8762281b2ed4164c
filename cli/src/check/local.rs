//! Kernels that take part in no protocol, on one rank: attention, whose results are compared with 64-bit floats, and the
//! reading of the clocks.

use slabfence::attention::{Attention, AttentionKernels};
use slabfence::collective::LseBase;
use slabfence::driver::{
    CaptureMode, Device, DeviceBuffer, Graph, GraphExec, Kernel, Module, Stream,
};
use slabfence::layout::{ABI, ClockParams, DType, MAGIC, OperationKind, Preamble};
use slabfence::{Error, Result};
use slabfence_emu::held::Looked;
use slabfence_tests::arithmetic::{narrow, widen};
use slabfence_tests::shape::Place;

use super::kernels::Op;
use crate::decode::reference::{Partial, Rows, attend};

/// How far a result in f32 may be from the right one, as a part of the larger of that and 1.
const ERROR: f64 = 1e-5;

/// What one rank does.
#[derive(Debug, Clone, Copy)]
pub enum Scene {
    /// Attention: a call, and a graph of two that is replayed.
    Attention(Shard),
    /// Two readings of the clocks.
    Clock,
}

/// Attention over one shard of keys.
#[derive(Debug, Clone, Copy)]
pub struct Shard {
    /// Stable name.
    name: &'static str,
    dtype: DType,
    base: LseBase,
    batch: u32,
    heads: u32,
    keys: u32,
    key_dim: u32,
    value_dim: u32,
    /// Whether all heads have the same keys and values.
    shared: bool,
}

/// More keys than a CTA takes at once, for each head.
const TILES: Shard = Shard {
    name: "f32-two-tiles",
    dtype: DType::F32,
    base: LseBase::E,
    batch: 1,
    heads: 2,
    keys: 131,
    key_dim: 8,
    value_dim: 9,
    shared: false,
};
/// More elements of a value than threads of a CTA, and keys that all heads share.
const WIDE: Shard = Shard {
    name: "f32-wide-values",
    base: LseBase::Two,
    batch: 2,
    keys: 5,
    value_dim: 133,
    shared: true,
    ..TILES
};
/// A shard without keys.
const EMPTY: Shard = Shard {
    name: "f32-no-keys",
    keys: 0,
    ..TILES
};

/// The same in another element type.
const fn of(name: &'static str, dtype: DType, shard: Shard) -> Scene {
    Scene::Attention(Shard {
        name,
        dtype,
        ..shard
    })
}

/// What is run of an operation; nothing for a collective.
pub fn scenes(op: Op) -> Vec<Scene> {
    match op {
        Op::Gather | Op::Reduce => Vec::new(),
        Op::Attention => vec![
            Scene::Attention(TILES),
            Scene::Attention(WIDE),
            Scene::Attention(EMPTY),
            of("f16-two-tiles", DType::F16, TILES),
            of("f16-wide-values", DType::F16, WIDE),
            of("f16-no-keys", DType::F16, EMPTY),
            of("bf16-two-tiles", DType::Bf16, TILES),
            of("bf16-wide-values", DType::Bf16, WIDE),
            of("bf16-no-keys", DType::Bf16, EMPTY),
        ],
        Op::Clock => vec![Scene::Clock],
    }
}

impl Scene {
    /// Stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Attention(shard) => shard.name,
            Self::Clock => "two-readings",
        }
    }
}

/// What a scene needs on its device.
pub enum Stand {
    /// Attention.
    Attention(Box<Attending>),
    /// The clocks.
    Clock(Clock),
}

impl Stand {
    /// Sets a scene up.
    pub fn new(device: &Device, scene: Scene) -> Result<Self> {
        match scene {
            Scene::Attention(shard) => {
                Attending::new(device, shard).map(|one| Self::Attention(Box::new(one)))
            }
            Scene::Clock => Clock::new(device).map(Self::Clock),
        }
    }

    /// Enqueues all of it.
    pub fn enqueue(&mut self) -> Result<()> {
        match self {
            Self::Attention(one) => one.enqueue(),
            Self::Clock(one) => one.enqueue(),
        }
    }

    /// What is wrong with what it left.
    pub fn check(&self, looked: &Looked<'_>) -> Result<(), String> {
        match self {
            Self::Attention(one) => one.check(looked),
            Self::Clock(one) => one.check(looked),
        }
    }
}

/// Bytes that a run left.
fn read(looked: &Looked<'_>, buffer: &DeviceBuffer) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; buffer.len()];
    match looked.read(buffer.ptr().raw(), &mut bytes) {
        true => Ok(bytes),
        false => Err("a buffer is gone".to_owned()),
    }
}

/// Attention with its memory.
pub struct Attending {
    shard: Shard,
    wanted: Vec<Partial>,
    call: Attention,
    exec: GraphExec,
    // Behind what uses them.
    _graph: Graph,
    stream: Stream,
    kernels: AttentionKernels,
    output: DeviceBuffer,
    lse: DeviceBuffer,
    _inputs: [DeviceBuffer; 3],
}

impl Attending {
    fn new(device: &Device, shard: Shard) -> Result<Self> {
        let Shard { dtype, heads, .. } = shard;
        let rows = shard.batch * heads;
        let planes = if shard.shared { 1 } else { heads };
        let bits = [
            shard.numbers(0, rows * shard.key_dim),
            shard.numbers(1, shard.keys * planes * shard.key_dim),
            shard.numbers(2, shard.keys * planes * shard.value_dim),
        ];
        let bytes = dtype.bytes();
        let inputs = bits.each_ref().map(|bits| -> Result<DeviceBuffer> {
            let words = bits
                .iter()
                .flat_map(|word| word.to_le_bytes()[..bytes].to_vec());
            let data: Vec<u8> = words.collect();
            // A shard without keys has memory all the same.
            let buffer = DeviceBuffer::new(device, data.len().max(16))?;
            buffer.write(0, &data)?;
            Ok(buffer)
        });
        let [query, key, value] = inputs;
        let inputs = [query?, key?, value?];
        let output = DeviceBuffer::new(device, (rows * shard.value_dim) as usize * bytes)?;
        let lse = DeviceBuffer::new(device, rows as usize * 4)?;
        // What is not written stays no number.
        output.fill(0xff)?;
        lse.fill(0xff)?;
        let (key_stride, value_stride) = (planes * shard.key_dim, planes * shard.value_dim);
        let between_heads = |dim: u32| if shard.shared { 0 } else { u64::from(dim) };
        let call = Attention {
            query: inputs[0].ptr(),
            key: inputs[1].ptr(),
            value: inputs[2].ptr(),
            output: output.ptr(),
            lse: lse.ptr(),
            key_stride: key_stride.into(),
            key_head_stride: between_heads(shard.key_dim),
            value_stride: value_stride.into(),
            value_head_stride: between_heads(shard.value_dim),
            batch: shard.batch,
            heads,
            keys: shard.keys,
            key_dim: shard.key_dim,
            value_dim: shard.value_dim,
            scale: SCALE,
            base: shard.base,
            dtype,
        };
        let kernels = AttentionKernels::load(device)?;
        let stream = Stream::new(device)?;
        stream.begin_capture(CaptureMode::ThreadLocal)?;
        for _ in 0..2 {
            // SAFETY: the buffers have the stated shapes; they and the kernels outlive the graph. The calls of a graph are
            // one after another.
            unsafe { call.enqueue(&kernels, &stream)? };
        }
        let graph = stream.end_capture()?;
        Ok(Self {
            wanted: shard.expected(&bits),
            exec: graph.instantiate()?,
            _graph: graph,
            shard,
            call,
            stream,
            kernels,
            output,
            lse,
            _inputs: inputs,
        })
    }

    fn enqueue(&mut self) -> Result<()> {
        // SAFETY: as for those in the graph; all is on one stream.
        unsafe { self.call.enqueue(&self.kernels, &self.stream)? };
        self.exec.launch(&self.stream)
    }

    fn check(&self, looked: &Looked<'_>) -> Result<(), String> {
        let Shard { name, dtype, .. } = self.shard;
        let (output, lse) = (read(looked, &self.output)?, read(looked, &self.lse)?);
        let bytes = dtype.bytes();
        let outputs = output.chunks_exact(bytes * self.shard.value_dim as usize);
        let lses = lse.chunks_exact(4).map(|word| value(DType::F32, word));
        for (row, ((got, lse), wanted)) in outputs.zip(lses).zip(&self.wanted).enumerate() {
            let got = got.chunks_exact(bytes).map(|word| value(dtype, word));
            for (i, (got, &wanted)) in got.zip(&wanted.output).enumerate() {
                if !is_near(got, wanted, ERROR + rounding(dtype)) {
                    return Err(format!(
                        "{name}, row {row}: element {i} is {got}, not {wanted}"
                    ));
                }
            }
            let factor = match self.shard.base {
                LseBase::E => 1.0,
                LseBase::Two => std::f64::consts::LOG2_E,
            };
            let wanted = wanted.lse * factor;
            if lse != wanted && !is_near(lse, wanted, ERROR) {
                return Err(format!(
                    "{name}, row {row}: the log-sum-exp is {lse}, not {wanted}"
                ));
            }
        }
        Ok(())
    }
}

/// Factor of the scores.
const SCALE: f32 = 0.5;

impl Shard {
    /// Numbers from -1 to 1, as bits.
    fn numbers(&self, array: u32, count: u32) -> Vec<u32> {
        let number = |i| {
            let place = Place {
                rank: 0,
                operation: 0,
                token: self.keys,
                head: array,
                i,
            };
            narrow(self.dtype, (place.hash() % 2049) as f32 / 1024.0 - 1.0)
        };
        (0..count).map(number).collect()
    }

    /// What must come out, by row.
    fn expected(&self, bits: &[Vec<u32>; 3]) -> Vec<Partial> {
        let values = |bits: &Vec<u32>| -> Vec<f64> {
            let values = bits.iter().map(|&bits| widen(self.dtype, bits).into());
            values.collect()
        };
        let [queries, keys, values] = bits.each_ref().map(values);
        let over: Vec<usize> = (0..self.keys as usize).collect();
        let rows = queries.chunks_exact(self.key_dim as usize).enumerate();
        let partial = |(row, query): (usize, &[f64])| {
            let head = row % self.heads as usize;
            let of = |numbers, dim: u32| {
                let (planes, head) = match self.shared {
                    true => (1, 0),
                    false => (self.heads as usize, head),
                };
                let dim = dim as usize;
                Rows {
                    numbers,
                    stride: planes * dim,
                    offset: head * dim,
                    dim,
                }
            };
            let (keys, values) = (of(&keys, self.key_dim), of(&values, self.value_dim));
            attend(query, &keys, &values, &over, SCALE.into())
        };
        rows.map(partial).collect()
    }
}

fn value(dtype: DType, bytes: &[u8]) -> f64 {
    let word = bytes
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u32::from(byte));
    widen(dtype, word).into()
}

/// What the one rounding of a result below 1 to the element type may add.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1.0 / 4096.0,
        DType::Bf16 => 1.0 / 512.0,
        _ => 0.0,
    }
}

/// No number is near nothing.
fn is_near(got: f64, wanted: f64, error: f64) -> bool {
    (got - wanted).abs() <= error * wanted.abs().max(1.0)
}

/// The clocks with their memory.
pub struct Clock {
    kernel: Kernel,
    stream: Stream,
    outputs: [DeviceBuffer; 2],
}

impl Clock {
    fn new(device: &Device) -> Result<Self> {
        let image = slabfence_ptx::image("clock").ok_or(Error::Refused {
            operation: "check",
            why: "there is no image of the clocks".to_owned(),
        })?;
        let buffer = || -> Result<DeviceBuffer> {
            let buffer = DeviceBuffer::new(device, 16)?;
            buffer.fill(0xff)?;
            Ok(buffer)
        };
        Ok(Self {
            kernel: Module::from_ptx(device, "clock", image.ptx)?.kernel("sf_clock")?,
            stream: Stream::new(device)?,
            outputs: [buffer()?, buffer()?],
        })
    }

    fn enqueue(&self) -> Result<()> {
        self.outputs.iter().try_for_each(|output| {
            let params = ClockParams {
                preamble: Preamble {
                    magic: MAGIC,
                    abi: ABI,
                    operation: OperationKind::Clock.code(),
                },
                output: output.ptr().raw(),
                reserved: 0,
            };
            // SAFETY: the kernel writes 16 bytes to a buffer of 16.
            unsafe { self.kernel.launch(&self.stream, 1, 32, &params) }
        })
    }

    fn check(&self, looked: &Looked<'_>) -> Result<(), String> {
        let [first, second] = self.outputs.each_ref().map(|output| {
            let bytes = read(looked, output)?;
            let words = bytes.chunks_exact(8).map(|word| {
                let word = word.iter().rev();
                word.fold(0, |word, &byte| word << 8 | u64::from(byte))
            });
            Ok::<Vec<u64>, String>(words.collect())
        });
        let (first, second) = (first?, second?);
        let mut clocks = first.iter().zip(&second);
        match clocks.position(|(first, second)| second <= first || *second == u64::MAX) {
            None => Ok(()),
            Some(clock) => Err(format!(
                "clock {clock} shows {} and then {}",
                first[clock], second[clock]
            )),
        }
    }
}
