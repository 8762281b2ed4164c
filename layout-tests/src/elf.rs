//! What programs and libraries are linked with.

use object::LittleEndian;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader};

/// The libraries that the dynamic linker loads with an ELF file.
pub fn needed(file: &[u8]) -> object::Result<Vec<String>> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(file)?;
    let sections = header.sections(endian, file)?;
    let Some((entries, strings)) = sections.dynamic(endian, file)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, file, strings)?;
    let names = entries
        .iter()
        .filter(|entry| entry.tag(endian) == DT_NEEDED);
    names
        .map(|entry| Ok(String::from_utf8_lossy(entry.string(endian, strings)?).into_owned()))
        .collect()
}
