//! Every call that makes, hands over or takes back memory failed, and every exchange, between processes; and every call of an
//! abandonment.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use slabfence::group::{Rank, UnixBootstrap};
use slabfence_emu::Machine;
use slabfence_tests::exhaust::{Place, abandon, create_and_close, every_call_apart};
use slabfence_tests::injection::EXCHANGE;

use super::part::Part;
use super::{Outcome, PATIENCE};

/// What memory goes through.
const ENTRIES: [&str; 10] = [
    EXCHANGE,
    "cuMemCreate",
    "cuMemAddressReserve",
    "cuMemMap",
    "cuMemSetAccess",
    "cuMemExportToShareableHandle",
    "cuMemImportFromShareableHandle",
    "cuMemUnmap",
    "cuMemAddressFree",
    "cuMemRelease",
];

pub fn run(part: &Part, bootstrap: UnixBootstrap, machine: &Machine) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    let folder = Path::new(&part.folder);
    let meeting = UnixBootstrap::join(folder, "meeting", Rank(part.rank), part.world, deadline)?;
    let place = Place {
        machine,
        rank: part.rank,
        world: part.world,
        share: part.step as usize,
        transport: part.transport(),
        bootstrap: Arc::new(bootstrap),
        meeting: Arc::new(meeting),
    };
    let injected = match part.name.as_str() {
        "inject-abandon" => every_call_apart(&place, &["abandon"], |_| true, |_| None, abandon),
        _ => every_call_apart(
            &place,
            &["create", "close"],
            // Ranks that pull have no exchange of their own.
            |point| ENTRIES.contains(&point.entry) && (point.entry != EXCHANGE || !part.pull),
            |_| (),
            |seat, (), point| create_and_close(seat, point),
        ),
    };
    println!("{injected:?}");
    Ok(())
}
