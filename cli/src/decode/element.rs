//! Element types, and arrays of them as bytes.

use clap::ValueEnum;
use half::{bf16, f16};
use slabfence::layout::DType;

/// Element type of queries, keys, values and outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Element {
    /// 32-bit float.
    F32,
    /// bfloat16.
    Bf16,
    /// 16-bit float.
    F16,
}

impl Element {
    /// As options and reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// Bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }

    /// Largest relative error of one rounding to nearest.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F32 => 2f64.powi(-24),
            Self::Bf16 => 2f64.powi(-8),
            Self::F16 => 2f64.powi(-11),
        }
    }

    /// As the library calls it.
    pub const fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::Bf16 => DType::Bf16,
            Self::F16 => DType::F16,
        }
    }

    /// As safetensors calls it.
    pub const fn stored(self) -> safetensors::Dtype {
        match self {
            Self::F32 => safetensors::Dtype::F32,
            Self::Bf16 => safetensors::Dtype::BF16,
            Self::F16 => safetensors::Dtype::F16,
        }
    }

    /// Rounds numbers to this type, little-endian.
    pub fn encode(self, numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
        let numbers = numbers.into_iter();
        match self {
            Self::F32 => numbers.flat_map(f32::to_le_bytes).collect(),
            Self::Bf16 => numbers
                .flat_map(|x| bf16::from_f32(x).to_le_bytes())
                .collect(),
            Self::F16 => numbers
                .flat_map(|x| f16::from_f32(x).to_le_bytes())
                .collect(),
        }
    }

    /// The numbers in an array of this type. Bytes that fill no element are left out.
    pub fn decode(self, bytes: &[u8]) -> Vec<f64> {
        match self {
            Self::F32 => elements(bytes, |b| f32::from_le_bytes(b).into()),
            Self::Bf16 => elements(bytes, |b| bf16::from_le_bytes(b).into()),
            Self::F16 => elements(bytes, |b| f16::from_le_bytes(b).into()),
        }
    }
}

fn elements<const N: usize>(bytes: &[u8], convert: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks.iter().map(|chunk| convert(*chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_nearest_and_read_back() {
        let x = 1.0 + 2f32.powi(-9) + 2f32.powi(-20);
        for (element, expected) in [
            (Element::F32, f64::from(x)),
            (Element::Bf16, 1.0),
            (Element::F16, 1.0 + 2f64.powi(-9)),
        ] {
            let bytes = element.encode([x, -0.5]);
            assert_eq!(bytes.len(), 2 * element.bytes());
            assert_eq!(element.decode(&bytes), [expected, -0.5]);
        }
    }

    #[test]
    fn the_unit_roundoff_is_half_the_gap_above_one() {
        for element in [Element::F32, Element::Bf16, Element::F16] {
            let u = element.unit_roundoff();
            let above = element.decode(&element.encode([(1.0 + 2.0 * u) as f32]))[0];
            assert_eq!(above, 1.0 + 2.0 * u);
            let tie = element.decode(&element.encode([(1.0 + u) as f32]))[0];
            assert_eq!(tie, 1.0);
        }
    }
}
