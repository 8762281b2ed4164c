//! What the headers do not say and the bindings need.

/// Types that no function in the table mentions, and that are needed: one that the header passes as a plain integer, and
/// what the emulated driver's own functions take.
pub const TYPES: &[&str] = &[
    "CUcomputemode",
    "CUDA_GRAPH_INSTANTIATE_PARAMS",
    "CUDA_MEMCPY2D",
];

/// Macros that become constants: how their names begin, and the type.
pub const MACROS: &[(&str, &str)] = &[("CU_GRAPH_KERNEL_NODE_PORT_", "u8")];

/// Names that differ from the header's tag without its `_st`, `_enum` or `_union`: what the header calls it elsewhere, or
/// a name for what has none there.
pub const NAMES: &[(&str, &str)] = &[
    ("cudaError_enum", "CUresult"),
    (
        "CUlaunchAttributeValue_union__bindgen_ty_1",
        "CUlaunchClusterDim",
    ),
    (
        "CUlaunchAttributeValue_union__bindgen_ty_2",
        "CUlaunchProgrammaticEvent",
    ),
    (
        "CUlaunchAttributeValue_union__bindgen_ty_3",
        "CUlaunchCompletionEvent",
    ),
    (
        "CUlaunchAttributeValue_union__bindgen_ty_4",
        "CUlaunchPreferredClusterDim",
    ),
    (
        "CUlaunchAttributeValue_union__bindgen_ty_5",
        "CUlaunchDeviceUpdatableNode",
    ),
    (
        "CUmemAllocationProp_st__bindgen_ty_1",
        "CUmemAllocationPropFlags",
    ),
];

/// The type whose values must not be ignored, and why.
pub const MUST_USE: (&str, &str) = ("CUresult", "a driver call may have failed");

/// Types whose `Debug` is written by hand.
pub const OWN_DEBUG: &[&str] = &["CUuuid"];

/// Structs that are not compared: they hold functions, whose addresses say nothing.
pub const NOT_COMPARED: &[&str] = &["CUDA_HOST_NODE_PARAMS"];

/// A set of flags, as a type that keeps bits without a name.
pub struct Flags {
    /// Its name; in the header too, where it is an enum there.
    pub name: &'static str,
    /// For those that the header has as macros: how these begin.
    pub macros: Option<&'static str>,
}

/// Enums whose values are combined, and macros that are such values.
pub const FLAGS: &[Flags] = &[
    flags("CUstream_flags"),
    flags("CUevent_flags"),
    flags("CUevent_wait_flags"),
    flags("CUgraphInstantiate_flags"),
    flags("CUuserObject_flags"),
    flags("CUuserObjectRetain_flags"),
    flags("CUdriverProcAddress_flags"),
    flags("CUmemAllocationHandleType"),
    Flags {
        name: "CUmemHostAlloc_flags",
        macros: Some("CU_MEMHOSTALLOC_"),
    },
];

const fn flags(name: &'static str) -> Flags {
    Flags { name, macros: None }
}

/// An integer of the header that is a value of a type: that type's representation is the integer's.
pub struct Typed {
    /// The type.
    pub name: &'static str,
    /// A function's symbol, or a struct.
    pub owner: &'static str,
    /// Its parameter, or field.
    pub member: &'static str,
}

/// Parameters and fields that are plain integers in the header.
pub const TYPED: &[Typed] = &[
    typed("CUdriverProcAddress_flags", "cuGetProcAddress", "flags"),
    typed("CUevent_flags", "cuEventCreate", "Flags"),
    typed("CUevent_wait_flags", "cuStreamWaitEvent", "Flags"),
    typed("CUgraphDependencyType", "CUgraphEdgeData", "type_"),
    typed(
        "CUgraphInstantiate_flags",
        "cuGraphInstantiateWithFlags",
        "flags",
    ),
    typed("CUmemHostAlloc_flags", "cuMemHostAlloc", "Flags"),
    typed("CUstream_flags", "cuStreamCreate", "Flags"),
    typed("CUuserObject_flags", "cuUserObjectCreate", "flags"),
    typed(
        "CUuserObjectRetain_flags",
        "cuGraphRetainUserObject",
        "flags",
    ),
];

const fn typed(name: &'static str, owner: &'static str, member: &'static str) -> Typed {
    Typed {
        name,
        owner,
        member,
    }
}

/// Arrays of `char` that hold bytes, not text: struct or union, and field.
pub const BYTES: &[(&str, &str)] = &[
    ("CUlaunchAttribute", "pad"),
    ("CUlaunchAttributeValue", "pad"),
    ("CUuuid", "bytes"),
];
