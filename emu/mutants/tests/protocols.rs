//! The kernels of other protocols can be run.

use std::collections::BTreeSet;

use slabfence_emu_exec::Kernel;
use slabfence_emu_mutants::{Exchange, PROTOCOLS};

#[test]
fn every_text_is_accepted_explains_itself_and_takes_the_one_parameter_block() {
    for protocol in PROTOCOLS {
        assert!(protocol.ptx.starts_with("// "), "{}", protocol.name);
        let module = slabfence_emu_ptx::parse(protocol.ptx)
            .unwrap_or_else(|error| panic!("{}: {error}", protocol.name));
        assert_eq!(module.entries.len(), 1);
        let kernel = Kernel::compile(&module, protocol.entry)
            .unwrap_or_else(|error| panic!("{}: {error}", protocol.name));
        assert_eq!(kernel.param_bytes() as usize, size_of::<Exchange>());
        assert_eq!(kernel.max_threads_per_block(), 32);
    }
}

#[test]
fn each_wrong_one_has_a_right_one_beside_it_but_for_the_counter() {
    let right: BTreeSet<_> = PROTOCOLS
        .iter()
        .filter(|protocol| protocol.rules.is_empty())
        .map(|protocol| protocol.entry)
        .collect();
    let wrong: BTreeSet<_> = PROTOCOLS
        .iter()
        .filter(|protocol| !protocol.rules.is_empty())
        .map(|protocol| protocol.entry)
        .collect();
    assert_eq!(
        right,
        [
            "cta_parity",
            "host_slot",
            "pairwise_barrier_repaired",
            "signed_index"
        ]
        .into()
    );
    assert_eq!(
        wrong,
        [
            "cta_parity",
            "device_counter",
            "host_slot",
            "pairwise_barrier",
            "signed_index"
        ]
        .into()
    );
}
