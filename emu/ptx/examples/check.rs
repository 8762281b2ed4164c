//! Reads PTX files and says what is in them, or why they are refused.
//!
//! `cargo run -p slabfence-emu-ptx --example check -- FILE.ptx…`

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        let module = std::fs::read_to_string(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| slabfence_emu_ptx::parse(&text).map_err(|error| error.to_string()));
        match module {
            Ok(module) => {
                let instructions: usize = module.entries.iter().map(|entry| entry.body.len()).sum();
                let (major, minor) = module.version;
                println!(
                    "{path}: PTX {major}.{minor} for sm_{}, {} kernels, {} globals, {instructions} instructions",
                    module.target,
                    module.entries.len(),
                    module.globals.len()
                );
            }
            Err(error) => {
                println!("{path}: {error}");
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}
