//! A rank that enters an operation and whose data does not come, as over a path that loses stores: the one that waits for it
//! says so, and not that the rank is late. On a held machine, where time passes only when everything else has happened.

use slabfence::channel::Contract;
use slabfence::group::Rank;
use slabfence::health::FaultReport;
use slabfence::layout::{Cause, DType, OperationKind, Transport};
use slabfence_emu::Machine;
use slabfence_emu::held::{Looked, Patience, Plan, Policy};
use slabfence_emu_mutants::{mutation, shipped};
use slabfence_tests::callers::{Caller, callers, close};
use slabfence_tests::graphs::grids;
use slabfence_tests::probe::machine;
use slabfence_tests::shape::Shape;

const SEEDS: u64 = 12;
/// The epoch of a channel's first operation.
const FIRST: u64 = 2;
/// Two CTAs, of which the first moves four tokens.
const SHAPES: [(Shape, OperationKind, &str); 2] = [
    (
        Shape::gather(DType::Bf16, 7, 1, 512),
        OperationKind::AllGatherHeads,
        "all_gather_heads",
    ),
    (
        Shape::reduce(DType::Bf16, 7, 1, 512),
        OperationKind::LseReduceScatter,
        "lse_reduce_scatter",
    ),
];

/// What two ranks run stores no data flags any more in CTA 1 of rank 1. All else of it is as shipped: rank 1 enters, and its
/// rows are there.
fn withhold(machine: &Machine, transport: Transport) {
    let bug = mutation("flag-withheld").expect("a known bug");
    let used = ["_push", "_pull", "_push_bf16_w2", "_pull_bf16_w2"];
    let entries = shipped().unwrap().into_iter().filter(|entry| {
        let pushes = transport == Transport::Push;
        entry.family.pushes() == pushes && used.iter().any(|end| entry.name.ends_with(end))
    });
    let names: Vec<_> = entries
        .map(|entry| machine.replace_entries(&bug.plant(&entry).unwrap()))
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(Result::is_ok), "{names:?}");
}

/// Whether a record says what has happened, and nothing else.
fn says(record: &FaultReport, operation: OperationKind) -> bool {
    let FaultReport {
        channel,
        operation: of,
        epoch,
        rank,
        late_rank,
        late_ranks,
        cta,
        phase,
        cause,
        expected,
        seen,
        ..
    } = record;
    let who = (*rank, *late_rank, &late_ranks[..]);
    let what = (*of, *cause, *epoch, *expected, *seen);
    channel == "first"
        && who == (Rank(0), Some(Rank(1)), &[Rank(1)])
        && (*cta, *phase) == (1, 0)
        && what == (Some(operation), Some(Cause::DataTimeout), FIRST, FIRST, 0)
}

/// The waiting rank's verdict, records and output.
fn is_told(
    caller: &Caller,
    contract: &Contract,
    operation: (OperationKind, &str),
    looked: &Looked<'_>,
) -> Result<(), String> {
    let verdict = caller.verdict(looked);
    if verdict != Some((Cause::DataTimeout, FIRST)) {
        return Err(format!("verdict {verdict:?}"));
    }
    let channel = &caller.channels[0];
    let records = [channel.fault(), channel.warning()];
    let [Ok(Some(fault)), Ok(Some(warning))] = records else {
        return Err(format!("{records:?}"));
    };
    let (kind, name) = operation;
    if !says(&fault, kind) || fault.warning || fault.waited < contract.fail {
        return Err(format!("{fault:?}"));
    }
    if !says(&warning, kind) || !warning.warning || warning.waited < contract.warn {
        return Err(format!("{warning:?}"));
    }
    let words = |record: &FaultReport, advice: &str| {
        format!(
            "rank 0, pool {}, channel 'first', {name}, epoch 2: rank 1 entered, but the data for CTA 1 did not come within {:?} \
             (expected 0x2, seen 0x0, CTA 1); {advice}",
            record.pool, record.waited
        )
    };
    let told = [fault.to_string(), warning.to_string()];
    let advice = [
        "see what keeps the device of rank 1, and whether peer access works; then reset the pool on all ranks",
        "the wait goes on; see what keeps rank 1",
    ];
    if told != [words(&fault, advice[0]), words(&warning, advice[1])] {
        return Err(format!("{told:?}"));
    }
    // CTA 0 had all that it needs. CTA 1 may use none of its rows, its own rank's either.
    let mut expected = caller.exchanges[0].shape.expected(2, 0, 0);
    let first_cta = expected.len() / 7 * 4;
    expected[first_cta..].fill(0xff);
    match caller.output(0, looked) == expected {
        true => Ok(()),
        false => Err("the output of the rank that waits".to_owned()),
    }
}

fn data_that_does_not_come(transport: Transport) {
    for (shape, kind, name) in SHAPES {
        let (machine, driver) = machine(2);
        let contract = Contract {
            transport,
            ..Contract::new(2, 512, 512, 7)
        };
        let callers = callers(&driver, 2, &contract, &[shape]);
        assert_eq!(grids(callers[0].graph(0)), [2]);
        // Behind set-up, which tries the kernels itself.
        withhold(&machine, transport);
        let mut held = machine.hold().unwrap();
        callers.iter().for_each(|caller| caller.eager(0, 0));
        let plan = Plan {
            patience: Patience::Time,
            ..Plan::new(Policy::Mixed { changes: 3 })
        };
        let told = |looked: &Looked<'_>| {
            is_told(&callers[0], &contract, (kind, name), looked)?;
            // Rank 1 had everything, and learns of it with its next operation.
            let other = (callers[1].verdict(looked), callers[1].is_right(0, looked));
            match other == (None, true) {
                true => Ok(()),
                false => Err(format!("rank 1: {other:?}")),
            }
        };
        let found = held.explore(&plan, 0..SEEDS, told).unwrap();
        assert_eq!((found.runs, found.bad), (SEEDS, None), "{shape:?}");
        drop(held);
        close(callers);
        assert_eq!(machine.faults(), Vec::<String>::new());
    }
}

#[test]
fn data_that_is_not_pushed_is_told_from_a_rank_that_has_not_entered() {
    data_that_does_not_come(Transport::Push);
}

#[test]
fn data_that_cannot_be_pulled_is_told_from_a_rank_that_has_not_entered() {
    data_that_does_not_come(Transport::Pull);
}
