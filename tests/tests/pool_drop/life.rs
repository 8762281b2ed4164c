//! One rank's life, and how its things are dropped.

use std::any::Any;
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::{self, CaptureScope, Contract, Pool};
use slabfence::driver::{CaptureMode, Device, Driver, Stream};
use slabfence::group::{Bootstrap, Group, Rank};
use slabfence::layout::Transport;
use slabfence::{Error, status};
use slabfence_tests::events::count;
use slabfence_tests::processes::Folder;
use slabfence_tests::ranks::{Gather, Member};

use super::order::What::{self, Channel, Close, Event, Exec, Failed, Graph, Scope, Status};
use super::{PATIENCE, WORLD, contract};

/// One of the things that a rank has.
enum Thing {
    /// Anything that can go to another thread.
    Free(Box<dyn Any + Send>),
    /// Stays on its thread.
    Scope(CaptureScope),
    /// To be closed, if it still is.
    Close(Weak<Pool>),
}

/// Where things are dropped.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Here,
    /// Each on a thread of its own that has never called the library.
    FreshThreads,
    /// In the destructor of a thread-local that is older than the library's, or younger.
    ThreadEnd {
        older: bool,
    },
}

pub const PLACES: [Place; 4] = [
    Place::Here,
    Place::FreshThreads,
    Place::ThreadEnd { older: true },
    Place::ThreadEnd { older: false },
];

fn end(thing: Thing, fresh: bool) {
    match thing {
        Thing::Free(thing) if fresh => thread::spawn(move || drop(thing)).join().unwrap(),
        Thing::Free(thing) => drop(thing),
        Thing::Scope(scope) => drop(scope),
        Thing::Close(pool) => {
            let pool = pool.upgrade().expect("the pool is dropped later");
            pool.close().expect("nothing holds it any more");
        }
    }
}

/// Ends its things in their order when the thread ends.
struct Kept(Vec<Thing>);

impl Drop for Kept {
    fn drop(&mut self) {
        for thing in self.0.drain(..) {
            end(thing, false);
        }
    }
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

pub fn gathered(gather: &Gather, member: &Member, round: u32, enqueue: impl FnOnce()) {
    gather.fill(member.rank(), round).unwrap();
    enqueue();
}

/// What is left of a creation at whose commit every rank loses its connection.
fn lost(member: &Member, contract: &Contract) -> Box<channel::Ticket> {
    let me = member.group.me();
    let group = Group::new(Arc::clone(&member.bootstrap), me, WORLD).unwrap();
    match member.of(group).pool(contract) {
        Err(Error::Retained { ticket, .. }) => ticket,
        other => panic!("no ticket: {other:?}"),
    }
}

/// A channel on which the ranks have met in different operations, and what tells of it.
fn fails(
    pool: &Pool,
    member: &Member,
    contract: &Contract,
    stream: &Stream,
) -> (channel::Channel, OwnedFd) {
    let event = pool.fault_event().unwrap().try_clone_to_owned().unwrap();
    let channel = pool.channel("failed").unwrap();
    let gather = Gather::new(member, contract, 1 + member.rank()).unwrap();
    gather.enqueue(&channel, stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(count(&event), 1);
    assert!(matches!(
        gather.enqueue(&channel, stream),
        Err(Error::Fault(_))
    ));
    (channel, event)
}

/// Lives one rank's life up to the drops, and ends its things in this order. With `flying`, a replay is
/// under way meanwhile.
pub fn live(
    driver: Driver,
    bootstrap: Arc<dyn Bootstrap>,
    rank: u32,
    order: &[What],
    place: Place,
    (transport, flying): (Transport, bool),
) {
    if let Place::ThreadEnd { older: true } = place {
        KEPT.with_borrow(|_| ());
    }
    let device = Device::open(&driver, rank).unwrap();
    let group = Group::new(Arc::clone(&bootstrap), Rank(rank), WORLD).unwrap();
    let member = Member {
        device,
        bootstrap,
        group: group.with_timeout(Duration::from_secs(20)),
    };
    let contract = contract(transport);
    let ticket = lost(&member, &contract);
    let pool = member.pool(&contract).unwrap();
    pool.prepare(&["decode", "failed"]).unwrap();
    let channel = pool.channel("decode").unwrap();
    let stream = Stream::new(&member.device).unwrap();
    let (failed, event) = fails(&pool, &member, &contract, &stream);
    let folder = Folder::new();
    let server = status::serve(folder.path()).unwrap();
    let gather = Gather::new(&member, &contract, 1).unwrap();
    gathered(&gather, &member, 0, || {
        gather.enqueue(&channel, &stream).unwrap();
    });
    stream.synchronize().unwrap();
    assert!(gather.output().unwrap() == gather.expected(0));
    let scope = pool.capture("decode", &stream).unwrap();
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    gather.enqueue(&channel, &stream).unwrap();
    let graph = stream.end_capture().unwrap();
    let mut exec = graph.instantiate().unwrap();
    gathered(&gather, &member, 1, || exec.launch(&stream).unwrap());
    let gather = match flying {
        true => Some(gather),
        false => {
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(1));
            None
        }
    };
    let Member { device, group, .. } = member;
    let pool = Arc::new(pool);
    let close = Arc::downgrade(&pool);
    fn some<T: Any + Send>(thing: T) -> Option<Thing> {
        Some(Thing::Free(Box::new(thing)))
    }
    let mut things = [
        (What::Driver, some(driver)),
        (What::Device, some(device)),
        (What::Group, some(group)),
        (What::Pool, some(pool)),
        (What::Ticket, some(ticket)),
        (Channel, some(channel)),
        (Failed, some(failed)),
        (Event, some(event)),
        (Status, some((server, folder))),
        (What::Stream, some(stream)),
        (Scope, Some(Thing::Scope(scope))),
        (Graph, some(graph)),
        (Exec, some(exec)),
        (Close, Some(Thing::Close(close))),
    ];
    let things = order.iter().map(|what| {
        let thing = things.iter_mut().find(|(this, _)| this == what);
        thing.and_then(|(_, thing)| thing.take()).unwrap()
    });
    match place {
        Place::Here => things.for_each(|thing| end(thing, false)),
        Place::FreshThreads => things.for_each(|thing| end(thing, true)),
        Place::ThreadEnd { .. } => KEPT.with_borrow_mut(|kept| kept.0.extend(things)),
    }
    if let Some(gather) = gather {
        let until = Instant::now() + PATIENCE;
        while gather.output().unwrap() != gather.expected(1) {
            assert!(Instant::now() < until, "{order:?}: the replay is wrong");
            thread::yield_now();
        }
    }
}
