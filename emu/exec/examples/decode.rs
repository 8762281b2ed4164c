//! Decodes every kernel of PTX files and says what it needs, or why it is refused.
//!
//! `cargo run -p slabfence-emu-exec --example decode -- FILE.ptx…`

use slabfence_emu_exec::Kernel;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let module =
            text.and_then(|text| slabfence_emu_ptx::parse(&text).map_err(|e| e.to_string()));
        let module = match module {
            Ok(module) => module,
            Err(error) => {
                println!("{path}: {error}");
                status = ExitCode::FAILURE;
                continue;
            }
        };
        for entry in &module.entries {
            match Kernel::compile(&module, &entry.name) {
                Ok(kernel) => println!(
                    "{path}: {}: {} instructions, {} registers, {} B parameters, {} B shared, {} B local",
                    kernel.name(),
                    entry.body.len(),
                    kernel.registers(),
                    kernel.param_bytes(),
                    kernel.static_shared_bytes(),
                    kernel.local_bytes()
                ),
                Err(error) => {
                    println!("{path}: {}: {error}", entry.name);
                    status = ExitCode::FAILURE;
                }
            }
        }
    }
    status
}
