//! What the memory of a scenario is for.

use slabfence_emu::Description;
use slabfence_emu::held::{RegionKind, Writers};
use toml::Spanned;

use super::file::{Buffer, Part, Writer};
use super::plan::Span;
use super::read::Reader;
use crate::failure::Failure;
use crate::plain;

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
    tag: Option<&'a Spanned<String>>,
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
    let name = format!("buffer `{}`", plain::one_line(buffer.name.get_ref()));
    let whole = About {
        title: name.clone(),
        tag: buffer.tag.as_ref(),
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
        let same = |other: &&Part| other.name.get_ref() == part.name.get_ref();
        if buffer.part.iter().filter(same).count() > 1 {
            return Err(reader.wrong(&part.name, "two parts of the buffer have this name"));
        }
        let meets = |span: &Span| offset < span.offset + span.len && span.offset < end;
        if spans.iter().any(meets) {
            return Err(reader.wrong(&part.offset, "it overlaps another part"));
        }
        let about = About {
            title: format!("`{}` of {name}", plain::one_line(part.name.get_ref())),
            tag: part.tag.as_ref(),
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

/// The kind that a tag is. One that is nearly a kind's is refused: its rules would not hold, and nothing would say so.
fn kind(reader: &Reader<'_>, tag: &Spanned<String>) -> Result<RegionKind, Failure> {
    let word = tag.get_ref();
    if let Some(&(_, kind)) = KINDS.iter().find(|(known, _)| known == word) {
        return Ok(kind);
    }
    let plain = word.trim().to_lowercase();
    let near = |known: &str| distance(known, &plain) <= known.len() / 4;
    match KINDS.iter().find(|(known, _)| near(known)) {
        None => Ok(RegionKind::Buffer),
        Some((known, _)) => {
            let words = format!(
                "the tag `{word}` is nearly `{known}`, whose rules do not hold for it; say `{known}`, or name the memory by other words"
            );
            Err(reader.wrong(tag, words))
        }
    }
}

/// How many letters must be put in, taken out or changed to make one word the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], line + 1);
        for (at, &theirs) in other.iter().enumerate() {
            let change = corner + usize::from(letter != theirs);
            corner = row[at + 1];
            row[at + 1] = change.min(corner + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

fn describe(
    reader: &Reader<'_>,
    about: &About<'_>,
    number: usize,
    owner: u32,
    mapped: &[u32],
) -> Result<Description, Failure> {
    let kind = match about.tag {
        None => RegionKind::Buffer,
        Some(tag) => kind(reader, tag)?,
    };
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
    let name = match about.tag.map(|tag| tag.get_ref().as_str()) {
        None | Some("") => about.title.clone(),
        Some(tag) => format!("{} ({})", about.title, plain::one_line(tag)),
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

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn the_distance_of_two_words_is_how_many_letters_differ() {
        let pairs = [
            ("flag", "flag"),
            ("flag", "flags"),
            ("flag", "flg"),
            ("flag", "flat"),
            ("packets", "paket"),
            ("", "ab"),
        ];
        assert_eq!(
            pairs.map(|(one, other)| distance(one, other)),
            [0, 1, 1, 1, 2, 2]
        );
    }
}
