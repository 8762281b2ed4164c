//! Ranks whose arguments, devices or builds differ: the creation is refused on all of them, with the difference, and before any has
//! allocated anything.

mod argument;
mod build;
mod capability;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use slabfence::Error;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::Driver;
use slabfence::group::{Bootstrap, Rank, ThreadBootstrap};
use slabfence::layout::Transport;
use slabfence::sys::Api;
use slabfence_emu::Live;
use slabfence_tests::injection::{Ledger, watched};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Member, on_drivers};

const WORLD: u32 = 3;
/// The driver's entries that allocate, or reserve addresses.
const ALLOCATES: [&str; 4] = [
    "cuMemCreate",
    "cuMemAddressReserve",
    "cuMemAlloc",
    "cuMemHostAlloc",
];

fn contract() -> Contract {
    Contract::new(6, 64, 64, 4)
}

/// A field's name, its value in [`contract`], another value, and how it gets that.
type Change = (&'static str, &'static str, &'static str, fn(&mut Contract));

/// Each field with another value that is right in itself.
fn changes() -> Vec<Change> {
    // Without `..`: a field that is added and not tried does not compile.
    let Contract {
        total_heads: _,
        query_head_dim: _,
        value_head_dim: _,
        gather_element_bytes: _,
        reduce_element_bytes: _,
        max_batch: _,
        max_channels: _,
        max_grid: _,
        concurrent_operations: _,
        warn: _,
        fail: _,
        transport: _,
        oversubscribe: _,
    } = contract();
    vec![
        ("total_heads", "6", "12", |c| c.total_heads = 12),
        ("query_head_dim", "64", "128", |c| c.query_head_dim = 128),
        ("value_head_dim", "64", "128", |c| c.value_head_dim = 128),
        ("gather_element_bytes", "2", "4", |c| {
            c.gather_element_bytes = 4;
        }),
        ("reduce_element_bytes", "2", "4", |c| {
            c.reduce_element_bytes = 4;
        }),
        ("max_batch", "4", "5", |c| c.max_batch = 5),
        ("max_channels", "4", "5", |c| c.max_channels = 5),
        ("max_grid", "64", "63", |c| c.max_grid = 63),
        ("concurrent_operations", "1", "2", |c| {
            c.concurrent_operations = 2;
        }),
        ("warn", "5s", "6s", |c| c.warn = Duration::from_secs(6)),
        ("fail", "600s", "0ns", |c| c.fail = Duration::ZERO),
        ("transport", "Push", "Pull", |c| {
            c.transport = Transport::Pull
        }),
        ("oversubscribe", "false", "true", |c| c.oversubscribe = true),
    ]
}

/// The members of a group of threads.
fn members(world: u32) -> Vec<Arc<dyn Bootstrap>> {
    let members = ThreadBootstrap::world(world).into_iter();
    members
        .map(|member| Arc::new(member) as Arc<dyn Bootstrap>)
        .collect()
}

/// Runs `body` as each of these on a device of its own, with its calls counted. `change` is what a rank's driver is instead
/// of the machine's.
fn counted(
    members: Vec<Arc<dyn Bootstrap>>,
    change: impl Fn(u32, Api) -> Api,
    body: impl Fn(&Seat<'_>) + Sync,
) {
    // One test at a time has the seats.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let world = members.len() as u32;
    let (machine, driver) = machine(world);
    let seat = |rank: u32| rank as usize;
    let drivers: Vec<Driver> = (0..world)
        .map(|rank| change(rank, machine.api().unwrap()))
        .zip(0..)
        .map(|(api, rank)| Driver::from_api(watched(api, seat(rank))).unwrap())
        .collect();
    let patience = Duration::from_secs(60);
    on_drivers(&drivers, members, patience, |member| {
        body(&Seat {
            member,
            ledger: Ledger::of(seat(member.rank())),
        });
    });
    drop((driver, drivers));
    assert_eq!(machine.live(), Live::default());
}

struct Seat<'a> {
    member: &'a Member,
    ledger: &'static Ledger,
}

impl Seat<'_> {
    /// Creates a pool, and tells how often each of [`ALLOCATES`] was called for it.
    fn create(&self, contract: &Contract) -> (slabfence::Result<Pool>, [u32; 4]) {
        self.ledger.arm(&[]);
        let create = || self.member.pool(contract);
        let created = self.ledger.step("create", create);
        (created, ALLOCATES.map(|entry| self.ledger.count(entry)))
    }

    /// The words of a creation that was refused in this step before anything was allocated.
    fn refused(&self, contract: &Contract, step: &str) -> Vec<(Rank, String)> {
        let (created, allocations) = self.create(contract);
        let Err(Error::Setup { phase, failures }) = created else {
            panic!("{created:?}");
        };
        assert_eq!((phase, allocations), (step, [0; 4]));
        failures
    }

    /// Creates a pool, for which memory is allocated, and closes it.
    fn created(&self, contract: &Contract) {
        let (created, allocations) = self.create(contract);
        created.unwrap().close().unwrap();
        assert!(
            allocations.iter().all(|&count| count > 0),
            "{allocations:?}"
        );
    }
}

#[test]
fn a_field_that_differs_on_any_rank_is_refused_on_all_before_anything_is_allocated() {
    counted(
        members(WORLD),
        |_, api| api,
        |seat| {
            for (field, value, other, change) in changes() {
                for differs in 0..WORLD {
                    let mut contract = contract();
                    if seat.member.rank() == differs {
                        change(&mut contract);
                    }
                    let failures = seat.refused(&contract, "create: contract");
                    // All are compared with rank 0.
                    let wanted: Vec<(Rank, String)> = match differs {
                        0 => {
                            let words = format!("{field} is {value}, rank 0 has {other}");
                            vec![(Rank(1), words.clone()), (Rank(2), words)]
                        }
                        rank => {
                            let words = format!("{field} is {other}, rank 0 has {value}");
                            vec![(Rank(rank), words)]
                        }
                    };
                    assert_eq!(failures, wanted);
                }
            }
            seat.created(&contract());
        },
    );
}

#[test]
fn a_timeout_of_the_group_that_differs_on_any_rank_is_refused_on_all_before_anything_is_allocated()
{
    for differs in 0..WORLD {
        counted(
            members(WORLD),
            |_, api| api,
            |seat| {
                let rank = seat.member.rank();
                let mut group = seat.member.group.clone();
                if rank == differs {
                    group = group.with_timeout(Duration::from_millis(59_500));
                }
                let member = seat.member.of(group);
                let seat = Seat {
                    member: &member,
                    ledger: seat.ledger,
                };
                let wanted = |words: fn(&str, &str) -> String| -> Vec<(Rank, String)> {
                    match differs {
                        0 => [1, 2]
                            .map(|rank| (Rank(rank), words("60s", "59.5s")))
                            .into(),
                        rank => vec![(Rank(rank), words("59.5s", "60s"))],
                    }
                };
                let failures = seat.refused(&contract(), "create: contract");
                let words =
                    |it: &str, first: &str| format!("group timeout is {it}, rank 0 has {first}");
                assert_eq!(failures, wanted(words));

                let ranks: &[Rank] = match rank {
                    0 => &[],
                    _ => &[Rank(2), Rank(1)],
                };
                let Err(Error::Setup { phase, failures }) = member.group.subgroup(ranks) else {
                    panic!("no refusal");
                };
                assert_eq!(phase, "subgroup: ranks");
                let words = |it: &str, first: &str| {
                    format!(
                        "its group's timeout is {it}, that of rank 0 is {first}; give all ranks the same"
                    )
                };
                assert_eq!(failures, wanted(words));
            },
        );
    }
}
