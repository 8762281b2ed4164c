//! The proofs: each gives the places of a manifest at which it does not tell what was found, as JSON pointers.

use serde_json::{Value, json};

use crate::found::Found;

/// A proof.
pub type Proof = fn(&Value, &Found) -> Vec<String>;

/// All of them.
pub const ALL: [Proof; 4] = [numbers, sources, images, spills];

/// The schema and the layouts' number are the current ones.
pub fn numbers(manifest: &Value, found: &Found) -> Vec<String> {
    differences(manifest, &json!({ "schema": 1, "abi": found.abi }))
}

/// Every image was built from the sources that are checked in, all of them named.
pub fn sources(manifest: &Value, found: &Found) -> Vec<String> {
    let images = found.images.iter().map(|image| {
        let files = found.files_of(&image.name).into_iter();
        let files = files.map(|(path, file)| json!({ "path": path, "sha256": file.sha256 }));
        json!({ "sources": files.collect::<Vec<_>>() })
    });
    differences(manifest, &json!({ "images": images.collect::<Vec<_>>() }))
}

/// Exactly the images that are embedded are described.
pub fn images(manifest: &Value, found: &Found) -> Vec<String> {
    let images = found.images.iter().map(|image| {
        let cubins = image.cubins.iter().map(|cubin| {
            let kernels = cubin.kernels.iter().map(|name| json!({ "name": name }));
            json!({ "sm": cubin.sm, "sha256": cubin.sha256, "entries": kernels.collect::<Vec<_>>() })
        });
        let ptx = &image.ptx;
        json!({
            "name": image.name,
            "ptx": {
                "sha256": ptx.sha256,
                "version": ptx.version,
                "target": ptx.target,
                "entries": image.entries,
            },
            "cubins": cubins.collect::<Vec<_>>(),
        })
    });
    differences(manifest, &json!({ "images": images.collect::<Vec<_>>() }))
}

/// No kernel spills registers.
pub fn spills(manifest: &Value, found: &Found) -> Vec<String> {
    let images = found.images.iter().map(|image| {
        let cubins = image.cubins.iter().map(|cubin| {
            let none = json!({ "spill_store_bytes": 0, "spill_load_bytes": 0 });
            json!({ "entries": vec![none; cubin.kernels.len()] })
        });
        json!({ "cubins": cubins.collect::<Vec<_>>() })
    });
    differences(manifest, &json!({ "images": images.collect::<Vec<_>>() }))
}

/// Places of `told` that differ from `found`. Of an object only what was found is compared.
fn differences(told: &Value, found: &Value) -> Vec<String> {
    let mut places = Vec::new();
    compare(told, found, String::new(), &mut places);
    places
}

fn compare(told: &Value, found: &Value, place: String, places: &mut Vec<String>) {
    match (told, found) {
        (Value::Object(told), Value::Object(found)) => {
            for (key, found) in found {
                let told = told.get(key).unwrap_or(&Value::Null);
                compare(told, found, format!("{place}/{key}"), places);
            }
        }
        (Value::Array(told), Value::Array(found)) if told.len() == found.len() => {
            for (index, (told, found)) in told.iter().zip(found).enumerate() {
                compare(told, found, format!("{place}/{index}"), places);
            }
        }
        _ if told == found => {}
        _ => places.push(place),
    }
}
