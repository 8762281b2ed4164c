//! The manifest tells the truth about the images that are embedded and the sources that are checked in.

mod found;
mod proofs;

use std::collections::BTreeSet;

use serde_json::Value;
use slabfence_ptx::Image;

use found::{Cubin, Embedded, Found, Ptx, Source, repository};
use proofs::Proof;

fn manifest() -> Value {
    let text = std::fs::read_to_string(repository().join("ptx/MANIFEST.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn holds(proof: Proof) {
    let wrong = proof(&manifest(), &Found::new());
    assert_eq!(wrong, [""; 0], "run `cargo xtask kernels`");
}

#[test]
fn the_schema_and_the_layout_version_are_the_current_ones() {
    holds(proofs::numbers);
}

#[test]
fn every_source_is_the_one_that_its_image_was_built_from() {
    holds(proofs::sources);
}

#[test]
fn every_embedded_image_is_described() {
    holds(proofs::images);
}

#[test]
fn no_kernel_spills_registers() {
    holds(proofs::spills);
}

/// What all proofs find wrong.
fn wrong(manifest: &Value, found: &Found) -> Vec<String> {
    let proofs = proofs::ALL.iter();
    proofs.flat_map(|proof| proof(manifest, found)).collect()
}

/// Places of all values that hold no others, and of all lists.
fn places(value: &Value, place: String, leaves: &mut Vec<String>, lists: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                places(value, format!("{place}/{key}"), leaves, lists);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, format!("{place}/{index}"), leaves, lists);
            }
            lists.push(place);
        }
        _ => leaves.push(place),
    }
}

/// A place with `*` for every index.
fn kind(place: &str) -> String {
    let index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = place
        .split('/')
        .map(|part| if index(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// What only building again tells: `cargo xtask kernels --check` does that, and compares the file.
const OF_THE_BUILD: [&str; 7] = [
    "/flags/nvcc/*",
    "/flags/ptxas/*",
    "/images/*/cubins/*/entries/*/registers",
    "/images/*/cubins/*/entries/*/shared_bytes",
    "/images/*/cubins/*/entries/*/stack_bytes",
    "/toolchain/*/package",
    "/toolchain/*/version",
];

#[test]
fn each_number_and_each_text_changed_in_the_manifest_is_noticed_at_its_place() {
    let (right, found) = (manifest(), Found::new());
    let (mut leaves, mut lists) = (Vec::new(), Vec::new());
    places(&right, String::new(), &mut leaves, &mut lists);
    let mut unnoticed = BTreeSet::new();
    for place in leaves {
        let mut other = right.clone();
        let value = other.pointer_mut(&place).unwrap();
        *value = match &*value {
            Value::Number(number) => (number.as_u64().unwrap() + 1).into(),
            Value::String(text) => change(text).into(),
            other => panic!("{place} is {other}"),
        };
        match wrong(&other, &found) {
            none if none.is_empty() => _ = unnoticed.insert(kind(&place)),
            places => assert_eq!(places, [place]),
        }
    }
    assert_eq!(unnoticed, OF_THE_BUILD.map(str::to_owned).into());
}

/// The text with its last character changed.
fn change(text: &str) -> String {
    let mut text = text.to_owned();
    let last = text.pop().expect("a text");
    text.push(if last == '0' { '1' } else { '0' });
    text
}

#[test]
fn each_item_that_the_manifest_lacks_or_has_twice_is_noticed() {
    let (right, found) = (manifest(), Found::new());
    let (mut leaves, mut lists) = (Vec::new(), Vec::new());
    places(&right, String::new(), &mut leaves, &mut lists);
    lists.retain(|place| place.starts_with("/images"));
    assert!(lists.len() > 4 * found.images.len());
    for place in lists {
        let changed = |change: fn(&mut Vec<Value>)| {
            let mut other = right.clone();
            change(other.pointer_mut(&place).unwrap().as_array_mut().unwrap());
            wrong(&other, &found)
        };
        let shorter = changed(|items| _ = items.pop());
        let longer = changed(|items| items.extend(items.last().cloned()));
        for wrong in [shorter, longer] {
            assert!(!wrong.is_empty(), "{place}");
            assert!(wrong.iter().all(|found| *found == place), "{wrong:?}");
        }
    }
}

#[test]
fn each_source_changed_by_a_byte_is_noticed_in_every_image_that_is_built_from_it() {
    let (manifest, right) = (manifest(), Found::new());
    let listed: BTreeSet<&str> = (right.images.iter())
        .flat_map(|image| right.files_of(&image.name).into_keys())
        .collect();
    let all: BTreeSet<&str> = right.sources.keys().map(String::as_str).collect();
    assert_eq!(listed, all, "a file of kernels/ is in no image");
    for path in all {
        let mut bytes = std::fs::read(repository().join(path)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let mut found = right.clone();
        found.sources.insert(path.to_owned(), Source::of(&bytes));
        let images = right.images.iter().enumerate();
        let expected = images.filter_map(|(image, Embedded { name, .. })| {
            let at = right
                .files_of(name)
                .keys()
                .position(|&other| other == path)?;
            Some(format!("/images/{image}/sources/{at}/sha256"))
        });
        let expected: Vec<String> = expected.collect();
        assert_eq!(wrong(&manifest, &found), expected, "{path}");
    }
}

#[test]
fn each_embedded_file_changed_by_a_byte_is_noticed() {
    let (manifest, right) = (manifest(), Found::new());
    for (index, image) in Image::all().iter().enumerate() {
        let mut found = right.clone();
        found.images[index].ptx = Ptx::of(&image.ptx[..image.ptx.len() - 1]);
        let place = format!("/images/{index}/ptx/sha256");
        assert_eq!(wrong(&manifest, &found), [place], "{}.ptx", image.name);
        for (number, file) in image.cubins.iter().enumerate() {
            let mut bytes = file.bytes.to_vec();
            *bytes.last_mut().unwrap() ^= 1;
            let mut found = right.clone();
            found.images[index].cubins[number] = Cubin::of(file.sm, &bytes);
            let place = format!("/images/{index}/cubins/{number}/sha256");
            assert_eq!(wrong(&manifest, &found), [place], "{}", image.name);
        }
    }
}

#[test]
fn each_image_that_is_not_embedded_or_under_another_number_is_noticed() {
    let (manifest, right) = (manifest(), Found::new());
    let mut found = right.clone();
    found.images.pop();
    let missing = wrong(&manifest, &found);
    assert_eq!(missing, ["/images"; 3]);
    let mut found = right.clone();
    found.abi += 1;
    assert_eq!(wrong(&manifest, &found), ["/abi"]);
    for (index, image) in right.images.iter().enumerate() {
        for number in 0..image.cubins.len() {
            let mut found = right.clone();
            found.images[index].cubins[number].sm += 1;
            let place = format!("/images/{index}/cubins/{number}/sm");
            assert_eq!(wrong(&manifest, &found), [place]);
        }
    }
}
