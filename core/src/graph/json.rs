//! The JSON form, written and read back.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value as Json;
use slabfence_sys::{CUgraphDependencyType, CUgraphNodeType};

use super::params::Value;
use super::wire::{self, Bytes, Hex};
use super::{Dump, Place, names};
use crate::channel::{Part, PoolRange};
use crate::driver::{
    Allocation, Contents, CopyEnd, CopyNode, Edge, FillNode, KernelNode, Node, Param, Work,
};
use crate::group::Rank;
use crate::layout::Slot;

/// Version of the JSON form. It changes when a reader of the old form would misread the new one; members may be added.
pub const SCHEMA: u32 = 1;

/// Text that is no dump.
#[derive(Debug)]
#[non_exhaustive]
pub enum JsonError {
    /// It is not JSON, or a member is missing or of the wrong type.
    Form(serde_json::Error),
    /// It is of another version of the form.
    Schema(u32),
    /// A member has a value that means nothing.
    Value(String),
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(error) => write!(f, "no graph dump: {error}"),
            Self::Schema(schema) => write!(
                f,
                "a graph dump of schema {schema}; this version reads {SCHEMA}: use the slabfence that wrote it"
            ),
            Self::Value(words) => write!(f, "no graph dump: {words}"),
        }
    }
}

impl std::error::Error for JsonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Form(error) => Some(error),
            _ => None,
        }
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Form(error)
    }
}

impl Dump {
    /// The dump as JSON text, indented.
    pub fn to_json(&self) -> String {
        let file = wire::File {
            schema: SCHEMA,
            driver_version: self.driver_version,
            device: self.device,
            device_name: self.device_name.clone(),
            graph: self.graph(&self.contents),
            places: self
                .places
                .iter()
                .map(|(&at, place)| to_place(at, place))
                .collect(),
        };
        // Every map has text keys and no member can fail, so there is always a text.
        serde_json::to_string_pretty(&file).unwrap_or_default()
    }

    /// Reads what [`to_json`](Self::to_json) wrote. Members that follow from others are not looked at.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        #[derive(serde::Deserialize)]
        struct Version {
            schema: u32,
        }
        let Version { schema } = serde_json::from_str(text)?;
        if schema != SCHEMA {
            return Err(JsonError::Schema(schema));
        }
        let file: wire::File = serde_json::from_str(text)?;
        let places: Result<BTreeMap<_, _>, _> = file.places.into_iter().map(from_place).collect();
        Ok(Self {
            driver_version: file.driver_version,
            device: file.device,
            device_name: file.device_name,
            contents: contents(file.graph)?,
            places: places?,
        })
    }

    fn graph(&self, contents: &Contents) -> wire::Graph {
        let edge = |edge: &Edge| wire::Edge {
            from: edge.from,
            to: edge.to,
            number: edge.kind.0,
            kind: names::edge(edge.kind),
            from_port: edge.from_port,
            to_port: edge.to_port,
        };
        wire::Graph {
            nodes: contents.nodes.iter().map(|node| self.node(node)).collect(),
            edges: contents.edges.iter().map(edge).collect(),
        }
    }

    fn node(&self, node: &Node) -> wire::Node {
        let mut to = wire::Node {
            number: node.kind.0,
            kind: names::node(node.kind),
            ..wire::Node::default()
        };
        match &node.work {
            Work::Kernel(kernel) => to.kernel = Some(self.kernel(kernel)),
            Work::Copy(copy) => {
                to.copy = Some(wire::Copy {
                    from: self.end(copy.from),
                    to: self.end(copy.to),
                    bytes: copy.bytes,
                    rows: copy.rows,
                    planes: copy.planes,
                })
            }
            Work::Fill(fill) => {
                to.fill = Some(wire::Fill {
                    to: Hex(fill.to),
                    value: fill.value,
                    element_bytes: fill.element_bytes,
                    elements: fill.elements,
                    rows: fill.rows,
                    pitch: fill.pitch,
                    is: self.words_of(fill.to),
                })
            }
            Work::Host { function, argument } => {
                to.host = Some(wire::Host {
                    function: Hex(*function),
                    argument: Hex(*argument),
                    is: self.words_of(*argument),
                })
            }
            Work::Child(inner) => to.child = Some(self.graph(inner)),
            Work::Event(event) => to.event = Some(Hex(*event)),
            Work::Free(address) => to.free = Some(Hex(*address)),
            Work::Opaque => {}
            Work::Unread(words) => to.unread = Some(words.clone()),
        }
        to
    }

    fn kernel(&self, kernel: &KernelNode) -> wire::Kernel {
        let params = |params: &Vec<Param>| params.iter().map(|param| self.param(param)).collect();
        wire::Kernel {
            function: kernel.function.clone(),
            grid: kernel.grid,
            block: kernel.block,
            shared_bytes: kernel.shared_bytes,
            attributes: kernel.attributes.clone(),
            params: kernel.params.as_ref().map(params),
        }
    }

    fn param(&self, param: &Param) -> wire::Param {
        let block = param.block();
        let words = match block {
            Some(_) => Vec::new(),
            None => param.words(),
        };
        let word = |(offset, value): (usize, u64)| {
            Some(wire::Word {
                offset,
                value: Hex(value),
                is: self.words_of(value)?,
            })
        };
        wire::Param {
            offset: param.offset,
            size: param.bytes.len(),
            bytes: Bytes(param.bytes.clone()),
            block: block.as_ref().map(|block| block.name),
            words: words.into_iter().filter_map(word).collect(),
            fields: block
                .into_iter()
                .flat_map(|block| block.fields)
                .map(|field| self.field(field.path, field.value))
                .collect(),
        }
    }

    fn field(&self, name: String, value: Value) -> wire::Field {
        let (value, is) = match value {
            Value::Number(number) => (number.into(), None),
            Value::Float(number) if number.is_finite() => (number.into(), None),
            Value::Float(number) => (number.to_string().into(), None),
            Value::Pattern(word) => (format!("{word:#x}").into(), None),
            Value::Address(word) => (format!("{word:#x}").into(), self.words_of(word)),
            Value::Code(code, name) => (Json::from(code), name.map(str::to_owned)),
        };
        wire::Field { name, value, is }
    }

    fn end(&self, end: CopyEnd) -> wire::End {
        wire::End {
            address: Hex(end.address),
            array: end.array,
            pitch: end.pitch,
            is: self.words_of(end.address).filter(|_| !end.array),
        }
    }

    fn words_of(&self, address: u64) -> Option<String> {
        self.place(address).map(Place::to_string)
    }
}

fn contents(graph: wire::Graph) -> Result<Contents, JsonError> {
    let many = graph.nodes.len();
    let edge = |edge: wire::Edge| match edge.from.max(edge.to) {
        last if last < many => Ok(Edge {
            from: edge.from,
            to: edge.to,
            kind: CUgraphDependencyType(edge.number),
            from_port: edge.from_port,
            to_port: edge.to_port,
        }),
        last => Err(JsonError::Value(format!(
            "an edge of node {last}, and there are {many} nodes"
        ))),
    };
    Ok(Contents {
        nodes: graph
            .nodes
            .into_iter()
            .map(node)
            .collect::<Result<_, _>>()?,
        edges: graph
            .edges
            .into_iter()
            .map(edge)
            .collect::<Result<_, _>>()?,
    })
}

fn node(from: wire::Node) -> Result<Node, JsonError> {
    let end = |end: wire::End| CopyEnd {
        address: end.address.0,
        array: end.array,
        pitch: end.pitch,
    };
    let works = [
        from.kernel.map(|from| {
            let mut kernel = KernelNode::new(from.grid, from.block, from.shared_bytes);
            kernel.function = from.function;
            kernel.attributes = from.attributes;
            let param = |param: wire::Param| Param::new(param.offset, param.bytes.0);
            let params = |params: Vec<_>| params.into_iter().map(param).collect();
            kernel.params = from.params.map(params);
            Work::Kernel(kernel)
        }),
        from.copy.map(|copy| {
            Work::Copy(CopyNode {
                from: end(copy.from),
                to: end(copy.to),
                bytes: copy.bytes,
                rows: copy.rows,
                planes: copy.planes,
            })
        }),
        from.fill.map(|fill| {
            Work::Fill(FillNode {
                to: fill.to.0,
                value: fill.value,
                element_bytes: fill.element_bytes,
                elements: fill.elements,
                rows: fill.rows,
                pitch: fill.pitch,
            })
        }),
        from.host.map(|host| Work::Host {
            function: host.function.0,
            argument: host.argument.0,
        }),
        from.child.map(contents).transpose()?.map(Work::Child),
        from.event.map(|event| Work::Event(event.0)),
        from.free.map(|address| Work::Free(address.0)),
        from.unread.map(Work::Unread),
    ];
    let mut works = works.into_iter().flatten();
    let work = works.next().unwrap_or(Work::Opaque);
    match works.next() {
        None => Ok(Node::new(CUgraphNodeType(from.number), work)),
        Some(_) => Err(JsonError::Value("a node that does two things".to_owned())),
    }
}

fn to_place(address: u64, place: &Place) -> wire::Place {
    let mut to = wire::Place {
        address: Hex(address),
        pool: None,
        allocation: None,
        unknown: None,
    };
    match place {
        Place::Pool { range, .. } => {
            let slot = |slot| match slot {
                Slot::A => "A".to_owned(),
                Slot::B => "B".to_owned(),
            };
            to.pool = Some(wire::Range {
                part: range.part.name().to_owned(),
                channel: range.channel.clone(),
                slot: range.slot.map(slot),
                owner: range.owner.0,
                source: range.source.map(|source| source.0),
                base: Hex(range.base),
                bytes: range.bytes,
            });
        }
        Place::Allocation { allocation, .. } => {
            to.allocation = Some(wire::Allocation {
                base: Hex(allocation.base),
                bytes: allocation.bytes,
                device: allocation.device,
                host: allocation.host,
            })
        }
        Place::Nothing => {}
        Place::Unknown(words) => to.unknown = Some(words.clone()),
    }
    to
}

fn from_place(from: wire::Place) -> Result<(u64, Place), JsonError> {
    let address = from.address.0;
    let value = |what: &str, word: &str| JsonError::Value(format!("{what} {word:?}"));
    let place = match (from.pool, from.allocation, from.unknown) {
        (Some(range), None, None) => Place::Pool {
            offset: address.wrapping_sub(range.base.0),
            range: PoolRange {
                part: Part::from_name(&range.part).ok_or_else(|| value("part", &range.part))?,
                channel: range.channel,
                slot: match range.slot.as_deref() {
                    None => None,
                    Some("A") => Some(Slot::A),
                    Some("B") => Some(Slot::B),
                    Some(other) => return Err(value("slot", other)),
                },
                owner: Rank(range.owner),
                source: range.source.map(Rank),
                base: range.base.0,
                bytes: range.bytes,
            },
        },
        (None, Some(allocation), None) => Place::Allocation {
            offset: address.wrapping_sub(allocation.base.0),
            allocation: Allocation {
                base: allocation.base.0,
                bytes: allocation.bytes,
                device: allocation.device,
                host: allocation.host,
            },
        },
        (None, None, Some(words)) => Place::Unknown(words),
        (None, None, None) => Place::Nothing,
        _ => {
            let words = format!("{address:#x} in two places");
            return Err(JsonError::Value(words));
        }
    };
    Ok((address, place))
}
