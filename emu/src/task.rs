//! Operations that are over at once: copies, fills, frees, stamps of events.

use crate::code::Code;
use crate::host;
use crate::operations::{OpId, Source, Work};
use crate::va::Kind;
use crate::world::World;

/// Does what `work` of a device is, or says why it cannot be done. Grids, host functions and the end of a graph are not for
/// this: nothing happens for them.
pub(crate) fn perform(
    work: Work,
    id: OpId,
    device: u32,
    world: &mut World<'_>,
) -> Result<(), (Code, String)> {
    match work {
        Work::Free(base) => {
            if let Err(code) = world.memory.free(base, Kind::Device) {
                log::warn!("emulator: freeing {base:#x} in stream order failed with {code:?}");
            }
        }
        Work::Record(event) => world.events.stamp(event, id, world.now),
        Work::Copy {
            to,
            from,
            len,
            checked,
        } => {
            let from_ok = match from {
                Source::Address(from) => {
                    !checked.1 || world.memory.copyable(device, from, len, false)
                }
                Source::Bytes(_) => true,
            };
            if !from_ok || checked.0 && !world.memory.copyable(device, to, len, true) {
                let (bad, write) = match from {
                    Source::Address(from) if !from_ok => (from, false),
                    _ => (to, true),
                };
                let there = world.memory.map.describe(device, bad, write);
                return Err((
                    Code::ILLEGAL_ADDRESS,
                    format!(
                        "copy of {len} bytes on device {device}: {bad:#x} is not accessible ({there})"
                    ),
                ));
            }
            match &from {
                Source::Address(from) => {
                    host::copy(to, *from, len);
                    world.memory.copied(to, *from, len);
                }
                Source::Bytes(bytes) => {
                    host::store(to, bytes);
                    world.memory.wrote(to, len);
                }
            }
        }
        Work::Fill {
            to,
            element,
            width,
            count,
        } => {
            let len = count * width as u64;
            if !world.memory.copyable(device, to, len, true) {
                let there = world.memory.map.describe(device, to, true);
                return Err((
                    Code::ILLEGAL_ADDRESS,
                    format!(
                        "fill of {len} bytes on device {device}: {to:#x} is not accessible ({there})"
                    ),
                ));
            }
            host::fill(to, width, &element, count);
            world.memory.wrote(to, len);
        }
        Work::Marker | Work::Kernel(..) | Work::Host(_) | Work::Retire(_) => {}
    }
    Ok(())
}
