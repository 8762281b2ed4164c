//! Bodies: names, operands, instructions.

use crate::kernel;
use slabfence_emu_ptx::{
    Base, Modifier, Opcode, Operand, RegisterId, SpecialRegister, Symbol, Type,
};

/// Operands of the first instruction.
fn operands(body: &str) -> Vec<Operand> {
    kernel(body).body.remove(0).operands
}

fn register(index: u32) -> Operand {
    Operand::Register(RegisterId(index))
}

#[test]
fn modifiers_come_in_any_order_and_types_in_theirs() {
    for text in [
        "atom.add.acq_rel.gpu.global.u64",
        "atom.acq_rel.gpu.global.add.u64",
        "atom.global.gpu.add.acq_rel.u64",
    ] {
        let atom = kernel(&format!("{text} %d1, [%d2], 1;")).body.remove(0);
        assert_eq!(
            (atom.opcode, &atom.types[..]),
            (Opcode::Atom, &[Type::U64][..])
        );
        let wanted = [
            Modifier::Add,
            Modifier::AcqRel,
            Modifier::Gpu,
            Modifier::Global,
        ];
        assert!(
            atom.modifiers.len() == 4 && wanted.into_iter().all(|modifier| atom.has(modifier)),
            "{text}"
        );
    }
    let convert = kernel("cvt.rn.f32.s32 %f1, %r1;").body.remove(0);
    assert_eq!(convert.types, [Type::F32, Type::S32]);
    assert_eq!(convert.mnemonic(), "cvt.rn.f32.s32");
}

#[test]
fn operands_of_every_kind() {
    assert_eq!(
        operands("mov.u32 %r1, -2;"),
        [register(0), Operand::Integer(2u64.wrapping_neg())]
    );
    assert_eq!(
        operands("mov.f32 %f1, 0fBF800000;"),
        [register(0), Operand::F32(0xbf80_0000)]
    );
    assert_eq!(
        operands("mov.u32 %r1, %ctaid.y;"),
        [register(0), Operand::Special(SpecialRegister::CtaidY)]
    );
    assert_eq!(
        operands("mov.u64 %d1, %globaltimer;"),
        [register(0), Operand::Special(SpecialRegister::Globaltimer)]
    );
    assert_eq!(
        operands("mov.b64 %d1, p+24;"),
        [register(0), Operand::Symbol(Symbol::Param(0), 24)]
    );
    assert_eq!(
        operands("ld.param.u64 %d1, [p+8];"),
        [
            register(0),
            Operand::Address(Base::Symbol(Symbol::Param(0)), 8)
        ]
    );
    assert_eq!(
        operands("ld.u64 %d1, [%d2+-16];"),
        [
            register(0),
            Operand::Address(Base::Register(RegisterId(1)), -16)
        ]
    );
    assert_eq!(
        operands("ld.u64 %d1, [%d1-4];"),
        [
            register(0),
            Operand::Address(Base::Register(RegisterId(0)), -4)
        ]
    );
    assert_eq!(
        operands("ld.shared.u64 %d1, [64+8];"),
        [register(0), Operand::Address(Base::Absolute, 72)]
    );
    assert_eq!(
        operands("mov.b32 %r1, {%h1, %h2};"),
        [register(0), Operand::Vector(vec![register(1), register(2)])]
    );
    let [pair, ..] = &operands("setp.eq.s32 %p1|%p2, %r1, 0;")[..] else {
        panic!("no operands")
    };
    assert_eq!(
        *pair,
        Operand::Pair(Box::new(register(0)), Box::new(register(1)))
    );
    let [pair, ..] = &operands("setp.eq.s32 _|%p2, %r1, 0;")[..] else {
        panic!("no operands")
    };
    assert_eq!(
        *pair,
        Operand::Pair(Box::new(Operand::Sink), Box::new(register(0)))
    );
    assert_eq!(
        operands("vote.sync.any.pred %p1, !%p2, -1;")[1],
        Operand::Not(RegisterId(1))
    );
}

#[test]
fn inner_names_hide_outer_ones() {
    let entry = kernel(
        "mov.u32 %r1, 1;
         { .reg .b32 %r1; .reg .b64 t; mov.u32 %r1, 2; mov.u64 t, 3; }
         { .reg .b128 t; mov.b128 t, {%d1, %d2}; }
         mov.u32 %r1, 4;",
    );
    let target = |index: usize| entry.body[index].written()[0];
    assert_eq!(target(0), target(4));
    assert_ne!(target(0), target(1));
    assert_ne!(target(2), target(3));
    let ty = |index: usize| entry.registers[target(index).0 as usize].ty;
    assert_eq!(
        [ty(0), ty(1), ty(2), ty(3)],
        [Type::B32, Type::B32, Type::B64, Type::B128]
    );
}

#[test]
fn labels_are_found_forwards_backwards_and_outwards() {
    let entry = kernel(
        "$TOP: mov.u32 %r1, 1;
         @%p1 bra $END;
         { $IN: @!%p2 bra $IN; bra $TOP; }
         { $IN: bra $IN; }
         $END:",
    );
    let targets: Vec<_> = entry.body[1..]
        .iter()
        .map(|branch| &branch.operands[0])
        .collect();
    assert_eq!(
        targets,
        [
            &Operand::Label(5),
            &Operand::Label(2),
            &Operand::Label(0),
            &Operand::Label(4)
        ]
    );
    assert!(entry.body[2].guard.is_some_and(|guard| guard.negated));
}

#[test]
fn registers_read_and_written_are_told_apart() {
    let ids = |found: Vec<RegisterId>| found.into_iter().map(|id| id.0).collect::<Vec<_>>();
    let both = |text: &str| {
        let instruction = kernel(text).body.remove(0);
        (ids(instruction.written()), ids(instruction.read()))
    };
    // Registers are numbered by their first use in the text, the guard first.
    assert_eq!(
        both("@%p1 add.s32 %r1, %r2, %r3;"),
        (vec![1], vec![0, 2, 3])
    );
    assert_eq!(
        both("st.global.v2.u32 [%d1], {%r1, %r2};"),
        (vec![], vec![0, 1, 2])
    );
    assert_eq!(
        both("ld.global.v2.u32 {%r1, _}, [%d1];"),
        (vec![0], vec![1])
    );
    assert_eq!(
        both("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;"),
        (vec![0, 1], vec![2])
    );
    assert_eq!(both("red.global.add.u32 [%d1], %r1;"), (vec![], vec![0, 1]));
    assert_eq!(both("bar.red.or.pred %p1, 0, !%p2;"), (vec![0], vec![1]));
    assert_eq!(both("bar.sync %r1, %r2;"), (vec![], vec![0, 1]));
}
