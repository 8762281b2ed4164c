//! The captured graph as a file.

use std::path::Path;

use slabfence::graph::Dump;
use slabfence::{Error, Result};

use crate::failure::Failure;
use crate::files;

/// The option that asks for it.
pub const OPTION: &str = "--dump-graph";

/// Writes a dump down.
type Form = fn(&Dump) -> String;

/// The forms, by the ending of the file's name.
const FORMS: [(&str, Form); 3] = [
    ("txt", Dump::to_string),
    ("json", Dump::to_json),
    ("dot", Dump::to_dot),
];

fn form(path: &Path) -> Option<Form> {
    let ending = path.extension()?.to_str()?;
    let form = FORMS.iter().find(|(name, _)| *name == ending);
    form.map(|(_, form)| *form)
}

/// Refuses a name that tells no form.
pub fn check(path: &Path) -> Result<(), Failure> {
    if form(path).is_none() {
        return Err(Failure::Use(format!(
            "{OPTION} {}: the name must end in .txt, .json or .dot, which chooses the form",
            path.display()
        )));
    }
    Ok(())
}

/// Writes the file, or nothing.
pub fn write(path: &Path, dump: &Dump) -> Result<()> {
    let form = form(path).unwrap_or(Dump::to_string);
    files::store(path, form(dump).as_bytes()).map_err(|error| Error::Refused {
        operation: OPTION,
        why: format!("{}: {error}", path.display()),
    })
}
