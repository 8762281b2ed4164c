//! Floating-point numbers on their way between processes: their bits, since JSON has no infinities and no exactness.

/// One number.
pub mod one {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes its bits.
    pub fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(number.to_bits())
    }

    /// Reads its bits.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// A list of numbers.
pub mod many {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes their bits.
    pub fn serialize<S: Serializer>(numbers: &[f64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(numbers.iter().map(|number| number.to_bits()))
    }

    /// Reads their bits.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let bits = Vec::<u64>::deserialize(from)?;
        Ok(bits.into_iter().map(f64::from_bits).collect())
    }
}
