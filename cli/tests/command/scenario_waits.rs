//! `slabfence check --scenario`: waits, those that end and those that do not.

use serde_json::Value;

use super::scenarios::{access, found, rules};

/// Two ranks; both map `flag` of rank 0, which has 256 bytes and `TAG`. Rank 0 waits there for what rank 1 should write.
pub const WAIT: &str = r#"ptx = "k.ptx"
ranks = 3
[[buffer]]
name = "flag"
size = 256
owner = 0
mapped = [1]
[[step]]
rank = 0
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ at = { buffer = "flag", offset = 128 } }]
[[step]]
rank = 1
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ at = { buffer = "flag", offset = 128 } }]
"#;

#[test]
fn a_deadlock_tells_who_waits_for_what_and_who_maps_the_word() {
    let poll =
        access("LOOP: ld.acquire.sys.global.u32 %v, [%x+8]; setp.ne.u32 %p, %v, 7; @%p bra LOOP;");
    let (code, list) = found("scenario-wait", WAIT, &poll, &[]);
    assert_eq!((code, rules(&list)), (Some(1), vec!["deadlock"]));
    let waits = list[0]["waits"].as_array().expect("a list");
    let of = |wait: &Value| {
        (
            wait["rank"].as_u64(),
            wait["kernel"].clone(),
            wait["on"].clone(),
        )
    };
    let both = [0, 1].map(|rank| (Some(rank), "access".into(), "poll".into()));
    assert_eq!(waits.iter().map(of).collect::<Vec<_>>(), both);
    for wait in waits {
        assert_eq!(wait["cta"], serde_json::json!([0, 0, 0]));
        assert_eq!(
            (wait["warp"].as_u64(), &wait["lanes"]),
            (Some(0), &serde_json::json!([0]))
        );
        let poll = &wait["polls"][0];
        assert_eq!(poll["ptx_line"], 10);
        assert_eq!(
            (&poll["region"], poll["offset"].as_u64()),
            (&"buffer `flag`".into(), Some(136))
        );
        let values = ["expected", "seen", "current"].map(|key| poll[key].as_u64());
        assert_eq!(values, [Some(7), Some(0), Some(0)]);
        let writers = poll["writers"].as_array().expect("a list");
        let ranks: Vec<_> = writers.iter().map(|one| one["rank"].as_u64()).collect();
        assert_eq!(ranks, [Some(0), Some(1)], "rank 2 does not map it");
        assert_eq!(writers[1]["operations"][0]["kernel"], "access");
        assert_eq!(poll["last_writer"], Value::Null);
    }
}

#[test]
fn a_deadlock_tells_what_would_end_the_wait() {
    let poll = "LOOP: ld.relaxed.sys.global.u32 %v, [%x];";
    let table = [
        (
            "setp.ne.u32 %p, %v, 7; @%p bra LOOP;",
            "equal",
            "expects 0x7, saw 0x0",
        ),
        (
            "setp.eq.u32 %p, %v, 0; @%p bra LOOP;",
            "different",
            "expects anything but 0x0, saw 0x0",
        ),
        (
            "setp.ne.u32 %p, %v, 0; @!%p bra LOOP;",
            "different",
            "expects anything but 0x0, saw 0x0",
        ),
        (
            "setp.ne.u32 %p, %v, 0; @%p bra DONE; bra LOOP; DONE:",
            "different",
            "expects anything but 0x0, saw 0x0",
        ),
        (
            "setp.lt.u32 %p, %v, 5; @%p bra LOOP;",
            "at-least",
            "expects at least 0x5, saw 0x0",
        ),
    ];
    for (behind, awaited, words) in table {
        let ptx = access(&format!("{poll} {behind}"));
        let (code, list) = found("scenario-until", WAIT, &ptx, &[]);
        assert_eq!((code, rules(&list)), (Some(1), vec!["deadlock"]));
        let wait = &list[0]["waits"][0];
        assert_eq!(wait["polls"][0]["awaited"], awaited, "{behind}");
        let said = wait["words"].as_str().expect("words");
        assert!(said.contains(words), "{behind}: {said}");
    }
}

#[test]
fn of_two_comparisons_with_one_word_none_is_said_to_be_awaited() {
    let poll = access(
        "LOOP: ld.relaxed.sys.global.u32 %v, [%x]; setp.eq.u32 %p, %v, 5; @%p bra DONE; \
         setp.eq.u32 %p, %v, 6; @%p bra DONE; bra LOOP; DONE:",
    );
    let (code, list) = found("waits-either", WAIT, &poll, &[]);
    assert_eq!((code, rules(&list)), (Some(1), vec!["deadlock"]));
    let poll = &list[0]["waits"][0]["polls"][0];
    assert_eq!(
        (&poll["expected"], &poll["awaited"]),
        (&5.into(), &Value::Null)
    );
}

/// What becomes of a grid of so many blocks of one thread that run this, with a clock that stands still or goes on.
fn alone(name: &str, blocks: u32, time_passes: bool, body: &str) -> (Option<i32>, Vec<Value>) {
    let ptx = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry access(.param .u64 x)\n{{\n\
         .reg .b64 %x, %t<3>;\n.reg .b32 %v, %w, %n;\n.reg .pred %p, %q;\nld.param.u64 %x, [x];\n{body}\nret;\n}}\n"
    );
    let scenario = format!(
        "ptx = \"k.ptx\"\nranks = 1\ntime_passes = {time_passes}\n[[buffer]]\nname = \"x\"\nsize = 64\nowner = 0\n\
         [[step]]\nrank = 0\nlaunch = {{ kernel = \"access\", grid = {blocks}, block = 1, arguments = [{{ buffer = \"x\" }}] }}\n"
    );
    found(name, &scenario, &ptx, &[])
}

#[test]
fn who_has_enough_of_looking_in_the_end_does_not_wait_for_ever() {
    let clean = (Some(0), Vec::new());
    // As many looks whatever they give.
    let counts = "mov.u32 %n, 0; L: ld.volatile.global.u32 %v, [%x]; add.u32 %n, %n, 1; \
                  setp.lt.u32 %p, %n, 20000; @%p bra L; st.volatile.global.u32 [%x+8], %n;";
    assert_eq!(alone("waits-counts", 1, false, counts), clean);
    // Up to so many looks, with one more wait behind.
    let gives_up = "mov.u32 %n, 300; L: ld.relaxed.sys.global.u32 %v, [%x]; setp.ne.u32 %q, %v, 0; @%q bra D; \
                    sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra L; D: st.release.gpu.global.u32 [%x+8], 1; \
                    M: ld.acquire.gpu.global.u32 %v, [%x+8]; setp.eq.u32 %p, %v, 0; @%p bra M;";
    assert_eq!(alone("waits-counts", 2, false, gives_up), clean);
    // Who counts and has never enough waits for ever.
    let endless = "mov.u32 %n, 0; L: ld.volatile.global.u32 %v, [%x]; add.u32 %n, %n, 1; \
                   setp.eq.u32 %p, %v, 0; @%p bra L; st.volatile.global.u32 [%x+8], %n;";
    assert_eq!(
        rules(&alone("waits-counts", 1, false, endless).1),
        ["deadlock"]
    );
}

#[test]
fn a_read_modify_write_that_changes_nothing_is_a_look() {
    let clean = (Some(0), Vec::new());
    let count = "ld.global.u32 %n, [%x+4]; add.u32 %n, %n, 1; st.global.u32 [%x+4], %n;";
    let free = "st.release.gpu.global.b32 [%x], 0;";
    for take in ["cas.b32 %v, [%x], 0, 1;", "exch.b32 %v, [%x], 1;"] {
        let lock = format!(
            "L: atom.acquire.gpu.global.{take} setp.ne.u32 %p, %v, 0; @%p bra L; {count} {free}"
        );
        assert_eq!(alone("waits-changes", 6, false, &lock), clean, "{take}");
    }
    let barrier = |look: &str, all: u32| {
        format!(
            "atom.acq_rel.gpu.global.add.u32 %v, [%x], 1; \
             L: atom.acquire.gpu.global.{look} setp.lt.u32 %p, %v, {all}; @%p bra L;"
        )
    };
    for look in ["add.u32 %v, [%x], 0;", "cas.b32 %v, [%x], 0, 0;"] {
        assert_eq!(
            alone("waits-changes", 6, false, &barrier(look, 6)),
            clean,
            "{look}"
        );
        let (code, list) = alone("waits-changes", 6, false, &barrier(look, 7));
        assert_eq!((code, rules(&list)), (Some(1), vec!["deadlock"]), "{look}");
        let waits = list[0]["waits"].as_array().expect("a list");
        assert_eq!(waits.len(), 6, "{look}");
        for wait in waits {
            let poll = &wait["polls"][0];
            let values = ["expected", "seen", "current"].map(|key| poll[key].as_u64());
            assert_eq!(values, [Some(7), Some(6), Some(6)], "{look}");
            assert_eq!(poll["awaited"], "at-least", "{look}");
        }
    }
}

#[test]
fn a_wait_that_a_clock_bounds_ends_where_time_passes_and_is_a_deadlock_where_none_does() {
    for clock in ["%clock64", "%globaltimer"] {
        let bounded = format!(
            "mov.u64 %t0, {clock}; L: ld.relaxed.sys.global.u32 %v, [%x]; setp.ne.u32 %q, %v, 0; @%q bra D; \
             mov.u64 %t1, {clock}; sub.u64 %t1, %t1, %t0; setp.lt.u64 %p, %t1, 10000000000; @%p bra L; D:"
        );
        assert_eq!(
            alone("waits-clock", 2, true, &bounded),
            (Some(0), Vec::new()),
            "{clock}"
        );
        assert_eq!(
            rules(&alone("waits-clock", 2, false, &bounded).1),
            ["deadlock"],
            "{clock}"
        );
        // Counted looks before and behind it.
        let counted = format!(
            "mov.u32 %n, 7000; K: ld.relaxed.sys.global.u32 %v, [%x]; sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra K; {bounded}"
        );
        assert_eq!(
            alone("waits-clock", 2, true, &counted),
            (Some(0), Vec::new()),
            "{clock}"
        );
        // No clock helps who does not ask it.
        let unbounded = "L: ld.relaxed.sys.global.u32 %v, [%x]; setp.eq.u32 %q, %v, 0; @%q bra L;";
        assert_eq!(
            rules(&alone("waits-clock", 2, true, unbounded).1),
            ["deadlock"]
        );
    }
}

#[test]
fn a_wait_that_goes_round_many_words_is_a_wait() {
    let clean = (Some(0), Vec::new());
    // Everybody sets a word, and looks at all of them again and again by one instruction.
    let rolled = |all: u32| {
        format!(
            "mov.u32 %n, %ctaid.x; mul.wide.u32 %t0, %n, 4; add.s64 %t0, %t0, %x; st.release.gpu.global.u32 [%t0], 1; \
             AGAIN: mov.u32 %n, 0; mov.b64 %t1, %x; mov.u32 %v, 0; \
             L: ld.acquire.gpu.global.u32 %w, [%t1]; add.u32 %v, %v, %w; add.s64 %t1, %t1, 4; add.u32 %n, %n, 1; \
             setp.lt.u32 %p, %n, 12; @%p bra L; setp.ne.u32 %q, %v, {all}; @%q bra AGAIN;"
        )
    };
    assert_eq!(alone("waits-round", 12, false, &rolled(12)), clean);
    let (code, list) = alone("waits-round", 12, false, &rolled(13));
    assert_eq!((code, rules(&list)), (Some(1), vec!["deadlock"]));
    assert_eq!(list[0]["waits"].as_array().map(Vec::len), Some(12));
    // Twelve instructions, each at a word of its own.
    let mut flat = "mov.u32 %n, %ctaid.x; mul.wide.u32 %t0, %n, 4; add.s64 %t0, %t0, %x; st.release.gpu.global.u32 [%t0], 1; \
                    AGAIN: mov.u32 %v, 0;"
        .to_owned();
    for at in 0..12 {
        flat += &format!(
            "ld.acquire.gpu.global.u32 %w, [%x+{}]; add.u32 %v, %v, %w;",
            4 * at
        );
    }
    flat += "setp.ne.u32 %q, %v, 12; @%q bra AGAIN;";
    assert_eq!(alone("waits-round", 12, false, &flat), clean);
}

#[test]
fn a_wait_whose_warps_meet_between_its_looks_ends_by_its_clock() {
    let bounded = "mov.u64 %t0, %globaltimer; L: ld.relaxed.sys.global.u32 %v, [%x]; setp.ne.u32 %q, %v, 0; \
                   bar.red.or.pred %q, 0, %q; @%q bra D; mov.u64 %t1, %globaltimer; sub.u64 %t1, %t1, %t0; \
                   setp.lt.u64 %p, %t1, 10000000000; bar.red.and.pred %p, 0, %p; @%p bra L; D:";
    let clean = (Some(0), Vec::new());
    assert_eq!(alone("waits-meet", 2, true, bounded), clean);
    // Taken anew each time, and a wait for nothing but time.
    let anew = "mov.u32 %n, 20; A: mov.u64 %t0, %globaltimer; L: ld.relaxed.sys.global.u32 %v, [%x]; \
                setp.ne.u32 %q, %v, 0; @%q bra D; mov.u64 %t1, %globaltimer; sub.u64 %t1, %t1, %t0; \
                setp.lt.u64 %p, %t1, 1000000000; @%p bra L; sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra A; \
                D: mov.u64 %t0, %globaltimer; T: mov.u64 %t1, %globaltimer; sub.u64 %t1, %t1, %t0; \
                setp.lt.u64 %p, %t1, 5000000000; @%p bra T;";
    assert_eq!(alone("waits-meet", 2, true, anew), clean);
}

#[test]
fn waits_of_many_warps_that_a_clock_bounds_end_too() {
    let bounded = "mov.u64 %t0, %globaltimer; L: ld.relaxed.sys.global.u32 %v, [%x]; setp.ne.u32 %q, %v, 0; @%q bra D; \
                   mov.u64 %t1, %globaltimer; sub.u64 %t1, %t1, %t0; setp.lt.u64 %p, %t1, 100000000000; @%p bra L; D:";
    let clean = (Some(0), Vec::new());
    assert_eq!(alone("waits-crowd", 300, true, bounded), clean);
}

#[test]
fn many_blocks_that_count_at_one_word_take_no_longer_each() {
    let start = std::time::Instant::now();
    let count = "red.relaxed.gpu.global.add.u32 [%x], 1; mov.u32 %n, 0; fence.acq_rel.gpu; \
                 atom.relaxed.gpu.global.add.u32 %v, [%x+8], 1; fence.acq_rel.gpu;";
    let clean = (Some(0), Vec::new());
    assert_eq!(alone("waits-count", 1024, false, count), clean);
    // It took minutes when what each addition publishes was compared with all before it.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}
