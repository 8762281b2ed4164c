//! The form of a scenario file.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The PTX text, beside the file.
    pub ptx: Spanned<String>,
    /// How many ranks, each with a device of its own.
    pub ranks: Spanned<u32>,
    /// The machine.
    pub profile: Option<Spanned<String>>,
    /// Whether time passes when everybody waits, so that waits end that are bounded by a clock.
    #[serde(default)]
    pub time_passes: bool,
    /// Memory.
    #[serde(default)]
    pub buffer: Vec<Buffer>,
    /// Launches that are captured and replayed.
    #[serde(default)]
    pub graph: Vec<Graph>,
    /// What is enqueued, in order for each rank.
    pub step: Spanned<Vec<Step>>,
    /// What must be in memory at the end.
    #[serde(default)]
    pub expect: Vec<Expect>,
}

/// Memory of one rank.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    pub name: Spanned<String>,
    /// Bytes.
    pub size: Spanned<u64>,
    /// The rank whose device holds it.
    pub owner: Spanned<u32>,
    /// Other ranks that map it.
    #[serde(default)]
    pub mapped: Vec<Spanned<u32>>,
    /// What it is for: a kind, or words that findings tell.
    pub tag: Option<Spanned<String>>,
    /// The slot that memory of a kind belongs to.
    pub slot: Option<Spanned<u32>>,
    /// Who alone may store to memory of a kind.
    pub writer: Option<Spanned<Writer>>,
    /// Parts of it, each for something of its own. What is in none is nobody's.
    #[serde(default)]
    pub part: Vec<Part>,
    /// What it holds at first; zeros if not given.
    #[serde(default)]
    pub initial: Option<Spanned<Contents>>,
}

/// Who may store to memory.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a writer is a rank or \"lines\"")]
pub enum Writer {
    /// A rank.
    Rank(u32),
    /// To each line of 128 bytes one rank, in turn.
    Lines(Lines),
}

/// The word for it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lines {
    Lines,
}

/// Part of a buffer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub name: Spanned<String>,
    /// Bytes from the buffer's start.
    pub offset: Spanned<u64>,
    /// Bytes.
    pub size: Spanned<u64>,
    pub tag: Option<Spanned<String>>,
    pub slot: Option<Spanned<u32>>,
    pub writer: Option<Spanned<Writer>>,
}

/// What memory holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Contents {
    /// A byte, everywhere.
    Fill(u8),
    /// These words of 32 bits from the start on; behind them zeros, or when it is expected anything.
    Words(Vec<u32>),
    /// Words of 32 bits that count up from this one.
    Ascending(u32),
    /// Addresses of buffers, 8 bytes each, from the start on.
    Addresses(Vec<Address>),
    /// Nothing that may be read: it was never written.
    Unwritten,
}

/// An address in memory.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Address {
    /// Of a buffer's start.
    Buffer(Spanned<String>),
    /// Inside a buffer.
    At(At),
}

/// A graph of launches of one rank, one after another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    pub name: Spanned<String>,
    pub rank: Spanned<u32>,
    pub launch: Vec<Launch>,
}

/// A launch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    pub kernel: Spanned<String>,
    /// Blocks.
    pub grid: Spanned<Extent>,
    /// Threads of a block.
    pub block: Spanned<Extent>,
    /// Bytes of dynamic shared memory.
    pub shared: Option<Spanned<u32>>,
    /// One for each parameter of the kernel.
    pub arguments: Spanned<Vec<Spanned<Argument>>>,
}

/// Blocks or threads.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number or three, like 4 or [2, 1, 1]"
)]
pub enum Extent {
    One(u32),
    Three([u32; 3]),
}

impl Extent {
    /// In three dimensions.
    pub fn three(self) -> [u32; 3] {
        match self {
            Self::One(x) => [x, 1, 1],
            Self::Three(all) => all,
        }
    }
}

/// The value of a parameter, or of a field of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Argument {
    /// The address of a buffer.
    Buffer(Spanned<String>),
    /// An address inside a buffer.
    At(At),
    U8(u8),
    S8(i8),
    U16(u16),
    S16(i16),
    U32(u32),
    S32(i32),
    U64(u64),
    S64(i64),
    F32(#[serde(deserialize_with = "single")] f32),
    F64(f64),
    /// A struct: its fields, each at a multiple of its size.
    Block(Vec<Spanned<Argument>>),
}

/// A number that stays finite as an f32, or is none in the file either.
fn single<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
    let wide = f64::deserialize(from)?;
    let narrow = wide as f32;
    match narrow.is_infinite() && wide.is_finite() {
        true => Err(D::Error::custom(format!("{wide:e} does not fit f32"))),
        false => Ok(narrow),
    }
}

/// An address inside a buffer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    pub buffer: Spanned<String>,
    /// Bytes from its start.
    pub offset: u64,
}

/// One thing that a rank enqueues.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub rank: Spanned<u32>,
    /// Number of the rank's stream.
    #[serde(default)]
    pub stream: u32,
    /// How many times in a row.
    pub times: Option<Spanned<u32>>,
    pub launch: Option<Launch>,
    /// Name of a graph of the rank.
    pub replay: Option<Spanned<String>>,
    /// Bytes of a buffer that are set.
    pub fill: Option<Fill>,
    /// Bytes that are copied from one buffer to another.
    pub copy: Option<Copy>,
    /// Name of an event, which is put behind all that the stream has so far.
    pub record: Option<Spanned<String>>,
    /// Name of an event of the rank that was recorded before: what the stream has from now on is behind it.
    pub wait: Option<Spanned<String>>,
}

/// Sets bytes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    pub to: At,
    /// How many.
    pub size: u64,
    pub byte: u8,
}

/// Copies bytes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    pub from: At,
    pub to: At,
    /// How many.
    pub size: u64,
}

/// What a buffer must hold at the end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub buffer: Spanned<String>,
    pub contents: Spanned<Contents>,
}
