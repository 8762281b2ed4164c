//! Partial outputs combined through a pool, with weights that make the results exact.

use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::collective::{Layout, LseBase, LseReduceScatter};
use slabfence::driver::{DeviceBuffer, Stream};
use slabfence::layout::{DType, Transport};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Member, on_ranks};

const BATCH: u32 = 3;
const DIM: u32 = 20;
/// Heads of one rank.
const HEADS: u32 = 2;
const CAPACITY: u32 = 5;

/// Partial output of rank `rank`, a small integer.
fn partial(rank: u32, token: u32, head: u32, i: u32) -> f32 {
    ((rank * 64 + token * 16 + head * 4 + i) % 97) as f32
}

/// Log-sum-exp of rank `rank`: by head, all ranks equal, rank 1 alone, or nobody.
fn lse(rank: u32, head: u32) -> f32 {
    match (head % 3, rank) {
        (0, _) => -3.25,
        (1, 1) => 700.0,
        (1, 0) => f32::NAN,
        (1, _) => f32::NEG_INFINITY,
        _ => f32::INFINITY,
    }
}

/// The input value: what is of no weight is no number.
fn input(rank: u32, token: u32, head: u32, i: u32) -> f32 {
    if lse(rank, head).is_finite() {
        partial(rank, token, head, i)
    } else {
        f32::NAN
    }
}

fn expected(world: u32, token: u32, head: u32, i: u32) -> f32 {
    match head % 3 {
        // World sizes here are powers of two, so 1/W and the sum of small integers over W are exact.
        0 => {
            (0..world)
                .map(|rank| partial(rank, token, head, i))
                .sum::<f32>()
                / world as f32
        }
        1 => partial(1, token, head, i),
        _ => 0.0,
    }
}

fn offset(layout: Layout, heads: u32, token: u32, head: u32, i: u32) -> usize {
    let row = match layout {
        Layout::TokenMajor => token * heads + head,
        Layout::HeadMajor { capacity } => head * capacity + token,
    };
    (row * DIM + i) as usize * 4
}

fn rows(layout: Layout, heads: u32) -> u32 {
    match layout {
        Layout::TokenMajor => BATCH * heads,
        Layout::HeadMajor { capacity } => capacity * heads,
    }
}

fn reduce(member: &Member, contract: &Contract, base: LseBase, from: Layout, to: Layout) {
    let world = member.group.world();
    let total = HEADS * world;
    let rank = member.rank();
    let (pool, channel) = member.channel(contract, "decode").unwrap();
    let stream = Stream::new(&member.device).unwrap();
    let bytes = |rows: u32| (rows * DIM * 4) as usize;
    let partials = DeviceBuffer::new(&member.device, bytes(rows(from, total))).unwrap();
    let lses = DeviceBuffer::new(&member.device, (BATCH * total * 4) as usize).unwrap();
    let output = DeviceBuffer::new(&member.device, bytes(rows(to, HEADS))).unwrap();
    partials.fill(0xff).unwrap();
    output.fill(0x5a).unwrap();
    for token in 0..BATCH {
        for head in 0..total {
            let row: Vec<u8> = (0..DIM)
                .flat_map(|i| input(rank, token, head, i).to_le_bytes())
                .collect();
            partials
                .write(offset(from, total, token, head, 0), &row)
                .unwrap();
            let at = ((token * total + head) * 4) as usize;
            lses.write(at, &lse(rank, head).to_le_bytes()).unwrap();
        }
    }
    let call = LseReduceScatter {
        input: partials.ptr(),
        lse: lses.ptr(),
        output: output.ptr(),
        batch: BATCH,
        dtype: DType::F32,
        head_dim: None,
        base,
        input_layout: from,
        output_layout: to,
    };
    // Twice: both slots.
    for _ in 0..2 {
        // SAFETY: the buffers are as large as the call says and live until the stream has been synchronised.
        unsafe { call.enqueue(&channel, &stream) }.unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(pool.faults().unwrap(), []);
    let mut all = vec![0; output.len()];
    output.read(0, &mut all).unwrap();
    let mut written = 0;
    for token in 0..BATCH {
        for head in 0..HEADS {
            for i in 0..DIM {
                let at = offset(to, HEADS, token, head, i);
                let got = f32::from_le_bytes(all[at..at + 4].try_into().unwrap());
                let wanted = expected(world, token, rank * HEADS + head, i);
                assert_eq!(
                    got.to_bits(),
                    wanted.to_bits(),
                    "token {token} head {head} element {i}"
                );
                written += 4;
            }
        }
    }
    let untouched = all
        .chunks_exact(4)
        .filter(|word| *word == [0x5a; 4])
        .count()
        * 4;
    assert_eq!(written + untouched, all.len());
    pool.close().unwrap();
}

fn reduces(world: u32, transport: Transport, base: LseBase, from: Layout, to: Layout) {
    let (machine, driver) = machine(world);
    let contract = Contract {
        reduce_element_bytes: 4,
        transport,
        fail: Duration::from_secs(20),
        ..Contract::new(HEADS * world, 64, DIM, BATCH)
    };
    on_ranks(&driver, world, |member| {
        reduce(member, &contract, base, from, to)
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn shards_are_combined_by_push_from_token_major_to_head_major() {
    let to = Layout::HeadMajor { capacity: CAPACITY };
    reduces(2, Transport::Push, LseBase::E, Layout::TokenMajor, to);
}

#[test]
fn shards_are_combined_by_pull_from_head_major_to_token_major() {
    let from = Layout::HeadMajor { capacity: CAPACITY };
    reduces(4, Transport::Pull, LseBase::Two, from, Layout::TokenMajor);
}
