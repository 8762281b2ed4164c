//! What the memory of a scenario is for.

use slabfence_emu::Description;
use slabfence_emu::held::{RegionKind, Writers};
use toml::Spanned;

use super::file::{Buffer, Writer};
use super::plan::Span;
use super::read::Reader;
use crate::failure::Failure;

/// The tags that are kinds. Others are words.
const KINDS: [(&str, RegionKind); 6] = [
    ("epoch", RegionKind::Epoch),
    ("ticket", RegionKind::Ticket),
    ("flag", RegionKind::Flag),
    ("packets", RegionKind::Packets),
    ("staging", RegionKind::Inbox),
    ("data", RegionKind::Buffer),
];

/// What is said of a buffer or a part of one.
struct About<'a> {
    title: String,
    tag: &'a str,
    slot: &'a Option<Spanned<u32>>,
    writer: &'a Option<Spanned<Writer>>,
}

/// The ranges of a buffer that are for something.
pub fn spans(
    reader: &Reader<'_>,
    buffer: &Buffer,
    number: usize,
    owner: u32,
    mapped: &[u32],
) -> Result<Vec<Span>, Failure> {
    let size = *buffer.size.get_ref();
    let describe = |about: &About<'_>| describe(reader, about, number, owner, mapped);
    let name = format!("buffer `{}`", buffer.name.get_ref());
    let whole = About {
        title: name.clone(),
        tag: &buffer.tag,
        slot: &buffer.slot,
        writer: &buffer.writer,
    };
    let whole = describe(&whole)?;
    if buffer.part.is_empty() {
        return Ok(vec![Span {
            offset: 0,
            len: size,
            description: whole,
        }]);
    }
    if whole.kind != RegionKind::Buffer {
        let words = "a buffer with parts has the tags that are kinds there";
        return Err(reader.wrong(&buffer.name, words));
    }
    let mut spans: Vec<Span> = Vec::new();
    for part in &buffer.part {
        let (offset, len) = (*part.offset.get_ref(), *part.size.get_ref());
        let end = offset.checked_add(len).filter(|&end| end <= size);
        let Some(end) = end.filter(|_| len > 0) else {
            let words = format!("{len} bytes from {offset} on in a buffer of {size}");
            return Err(reader.wrong(&part.size, words));
        };
        let meets = |span: &Span| offset < span.offset + span.len && span.offset < end;
        if spans.iter().any(meets) {
            return Err(reader.wrong(&part.offset, "it overlaps another part"));
        }
        let about = About {
            title: format!("`{}` of {name}", part.name.get_ref()),
            tag: &part.tag,
            slot: &part.slot,
            writer: &part.writer,
        };
        spans.push(Span {
            offset,
            len,
            description: describe(&about)?,
        });
    }
    Ok(spans)
}

fn describe(
    reader: &Reader<'_>,
    about: &About<'_>,
    number: usize,
    owner: u32,
    mapped: &[u32],
) -> Result<Description, Failure> {
    let kind = KINDS.iter().find(|(tag, _)| *tag == about.tag);
    let kind = kind.map_or(RegionKind::Buffer, |&(_, kind)| kind);
    let local = matches!(kind, RegionKind::Epoch | RegionKind::Ticket);
    let takes = !local && kind != RegionKind::Buffer;
    let only = "goes with the tags `flag`, `packets` and `staging`";
    let slot = match about.slot {
        None => None,
        Some(slot) if !takes => return Err(reader.wrong(slot, format!("a `slot` {only}"))),
        Some(slot) if *slot.get_ref() > 1 => return Err(reader.wrong(slot, "slots are 0 and 1")),
        Some(slot) => Some(*slot.get_ref()),
    };
    let writers = match about.writer {
        None if local => Writers::Rank(owner),
        None => Writers::Anyone,
        Some(writer) if !takes => return Err(reader.wrong(writer, format!("a `writer` {only}"))),
        Some(writer) => match *writer.get_ref() {
            Writer::Lines(_) => Writers::Lines {
                world: reader.ranks,
            },
            Writer::Rank(rank) => {
                let rank = Spanned::new(writer.span(), rank);
                Writers::Rank(reader.rank(&rank)?)
            }
        },
    };
    let name = match about.tag {
        "" => about.title.clone(),
        tag => format!("{} ({tag})", about.title),
    };
    Ok(Description {
        name,
        mapped: mapped.iter().fold(0, |mask, rank| mask | 1 << rank),
        kind,
        rank: owner,
        group: number as u64,
        slot,
        writers,
    })
}
