//! The one life of every operation: choose the channel, refuse what is poisoned, check, tag, launch one kernel.
//!
//! No counter, slot or epoch exists on the host: what is launched now and what a graph replays later are the same.

use crate::channel::{Channel, route};
use crate::driver::Stream;
use crate::error::{Error, Result};
use crate::health::Slip;

use super::geometry::BLOCK_THREADS;
use super::plan::{Operation, Params};
use super::tag::TagFields;

/// Enqueues `operation` on `stream`, or records it into the graph that the stream captures.
///
/// # Safety
///
/// The addresses of `operation` are of live memory of the shapes it states, in reach of the channel's device, until the
/// operation, or every execution of the graph, has ended; nothing else writes the inputs or touches the output meanwhile.
#[allow(unsafe_code, reason = "hands the caller's contract on to the launch")]
pub(super) unsafe fn enqueue<O: Operation>(
    operation: &O,
    channel: &Channel,
    stream: &Stream,
) -> Result<()> {
    let pool = channel.pool();
    // Kept to the end: reset and close wait until nobody is inside, with a bound, since the launch may wait for a peer.
    let inside = pool.open(O::KIND.name())?;
    let route = route(channel, stream, O::KIND.name())?;
    if !route.captures()
        && let Some(report) = pool.report(&route.lane, Slip::Fault)?
    {
        return Err(Error::Fault(Box::new(report)));
    }
    let argument = |what| Error::Argument {
        operation: O::KIND.name(),
        what,
    };
    let mut plan = operation
        .plan(&pool.limits, route.lane.header)
        .map_err(argument)?;
    let tag = TagFields {
        kind: O::KIND,
        dtype: plan.dtype,
        shape: &plan.shape,
        grid: plan.grid,
        block: BLOCK_THREADS,
        transport: pool.limits.transport,
        name: route.label(),
        ordinal: route.ordinal(),
    };
    let header = plan.params.header_mut();
    header.preamble.operation = O::KIND.code();
    header.dtype = plan.dtype.code();
    header.tag = tag.tag();
    let kernel = pool.kernel(plan.entry).ok_or_else(|| {
        argument(format!(
            "there is no kernel for elements of type {:?}",
            plan.dtype
        ))
    })?;
    route.hold(pool, stream)?;
    // SAFETY: the user's addresses by the contract. The slab's addresses and the module stay while the pool is open, which
    // `inside` ensures up to the launch; close drains the device first, and is refused while a graph holds the channel.
    unsafe { kernel.launch(stream, plan.grid, BLOCK_THREADS, &plan.params) }?;
    route.recorded_one_more();
    route.lane.count(route.captures());
    drop(inside);
    Ok(())
}
