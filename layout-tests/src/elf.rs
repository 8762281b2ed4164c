//! What programs and libraries are linked with.

use object::LittleEndian;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader};

/// How the names of CUDA's libraries begin: the driver and the toolkit (`libcu`), NVIDIA's others, NCCL.
const CUDA: [&str; 3] = ["libcu", "libnv", "libnccl"];

/// Whether a library is one that nothing here may be linked with: the driver is opened at run time, by its name alone.
/// A name that only begins alike, as curl's does, is refused too: nothing here has a use for it.
pub fn is_cuda(library: &str) -> bool {
    CUDA.iter().any(|start| library.starts_with(start))
}

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

#[cfg(test)]
mod tests {
    use super::is_cuda;

    #[test]
    fn libraries_of_cuda_are_refused_and_those_of_the_system_are_not() {
        for library in [
            "libcuda.so.1",
            "libcuda.so",
            "libcudart.so.13",
            "libcudart.so.12",
            "libcublas.so.13",
            "libcupti.so.13",
            "libnccl.so.2",
            "libnccl.so",
            "libnvrtc.so.13",
            "libnvidia-ml.so.1",
            "libnvshmem_host.so.3",
        ] {
            assert!(is_cuda(library), "{library}");
        }
        for library in [
            "libc.so.6",
            "libgcc_s.so.1",
            "libm.so.6",
            "libdl.so.2",
            "ld-linux-x86-64.so.2",
            "libnss_files.so.2",
        ] {
            assert!(!is_cuda(library), "{library}");
        }
    }
}
