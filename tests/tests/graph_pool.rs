//! Dumps of graphs with this library's operations: blocks by field, and every address by range, channel, slot and rank.

use std::collections::BTreeMap;

use slabfence::Error;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::{Graph, Stream};
use slabfence::graph::{Dump, Place, Value};
use slabfence::layout::Transport;
use slabfence_tests::graphs::capture;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_ranks};

const WORLD: u32 = 3;

struct Scene {
    pool: Pool,
    graph: Graph,
    gather: Gather,
}

/// A gather captured on channel `b` of two.
fn scene(member: &Member, transport: Transport) -> Scene {
    let contract = Contract {
        transport,
        ..Contract::new(6, 64, 64, 8)
    };
    let pool = member.pool(&contract).unwrap();
    pool.prepare(&["a", "b"]).unwrap();
    let stream = Stream::new(&member.device).unwrap();
    let gather = Gather::new(member, &contract, 1).unwrap();
    let graph = capture(&pool, &stream, "b", |channel| {
        gather.enqueue(channel, &stream).unwrap();
    });
    Scene {
        pool,
        graph,
        gather,
    }
}

/// The address fields of a dump's only block, in words.
fn places(dump: &Dump) -> BTreeMap<String, String> {
    let kernel = dump.contents.nodes[0].kernel().unwrap();
    let block = kernel.params.as_ref().unwrap()[0].block().unwrap();
    let words = block
        .fields
        .into_iter()
        .filter_map(|field| match field.value {
            Value::Address(0) => Some((field.path, "0".to_owned())),
            Value::Address(address) => Some((field.path, dump.place(address)?.to_string())),
            _ => None,
        });
    words.collect()
}

/// What the address fields of rank `me` should be, but for input and output.
fn expected(me: u32, transport: Transport) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    let mut is = |path: String, words_of: String| _ = words.insert(path, words_of);
    let own = "channel b";
    is("header.local".into(), format!("local of rank {me}, {own}"));
    is(
        "header.health".into(),
        format!("health/record of rank {me}, {own}"),
    );
    is(
        "header.health_header".into(),
        format!("health/header of rank {me}"),
    );
    is(
        "header.poison".into(),
        format!("signal/poison of rank {me}, written by rank 0, {own}"),
    );
    let mut slot = |path: String, name: char, owner: u32, source: u32| {
        is(
            format!("{path}.entry"),
            format!("signal/entry {name} of rank {owner}, written by rank {source}, {own}"),
        );
        is(
            format!("{path}.flags"),
            format!("signal/flags {name} of rank {owner}, {own}"),
        );
        let inbox = format!("inbox {name} of rank {owner}, written by rank {source}, {own}");
        let outbox = format!("outbox {name} of rank {owner}, {own}");
        let push = transport == Transport::Push;
        is(
            format!("{path}.inbox"),
            if push { inbox } else { "0".into() },
        );
        is(
            format!("{path}.outbox"),
            if push { "0".into() } else { outbox },
        );
        is(format!("{path}.packets"), "0".into());
    };
    for (index, name) in ['A', 'B'].into_iter().enumerate() {
        slot(format!("header.own[{index}]"), name, me, 0);
        for peer in (0..WORLD).filter(|&peer| peer != me) {
            slot(
                format!("header.peers[{peer}].slot[{index}]"),
                name,
                peer,
                me,
            );
        }
    }
    for peer in (0..WORLD).filter(|&peer| peer != me) {
        words.insert(
            format!("header.peers[{peer}].poison"),
            format!("signal/poison of rank {peer}, written by rank {me}, channel b"),
        );
    }
    words
}

fn addresses_are_named(transport: Transport) {
    let (_machine, driver) = machine(WORLD);
    on_ranks(&driver, WORLD, |member| {
        let scene = scene(member, transport);
        let me = member.rank();
        // SAFETY: the graph is this thread's and lives.
        let dump = unsafe { Dump::of_raw(&member.device, scene.graph.raw(), &[&scene.pool]) };
        let dump = dump.unwrap();
        let mut found = places(&dump);
        let call = &scene.gather.call;
        for (name, at, ranks) in [("input", call.input, 1), ("output", call.output, WORLD)] {
            let bytes = 256 * ranks;
            assert_eq!(
                found.remove(name),
                Some(format!("memory of device {me} at {at}, {bytes} bytes"))
            );
        }
        assert_eq!(found, expected(me, transport));
        assert_eq!(Dump::from_json(&dump.to_json()).unwrap(), dump);

        // Without the pool, the same memory is only live memory.
        let plain = Dump::of(&member.device, &scene.graph, &[]).unwrap();
        assert_eq!(plain.contents, dump.contents);
        for (address, place) in &plain.places {
            assert!(
                matches!(place, Place::Allocation { .. }),
                "{address:#x}: {place}"
            );
        }
        let peer = (me + 1) % WORLD;
        let entry = format!("header.peers[{peer}].slot[0].entry");
        let told = places(&plain).remove(&entry).unwrap();
        assert!(
            told.starts_with(&format!("memory of device {peer} at 0x")),
            "{told}"
        );

        // All ranks have looked before any memory goes; a graph that is held forbids to close.
        drop(scene.graph);
        scene.pool.close().unwrap();
    });
}

#[test]
fn both_slots_of_a_push_are_named_by_kind_channel_slot_and_rank() {
    addresses_are_named(Transport::Push);
}

#[test]
fn both_slots_of_a_pull_are_named_by_kind_channel_slot_and_rank() {
    addresses_are_named(Transport::Pull);
}

#[test]
fn a_block_is_told_by_field_and_only_up_to_its_world() {
    let (_machine, driver) = machine(WORLD);
    let blocks = on_ranks(&driver, WORLD, |member| {
        let scene = scene(member, Transport::Push);
        let dump = Dump::of(&member.device, &scene.graph, &[&scene.pool]).unwrap();
        let kernel = dump.contents.nodes[0].kernel().unwrap();
        let block = kernel.params.as_ref().unwrap()[0].block().unwrap();
        drop(scene.graph);
        scene.pool.close().unwrap();
        block
    });
    for (me, block) in blocks.into_iter().enumerate() {
        assert_eq!(block.name, "GatherParams");
        let field = |path: &str| {
            let field = block.fields.iter().find(|field| field.path == path);
            field.map(|field| field.value)
        };
        assert_eq!(
            field("header.preamble.operation"),
            Some(Value::Code(1, Some("AllGatherHeads")))
        );
        assert_eq!(
            field("header.transport"),
            Some(Value::Code(1, Some("Push")))
        );
        assert_eq!(field("header.dtype"), Some(Value::Code(3, Some("Bf16"))));
        assert_eq!(field("header.rank"), Some(Value::Number(me as u64)));
        assert_eq!(field("header.world"), Some(Value::Number(3)));
        assert_eq!(
            field("header.preamble.magic"),
            Some(Value::Pattern(u64::from_le_bytes(*b"slabfnc1")))
        );
        assert_eq!(field("packs"), Some(Value::Number(16)));
        for peer in 0..16 {
            let there = peer < 3 && peer != me;
            let path = format!("header.peers[{peer}].slot[1].inbox");
            assert_eq!(field(&path).is_some(), there, "{path}");
        }
        assert!(
            block
                .fields
                .iter()
                .all(|field| !field.path.contains("reserved"))
        );
    }
}

#[test]
fn a_closed_pool_has_no_ranges() {
    let (_machine, driver) = machine(WORLD);
    on_ranks(&driver, WORLD, |member| {
        let scene = scene(member, Transport::Push);
        let ranges = scene.pool.ranges().unwrap();
        // Two channels: a local block, a record, 3 × 3 × 3 lines, 3 × 2 flags, 3 × 2 × 3 inboxes; and the header.
        assert_eq!(ranges.len(), 2 * (1 + 1 + 27 + 6 + 18) + 1);
        drop(scene.graph);
        scene.pool.close().unwrap();
        let error = scene.pool.ranges().unwrap_err();
        assert!(matches!(error, Error::Closed { .. }), "{error}");
    });
}
