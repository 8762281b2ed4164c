//! `ptx/MANIFEST.json`: from what, and with what, each committed image was built.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::image::{NVCC_FLAGS, PTXAS_FLAGS};
use crate::output::Result;
use crate::toolchain::WHEELS;

/// Number of the manifest's schema.
const SCHEMA: u32 = 1;

/// The whole file. Fields are written in the order in which they stand here.
#[derive(Serialize)]
pub struct Manifest {
    schema: u32,
    abi: u32,
    toolchain: Vec<Package>,
    flags: Flags,
    images: Vec<ImageEntry>,
}

#[derive(Serialize)]
struct Package {
    package: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Flags {
    nvcc: &'static [&'static str],
    ptxas: &'static [&'static str],
}

/// One kernel file and what came of it.
#[derive(Serialize)]
pub struct ImageEntry {
    /// Stem of the kernel file.
    pub name: String,
    /// The kernel file and every header of ours that it includes.
    pub sources: Vec<Source>,
    /// Its PTX.
    pub ptx: PtxEntry,
    /// What ptxas made of that PTX.
    pub cubins: Vec<CubinEntry>,
}

/// A source file.
#[derive(Serialize)]
pub struct Source {
    /// Path in the repository.
    pub path: String,
    /// Of its bytes.
    pub sha256: String,
}

/// A PTX file.
#[derive(Serialize)]
pub struct PtxEntry {
    /// Of its bytes.
    pub sha256: String,
    /// The PTX version that it asks for.
    pub version: String,
    /// The `.target` directive.
    pub target: String,
    /// Kernels, in the file's order.
    pub entries: Vec<String>,
}

/// A cubin.
#[derive(Serialize)]
pub struct CubinEntry {
    /// Compute capability, major × 10 + minor.
    pub sm: u32,
    /// Of its bytes.
    pub sha256: String,
    /// What its kernels use, by name.
    pub entries: Vec<Usage>,
}

/// What `ptxas -v` says of one kernel.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The kernel.
    pub name: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's stack frame.
    pub stack_bytes: u32,
    /// Bytes of spilled stores.
    pub spill_store_bytes: u32,
    /// Bytes of spilled loads.
    pub spill_load_bytes: u32,
    /// Static shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
}

impl Manifest {
    /// The manifest of these images.
    pub fn new(images: Vec<ImageEntry>) -> Self {
        Self {
            schema: SCHEMA,
            abi: slabfence::layout::ABI,
            toolchain: WHEELS
                .iter()
                .map(|&(package, version)| Package { package, version })
                .collect(),
            flags: Flags {
                nvcc: NVCC_FLAGS,
                ptxas: PTXAS_FLAGS,
            },
            images,
        }
    }

    /// The file's text.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).map_err(|e| format!("manifest: {e}"))?;
        Ok(text + "\n")
    }
}

/// Digest of what every image is, in all its forms. Sources and compilers do not enter: the same images may come of others.
pub fn digest(images: &[ImageEntry]) -> String {
    let mut lines = String::new();
    for ImageEntry {
        name, ptx, cubins, ..
    } in images
    {
        lines += &format!("{name}.ptx {}\n", ptx.sha256);
        for CubinEntry { sm, sha256, .. } in cubins {
            lines += &format!("{name}.sm_{sm}.cubin {sha256}\n");
        }
    }
    sha256(lines.as_bytes())
}

/// Lower-case hexadecimal SHA-256.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Reads the report of `ptxas -v`, sorted by kernel: ptxas prints kernels in an order of its own.
pub fn usages(report: &str) -> Result<Vec<Usage>> {
    let mut found: Vec<Usage> = Vec::new();
    // Device functions have properties too; only those of the entry being compiled count.
    let mut own = false;
    for line in report.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            found.push(Usage {
                name,
                registers: 0,
                stack_bytes: 0,
                spill_store_bytes: 0,
                spill_load_bytes: 0,
                shared_bytes: 0,
            });
            continue;
        }
        let Some(usage) = found.last_mut() else {
            continue;
        };
        if let Some((_, function)) = line.split_once("Function properties for ") {
            own = function.trim() == usage.name;
        } else if own && line.contains("bytes stack frame") {
            usage.stack_bytes = number_before(line, " bytes stack frame")?;
            usage.spill_store_bytes = number_before(line, " bytes spill stores")?;
            usage.spill_load_bytes = number_before(line, " bytes spill loads")?;
        } else if line.contains(": Used ") {
            usage.registers = number_before(line, " registers")?;
            if line.contains(" bytes smem") {
                usage.shared_bytes = number_before(line, " bytes smem")?;
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    match found.iter().find(|usage| usage.registers == 0) {
        Some(usage) => Err(format!(
            "ptxas -v does not say what {} uses:\n{report}",
            usage.name
        )),
        None => Ok(found),
    }
}

/// The number that stands before `unit`.
fn number_before(line: &str, unit: &str) -> Result<u32> {
    line.split_once(unit)
        .and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok())
        .ok_or_else(|| format!("ptxas -v: no number before `{unit}` in `{line}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_each_entry_is_read_and_sorted_and_that_of_functions_is_not() {
        let report = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for helper
    99 bytes stack frame, 98 bytes spill stores, 97 bytes spill loads
ptxas info    : Used 18 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compile time = 3.379 ms
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
";
        let usage = |name: &str, numbers: [u32; 5]| Usage {
            name: name.to_owned(),
            registers: numbers[0],
            stack_bytes: numbers[1],
            spill_store_bytes: numbers[2],
            spill_load_bytes: numbers[3],
            shared_bytes: numbers[4],
        };
        assert_eq!(
            usages(report),
            Ok(vec![
                usage("a", [255, 0, 0, 0, 0]),
                usage("b", [18, 16, 8, 12, 128])
            ])
        );
    }

    #[test]
    fn the_digest_is_another_for_another_image_and_the_same_for_other_sources() {
        let image = |source: &str, ptx: &str, cubin: &str| ImageEntry {
            name: "gather".to_owned(),
            sources: vec![Source {
                path: "kernels/gather.cu".to_owned(),
                sha256: source.to_owned(),
            }],
            ptx: PtxEntry {
                sha256: ptx.to_owned(),
                version: "7.0".to_owned(),
                target: "sm_80".to_owned(),
                entries: Vec::new(),
            },
            cubins: vec![CubinEntry {
                sm: 90,
                sha256: cubin.to_owned(),
                entries: Vec::new(),
            }],
        };
        let base = digest(&[image("a", "b", "c")]);
        assert_eq!(base, sha256(b"gather.ptx b\ngather.sm_90.cubin c\n"));
        assert_eq!(base, digest(&[image("x", "b", "c")]));
        assert_ne!(base, digest(&[image("a", "x", "c")]));
        assert_ne!(base, digest(&[image("a", "b", "x")]));
    }

    #[test]
    fn an_entry_without_a_usage_line_is_an_error() {
        assert!(usages("ptxas info : Compiling entry function 'a' for 'sm_90'\n").is_err());
    }

    #[test]
    fn sha256_of_abc_is_the_standards_example() {
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
