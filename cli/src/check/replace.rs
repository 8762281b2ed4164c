//! Somebody's PTX in the place of shipped entries.

use std::fs;
use std::path::Path;

use super::case;
use super::kernels::Pair;
use crate::failure::Failure;

/// Longest text that is read.
const MOST: u64 = 64 << 20;

/// Reads a text, and makes sure that it is accepted and that the choice runs some of its entries.
pub fn read(path: &Path, pairs: &[Pair], worlds: &[u32]) -> Result<String, Failure> {
    let shown = path.display();
    let text = text(path)?;
    let (machine, _driver) = case::machine(1)?;
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

/// A file of text, of a bounded length.
pub fn text(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let refuse = |words: String| Failure::Use(format!("{shown}: {words}"));
    let size = fs::metadata(path)
        .map_err(|error| refuse(error.to_string()))?
        .len();
    if size > MOST {
        return Err(refuse(format!("it has {size} bytes; {MOST} are the most")));
    }
    fs::read_to_string(path).map_err(|error| refuse(error.to_string()))
}
