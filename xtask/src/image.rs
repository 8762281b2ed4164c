//! One kernel file and its image.
//!
//! nvcc writes PTX; every cubin is assembled by ptxas from that very PTX, so that what the emulator checks is what runs.

use std::collections::BTreeMap;
use std::path::Path;

use crate::manifest::{CubinEntry, ImageEntry, PtxEntry, Source, sha256, usages};
use crate::output::{self, Result, Scratch};
use crate::scan::{directive, entry_names, quoted_includes};
use crate::toolchain::{Toolchain, run};

/// How PTX is made. Without -lineinfo, which writes the build directory into it.
pub const NVCC_FLAGS: &[&str] = &["-std=c++17", "-O3", "-arch=compute_80", "--ptx"];
/// How cubins are made, beside `-arch=sm_N`.
pub const PTXAS_FLAGS: &[&str] = &["-v"];
/// Compute capabilities that get a cubin: Hopper and both Blackwells.
const CUBINS: [u32; 3] = [90, 100, 120];
/// PTX versions that know sm_80 and that ptxas 13.0 reads, oldest first.
const VERSIONS: [&str; 19] = [
    "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "8.0", "8.1", "8.2", "8.3",
    "8.4", "8.5", "8.6", "8.7", "8.8", "9.0",
];

/// How and from where images are built.
pub struct Build<'a> {
    /// The compilers.
    pub tools: &'a Toolchain,
    /// The folder of the kernel files.
    pub sources: &'a Path,
    /// Flags for both compilers, beside the usual ones.
    pub extra: &'a [&'a str],
}

/// An image and its line in the manifest.
pub struct Built {
    /// What the manifest says.
    pub entry: ImageEntry,
    /// The PTX text.
    pub ptx: String,
    /// What ptxas made of it.
    pub cubins: Vec<Assembled>,
}

/// A cubin.
pub struct Assembled {
    /// Compute capability, major × 10 + minor.
    pub sm: u32,
    /// The ELF file.
    pub bytes: Vec<u8>,
    /// What `ptxas -v` said.
    report: String,
}

impl Build<'_> {
    /// Builds the kernel file `name.cu`.
    pub fn image(&self, name: &str) -> Result<Built> {
        let scratch = Scratch::new(name)?;
        let raw = scratch.path().join("raw.ptx");
        let mut nvcc = self.tools.nvcc(self.sources);
        nvcc.args(NVCC_FLAGS)
            .args(self.extra)
            .arg(format!("{name}.cu"))
            .arg("-o")
            .arg(&raw);
        run(&mut nvcc)?;
        let (ptx, cubins) = self.assemble(&scratch, &output::read_text(&raw)?)?;
        let describe = |cubin: &Assembled| {
            Ok(CubinEntry {
                sm: cubin.sm,
                sha256: sha256(&cubin.bytes),
                entries: usages(&cubin.report)?,
            })
        };
        let entry = ImageEntry {
            name: name.to_owned(),
            sources: source_files(self.sources, name)?,
            ptx: PtxEntry {
                sha256: sha256(ptx.as_bytes()),
                version: directive(&ptx, ".version")?.to_owned(),
                target: directive(&ptx, ".target")?.to_owned(),
                entries: entry_names(&ptx),
            },
            cubins: cubins.iter().map(describe).collect::<Result<_>>()?,
        };
        Ok(Built { entry, ptx, cubins })
    }

    /// Lowers `.version` to the oldest that ptxas takes for this text, so that the oldest driver can compile it, and
    /// assembles the result.
    fn assemble(&self, scratch: &Scratch, raw: &str) -> Result<(String, Vec<Assembled>)> {
        let written = format!(".version {}\n", directive(raw, ".version")?);
        let mut refusal = String::new();
        for version in VERSIONS {
            let ptx = raw.replacen(&written, &format!(".version {version}\n"), 1);
            scratch.put("image.ptx", ptx.as_bytes())?;
            match CUBINS.iter().map(|&sm| self.cubin(scratch, sm)).collect() {
                Ok(cubins) => return Ok((ptx, cubins)),
                Err(message) => refusal = message,
            }
        }
        Err(refusal)
    }

    fn cubin(&self, scratch: &Scratch, sm: u32) -> Result<Assembled> {
        let mut ptxas = self.tools.ptxas(scratch.path());
        ptxas.args(PTXAS_FLAGS).args(self.extra);
        ptxas
            .arg(format!("-arch=sm_{sm}"))
            .args(["image.ptx", "-o", "image.cubin"]);
        let output = run(&mut ptxas)?;
        Ok(Assembled {
            sm,
            bytes: output::read(&scratch.path().join("image.cubin"))?,
            report: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// `name.cu` and the headers of ours that it includes, themselves included from one another or not.
fn source_files(sources: &Path, name: &str) -> Result<Vec<Source>> {
    let mut waiting = vec![format!("{name}.cu")];
    let mut seen = BTreeMap::new();
    while let Some(file) = waiting.pop() {
        if seen.contains_key(&file) {
            continue;
        }
        let text = output::read_text(&sources.join(&file))?;
        waiting.extend(quoted_includes(&text).map(str::to_owned));
        seen.insert(file, sha256(text.as_bytes()));
    }
    Ok(seen
        .into_iter()
        .map(|(file, sha256)| Source {
            path: format!("kernels/{file}"),
            sha256,
        })
        .collect())
}
