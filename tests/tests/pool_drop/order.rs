//! What is dropped, and in which orders.

use std::collections::BTreeSet;

/// What is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Driver,
    Device,
    Group,
    Pool,
    /// Of a creation that failed before, on another group of the same ranks.
    Ticket,
    Channel,
    /// Another channel, that has failed.
    Failed,
    /// A duplicate of the event that tells of its fault.
    Event,
    /// What tells other processes of all that.
    Status,
    Stream,
    Scope,
    Graph,
    Exec,
    /// No drop: the pool is closed.
    Close,
}

/// All but what a close needs gone.
pub const BASE: [What; 10] = [
    What::Driver,
    What::Device,
    What::Group,
    What::Pool,
    What::Ticket,
    What::Channel,
    What::Failed,
    What::Event,
    What::Status,
    What::Stream,
];
pub const CAPTURED: [What; 3] = [What::Scope, What::Graph, What::Exec];

/// Orders of `all` in which every three come in every order.
pub fn orders(all: &[What]) -> Vec<Vec<What>> {
    let triples = |order: &[What]| -> BTreeSet<[What; 3]> {
        let n = order.len();
        let places =
            (0..n).flat_map(|a| (a + 1..n).flat_map(move |b| (b + 1..n).map(move |c| [a, b, c])));
        places.map(|places| places.map(|at| order[at])).collect()
    };
    let n = all.len();
    let wanted = n * (n - 1) * (n - 2);
    let mut seen = BTreeSet::new();
    let mut orders = Vec::new();
    let mut random: u64 = 1;
    while seen.len() < wanted {
        let candidates = (0..60).map(|_| {
            let mut order = all.to_vec();
            for at in (1..n).rev() {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                order.swap(at, (random >> 33) as usize % (at + 1));
            }
            order
        });
        let best = candidates.max_by_key(|order| triples(order).difference(&seen).count());
        let best = best.unwrap();
        seen.extend(triples(&best));
        orders.push(best);
    }
    orders
}

/// The other way round, on either side of a close.
pub fn reversed(order: &[What]) -> Vec<What> {
    let close = order.iter().position(|&what| what == What::Close);
    let mut reversed = order.to_vec();
    match close {
        None => reversed.reverse(),
        Some(at) => {
            reversed[..at].reverse();
            reversed[at + 1..].reverse();
        }
    }
    reversed
}
