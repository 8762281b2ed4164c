//! `cargo xtask kernels`: from kernels/*.cu to the images that ship.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::image::{Build, Built};
use crate::manifest::{CubinEntry, ImageEntry, Manifest, digest};
use crate::output::{self, Result, Scratch, root};
use crate::toolchain::Toolchain;

/// Where images are checked in.
const IMAGES: &str = "ptx/images";

/// Generated files by their path in the repository.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Builds all images and writes what changed to `ptx/`.
pub fn write() -> Result<()> {
    let tools = Toolchain::locate()?;
    let (here, there) = (copy_of_sources("a")?, copy_of_sources("b")?);
    let files = build(&tools, here.path(), &[])?;
    let elsewhere = build(&tools, there.path(), &[])?;
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with(IMAGES)) {
        if elsewhere.get(path) != Some(bytes) {
            return Err(format!(
                "{} depends on the directory that it is built in: look in it for _INTERNAL_, the mark of a name with \
                 internal linkage (static, or an unnamed namespace)",
                path.display()
            ));
        }
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

/// Fails unless `ptx/` holds, byte for byte, what [`write()`] would write.
pub fn check() -> Result<()> {
    const HINT: &str = "run `cargo xtask kernels` and commit the result";
    let files = build(&Toolchain::locate()?, copy_of_sources("check")?.path(), &[])?;
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
    let tools = Toolchain::locate()?;
    let files = build(&tools, &root().join("kernels"), &["-lineinfo"])?;
    std::fs::create_dir_all(directory)
        .map_err(|e| format!("cannot create {}: {e}", directory.display()))?;
    for (path, bytes) in &files {
        if let Ok(name) = path.strip_prefix(IMAGES) {
            output::write(&directory.join(name), bytes)?;
        }
    }
    Ok(())
}

/// Files in `ptx/images` that no kernel makes.
fn strays(files: &Files) -> Result<Vec<PathBuf>> {
    let names = output::list(&root().join(IMAGES))?;
    let paths = names.iter().map(|name| Path::new(IMAGES).join(name));
    Ok(paths.filter(|path| !files.contains_key(path)).collect())
}

/// A copy of `kernels/` outside the repository: what is built there may not know where that is.
fn copy_of_sources(purpose: &str) -> Result<Scratch> {
    let copy = Scratch::new(purpose)?;
    let sources = root().join("kernels");
    for name in output::list(&sources)? {
        copy.put(&name, &output::read(&sources.join(&name))?)?;
    }
    Ok(copy)
}

/// Builds every kernel file of `sources`, all at once. `extra` flags go to both compilers.
fn build(tools: &Toolchain, sources: &Path, extra: &[&str]) -> Result<Files> {
    let build = &Build {
        tools,
        sources,
        extra,
    };
    let names = output::list(sources)?;
    let names: Vec<&str> = names
        .iter()
        .filter_map(|name| name.strip_suffix(".cu"))
        .collect();
    let built: Vec<Result<Built>> = std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .iter()
            .map(|name| scope.spawn(|| build.image(name)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });

    let mut files = Files::new();
    let mut entries = Vec::new();
    for image in built {
        let Built { entry, ptx, cubins } = image?;
        let stem = format!("{IMAGES}/{}", entry.name);
        files.insert(format!("{stem}.ptx").into(), ptx.into_bytes());
        for cubin in cubins {
            files.insert(format!("{stem}.sm_{}.cubin", cubin.sm).into(), cubin.bytes);
        }
        entries.push(entry);
    }
    files.insert("ptx/src/images.rs".into(), embedding(&entries).into_bytes());
    let manifest = Manifest::new(entries).to_json()?;
    files.insert("ptx/MANIFEST.json".into(), manifest.into_bytes());
    Ok(files)
}

/// `ptx/src/images.rs`.
fn embedding(images: &[ImageEntry]) -> String {
    let mut out = format!(
        "//! Generated by `cargo xtask kernels`. Do not edit.\n\n\
         use crate::{{Cubin, Image}};\n\n\
         pub(crate) const ABI: u32 = {};\n\n\
         pub(crate) const DIGEST: &str = \"{}\";\n\n\
         pub(crate) const IMAGES: &[Image] = &[\n",
        slabfence::layout::ABI,
        digest(images),
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
