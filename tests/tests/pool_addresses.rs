//! Every slab address of a captured operation is the start of the range that it should be: of the right kind, slot, owner
//! and writer. Whatever the kernels do later, they do it to these addresses. `processes.rs` has the same of ranks as
//! processes.

use slabfence::channel::Contract;
use slabfence::layout::Transport;
use slabfence_tests::addresses::{captured, check};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::on_ranks;

const WORLD: u32 = 3;

fn addresses(transport: Transport) {
    let (machine, driver) = machine(WORLD);
    let contract = Contract {
        transport,
        ..Contract::new(6, 64, 64, 8)
    };
    let blocks = on_ranks(&driver, WORLD, |member| {
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&["a", "b"]).unwrap();
        captured(member, &contract, &pool, "b").unwrap()
        // The pool stays: the test looks at its ranges.
    });
    for (me, bytes) in (0..WORLD).zip(blocks) {
        check(&machine, &bytes, me, WORLD, transport);
    }
}

#[test]
fn a_push_knows_its_part_of_every_peers_inbox_and_no_outbox() {
    addresses(Transport::Push);
}

#[test]
fn a_pull_knows_every_peers_outbox_and_no_inbox() {
    addresses(Transport::Pull);
}
