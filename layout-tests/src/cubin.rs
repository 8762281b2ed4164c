//! Reader of cubins: witness arrays, kernels, and the parameter layout that the driver goes by.

use std::ops::Range;

use object::elf::{FileHeader64, SHT_NOBITS};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};

/// One kernel parameter as the ELF file declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    /// Position in the parameter list.
    pub ordinal: u16,
    /// Bytes from the start of the parameter block.
    pub offset: u16,
    /// Bytes.
    pub size: u32,
}

/// A parsed cubin.
pub struct Cubin<'a> {
    elf: ElfFile64<'a, LittleEndian>,
}

impl std::fmt::Debug for Cubin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cubin(sm_{})", self.sm())
    }
}

/// `.nv.info` attribute: ordinal, offset and size of one parameter.
const KPARAM_INFO: u8 = 0x17;
/// `.nv.info` record with a length and a payload; all other forms are four bytes long.
const SIZED: u8 = 4;

impl<'a> Cubin<'a> {
    /// Parses an ELF file. `None` when it is none.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        Some(Self {
            elf: ElfFile64::parse(bytes).ok()?,
        })
    }

    /// Compute capability that the file was assembled for, major × 10 + minor.
    pub fn sm(&self) -> u32 {
        let header: &FileHeader64<LittleEndian> = self.elf.elf_header();
        (header.e_flags(LittleEndian).0 >> 8) & 0xff
    }

    /// Names of the kernels, sorted.
    pub fn kernels(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .elf
            .sections()
            .filter_map(|section| Some(section.name().ok()?.strip_prefix(".text.")?.to_owned()))
            .collect();
        names.sort();
        names
    }

    /// The 32-bit words of the initialised array `name`.
    pub fn words(&self, name: &str) -> Option<Vec<u32>> {
        let bytes = self.elf.data().get(self.place(name)?)?;
        let words = bytes.chunks_exact(4);
        Some(
            words
                .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
                .collect(),
        )
    }

    /// Where in the file the initialised array `name` lies.
    pub fn place(&self, name: &str) -> Option<Range<usize>> {
        let symbol = self
            .elf
            .symbols()
            .find(|symbol| symbol.name() == Ok(name))?;
        let section = self.elf.section_by_index(symbol.section_index()?).ok()?;
        if section.elf_section_header().sh_type(LittleEndian) == SHT_NOBITS {
            return None;
        }
        let end = symbol.address().checked_add(symbol.size())?;
        let (file, bytes) = section.file_range()?;
        let start = usize::try_from(file.checked_add(symbol.address())?).ok()?;
        let length = usize::try_from(symbol.size()).ok()?;
        (end <= bytes).then_some(start..start.checked_add(length)?)
    }

    /// The parameters of a kernel, in order. `None` when the file does not describe it, or not as expected.
    pub fn parameters(&self, kernel: &str) -> Option<Vec<Parameter>> {
        let section = self.elf.section_by_name(&format!(".nv.info.{kernel}"))?;
        let mut parameters = parameter_records(section.data().ok()?)?;
        parameters.sort();
        Some(parameters)
    }
}

/// Reads `.nv.info.<kernel>`: form, attribute, then two bytes that are a value or the length of a payload.
fn parameter_records(mut info: &[u8]) -> Option<Vec<Parameter>> {
    let mut found = Vec::new();
    while let [form, attribute, low, high, rest @ ..] = info {
        info = rest;
        if *form != SIZED {
            continue;
        }
        let (payload, rest) =
            info.split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))?;
        info = rest;
        if *attribute != KPARAM_INFO {
            continue;
        }
        let [_, _, _, _, o0, o1, f0, f1, p0, p1, p2, p3] = *payload else {
            return None;
        };
        found.push(Parameter {
            ordinal: u16::from_le_bytes([o0, o1]),
            offset: u16::from_le_bytes([f0, f1]),
            size: u32::from_le_bytes([p0, p1, p2, p3]) >> 18,
        });
    }
    info.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_records_are_found_between_others() {
        let mut info = vec![3, 0x19, 0x78, 0x06];
        info.extend([
            4,
            0x17,
            12,
            0,
            0,
            0,
            0,
            0,
            1,
            0,
            24,
            0,
            0x00,
            0xf0,
            8 << 2,
            0,
        ]);
        info.extend([4, 0x50, 4, 0, 0, 0, 0, 0]);
        let expected = Parameter {
            ordinal: 1,
            offset: 24,
            size: 8,
        };
        assert_eq!(parameter_records(&info), Some(vec![expected]));
    }

    #[test]
    fn a_record_that_is_cut_off_is_refused() {
        assert_eq!(parameter_records(&[4, 0x17, 12, 0, 0, 0]), None);
        assert_eq!(
            parameter_records(&[4, 0x17, 2, 0, 0, 0]),
            None,
            "short payload"
        );
        assert_eq!(parameter_records(&[1, 2]), None);
    }
}
