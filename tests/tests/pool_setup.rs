//! Creation of a pool: all ranks or none, with every refusing rank's reason, and nothing left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::Stream;
use slabfence::group::{Bootstrap, BootstrapError, Group, Rank, ThreadBootstrap};
use slabfence_emu::Live;
use slabfence_tests::lossy::all_lossy;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_members, on_ranks};

fn contract() -> Contract {
    Contract::new(4, 64, 64, 8)
}

/// The verdict that every rank returned, which must be the same on all.
fn verdict(results: Vec<slabfence::Result<Pool>>) -> (&'static str, Vec<(Rank, String)>) {
    let mut verdicts = results.into_iter().map(|result| match result {
        Err(Error::Setup { phase, failures }) => (phase, failures),
        other => panic!("no verdict: {other:?}"),
    });
    let first = verdicts.next().expect("ranks");
    assert!(verdicts.all(|verdict| verdict == first));
    first
}

#[test]
fn a_contract_that_differs_on_one_rank_is_refused_on_all_field_by_field() {
    let (machine, driver) = machine(2);
    let (phase, failures) = verdict(on_ranks(&driver, 2, |member| {
        let mut contract = contract();
        if member.rank() == 1 {
            contract.max_batch = 16;
            contract.fail = Duration::from_millis(1500);
        }
        member.pool(&contract)
    }));
    assert_eq!(phase, "create: contract");
    let words = "max_batch is 16, rank 0 has 8; fail is 1.5s, rank 0 has 600s";
    assert_eq!(failures, [(Rank(1), words.to_owned())]);
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn heads_that_the_ranks_cannot_share_equally_are_refused() {
    let (_machine, driver) = machine(3);
    let (phase, failures) = verdict(on_ranks(&driver, 3, |member| member.pool(&contract())));
    assert_eq!(phase, "create: arguments");
    assert_eq!(failures.len(), 3);
    let words = "total_heads is 4, not a multiple of the world size 3";
    assert!(failures[0].1.contains(words), "{}", failures[0].1);
}

#[test]
fn another_order_of_members_is_refused() {
    let (_machine, driver) = machine(2);
    let (phase, failures) = verdict(on_ranks(&driver, 2, |member| {
        let order = [vec![7, 2], vec![2, 7]][member.rank() as usize].clone();
        let group = Group::of_members(member.bootstrap.clone(), member.group.me(), order)?;
        Pool::create(&member.device, group, &contract())
    }));
    assert_eq!(phase, "create: contract");
    let words = "members is [2, 7], rank 0 has [7, 2]".to_owned();
    assert_eq!(failures, [(Rank(1), words)]);
}

#[test]
fn ranks_share_a_device_only_with_leave() {
    let (machine, driver) = machine(1);
    let (phase, failures) = verdict(on_ranks(&driver, 2, |member| member.pool(&contract())));
    assert_eq!(phase, "create: devices");
    assert_eq!(failures[0].0, Rank(1));
    let words = "it is on device 0 (GPU-454d5500-6832-3030-2d6e-766c696e6b00), where rank 0 is;";
    assert!(failures[0].1.starts_with(words), "{}", failures[0].1);
    on_ranks(&driver, 2, |member| {
        let shared = Contract {
            oversubscribe: true,
            ..contract()
        };
        member.pool(&shared).unwrap().close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn more_ctas_than_a_device_holds_at_once_are_refused() {
    let (machine, driver) = machine(2);
    let create = |operations| {
        on_ranks(&driver, 2, |member| {
            member.pool(&Contract {
                max_grid: 128,
                concurrent_operations: operations,
                ..contract()
            })
        })
    };
    let (phase, failures) = verdict(create(1000));
    assert_eq!(phase, "create: capability");
    let said = &failures[0].1;
    let words = "1 rank(s) here × concurrent_operations 1000 × max_grid 128 = 128000 CTAs";
    assert!(said.contains(words), "{said}");
    let fits: Vec<Pool> = create(1).into_iter().map(Result::unwrap).collect();
    // Closing is collective too: one thread a rank.
    std::thread::scope(|scope| {
        for pool in &fits {
            scope.spawn(|| pool.close().unwrap());
        }
    });
    drop((fits, driver));
    assert_eq!(machine.live(), Live::default());
}

/// Fails on its own at one exchange, as a lost connection would.
struct Breaks {
    inner: ThreadBootstrap,
    at: usize,
    calls: AtomicUsize,
}

impl Bootstrap for Breaks {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.at {
            return Err(BootstrapError::Other("the line is cut".to_owned()));
        }
        self.inner.all_gather(bytes, deadline)
    }
}

/// Exchanges of a creation before its commit, of threads.
const BEFORE_COMMIT: usize = 9;

/// Creates a pool of two ranks on which rank 1 loses the connection at exchange `at`.
fn broken(at: usize) -> (Vec<slabfence::Result<()>>, Live) {
    let (machine, driver) = machine(2);
    let members = ThreadBootstrap::world(2).into_iter().map(|inner| {
        let at = if inner.rank() == Rank(1) {
            at
        } else {
            usize::MAX
        };
        let calls = AtomicUsize::new(0);
        Arc::new(Breaks { inner, at, calls }) as Arc<dyn Bootstrap>
    });
    let limit = Duration::from_secs(20);
    let results = on_members(&driver, members.collect(), limit, |member| {
        match member.pool(&contract()) {
            // Nobody retries the ticket: it goes, and the rank with it.
            Err(Error::Retained { cause, .. }) => Err(*cause),
            other => other.map(|_| ()),
        }
    });
    drop(driver);
    (results, machine.live())
}

#[test]
fn a_lost_connection_in_any_phase_fails_on_all_ranks_and_leaves_nothing() {
    for at in 0..BEFORE_COMMIT {
        let (results, live) = broken(at);
        let Err(Error::Bootstrap(BootstrapError::Other(words))) = &results[1] else {
            panic!("exchange {at}: {:?}", results[1]);
        };
        assert_eq!(words, "the line is cut");
        // Rank 0 is told by the other rank's end, which drops its bootstrap.
        let told = match &results[0] {
            Err(Error::Timeout { missing, .. }) => missing,
            Err(Error::Bootstrap(BootstrapError::Left { ranks })) => ranks,
            other => panic!("exchange {at}: {other:?}"),
        };
        assert_eq!(*told, [Rank(1)]);
        assert_eq!(live, Live::default(), "exchange {at}");
    }
}

#[test]
fn memory_that_a_peer_may_believe_in_is_kept() {
    let (results, live) = broken(BEFORE_COMMIT);
    assert!(results.iter().all(Result::is_err));
    // Signal, local, two inboxes on both ranks.
    assert_eq!((live.mappings, live.physical), (8, 8));
}

#[test]
fn a_group_whose_ticket_was_dropped_creates_no_pool_and_a_new_one_of_its_ranks_does() {
    let (machine, driver) = machine(2);
    let members = ThreadBootstrap::world(2).into_iter();
    let members = members.map(|inner| all_lossy(inner, "create: commit"));
    let limit = Duration::from_secs(20);
    on_members(&driver, members.collect(), limit, |member| {
        let Err(Error::Retained { ticket, .. }) = member.pool(&contract()) else {
            panic!("a creation of which nobody knows the end");
        };
        drop(ticket);
        for _ in 0..2 {
            let refused = member.pool(&contract()).unwrap_err();
            let Error::Setup { phase, failures } = refused else {
                panic!("no verdict: {refused:?}");
            };
            assert_eq!(phase, "create: pending");
            let words = "an earlier creation has left memory that peers may use: retry its ticket on all ranks; \
                         without one of the tickets, form a new group";
            assert_eq!(failures, [0, 1].map(|rank| (Rank(rank), words.to_owned())));
        }
        let group = Group::new(member.bootstrap.clone(), member.group.me(), 2).unwrap();
        let (pool, channel) = member.of(group).channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.fill(member.rank(), 1).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        pool.close().unwrap();
    });
    drop(driver);
    // What the tickets were for, and nothing of the pool that was closed.
    let live = machine.live();
    assert_eq!((live.mappings, live.physical), (8, 8));
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn a_failed_creation_can_be_repeated_on_the_same_group() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let mut wrong = contract();
        wrong.max_grid += member.rank();
        assert!(member.pool(&wrong).is_err());
        let pool = member.pool(&contract()).unwrap();
        assert_eq!(pool.contract(), &contract());
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}
