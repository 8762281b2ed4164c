//! A host that embeds the library: stream, memory, capture and graph are its own, made by its own driver calls.
//!
//! Each of two ranks has two heads. They gather all four, then combine them as if they were partial attention outputs of
//! equally weighted shards, which gives every rank its own heads back. Both operations are in one graph that is replayed.
//! It runs on the emulated machine; on GPUs, `Driver::open()` takes the place of `Driver::from_api(machine.api()?)`.

use std::{error::Error, sync::Arc, thread};

use slabfence::channel::{Contract, Pool};
use slabfence::collective::{AllGatherHeads, Layout, LseBase, LseReduceScatter};
use slabfence::driver::{Device, DevicePtr, Driver, Stream};
use slabfence::group::{Group, ThreadBootstrap};
use slabfence::{layout::DType, sys::*};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

fn rank(driver: &Driver, member: ThreadBootstrap) -> Outcome {
    let me = member.rank();
    let device = Device::open(driver, me.0)?;
    let _context = device.bind()?;
    macro_rules! cu {
        ($call:ident $(() $or_missing:tt)?, $($argument:expr),*) => {
            // SAFETY: the host's handles are live, out-parameters are on its stack, its context is current.
            match unsafe { (driver.api().$call $(() $or_missing)?)($($argument),*) } {
                code if code.is_success() => Ok(()),
                code => Err(format!("{}: {code:?}", stringify!($call))),
            }
        };
    }
    // The host's own: a stream, and an allocation for own heads, all heads, log-sum-exps (zero) and result.
    let (mut stream, mut memory) = (CUstream::null(), CUdeviceptr::default());
    let flags = CUstream_flags::CU_STREAM_NON_BLOCKING;
    cu!(cuStreamCreate()?, &mut stream, flags)?;
    cu!(cuMemAlloc, &mut memory, 4096)?;
    cu!(cuMemsetD8Async()?, memory, 0, 4096, stream)?;
    let [own, all, lse, out] = [0, 1024, 2048, 3072].map(|at| CUdeviceptr(memory.0 + at));

    // Embedding: a pool on the host's device, a channel for the host's graph, the host's stream.
    let group = Group::new(Arc::new(member), me, 2)?;
    let pool = Pool::create(&device, group, &Contract::new(4, 8, 8, 1))?;
    pool.prepare(&["host.graph"])?;
    let channel = pool.channel("host.graph")?;
    // SAFETY: a stream of the device's primary context, destroyed below, after its last use.
    let lane = unsafe { Stream::from_raw(&device, stream) };
    let at = |address: CUdeviceptr| DevicePtr::from_raw(address.0);
    let gather = AllGatherHeads {
        input: at(own),
        output: at(all),
        batch: 1,
        dtype: DType::Bf16,
        head_dim: None,
    };
    let combine = LseReduceScatter {
        input: at(all),
        lse: at(lse),
        output: at(out),
        batch: 1,
        dtype: DType::Bf16,
        head_dim: None,
        base: LseBase::E,
        input_layout: Layout::TokenMajor,
        output_layout: Layout::TokenMajor,
    };

    // The host's capture, with the library's scope around it.
    let scope = pool.capture("host.graph", &lane)?;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    cu!(cuStreamBeginCapture()?, stream, mode)?;
    // SAFETY: the addresses are of the allocation above, which is freed after the graph's last execution.
    unsafe { gather.enqueue(&channel, &lane) }?;
    // SAFETY: as above.
    unsafe { combine.enqueue(&channel, &lane) }?;
    let (mut graph, mut exec) = (CUgraph::null(), CUgraphExec::null());
    cu!(cuStreamEndCapture()?, stream, &mut graph)?;
    scope.finish()?;
    let none = CUgraphInstantiate_flags::empty();
    cu!(cuGraphInstantiateWithFlags()?, &mut exec, graph, none)?;

    for step in 0..5 {
        // Two heads of eight bf16 numbers, as bits: 1.0 and a little more, different at every rank and step.
        let numbers = |rank: usize| [0x3f80 + 2 * step + rank as u16; 16];
        let (mine, mut seen, mut back) = (numbers(me.index()), [[0; 16]; 2], [0; 16]);
        cu!(cuMemcpyHtoDAsync()?, own, mine.as_ptr().cast(), 32, stream)?;
        cu!(cuGraphLaunch()?, exec, stream)?;
        cu!(
            cuMemcpyDtoHAsync()?,
            seen.as_mut_ptr().cast(),
            all,
            64,
            stream
        )?;
        cu!(
            cuMemcpyDtoHAsync()?,
            back.as_mut_ptr().cast(),
            out,
            32,
            stream
        )?;
        cu!(cuStreamSynchronize, stream)?;
        let expected = ([numbers(0), numbers(1)], mine);
        assert_eq!((seen, back), expected, "step {step}");
    }

    // Graphs first, then the pool, on all ranks.
    cu!(cuGraphExecDestroy()?, exec)?;
    cu!(cuGraphDestroy()?, graph)?;
    pool.close()?;
    cu!(cuStreamDestroy()?, stream)?;
    Ok(cu!(cuMemFree, memory)?)
}

/// Runs the host.
pub fn main() -> Outcome {
    let profile = slabfence_emu::Profile::named("h200-nvlink").ok_or("no such profile")?;
    let machine = slabfence_emu::Machine::new(profile, 2)?;
    let driver = &Driver::from_api(machine.api()?)?;
    thread::scope(|scope| {
        let spawn = |member| scope.spawn(move || rank(driver, member));
        let ranks: Vec<_> = ThreadBootstrap::world(2).into_iter().map(spawn).collect();
        let mut joined = ranks.into_iter().map(|rank| rank.join());
        joined.try_for_each(|rank| rank.map_err(|_| "a rank panicked")?)
    })
}
