//! What is remembered of a thread's accesses to a word: more than the last one.

use slabfence_emu_check::Rule;

use crate::ordering::{WAIT, WAIT_RELAXED, clean, finds, of};

#[test]
fn a_thread_s_narrower_or_weaker_access_is_not_hidden_by_its_later_one() {
    let tell = "st.relaxed.sys.global.u64 [%d2], 1;";
    let store = "st.relaxed.sys.global.u32 [%d1], 7;";
    let load = "ld.relaxed.sys.global.u32 %r5, [%d1];";
    let race = |first: &str, second: &str| {
        finds(
            Rule::Race,
            &of(&[first, tell]),
            &of(&[WAIT_RELAXED, second]),
        );
    };
    clean(&of(&[load, load, tell]), &of(&[WAIT_RELAXED, store]));
    race(&of(&["ld.relaxed.gpu.global.u32 %r5, [%d1];", load]), store);
    race(&of(&["ld.global.u32 %r5, [%d1];", load]), store);
    clean(&of(&[store, store, tell]), &of(&[WAIT_RELAXED, load]));
    for weaker in [
        "st.global.u32 [%d1], 7;",
        "st.relaxed.gpu.global.u32 [%d1], 7;",
    ] {
        for later in [load, store] {
            race(&of(&[weaker, store]), later);
            race(&of(&[weaker, weaker, store, store]), later);
        }
        // Ordered, they are in order.
        let ordered = of(&[weaker, store, "st.release.sys.global.u64 [%d2], 1;"]);
        clean(&ordered, &of(&[WAIT, load, store]));
    }
    let halves = of(&["ld.relaxed.sys.global.u64 %d5, [%d1];", load, tell]);
    finds(Rule::MixedSize, &halves, &of(&[WAIT_RELAXED, store]));
}

#[test]
fn a_weaker_store_is_remembered_under_the_part_of_a_vector_that_it_lay_under() {
    let tell = "st.relaxed.sys.global.u64 [%d2], 1;";
    let vector = "st.relaxed.sys.global.v2.u64 [%d1], {%d2, %d2};";
    for under in [0, 8] {
        let weak = format!("st.global.u64 [%d1+{under}], 7;");
        let first = of(&[&weak, vector, tell]);
        for at in [0, 8] {
            let load = format!("ld.relaxed.sys.global.u64 %d5, [%d1+{at}];");
            let second = of(&[WAIT_RELAXED, &load]);
            match at == under {
                true => finds(Rule::Race, &first, &second),
                false => clean(&first, &second),
            }
        }
    }
}
