//! Texts read, and texts refused.

mod bodies;
mod directives;
mod refusals;

use slabfence_emu_ptx::{Entry, Module, parse};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// Reads a module of this text behind a usual head of three lines.
fn module(text: &str) -> Module {
    parse(&format!("{HEAD}{text}")).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Reads a kernel of this body; the body starts on line 7, behind `{` and declared registers.
fn kernel(body: &str) -> Entry {
    module(&around(body)).entries.remove(0)
}

fn around(body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<9>;\n{body}\n}}\n"
    )
}

/// Why a module of this text is refused.
fn refusal(text: &str) -> String {
    parse(&format!("{HEAD}{text}")).expect_err(text).to_string()
}

/// Why a kernel of this body is refused.
fn body_refusal(body: &str) -> String {
    refusal(&around(body))
}
