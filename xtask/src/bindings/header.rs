//! The headers' declarations, as bindgen writes them in Rust.

use std::process::Command;

use bindgen::{EnumVariation, Formatter, RustEdition, RustTarget};

use super::choices::{FLAGS, MACROS, NOT_COMPARED, OWN_DEBUG, TYPED, TYPES};
use super::entries;
use crate::output::Result;
use crate::toolchain::{headers, run};

/// Declarations of all that the table's functions and the choices mention.
pub fn declarations() -> Result<String> {
    let include = headers()?;
    clang_sys::load().map_err(|e| {
        format!("bindgen reads C with libclang, which this machine lacks: on Debian, `apt-get install libclang1-19`\n{e}")
    })?;
    let mut builder = bindgen::builder()
        .header_contents("driver.h", "#include <cuda.h>\n#include <cudaTypedefs.h>\n")
        .clang_arg(format!("-I{}", include.display()))
        .clang_arg(format!("-isystem{}", compiler_headers()?))
        .rust_target(RustTarget::stable(88, 0).map_err(|e| e.to_string())?)
        .rust_edition(RustEdition::Edition2024)
        .use_core()
        .disable_header_comment()
        .generate_comments(false)
        .default_enum_style(EnumVariation::NewType {
            is_bitfield: false,
            is_global: false,
        })
        .layout_tests(true)
        .derive_default(false)
        .derive_partialeq(true)
        .derive_eq(true)
        .derive_hash(true)
        .sort_semantically(true)
        .formatter(Formatter::Prettyplease);
    for typedef in entries::typedefs() {
        builder = builder.allowlist_type(typedef);
    }
    for name in TYPES {
        builder = builder.allowlist_type(name);
    }
    for flags in FLAGS {
        builder = match flags.macros {
            Some(prefix) => builder.allowlist_var(format!("{prefix}.*")),
            None => builder.allowlist_type(flags.name),
        };
    }
    for (prefix, _) in MACROS {
        builder = builder.allowlist_var(format!("{prefix}.*"));
    }
    for typed in TYPED {
        builder = builder.allowlist_type(typed.name);
    }
    for name in OWN_DEBUG {
        builder = builder.no_debug(format!("{name}(_st)?"));
    }
    for name in NOT_COMPARED {
        builder = builder
            .no_partialeq(format!("{name}(_st)?"))
            .no_hash(format!("{name}(_st)?"));
    }
    let bindings = builder.generate().map_err(|e| e.to_string())?;
    Ok(bindings.to_string())
}

/// `stddef.h` and its like. Debian's libclang comes without its own; gcc's, which nvcc needs anyway, serve as well.
fn compiler_headers() -> Result<String> {
    let answer = run(Command::new("gcc").arg("-print-file-name=include")).map_err(|e| {
        format!("{e}\nthe driver's headers need a C compiler's: on Debian, `apt-get install gcc`")
    })?;
    Ok(String::from_utf8_lossy(&answer.stdout).trim().to_owned())
}
