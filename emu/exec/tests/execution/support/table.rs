//! One instruction, many cases: a case per lane.

use super::{Buffer, Memory, compile, launch, module, run};

const IN: u64 = 0x7000_0000_0000;
const OUT: u64 = 0x7000_0010_0000;
const OPERANDS: usize = 4;

/// Checks an instruction: `shape` has a letter per register, the destination first (`h` 16 bits, `r` 32, `d` 64, `p` a
/// predicate). `op` is an opcode, or a whole instruction in which `$0`, `$1`, … are the registers.
///
/// The cases run in as many lanes as there are (others idle), and again in all 32.
pub fn check(op: &str, shape: &str, cases: &[(&[u64], u64)]) {
    let kernel = compile(&module(2, &body(op, shape)), "k");
    for lanes in [cases.len().min(31), 32] {
        let mut memory = Memory::default();
        memory.buffers.push(Buffer::new(IN, 32 * 8 * OPERANDS));
        memory.buffers.push(Buffer::new(OUT, 32 * 8));
        for (chunk_at, chunk) in cases.chunks(lanes).enumerate() {
            for lane in 0..lanes {
                let (operands, _) = chunk[lane % chunk.len()];
                for (at, operand) in operands.iter().enumerate() {
                    memory.buffers[0].write(8 * (OPERANDS * lane + at), &operand.to_le_bytes());
                }
            }
            run(&mut memory, &[launch(&kernel, 1, lanes as u32, &[IN, OUT])]).done();
            for lane in 0..lanes {
                let (operands, expected) = chunk[lane % chunk.len()];
                let found = memory.buffers[1].u64(lane);
                assert_eq!(
                    found,
                    expected,
                    "`{op}` of {operands:#x?} gives {found:#x}, not {expected:#x} (case {}, {lanes} lanes)",
                    chunk_at * lanes + lane % chunk.len()
                );
            }
        }
    }
}

fn body(op: &str, shape: &str) -> String {
    let mut text = String::from(
        ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>, %t<8>; .reg .b64 %d<8>, %a<8>;
         ld.param.u64 %a1, [p0]; ld.param.u64 %a2, [p1];
         mov.u32 %t1, %tid.x; mul.wide.u32 %a3, %t1, 32; add.u64 %a4, %a1, %a3;
         mul.wide.u32 %a5, %t1, 8; add.u64 %a6, %a2, %a5;\n",
    );
    for (at, class) in shape.chars().enumerate().skip(1) {
        let offset = 8 * (at - 1);
        text += &match class {
            'h' => format!("ld.global.b16 %h{at}, [%a4+{offset}];\n"),
            'r' => format!("ld.global.b32 %r{at}, [%a4+{offset}];\n"),
            'd' => format!("ld.global.b64 %d{at}, [%a4+{offset}];\n"),
            _ => format!("ld.global.b32 %t2, [%a4+{offset}]; setp.ne.u32 %p{at}, %t2, 0;\n"),
        };
    }
    let name = |at: usize, class: char| format!("%{class}{at}");
    let mut instruction = op.to_owned();
    if op.contains('$') {
        for (at, class) in shape.chars().enumerate() {
            instruction = instruction.replace(&format!("${at}"), &name(at, class));
        }
    } else {
        let operands: Vec<_> = shape
            .chars()
            .enumerate()
            .map(|(at, class)| name(at, class))
            .collect();
        instruction = format!("{op} {}", operands.join(", "));
    }
    text += &instruction;
    text += ";\n";
    text += match shape.chars().next() {
        Some('h') => "cvt.u64.u16 %a7, %h0;\n",
        Some('r') => "cvt.u64.u32 %a7, %r0;\n",
        Some('d') => "mov.b64 %a7, %d0;\n",
        _ => "selp.b64 %a7, 1, 0, %p0;\n",
    };
    text + "st.global.b64 [%a6], %a7; ret;"
}
