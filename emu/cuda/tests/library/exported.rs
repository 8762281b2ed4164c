//! What the file says to the dynamic linker.

use object::LittleEndian;
use object::elf::{DF_1_NODELETE, DT_FLAGS_1, DT_NEEDED, DT_SONAME, FileHeader64};
use object::read::elf::{Dyn, FileHeader, Sym};
use slabfence_layout_tests::elf::is_cuda;

use crate::build::built;

struct Elf {
    soname: String,
    needed: Vec<String>,
    stays: bool,
    /// Names that the library defines for others.
    defined: Vec<String>,
}

fn elf() -> Elf {
    let file = std::fs::read(built()).unwrap();
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(&*file).unwrap();
    let sections = header.sections(endian, &*file).unwrap();
    let (entries, strings) = sections.dynamic(endian, &*file).unwrap().unwrap();
    let strings = sections.strings(endian, &*file, strings).unwrap();
    let texts = |tag| {
        let of_tag = entries.iter().filter(move |entry| entry.tag(endian) == tag);
        of_tag.map(|entry| {
            String::from_utf8_lossy(entry.string(endian, strings).unwrap()).into_owned()
        })
    };
    let flags = entries
        .iter()
        .find(|entry| entry.tag(endian) == DT_FLAGS_1)
        .unwrap();
    let symbols = sections
        .symbols(endian, &*file, object::elf::SHT_DYNSYM)
        .unwrap();
    let exported = symbols
        .iter()
        .filter(|symbol| !symbol.is_undefined(endian) && !symbol.is_local());
    let name = |symbol: &object::elf::Sym64<LittleEndian>| {
        String::from_utf8_lossy(symbol.name(endian, symbols.strings()).unwrap()).into_owned()
    };
    Elf {
        soname: texts(DT_SONAME).next().unwrap(),
        needed: texts(DT_NEEDED).collect(),
        stays: u64::from(flags.val32(endian).unwrap()) & DF_1_NODELETE.0 != 0,
        defined: exported.map(name).collect(),
    }
}

/// The names that the library exports.
pub fn defined() -> Vec<String> {
    elf().defined
}

#[test]
fn it_is_the_driver_to_the_linker_and_needs_no_cuda() {
    let elf = elf();
    assert_eq!(elf.soname, "libcuda.so.1");
    assert!(elf.stays, "dlclose would take the code of its threads away");
    let cuda = elf.needed.iter().find(|name| is_cuda(name));
    assert_eq!(cuda, None, "{:?}", elf.needed);
}

#[test]
fn nothing_but_driver_names_is_exported() {
    let elf = elf();
    let own = ["slabfenceEmuAnnounceRange", "slabfenceEmuVersion"];
    let stranger = |name: &&String| !name.starts_with("cu") && !own.contains(&name.as_str());
    assert_eq!(elf.defined.iter().find(stranger), None);
    for name in
        own.into_iter()
            .chain(["cuInit", "cuMemAlloc_v2", "cuGraphLaunch", "cuTexRefCreate"])
    {
        assert!(
            elf.defined.iter().any(|defined| defined == name),
            "{name} is not exported"
        );
    }
    // Their 32-bit ABI is not the machine's: who is linked with these must not start.
    for oldest in [
        "cuMemAlloc",
        "cuMemcpyHtoD",
        "cuCtxPushCurrent",
        "cuStreamBeginCapture",
    ] {
        assert!(
            !elf.defined.iter().any(|defined| defined == oldest),
            "{oldest} is exported"
        );
    }
}
