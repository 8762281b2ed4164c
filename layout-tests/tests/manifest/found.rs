//! What a manifest describes, as it is found: the sources in `kernels/`, and the images that are embedded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sha2::{Digest, Sha256};
use slabfence_layout_tests::cubin;
use slabfence_ptx::Image;

/// All of it.
#[derive(Clone)]
pub struct Found {
    /// Number of the layouts.
    pub abi: u32,
    /// Files by path in the repository.
    pub sources: BTreeMap<String, Source>,
    /// In the order in which they are embedded.
    pub images: Vec<Embedded>,
}

/// A file of `kernels/`.
#[derive(Clone)]
pub struct Source {
    pub sha256: String,
    /// Paths of the files of ours that it includes.
    includes: Vec<String>,
}

/// An image.
#[derive(Clone)]
pub struct Embedded {
    pub name: String,
    pub entries: Vec<String>,
    pub ptx: Ptx,
    pub cubins: Vec<Cubin>,
}

/// A PTX text.
#[derive(Clone)]
pub struct Ptx {
    pub sha256: String,
    pub version: String,
    pub target: String,
}

/// A cubin.
#[derive(Clone)]
pub struct Cubin {
    pub sm: u32,
    pub sha256: String,
    pub kernels: Vec<String>,
}

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Found {
    pub fn new() -> Self {
        let files = std::fs::read_dir(repository().join("kernels")).unwrap();
        let sources = files.map(|file| {
            let file = file.unwrap();
            let path = format!("kernels/{}", file.file_name().to_str().unwrap());
            (path, Source::of(&std::fs::read(file.path()).unwrap()))
        });
        let cubins = |image: &Image| {
            let cubins = image.cubins.iter();
            cubins.map(|file| Cubin::of(file.sm, file.bytes)).collect()
        };
        let images = Image::all().iter().map(|image| Embedded {
            name: image.name.to_owned(),
            entries: image.entries.iter().map(ToString::to_string).collect(),
            ptx: Ptx::of(image.ptx),
            cubins: cubins(image),
        });
        Self {
            abi: slabfence::layout::ABI,
            sources: sources.collect(),
            images: images.collect(),
        }
    }

    /// The files that an image is made of: `kernels/NAME.cu`, and whatever of ours that includes, by path.
    pub fn files_of(&self, image: &str) -> BTreeMap<&str, &Source> {
        let mut found = BTreeMap::new();
        let mut wanted = BTreeSet::from([format!("kernels/{image}.cu")]);
        while let Some(path) = wanted.pop_first() {
            if let Some((path, source)) = self.sources.get_key_value(&path)
                && found.insert(path.as_str(), source).is_none()
            {
                wanted.extend(source.includes.iter().cloned());
            }
        }
        found
    }
}

impl Source {
    pub fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let included = |line: &str| {
            let name = line.trim().strip_prefix("#include \"")?.strip_suffix('"')?;
            Some(format!("kernels/{name}"))
        };
        Self {
            sha256: sha256(bytes),
            includes: text.lines().filter_map(included).collect(),
        }
    }
}

impl Ptx {
    pub fn of(text: &str) -> Self {
        let directive = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        Self {
            sha256: sha256(text.as_bytes()),
            version: directive(".version"),
            target: directive(".target"),
        }
    }
}

impl Cubin {
    pub fn of(sm: u32, bytes: &[u8]) -> Self {
        let cubin = cubin::Cubin::parse(bytes).expect("a cubin is an ELF file");
        Self {
            sm,
            sha256: sha256(bytes),
            kernels: cubin.kernels().iter().map(ToString::to_string).collect(),
        }
    }
}
