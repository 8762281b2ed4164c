//! Arguments that are wrong in themselves, on one rank or on several.

use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::group::Rank;

use super::{WORLD, contract, counted, members};

/// What is wrong, in the words of the refusal, and how a contract gets that.
type Wrong = (&'static str, fn(&mut Contract));

fn all() -> Vec<Wrong> {
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
        // Both values of these are right.
        transport: _,
        oversubscribe: _,
    } = contract();
    vec![
        ("total_heads is 0; it must be at least 1", |c| {
            c.total_heads = 0;
        }),
        (
            "total_heads is 7, not a multiple of the world size 3: every rank owns equally many heads",
            |c| c.total_heads = 7,
        ),
        ("query_head_dim is 0; it must be at least 1", |c| {
            c.query_head_dim = 0;
        }),
        (
            "largest gather: a row of 40 bytes (head dimension × element size) is not a positive multiple of 16",
            |c| c.query_head_dim = 20,
        ),
        ("value_head_dim is 0; it must be at least 1", |c| {
            c.value_head_dim = 0;
        }),
        (
            "largest reduce-scatter: a row of 40 bytes (head dimension × element size) is not a positive multiple of 16",
            |c| c.value_head_dim = 20,
        ),
        (
            "gather_element_bytes is 3; it must be one of [1, 2, 4]",
            |c| c.gather_element_bytes = 3,
        ),
        ("reduce_element_bytes is 1; it must be one of [2, 4]", |c| {
            c.reduce_element_bytes = 1;
        }),
        ("max_batch is 0; it must be at least 1", |c| c.max_batch = 0),
        (
            "largest gather: the shape has 268435456 or more packs of 16 bytes on one rank; split the batch",
            |c| c.max_batch = u32::MAX,
        ),
        ("max_channels is 0; it must be 1 to 4096", |c| {
            c.max_channels = 0;
        }),
        ("max_channels is 4097; it must be 1 to 4096", |c| {
            c.max_channels = 4097;
        }),
        ("max_grid is 0; it must be 1 to 128", |c| c.max_grid = 0),
        ("max_grid is 129; it must be 1 to 128", |c| c.max_grid = 129),
        ("concurrent_operations is 0; it must be at least 1", |c| {
            c.concurrent_operations = 0;
        }),
        (
            "warn is 18446744073709551615.999999999s; the longest limit is 31536000s, and zero means never",
            |c| c.warn = Duration::MAX,
        ),
        (
            "fail is 18446744073709551615.999999999s; the longest limit is 31536000s, and zero means never",
            |c| c.fail = Duration::MAX,
        ),
    ]
}

#[test]
fn an_argument_that_is_wrong_on_any_rank_is_told_to_all_before_anything_is_allocated() {
    counted(
        members(WORLD),
        |_, api| api,
        |seat| {
            for (words, change) in all() {
                let words = format!("Pool::create: {words}");
                for wrong in 0..WORLD {
                    let mut contract = contract();
                    if seat.member.rank() == wrong {
                        change(&mut contract);
                    }
                    let failures = seat.refused(&contract, "create: arguments");
                    assert_eq!(failures, [(Rank(wrong), words.clone())]);
                }
            }
            seat.created(&contract());
        },
    );
}

#[test]
fn ranks_whose_arguments_are_wrong_in_different_ways_are_all_named_with_their_own_words() {
    counted(
        members(WORLD),
        |_, api| api,
        |seat| {
            let mut contract = contract();
            match seat.member.rank() {
                0 => contract.max_batch = 0,
                1 => {}
                _ => contract.max_grid = 129,
            }
            let wanted = [
                (0, "Pool::create: max_batch is 0; it must be at least 1"),
                (2, "Pool::create: max_grid is 129; it must be 1 to 128"),
            ];
            let failures = seat.refused(&contract, "create: arguments");
            assert_eq!(
                failures,
                wanted.map(|(rank, words)| (Rank(rank), words.to_owned()))
            );
        },
    );
}
