//! `slabfence check --scenario`: what a block acquires by a scope of its own.

use super::scenarios::{found, rules};

const TWO_BLOCKS: &str = r#"ptx = "k.ptx"
ranks = 1
[[buffer]]
name = "x"
size = 256
owner = 0
[[step]]
rank = 0
launch = { kernel = "k", grid = 2, block = 64, arguments = [{ buffer = "x" }] }
"#;

/// One thread of each of two warps of block 0, and one of block 1, which is between the two.
fn between(writer: &str, other: &str, reader: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x)\n{{\n\
         .reg .b64 %x;\n.reg .b32 %t, %c, %v;\n.reg .pred %p;\nld.param.u64 %x, [x];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nsetp.eq.u32 %p, %c, 1;\n@%p bra OTHER;\n\
         setp.eq.u32 %p, %t, 32;\n@%p bra READER;\nsetp.ne.u32 %p, %t, 0;\n@%p ret;\n\
         st.global.u32 [%x], 7;\n{writer}\nret;\n\
         OTHER: setp.ne.u32 %p, %t, 0;\n@%p ret;\n\
         A: ld.acquire.gpu.global.u32 %v, [%x+64];\nsetp.ne.u32 %p, %v, 1;\n@%p bra A;\n{other}\nret;\n\
         READER: ld.relaxed.gpu.global.u32 %v, [%x+128];\nsetp.ne.u32 %p, %v, 2;\n@%p bra READER;\n\
         {reader}\nld.global.u32 %v, [%x];\nret;\n}}\n"
    )
}

#[test]
fn what_another_block_releases_behind_it_takes_nothing_from_a_block() {
    let told = |name: &str, writer: &str, other: &str, reader: &str| {
        let (code, list) = found(name, TWO_BLOCKS, &between(writer, other, reader), &[]);
        (code, rules(&list).join(" "))
    };
    let clean = (Some(0), String::new());
    let race = (Some(1), "race".to_owned());
    // A chain of read-modify-writes: its first link is of the reader's block.
    let writer = "st.release.gpu.global.u32 [%x+128], 1; st.release.gpu.global.u32 [%x+64], 1;";
    let release = "atom.release.gpu.global.add.u32 %v, [%x+128], 1;";
    let fence = "fence.acq_rel.cta;";
    assert_eq!(told("scopes-chain", writer, release, fence), clean);
    assert_eq!(told("scopes-chain", writer, release, ""), race);
    // The order of fences of one block, whoever else fences.
    let writer = "fence.sc.cta; st.release.gpu.global.u32 [%x+64], 1;";
    let strict = "fence.sc.cta; st.relaxed.gpu.global.u32 [%x+128], 2;";
    let fence = "fence.sc.cta;";
    assert_eq!(told("scopes-strict", writer, strict, fence), clean);
    assert_eq!(told("scopes-strict", writer, strict, ""), race);
}
