//! Somebody's PTX in the place of shipped entries.

use std::path::Path;

use slabfence_emu::Profile;

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

/// A plain file of text, of a bounded length.
pub fn text(path: &Path) -> Result<String, Failure> {
    words(path).map_err(|words| Failure::Use(format!("{}: {words}", path.display())))
}

/// The same, with the reason alone.
pub fn words(path: &Path) -> Result<String, String> {
    let bytes = files::read(path, MOST)?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
