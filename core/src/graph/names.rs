//! Names of what the driver numbers.

use slabfence_sys::{CUgraphDependencyType, CUgraphNodeType};

/// A node's kind in words. Kinds that this version does not know are told by number.
pub(super) fn node(kind: CUgraphNodeType) -> String {
    use CUgraphNodeType as T;
    let name = match kind {
        T::CU_GRAPH_NODE_TYPE_KERNEL => "kernel",
        T::CU_GRAPH_NODE_TYPE_MEMCPY => "copy",
        T::CU_GRAPH_NODE_TYPE_MEMSET => "fill",
        T::CU_GRAPH_NODE_TYPE_HOST => "host function",
        T::CU_GRAPH_NODE_TYPE_GRAPH => "child graph",
        T::CU_GRAPH_NODE_TYPE_EMPTY => "empty",
        T::CU_GRAPH_NODE_TYPE_WAIT_EVENT => "event wait",
        T::CU_GRAPH_NODE_TYPE_EVENT_RECORD => "event record",
        T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => "semaphore signal",
        T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => "semaphore wait",
        T::CU_GRAPH_NODE_TYPE_MEM_ALLOC => "allocation",
        T::CU_GRAPH_NODE_TYPE_MEM_FREE => "free",
        T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => "batch of memory operations",
        T::CU_GRAPH_NODE_TYPE_CONDITIONAL => "conditional",
        T(number) => return format!("unknown node type {number}"),
    };
    name.to_owned()
}

/// An edge's kind in words.
pub(super) fn edge(kind: CUgraphDependencyType) -> String {
    use CUgraphDependencyType as T;
    let name = match kind {
        T::CU_GRAPH_DEPENDENCY_TYPE_DEFAULT => "full",
        T::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC => "programmatic",
        T(number) => return format!("unknown edge type {number}"),
    };
    name.to_owned()
}
