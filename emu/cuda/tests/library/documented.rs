//! The list in the documentation.

use crate::exported::defined;
use crate::found::Loaded;

/// Names in the documentation's list of functions.
fn listed() -> Vec<String> {
    let text = include_str!("../../../../docs/emulator.md");
    let (_, rest) = text.split_once("<!-- functions -->").unwrap();
    let (list, _) = rest.split_once("<!-- /functions -->").unwrap();
    let names = list.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn the_documentation_lists_the_functions_that_are_covered() {
    let library = Loaded::new();
    let covered = library.covered(&defined());
    let mut listed = listed();
    listed.sort();
    assert_eq!(listed, covered);
}
