//! What can be read off the text of kernels and of PTX.

use crate::output::Result;

/// File names of `#include "…"` lines.
pub fn quoted_includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line
            .trim_start()
            .strip_prefix('#')?
            .trim_start()
            .strip_prefix("include")?;
        rest.trim_start().strip_prefix('"')?.split('"').next()
    })
}

/// The operand of a directive of its own line.
pub fn directive<'a>(ptx: &'a str, name: &str) -> Result<&'a str> {
    ptx.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .ok_or_else(|| format!("the PTX has no {name} line"))
}

/// Kernels of a PTX file, in its order.
pub fn entry_names(ptx: &str) -> Vec<String> {
    ptx.lines()
        .filter_map(|line| line.split_once(".entry ")?.1.split('(').next())
        .map(|name| name.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_in_quotes_are_ours() {
        let text = "#include \"abi.cuh\"\n#include <stdint.h>\n  #  include \"protocol.cuh\" // why\n// include \"no\"\n";
        assert_eq!(
            quoted_includes(text).collect::<Vec<_>>(),
            ["abi.cuh", "protocol.cuh"]
        );
    }

    #[test]
    fn entries_and_directives_are_read_from_ptx() {
        let ptx = ".version 9.0\n.target sm_80\n\n.visible .entry sf_b(\n\t.param .u64 p\n)\n.visible .entry sf_a(\n";
        assert_eq!(entry_names(ptx), ["sf_b", "sf_a"]);
        assert_eq!(directive(ptx, ".version"), Ok("9.0"));
        assert_eq!(directive(ptx, ".target"), Ok("sm_80"));
        assert!(directive(ptx, ".address_size").is_err());
    }
}
