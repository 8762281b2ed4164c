//! Somebody's PTX in the place of shipped entries.

use std::path::Path;

use slabfence_emu::Profile;
use slabfence_emu_ptx::Entry;

use super::case;
use super::kernels::Pair;
use crate::failure::Failure;
use crate::files;

/// Longest text that is read.
const MOST: u64 = 64 << 20;

/// Reads a text, and makes sure that it is accepted and that the choice runs some of its entries.
pub fn read(
    path: &Path,
    pairs: &[Pair],
    worlds: &[u32],
    profile: &Profile,
) -> Result<String, Failure> {
    let shown = path.display();
    let text = text(path)?;
    let (machine, _driver) = case::machine(1, profile)?;
    let names = machine
        .replace_entries(&text)
        .map_err(|error| Failure::Use(format!("{shown}: {error}")))?;
    fits(&text).map_err(|words| Failure::Use(format!("{shown}: {words}")))?;
    let runs = |name: &String| pairs.iter().any(|pair| pair.runs(name, worlds));
    match names.iter().any(runs) {
        true => Ok(text),
        false if names.is_empty() => Err(Failure::Use(format!("{shown}: it defines no entry"))),
        false => Err(Failure::Use(format!(
            "{shown}: it defines no entry that is run here, only {}",
            names.join(", ")
        ))),
    }
}

/// Makes sure that entries of the same name take the same parameters: the library launches what is shipped.
fn fits(text: &str) -> Result<(), String> {
    let parse = |text: &str| slabfence_emu_ptx::parse(text).map_err(|error| error.to_string());
    let ours = parse(text)?.entries;
    for image in slabfence_ptx::Image::all() {
        let known = |entry: &&Entry| image.entries.contains(&entry.name.as_str());
        if !ours.iter().any(|entry| known(&entry)) {
            continue;
        }
        let shipped = parse(image.ptx)?.entries;
        for entry in ours.iter().filter(known) {
            let same_name = |shipped: &&Entry| shipped.name == entry.name;
            let Some(shipped) = shipped.iter().find(same_name) else {
                continue;
            };
            if places(entry) != places(shipped) {
                return Err(format!(
                    "line {}: entry `{}` has parameters of {}, the shipped one of {}",
                    entry.line,
                    entry.name,
                    sizes(entry),
                    sizes(shipped)
                ));
            }
            takes(entry, shipped)?;
        }
    }
    Ok(())
}

/// Makes sure that a block of as many threads as the shipped entry is launched with is one that this entry takes.
fn takes(entry: &Entry, shipped: &Entry) -> Result<(), String> {
    let count = |threads: [u32; 3]| threads.iter().map(|&t| u64::from(t)).product::<u64>();
    let Some(launched) = shipped.max_threads.map(count) else {
        return Ok(());
    };
    let (line, name) = (entry.line, &entry.name);
    match (
        entry.max_threads.map(count),
        entry.required_threads.map(count),
    ) {
        (Some(most), _) if most < launched => Err(format!(
            "line {line}: entry `{name}` takes at most {most} threads a block (.maxntid), the shipped one is launched with {launched}"
        )),
        (_, Some(exactly)) if exactly != launched => Err(format!(
            "line {line}: entry `{name}` takes {exactly} threads a block (.reqntid), the shipped one is launched with {launched}"
        )),
        _ => Ok(()),
    }
}

/// Offset and size of each parameter.
fn places(entry: &Entry) -> Vec<(u32, u32)> {
    let params = entry.params.iter();
    params.map(|param| (param.offset, param.size)).collect()
}

/// The same for a human.
fn sizes(entry: &Entry) -> String {
    let sizes: Vec<String> = entry.params.iter().map(|p| p.size.to_string()).collect();
    match sizes.is_empty() {
        true => "0 bytes".to_owned(),
        false => format!("{} bytes", sizes.join(" + ")),
    }
}

/// A plain file of text, of a bounded length.
pub fn text(path: &Path) -> Result<String, Failure> {
    words(path).map_err(|words| Failure::Use(format!("{}: {words}", path.display())))
}

/// The same, with the reason alone.
pub fn words(path: &Path) -> Result<String, String> {
    let bytes = files::read(path, MOST)?;
    let line = |before: &[u8]| 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    // The driver takes a text up to its NUL.
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        return Err(format!("line {}: a NUL in the text", line(&bytes[..at])));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = line(&error.as_bytes()[..good]);
        format!("line {line}: no UTF-8 text from byte {good} on")
    })
}
