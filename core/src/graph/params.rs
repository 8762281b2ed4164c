//! Parameters taken apart: this library's blocks by field, others by word.

use std::fmt;

use crate::driver::Param;
use crate::layout::{ABI, CODES, MAGIC, OperationKind, STRUCTS, StructInfo};

/// Bytes of an address.
const WORD: usize = 8;
/// Nothing is mapped below: the kernel keeps the first pages unmapped.
const LOWEST: u64 = 1 << 16;
/// Device addresses have at most 49 bits.
const HIGHEST: u64 = 1 << 49;

/// The block that each operation's kernel takes.
const BLOCKS: &[(OperationKind, &str)] = &[
    (OperationKind::AllGatherHeads, "GatherParams"),
    (OperationKind::LseReduceScatter, "ReduceParams"),
    (OperationKind::Attention, "AttentionParams"),
    (OperationKind::Clock, "ClockParams"),
];
/// The 8-byte fields that are addresses.
const ADDRESSES: &[&str] = &[
    "entry",
    "flags",
    "health",
    "health_header",
    "inbox",
    "input",
    "key",
    "local",
    "lse",
    "outbox",
    "output",
    "packets",
    "poison",
    "query",
    "value",
];
/// The 8-byte fields that are bit patterns, better read in base 16.
const PATTERNS: &[&str] = &["channel", "magic", "tag"];
/// The fields that are codes, with the enum.
const CODED: &[(&str, &str)] = &[
    ("dtype", "DType"),
    ("operation", "OperationKind"),
    ("transport", "Transport"),
];

/// A parameter block of this library, by field.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Name of the struct in [`layout`](crate::layout).
    pub name: &'static str,
    /// Its scalars in order; of arrays with an element a rank only what the world uses. Zero filling is left out.
    pub fields: Vec<Field>,
}

/// A scalar of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its path, such as `header.peers[1].slot[0].inbox`.
    pub path: String,
    /// What it holds.
    pub value: Value,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A number.
    Number(u64),
    /// A floating-point number.
    Float(f32),
    /// A bit pattern.
    Pattern(u64),
    /// A device address; 0 is none.
    Address(u64),
    /// A code, with its name where this version knows it.
    Code(u32, Option<&'static str>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Pattern(0) | Self::Address(0) => f.write_str("0"),
            Self::Pattern(word) | Self::Address(word) => write!(f, "{word:#x}"),
            Self::Code(code, Some(name)) => write!(f, "{code} ({name})"),
            Self::Code(code, None) => write!(f, "{code} (unknown)"),
        }
    }
}

impl Param {
    /// The parameter as a block of this library; `None` for one of others, and for one of another layout version.
    pub fn block(&self) -> Option<Block> {
        let (magic, version) = (read(&self.bytes, 0, 8)?, read(&self.bytes, 8, 4)?);
        if magic != MAGIC || version != u64::from(ABI) {
            return None;
        }
        let operation = OperationKind::from_code(read(&self.bytes, 12, 4)? as u32)?;
        let (_, name) = BLOCKS.iter().find(|(kind, _)| *kind == operation)?;
        let info = STRUCTS.iter().find(|info| info.name == *name)?;
        if self.bytes.len() != info.size {
            return None;
        }
        let mut walk = Walk {
            bytes: &self.bytes,
            ranks: None,
            fields: Vec::new(),
        };
        walk.walk(info, 0, "")?;
        Some(Block {
            name: info.name,
            fields: walk.fields,
        })
    }

    /// Whether the parameter begins as this library's blocks of any version do.
    pub fn is_ours(&self) -> bool {
        read(&self.bytes, 0, 8) == Some(MAGIC)
    }

    /// The words that could be addresses: at multiples of 8 bytes in the kernel's parameter block. Offset from the
    /// parameter's start, and value.
    pub fn words(&self) -> Vec<(usize, u64)> {
        let first = self.offset.wrapping_neg() % WORD;
        (first..self.bytes.len())
            .step_by(WORD)
            .filter_map(|at| Some((at, read(&self.bytes, at, WORD)?)))
            .filter(|&(_, value)| is_pointer_like(value))
            .collect()
    }
}

/// Whether a word could be an address.
pub(super) fn is_pointer_like(word: u64) -> bool {
    (LOWEST..HIGHEST).contains(&word)
}

/// The pointer-like words of a parameter.
pub(super) fn addresses(param: &Param) -> Vec<u64> {
    match param.block() {
        Some(block) => {
            let address = |field: &Field| match field.value {
                Value::Address(address) if address != 0 => Some(address),
                _ => None,
            };
            block.fields.iter().filter_map(address).collect()
        }
        None => param.words().into_iter().map(|(_, value)| value).collect(),
    }
}

/// A little-endian number of `bytes` bytes, up to 8.
fn read(from: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let part = from.get(at..at.checked_add(bytes)?)?;
    let mut word = [0; WORD];
    word.get_mut(..bytes)?.copy_from_slice(part);
    Some(u64::from_le_bytes(word))
}

struct Walk<'a> {
    bytes: &'a [u8],
    /// Own rank and world, once the walk has passed them.
    ranks: Option<(usize, usize)>,
    fields: Vec<Field>,
}

impl Walk<'_> {
    /// Adds the scalars of a struct at `base`. `None` where the bytes end early.
    fn walk(&mut self, info: &StructInfo, base: usize, prefix: &str) -> Option<()> {
        if info.name == "Header" {
            let field = |name: &str| {
                let field = info.fields.iter().find(|field| field.name == name)?;
                usize::try_from(read(self.bytes, base + field.offset, field.size)?).ok()
            };
            self.ranks = Some((field("rank")?, field("world")?));
        }
        for field in info.fields {
            let size = field.size / field.count;
            for index in 0..field.count {
                let at = base + field.offset + index * size;
                let zero = self.bytes.get(at..at + size)?.iter().all(|&byte| byte == 0);
                let by_rank = field.c_type == "PeerAddresses";
                if zero && field.name.starts_with("reserved")
                    || by_rank && !self.shows_rank(index, zero)
                {
                    continue;
                }
                let path = match field.count {
                    1 => format!("{prefix}{}", field.name),
                    _ => format!("{prefix}{}[{index}]", field.name),
                };
                match STRUCTS.iter().find(|inner| inner.name == field.c_type) {
                    Some(inner) => self.walk(inner, at, &format!("{path}."))?,
                    None => {
                        let value = value(field.name, field.c_type, read(self.bytes, at, size)?);
                        self.fields.push(Field { path, value });
                    }
                }
            }
        }
        Some(())
    }

    /// Elements beyond the world are not looked at; that of the own rank is zero, and shown only where it is not.
    fn shows_rank(&self, index: usize, zero: bool) -> bool {
        let Some((me, world)) = self.ranks else {
            return true;
        };
        index < world && !(zero && index == me)
    }
}

fn value(name: &str, c_type: &str, word: u64) -> Value {
    if let Some((_, of)) = CODED.iter().find(|(coded, _)| *coded == name) {
        let table = CODES.iter().find(|(table, _)| table == of);
        let codes = table.map_or(&[][..], |(_, codes)| codes);
        let found = codes.iter().find(|(_, code)| u64::from(*code) == word);
        return Value::Code(word as u32, found.map(|(name, _)| *name));
    }
    match c_type {
        "float" => Value::Float(f32::from_bits(word as u32)),
        "uint64_t" if ADDRESSES.contains(&name) => Value::Address(word),
        "uint64_t" if PATTERNS.contains(&name) => Value::Pattern(word),
        _ => Value::Number(word),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_has_a_block_of_its_own() {
        for (name, code) in OperationKind::ALL {
            let block = BLOCKS.iter().find(|(kind, _)| kind.code() == *code);
            let (_, block) = block.unwrap_or_else(|| panic!("{name} has no block"));
            assert!(STRUCTS.iter().any(|info| info.name == *block), "{block}");
        }
    }

    /// A new 8-byte field must be put into one of the lists.
    #[test]
    fn every_wide_field_is_known_as_address_pattern_or_number() {
        let numbers = [
            "fail_ticks",
            "in_head_stride",
            "in_token_stride",
            "inbox_stride",
            "key_head_stride",
            "key_stride",
            "lse_offset",
            "out_head_stride",
            "out_token_stride",
            "packet_stride",
            "part_bytes",
            "reserved",
            "reserved1",
            "value_head_stride",
            "value_stride",
            "warn_ticks",
        ];
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = BLOCKS.iter().map(|(_, name)| *name).collect();
        while let Some(name) = open.pop() {
            let info = STRUCTS.iter().find(|info| info.name == name);
            for field in info.into_iter().flat_map(|info| info.fields) {
                match field.c_type {
                    "uint64_t" => _ = found.insert(field.name),
                    inner => open.push(inner),
                }
            }
        }
        let listed = ADDRESSES.iter().chain(PATTERNS).chain(&numbers).copied();
        assert_eq!(found, listed.collect());
    }

    #[test]
    fn only_words_that_could_be_addresses_are_pointer_like() {
        let words = [0, 1, 0xffff, 0x10000, (1 << 49) - 1, 1 << 49, u64::MAX];
        let mut bytes: Vec<u8> = words
            .iter()
            .flat_map(|word: &u64| word.to_le_bytes())
            .collect();
        bytes.extend([1; 7]);
        let param = Param::new(16, bytes.clone());
        assert_eq!(param.words(), [(24, 0x10000), (32, (1 << 49) - 1)]);
        // Words lie at multiples of 8 in the kernel's block, wherever the parameter begins.
        bytes.splice(0..0, [0; 4]);
        let param = Param::new(20, bytes);
        assert_eq!(param.words(), [(28, 0x10000), (36, (1 << 49) - 1)]);
        assert!(Param::new(0, Vec::new()).words().is_empty());
    }
}
