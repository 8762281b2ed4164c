//! `cargo xtask kernels`: from kernels/*.cu to the images that ship.
//!
//! nvcc writes PTX; every cubin is assembled by ptxas from that very PTX, so that what the emulator checks is what runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::manifest::{CubinEntry, ImageEntry, Manifest, PtxEntry, Source, sha256, usages};
use crate::output::{self, Result, Scratch, root};
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

/// Generated files by their path in the repository.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Builds all images and writes what changed to `ptx/`.
pub fn write() -> Result<()> {
    let tools = Toolchain::locate()?;
    let files = build(&tools, &root().join("kernels"), &[])?;
    let elsewhere = build_elsewhere(&tools)?;
    if let Some(path) = files
        .keys()
        .find(|path| files.get(*path) != elsewhere.get(*path))
    {
        return Err(format!(
            "{} depends on the directory that it is built in: look for names with internal linkage in the kernel",
            path.display()
        ));
    }
    for (path, bytes) in &files {
        output::write(&root().join(path), bytes)?;
    }
    for path in strays(&files)? {
        std::fs::remove_file(root().join(&path))
            .map_err(|e| format!("cannot remove {}: {e}", path.display()))?;
        println!("removed {}", path.display());
    }
    Ok(())
}

/// Fails unless `ptx/` holds, byte for byte, what [`write`] would write.
pub fn check() -> Result<()> {
    const HINT: &str = "run `cargo xtask kernels` and commit the result";
    let files = build_elsewhere(&Toolchain::locate()?)?;
    for (path, fresh) in &files {
        let full = root().join(path);
        match std::str::from_utf8(fresh) {
            Ok(text) => output::same_text(&full, text, "kernels")?,
            Err(_) if output::read(&full)? == *fresh => {}
            Err(_) => return Err(format!("{} is out of date: {HINT}", path.display())),
        }
    }
    match strays(&files)?.first() {
        Some(path) => Err(format!("{} has no kernel: {HINT}", path.display())),
        None => Ok(()),
    }
}

/// Writes images with line information to `directory`, for debuggers and profilers. They hold paths of this machine.
pub fn write_with_lines(directory: &Path) -> Result<()> {
    let files = build(
        &Toolchain::locate()?,
        &root().join("kernels"),
        &["-lineinfo"],
    )?;
    std::fs::create_dir_all(directory)
        .map_err(|e| format!("cannot create {}: {e}", directory.display()))?;
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with(IMAGES)) {
        let name = path.strip_prefix(IMAGES).unwrap_or(path);
        output::write(&directory.join(name), bytes)?;
    }
    Ok(())
}

const IMAGES: &str = "ptx/images";

/// Files in `ptx/images` that no kernel makes.
fn strays(files: &Files) -> Result<Vec<PathBuf>> {
    let names = output::list(&root().join(IMAGES))?;
    let paths = names.iter().map(|name| Path::new(IMAGES).join(name));
    Ok(paths.filter(|path| !files.contains_key(path)).collect())
}

/// Builds a copy of the sources in another directory.
fn build_elsewhere(tools: &Toolchain) -> Result<Files> {
    let copy = Scratch::new("kernels")?;
    let sources = root().join("kernels");
    for name in output::list(&sources)? {
        copy.put(&name, &output::read(&sources.join(&name))?)?;
    }
    build(tools, copy.path(), &[])
}

/// Builds every kernel of `sources`. `extra` flags go to both compilers.
fn build(tools: &Toolchain, sources: &Path, extra: &[&str]) -> Result<Files> {
    let mut files = Files::new();
    let mut entries = Vec::new();
    for name in output::list(sources)? {
        if let Some(name) = name.strip_suffix(".cu") {
            entries.push(image(tools, sources, name, extra, &mut files)?);
        }
    }
    files.insert("ptx/src/images.rs".into(), embedding(&entries).into_bytes());
    files.insert(
        "ptx/MANIFEST.json".into(),
        Manifest::new(entries).to_json()?.into_bytes(),
    );
    Ok(files)
}

/// Builds the kernel file `name.cu`.
fn image(
    tools: &Toolchain,
    sources: &Path,
    name: &str,
    extra: &[&str],
    files: &mut Files,
) -> Result<ImageEntry> {
    let scratch = Scratch::new(name)?;
    let raw = scratch.path().join("raw.ptx");
    let mut nvcc = tools.nvcc(sources);
    nvcc.args(NVCC_FLAGS)
        .args(extra)
        .arg(format!("{name}.cu"))
        .arg("-o")
        .arg(&raw);
    run(&mut nvcc)?;
    let (ptx, cubins) = assemble(tools, &scratch, &output::read_text(&raw)?, extra)?;

    let entry = ImageEntry {
        name: name.to_owned(),
        sources: source_files(sources, name)?,
        ptx: PtxEntry {
            sha256: sha256(ptx.as_bytes()),
            version: directive(&ptx, ".version")?.to_owned(),
            target: directive(&ptx, ".target")?.to_owned(),
            entries: entry_names(&ptx),
        },
        cubins: cubins
            .iter()
            .map(|cubin| {
                Ok(CubinEntry {
                    sm: cubin.sm,
                    sha256: sha256(&cubin.bytes),
                    entries: usages(&cubin.report)?,
                })
            })
            .collect::<Result<_>>()?,
    };
    files.insert(format!("{IMAGES}/{name}.ptx").into(), ptx.into_bytes());
    for cubin in cubins {
        files.insert(
            format!("{IMAGES}/{name}.sm_{}.cubin", cubin.sm).into(),
            cubin.bytes,
        );
    }
    Ok(entry)
}

/// What ptxas made of one PTX file for one compute capability.
struct Assembled {
    sm: u32,
    bytes: Vec<u8>,
    report: String,
}

/// Lowers `.version` to the oldest that ptxas takes for this text, so that the oldest driver can compile it, and
/// assembles the result.
fn assemble(
    tools: &Toolchain,
    scratch: &Scratch,
    raw: &str,
    extra: &[&str],
) -> Result<(String, Vec<Assembled>)> {
    let written = directive(raw, ".version")?;
    let mut refusal = String::new();
    for version in VERSIONS {
        let ptx = raw.replacen(
            &format!(".version {written}\n"),
            &format!(".version {version}\n"),
            1,
        );
        scratch.put("image.ptx", ptx.as_bytes())?;
        match CUBINS
            .iter()
            .map(|&sm| cubin(tools, scratch, sm, extra))
            .collect()
        {
            Ok(cubins) => return Ok((ptx, cubins)),
            Err(message) => refusal = message,
        }
    }
    Err(refusal)
}

fn cubin(tools: &Toolchain, scratch: &Scratch, sm: u32, extra: &[&str]) -> Result<Assembled> {
    let mut ptxas = tools.ptxas(scratch.path());
    ptxas
        .args(PTXAS_FLAGS)
        .args(extra)
        .arg(format!("-arch=sm_{sm}"))
        .args(["image.ptx", "-o", "image.cubin"]);
    let output = run(&mut ptxas)?;
    Ok(Assembled {
        sm,
        bytes: output::read(&scratch.path().join("image.cubin"))?,
        report: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
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

/// `ptx/src/images.rs`.
fn embedding(images: &[ImageEntry]) -> String {
    let mut out = format!(
        "//! Generated by `cargo xtask kernels`. Do not edit.\n\n\
         use crate::{{Cubin, Image}};\n\n\
         pub(crate) const ABI: u32 = {};\n\n\
         pub(crate) const IMAGES: &[Image] = &[\n",
        slabfence::layout::ABI
    );
    for image in images {
        let name = &image.name;
        out += &format!(
            "    Image {{\n        name: \"{name}\",\n        ptx: include_str!(\"../images/{name}.ptx\"),\n        cubins: &[\n"
        );
        for CubinEntry { sm, .. } in &image.cubins {
            out += &format!(
                "            Cubin {{ sm: {sm}, bytes: include_bytes!(\"../images/{name}.sm_{sm}.cubin\") }},\n"
            );
        }
        out += "        ],\n        entries: &[\n";
        for entry in &image.ptx.entries {
            out += &format!("            \"{entry}\",\n");
        }
        out += "        ],\n    },\n";
    }
    out + "];\n"
}
