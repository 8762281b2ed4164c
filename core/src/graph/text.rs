//! The text form.

use std::fmt::{self, Display, Formatter};

use super::params::Value;
use super::{Dump, names};
use crate::driver::{Contents, CopyEnd, Edge, KernelNode, Node, Param, Work};

/// Bytes of a parameter in one line.
const LINE: usize = 32;

impl Display for Dump {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let version = self.driver_version;
        let (major, minor) = (version / 1000, version % 1000 / 10);
        writeln!(
            f,
            "graph on device {} ({}), driver for CUDA {major}.{minor}",
            self.device, self.device_name
        )?;
        Writer { dump: self, f }.contents(&self.contents, "")
    }
}

/// Three numbers as a product.
pub(super) fn product([x, y, z]: [u32; 3]) -> String {
    format!("{x} x {y} x {z}")
}

/// An edge's kind, and its ports where they are not the ordinary ones.
pub(super) fn edge(edge: &Edge) -> String {
    let kind = names::edge(edge.kind);
    match (edge.from_port, edge.to_port) {
        (0, 0) => kind,
        (from, to) => format!("{kind}, from port {from} to port {to}"),
    }
}

/// A kernel's name.
pub(super) fn function(kernel: &KernelNode) -> &str {
    kernel.function.as_deref().unwrap_or("(name not told)")
}

struct Writer<'a, 'f, 'b> {
    dump: &'a Dump,
    f: &'f mut Formatter<'b>,
}

impl Writer<'_, '_, '_> {
    fn contents(&mut self, contents: &Contents, indent: &str) -> fmt::Result {
        let Contents { nodes, edges } = contents;
        writeln!(
            self.f,
            "{indent}{} nodes, {} edges",
            nodes.len(),
            edges.len()
        )?;
        for edge in edges {
            let kind = self::edge(edge);
            writeln!(self.f, "{indent}edge {} -> {}: {kind}", edge.from, edge.to)?;
        }
        for (index, node) in nodes.iter().enumerate() {
            writeln!(self.f)?;
            write!(self.f, "{indent}node {index}: {}", names::node(node.kind))?;
            self.node(node, &format!("{indent}  "))?;
        }
        Ok(())
    }

    fn node(&mut self, node: &Node, indent: &str) -> fmt::Result {
        match &node.work {
            Work::Kernel(kernel) => {
                writeln!(self.f, " {}", function(kernel))?;
                self.kernel(kernel, indent)
            }
            Work::Copy(copy) => {
                let (bytes, rows, planes) = (copy.bytes, copy.rows, copy.planes);
                writeln!(self.f, " of {bytes} bytes x {rows} rows x {planes} planes")?;
                self.end("from", copy.from, indent)?;
                self.end("to", copy.to, indent)
            }
            Work::Fill(fill) => {
                let (elements, rows, size) = (fill.elements, fill.rows, fill.element_bytes);
                writeln!(
                    self.f,
                    " of {elements} elements x {rows} rows with {:#x}, {size} bytes each, pitch {}",
                    fill.value, fill.pitch
                )?;
                self.address("to", fill.to, indent)
            }
            Work::Host { function, argument } => {
                writeln!(self.f, " at {function:#x}")?;
                self.address("argument", *argument, indent)
            }
            Work::Child(contents) => {
                writeln!(self.f)?;
                self.contents(contents, indent)
            }
            Work::Event(event) => writeln!(self.f, " of event {event:#x}"),
            Work::Free(address) => {
                writeln!(self.f)?;
                self.address("of", *address, indent)
            }
            Work::Opaque => writeln!(self.f),
            Work::Unread(words) => writeln!(self.f, " (not read: {words})"),
        }
    }

    fn end(&mut self, which: &str, end: CopyEnd, indent: &str) -> fmt::Result {
        match end.array {
            true => writeln!(self.f, "{indent}{which} array {:#x}", end.address),
            false => self.address(
                &format!("{which} pitch {} at", end.pitch),
                end.address,
                indent,
            ),
        }
    }

    fn kernel(&mut self, kernel: &KernelNode, indent: &str) -> fmt::Result {
        let (grid, block) = (product(kernel.grid), product(kernel.block));
        let shared = kernel.shared_bytes;
        writeln!(
            self.f,
            "{indent}grid {grid}, block {block}, dynamic shared memory {shared} bytes"
        )?;
        let attributes = kernel.attributes.iter();
        let attributes: Vec<String> = attributes.map(|(name, n)| format!("{name} {n}")).collect();
        if !attributes.is_empty() {
            writeln!(self.f, "{indent}{}", attributes.join(", "))?;
        }
        match &kernel.params {
            Some(params) => {
                let mut params = params.iter().enumerate();
                params.try_for_each(|(index, param)| self.param(index, param, indent))
            }
            None => writeln!(self.f, "{indent}parameters: the driver does not tell them"),
        }
    }

    fn param(&mut self, index: usize, param: &Param, indent: &str) -> fmt::Result {
        let (offset, bytes) = (param.offset, param.bytes.len());
        write!(
            self.f,
            "{indent}parameter {index}: offset {offset}, {bytes} bytes"
        )?;
        if let Some(block) = param.block() {
            writeln!(self.f, ", {}", block.name)?;
            for field in &block.fields {
                write!(self.f, "{indent}  {} = {}", field.path, field.value)?;
                self.place(match field.value {
                    Value::Address(address) => address,
                    _ => 0,
                })?;
            }
            return Ok(());
        }
        match param.is_ours() {
            true => writeln!(self.f, ", a block of another version of slabfence")?,
            false => writeln!(self.f)?,
        }
        for line in param.bytes.chunks(LINE) {
            let bytes: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(self.f, "{indent}  {}", bytes.join(" "))?;
        }
        let mut words = param.words().into_iter();
        words.try_for_each(|(at, word)| self.address(&format!("  at {at}:"), word, indent))
    }

    fn address(&mut self, what: &str, address: u64, indent: &str) -> fmt::Result {
        write!(self.f, "{indent}{what} {address:#x}")?;
        self.place(address)
    }

    /// Ends a line with what an address is.
    fn place(&mut self, address: u64) -> fmt::Result {
        match self.dump.place(address) {
            Some(place) => writeln!(self.f, " -> {place}"),
            None => writeln!(self.f),
        }
    }
}
