//! Lines of the kernel's source, where the PTX names them.

use crate::support::{Buffer, Memory, compile, launch, module, run};

const A: u64 = 0x7000_0000_0000;

#[test]
fn a_fault_names_the_source_line_of_its_own_instruction() {
    let said = |loc: &str| {
        let body = format!(
            ".reg .b64 %d<2>; .reg .b32 %r<2>; mov.u64 %d1, {A};
             .loc 1 7 1
             ld.global.u32 %r1, [%d1];
             {loc}
             st.global.u32 [%d1+64], %r1;
             .loc 1 11 1
             ret;"
        );
        let files = ".file 1 \"k.cu\"\n.file 2 \"k.cuh\"\n";
        let kernel = compile(&(module(0, &body) + files), "k");
        let mut memory = Memory::default();
        memory.buffers.push(Buffer::new(A, 64));
        let fault = run(&mut memory, &[launch(&kernel, 1, 32, &[])]).fault();
        let source = fault.source.as_ref().map(ToString::to_string);
        (source, fault.to_string())
    };
    let (source, words) = said(".loc 2 9 1");
    assert_eq!(source.as_deref(), Some("k.cuh:9"));
    assert!(words.ends_with(", k.cuh:9"), "{words}");
    let (source, words) = said(".loc 1 0 1");
    assert_eq!(source, None);
    assert!(!words.contains("k.cu"), "{words}");
}
