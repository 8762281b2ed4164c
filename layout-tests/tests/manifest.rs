//! The manifest tells the truth about the images that are embedded and the sources that are checked in.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};
use slabfence_ptx::Image;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn manifest() -> Value {
    let text = std::fs::read_to_string(repository().join("ptx/MANIFEST.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

#[test]
fn the_schema_and_the_layout_version_are_the_current_ones() {
    let manifest = manifest();
    assert_eq!(manifest["schema"], 1);
    assert_eq!(manifest["abi"], slabfence::layout::ABI);
}

#[test]
fn every_source_is_the_one_that_its_image_was_built_from() {
    for image in list(&manifest()["images"]) {
        for source in list(&image["sources"]) {
            let path = source["path"].as_str().unwrap();
            let found = sha256(&std::fs::read(repository().join(path)).unwrap());
            assert_eq!(
                source["sha256"], found,
                "{path} changed: run `cargo xtask kernels`"
            );
        }
    }
}

#[test]
fn every_embedded_image_is_described() {
    let manifest = manifest();
    let described = list(&manifest["images"]);
    let names: Vec<&str> = described
        .iter()
        .map(|image| image["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        Image::all()
            .iter()
            .map(|image| image.name)
            .collect::<Vec<_>>()
    );
    for (entry, image) in described.iter().zip(Image::all()) {
        let name = image.name;
        assert_eq!(
            entry["ptx"]["sha256"],
            sha256(image.ptx.as_bytes()),
            "{name}.ptx"
        );
        assert_eq!(list(&entry["ptx"]["entries"]), image.entries, "{name}.ptx");
        assert_eq!(list(&entry["cubins"]).len(), image.cubins.len(), "{name}");
        for (entry, cubin) in list(&entry["cubins"]).iter().zip(image.cubins) {
            assert_eq!(entry["sm"], cubin.sm, "{name}");
            assert_eq!(
                entry["sha256"],
                sha256(cubin.bytes),
                "{name}.sm_{}.cubin",
                cubin.sm
            );
        }
    }
}

#[test]
fn no_kernel_spills_registers() {
    for image in list(&manifest()["images"]) {
        for cubin in list(&image["cubins"]) {
            for entry in list(&cubin["entries"]) {
                let spills = [&entry["spill_store_bytes"], &entry["spill_load_bytes"]];
                assert_eq!(spills, [0, 0], "{} in sm_{}", entry["name"], cubin["sm"]);
            }
        }
    }
}
