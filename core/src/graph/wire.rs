//! The JSON form's structure. Changes here that a reader notices need a new [`SCHEMA`](super::SCHEMA).

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A word as text in base 16: JSON numbers above 2^53 are not safe in most readers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text
            .strip_prefix("0x")
            .filter(|digits| !digits.starts_with('+'));
        let word = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        word.map(Self)
            .ok_or_else(|| D::Error::custom(format!("{text:?} is no 64-bit number in base 16")))
    }
}

/// Bytes as text in base 16, two digits a byte.
#[derive(Clone, Debug)]
pub(super) struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        to.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |pair: &[u8]| match *pair {
            [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
            _ => None,
        };
        let bytes: Option<_> = text.as_bytes().chunks(2).map(byte).collect();
        bytes
            .map(Self)
            .ok_or_else(|| D::Error::custom("bytes are two digits in base 16 each"))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct File {
    pub schema: u32,
    pub driver_version: i32,
    pub device: u32,
    pub device_name: String,
    pub graph: Graph,
    pub places: Vec<Place>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

/// A node: its kind, and at most one of the rest.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Node {
    #[serde(rename = "type")]
    pub number: u32,
    /// For readers: follows from the number.
    #[serde(skip_deserializing)]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Copy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Graph>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Hex>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<Hex>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kernel {
    pub function: Option<String>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub attributes: BTreeMap<String, i64>,
    pub params: Option<Vec<Param>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Param {
    pub offset: usize,
    /// For readers: follows from the bytes, as does all that comes after them.
    #[serde(skip_deserializing)]
    pub size: usize,
    pub bytes: Bytes,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub block: Option<&'static str>,
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
}

/// A field of a block of ours.
#[derive(Debug, Serialize)]
pub(super) struct Field {
    pub name: String,
    pub value: serde_json::Value,
    /// Name of a code, or what an address is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

/// A pointer-like word of somebody else's parameter.
#[derive(Debug, Serialize)]
pub(super) struct Word {
    pub offset: usize,
    pub value: Hex,
    pub is: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Copy {
    pub from: End,
    pub to: End,
    pub bytes: u64,
    pub rows: u64,
    pub planes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub address: Hex,
    pub array: bool,
    pub pitch: u64,
    /// For readers: follows from the places.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Fill {
    pub to: Hex,
    pub value: u32,
    pub element_bytes: u32,
    pub elements: u64,
    pub rows: u64,
    pub pitch: u64,
    /// For readers: follows from the places.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Host {
    pub function: Hex,
    pub argument: Hex,
    /// For readers: follows from the places.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    #[serde(rename = "type")]
    pub number: u8,
    /// For readers: follows from the number.
    #[serde(skip_deserializing)]
    pub kind: String,
    pub from_port: u8,
    pub to_port: u8,
}

/// What one address is: at most one of the last three; none of them is "no live memory that the driver knows".
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub address: Hex,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Range>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Range {
    pub part: String,
    pub channel: Option<String>,
    pub slot: Option<String>,
    pub owner: u32,
    pub source: Option<u32>,
    pub base: Hex,
    pub bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Allocation {
    pub base: Hex,
    pub bytes: u64,
    pub device: Option<u32>,
    pub host: bool,
}
