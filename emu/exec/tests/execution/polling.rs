//! What lanes poll, lane by lane, and for which value.

use crate::support::{Buffer, Memory, compile, launch, module};
use slabfence_emu_exec::{Cta, Env, Fast, Polled, Relation, Space, Step};

const A: u64 = 0x7000_0000_0000;

/// What a warp of two lanes polls in the end.
fn polled(body: &str) -> Vec<Polled> {
    let text = format!(
        ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p<4>; mov.u32 %r1, %laneid;
         mul.wide.u32 %d1, %r1, 16; add.u64 %d1, %d1, {A}; cvt.u64.u32 %d4, %r1; add.u64 %d4, %d4, 7;
         {body} ret;"
    );
    let kernel = compile(&module(0, &text), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 64));
    let mut cta = Cta::new(&launch(&kernel, 1, 2, &[]), [0; 3], 0);
    let mut env = Env {
        memory: &mut memory,
        hook: &mut Fast,
        globaltimer: 0,
        clock: 0,
        executed: 0,
    };
    while cta.step(0, &mut env, 100) != Step::Polled {}
    let lanes = cta.waits()[0].lanes;
    cta.polled(0, lanes)
}

#[test]
fn every_lane_tells_its_word_and_what_it_compares_it_with() {
    let poll =
        "W: ld.acquire.sys.global.v2.u64 {%d2, %d3}, [%d1]; setp.ne.u64 %p1, %d4, %d3; @%p1 bra W;";
    let found = polled(poll);
    let words = found.iter().map(|one| {
        let of = (one.space, one.address, one.size);
        (one.lane, of, one.seen, one.compared)
    });
    let word = |at| (Space::Global, A + at, 8);
    assert_eq!(
        words.collect::<Vec<_>>(),
        [(0, word(8), 0, Some(7)), (1, word(24), 0, Some(8))]
    );
}

#[test]
fn a_poll_whose_value_is_not_compared_soon_tells_its_word_alone() {
    let poll = "W: ld.relaxed.sys.global.u64 %d2, [%d1]; xor.b64 %d5, %d2, %d4; setp.ne.u64 %p1, %d5, 0; @%p1 bra W;";
    let found: Vec<_> = polled(poll)
        .iter()
        .map(|one| (one.address, one.compared))
        .collect();
    assert_eq!(found, [(A, None), (A + 16, None)]);
}

#[test]
fn what_ends_a_wait_is_told_by_where_the_branch_leads() {
    use Relation::{AtLeast, AtMost, Different, Equal, Less, More};
    let table = [
        ("setp.ne.u64 %p1, %d2, 9; @%p1 bra W;", Some(Equal)),
        ("setp.eq.u64 %p1, %d2, 0; @%p1 bra W;", Some(Different)),
        ("setp.eq.u64 %p1, %d2, 9; @!%p1 bra W;", Some(Equal)),
        ("setp.lt.u64 %p1, %d2, 9; @%p1 bra W;", Some(AtLeast)),
        ("setp.le.s64 %p1, %d2, 9; @%p1 bra W;", Some(More)),
        ("setp.gt.u64 %p1, 9, %d2; @%p1 bra W;", Some(AtLeast)),
        ("setp.hi.u64 %p1, %d2, 9; @!%p1 bra W;", Some(More)),
        ("setp.ge.u64 %p1, %d4, %d2; @%p1 bra W;", Some(More)),
        ("setp.gt.u64 %p1, %d2, 9; @!%p1 bra W;", Some(More)),
        ("setp.ne.u64 %p1|%p2, %d2, 9; @!%p2 bra W;", Some(Equal)),
        // The branch leaves the loop, or leads to what leads back.
        (
            "setp.eq.u64 %p1, %d2, 9; @%p1 bra D; bra W; D:",
            Some(Equal),
        ),
        (
            "setp.ne.u64 %p1, %d2, 9; @%p1 bra N; bra D; N: add.u32 %r2, %r2, 1; bra W; D:",
            Some(Equal),
        ),
        // Less and at most: what a word that is 0 must be below has to be negative.
        ("setp.ge.s64 %p1, %d2, 0; @%p1 bra W;", Some(Less)),
        ("setp.gt.s64 %p1, %d2, -1; @%p1 bra W;", Some(AtMost)),
        // The result goes elsewhere: who saw another value waits for this one, and of anything else nothing is known.
        (
            "setp.ne.u64 %p1, %d2, 9; and.pred %p1, %p1, %p1; @%p1 bra W;",
            Some(Equal),
        ),
        (
            "setp.eq.u64 %p1, %d2, 0; and.pred %p1, %p1, %p1; @%p1 bra W;",
            None,
        ),
        (
            "setp.lt.u64 %p1, %d2, 9; selp.u32 %r2, 1, 0, %p1; setp.ne.u32 %p2, %r2, 0; @%p2 bra W;",
            None,
        ),
    ];
    for (behind, awaited) in table {
        let found = polled(&format!(
            "W: ld.relaxed.sys.global.u64 %d2, [%d1]; {behind}"
        ));
        assert_eq!(found[0].awaited, awaited, "{behind}");
    }
}
