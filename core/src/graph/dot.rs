//! The form that Graphviz draws.

use std::fmt::Write;

use slabfence_sys::CUgraphDependencyType;

use super::{Dump, names, text};
use crate::driver::{Contents, Node, Work};

impl Dump {
    /// The graph in the DOT language: nodes with name and geometry, edges labelled where they are not full ones, child
    /// graphs as clusters.
    pub fn to_dot(&self) -> String {
        let mut dot =
            String::from("digraph slabfence {\n  node [shape=box, fontname=monospace];\n");
        cluster(&self.contents, "n", "  ", &mut dot);
        dot.push_str("}\n");
        dot
    }
}

// Writing to a string cannot fail.
fn cluster(contents: &Contents, prefix: &str, indent: &str, dot: &mut String) {
    for (index, node) in contents.nodes.iter().enumerate() {
        let (id, label) = (format!("{prefix}{index}"), label(index, node));
        match &node.work {
            Work::Child(inner) => {
                let deeper = format!("{indent}  ");
                let _ = writeln!(dot, "{indent}subgraph cluster_{id} {{");
                let _ = writeln!(dot, "{deeper}{id} [label={label}];");
                cluster(inner, &format!("{id}_"), &deeper, dot);
                let _ = writeln!(dot, "{indent}}}");
            }
            _ => _ = writeln!(dot, "{indent}{id} [label={label}];"),
        }
    }
    for edge in &contents.edges {
        let (from, to) = (edge.from, edge.to);
        let plain = CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
        let style = match (edge.kind == plain, edge.from_port, edge.to_port) {
            (true, 0, 0) => String::new(),
            _ => format!(" [style=dashed, label={}]", quoted(&text::edge(edge))),
        };
        let _ = writeln!(dot, "{indent}{prefix}{from} -> {prefix}{to}{style};");
    }
}

fn label(index: usize, node: &Node) -> String {
    let kind = names::node(node.kind);
    quoted(&match &node.work {
        Work::Kernel(kernel) => {
            let (grid, block) = (text::product(kernel.grid), text::product(kernel.block));
            let blocks = kernel.params.iter().flatten().filter_map(|param| {
                let block = param.block()?;
                Some(format!("\n{}", block.name))
            });
            let blocks: String = blocks.collect();
            format!(
                "{index}: {}\n{grid} of {block}{blocks}",
                text::function(kernel)
            )
        }
        Work::Copy(copy) => {
            let bytes = copy.bytes.wrapping_mul(copy.rows).wrapping_mul(copy.planes);
            format!("{index}: {kind}\n{bytes} bytes")
        }
        _ => format!("{index}: {kind}"),
    })
}

fn quoted(label: &str) -> String {
    let escaped = label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}
