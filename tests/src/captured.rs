//! Both collectives in one captured graph, replayed with other data each time.

use std::time::Duration;

use slabfence::Result;
use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::{DType, Transport};

use crate::exchange::Exchange;
use crate::graphs::capture;
use crate::ranks::Member;
use crate::shape::Shape;

const BATCH: u32 = 3;
/// Heads of one rank.
const HEADS: u32 = 2;
const DIM: u32 = 64;
const REPLAYS: u32 = 3;

/// Sets a pool up over this transport, captures a gather, a reduce-scatter and another gather, replays them, compares every
/// output with what it must be, and closes the pool.
///
/// # Panics
///
/// At an output that is wrong, and where the graph is not what was captured.
pub fn gathers_and_reduces(member: &Member, transport: Transport) -> Result<()> {
    let contract = Contract {
        transport,
        fail: Duration::from_secs(60),
        ..Contract::new(HEADS * member.group.world(), DIM, DIM, BATCH)
    };
    let pool = member.pool(&contract)?;
    pool.prepare(&["graph"])?;
    let stream = Stream::new(&member.device)?;
    let gather = Shape::gather(DType::Bf16, BATCH, HEADS, DIM);
    let reduce = Shape::reduce(DType::Bf16, BATCH, HEADS, DIM);
    let exchanges = [gather, reduce, gather].map(|shape| Exchange::new(member, shape));
    let exchanges: Vec<Exchange> = exchanges.into_iter().collect::<Result<_>>()?;
    let graph = capture(&pool, &stream, "graph", |channel| {
        for exchange in &exchanges {
            exchange.enqueue(channel, &stream).expect("an operation");
        }
    });
    assert_eq!(graph.kernel_nodes()?, exchanges.len());
    let mut exec = graph.instantiate()?;
    for replay in 0..REPLAYS {
        let numbered = || (replay * exchanges.len() as u32..).zip(&exchanges);
        for (operation, exchange) in numbered() {
            exchange.supply(operation)?;
        }
        exec.launch(&stream)?;
        stream.synchronize()?;
        for (operation, exchange) in numbered() {
            exchange.check(operation, &exchange.read()?);
        }
    }
    assert_eq!(pool.health()?, Health::Healthy);
    drop((exec, graph));
    pool.close()
}
