//! What a context is told and only tells again: the machine does nothing by it.

use std::collections::BTreeMap;

use crate::code::{Code, Status};

/// Settings of one primary context.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// `CUctx_flags`.
    pub(crate) flags: u32,
    /// `CUfunc_cache`.
    pub(crate) cache: u32,
    limits: BTreeMap<u32, usize>,
}

/// A limit's first value: the stack of a thread, the buffer of `printf`, the heap of `malloc`, pending launches of the
/// device runtime, the fetch granularity of L2, its persisting part. Those of a 9.0 device lack the third's successor,
/// the synchronisation depth.
fn first(limit: u32) -> Status<usize> {
    Ok(match limit {
        0 => 1 << 10,
        1 => 1 << 20,
        2 => 8 << 20,
        4 => 2048,
        5 => 64,
        6 => 0,
        _ => return Err(Code::UNSUPPORTED_LIMIT),
    })
}

impl Settings {
    /// `cuCtxGetLimit`.
    pub(crate) fn limit(&self, limit: u32) -> Status<usize> {
        let first = first(limit)?;
        Ok(self.limits.get(&limit).copied().unwrap_or(first))
    }

    /// `cuCtxSetLimit`.
    pub(crate) fn set_limit(&mut self, limit: u32, value: usize) -> Status {
        first(limit)?;
        self.limits.insert(limit, value);
        Ok(())
    }
}
