//! Decoded instructions: every operand is a place in a warp's register file, every name is a number.

use crate::{
    AccessKind, Fence, Operation, Order, Relation, Scope, Space,
    value::{Narrow, Scalar, Wide, convert::Conversion, f32s, halves, rounding::Rounding},
};
use slabfence_emu_ptx::{Modifier, SpecialRegister, Type};

/// Index of a row in the file of 32-bit registers, of 64-bit registers, or of predicates.
pub(crate) type Slot = u16;

/// A value or a destination that may be of either width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A 32-bit row, of which only the low bits of `mask` are the register (a 16-bit one is narrower than its row).
    Narrow(Slot, u32),
    /// A 64-bit row.
    Wide(Slot),
    /// A destination that is not wanted.
    Nowhere,
}

/// A predicate as a source: its slot, and whether it is negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    pub(crate) slot: Slot,
    pub(crate) negated: bool,
}

/// A question about a value.
pub(crate) type Test = fn(u64) -> bool;
/// A function of two predicates, lane by lane.
pub(crate) type Logic = fn(u32, u32) -> u32;

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    /// Which lanes it runs in, besides being active.
    pub(crate) guard: Option<Flag>,
    pub(crate) op: Op,
}

/// What an instruction does. Destinations come first.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Narrow1(fn(&Narrow) -> Narrow, Slot, Slot),
    Narrow2(fn(&Narrow, &Narrow) -> Narrow, Slot, [Slot; 2]),
    Narrow3(fn(&Narrow, &Narrow, &Narrow) -> Narrow, Slot, [Slot; 3]),
    Wide1(fn(&Wide) -> Wide, Slot, Slot),
    Wide2(fn(&Wide, &Wide) -> Wide, Slot, [Slot; 2]),
    Wide3(fn(&Wide, &Wide, &Wide) -> Wide, Slot, [Slot; 3]),
    /// 64 bits from a 64-bit and a 32-bit row (shifts).
    WideNarrow(fn(&Wide, &Narrow) -> Wide, Slot, Slot, Slot),
    /// 64 bits from 32.
    Widen1(fn(&Narrow) -> Wide, Slot, Slot),
    Widen2(fn(&Narrow, &Narrow) -> Wide, Slot, [Slot; 2]),
    /// 64 bits from two 32-bit rows and a 64-bit one (`mad.wide`).
    Widen3(fn(&Narrow, &Narrow, &Wide) -> Wide, Slot, [Slot; 3]),
    /// 32 bits from 64.
    Shorten(fn(&Wide) -> Narrow, Slot, Slot),
    MoveNarrow(Slot, Slot),
    MoveWide(Slot, Slot),
    SelectNarrow(Slot, [Slot; 2], Flag),
    SelectWide(Slot, [Slot; 2], Flag),
    /// `setp` on 32-bit rows.
    CompareNarrow(fn(&Narrow, &Narrow) -> u32, [Slot; 2], Box<Verdict>),
    /// `setp` on 64-bit rows.
    CompareWide(fn(&Wide, &Wide) -> u32, [Slot; 2], Box<Verdict>),
    /// Comparison of anything else, a value at a time.
    Compare(Box<(Question, [Place; 2], Verdict)>),
    /// `and.pred` and its like.
    Logic(Logic, Slot, [Flag; 2]),
    /// Anything without a row function, a value at a time.
    Scalar(Box<(Scalar, Place, [Place; 4])>),
    /// f32 arithmetic with modifiers.
    Float(Box<FloatOp>),
    /// f16 and bf16 arithmetic.
    Half(Box<HalfOp>),
    Convert(Box<(Conversion, Place, Place)>),
    /// `cvt` of two f32 to a packed pair: the upper half comes from the first.
    Pack(Box<(Conversion, Slot, [Slot; 2])>),
    /// `slct`: by the sign of the last operand.
    SelectBySign(Box<(Test, Place, [Place; 3])>),
    /// Arithmetic with the carry flag.
    Carry(Box<CarryOp>),
    /// Parts of a register to a whole: bits of each part.
    Join(Box<(Vec<Place>, Vec<Place>, u32)>),
    /// A register that changes while a warp runs.
    Clock(SpecialRegister, Place),
    Memory(Box<MemoryOp>),
    Fence(Fence),
    Branch(u32),
    Exit,
    Trap,
    /// Has no effect here (`griddepcontrol`).
    Nothing,
    Sleep,
    Barrier(Box<BarrierOp>),
    Lanes(Box<LaneOp>),
    /// `isspacep`
    IsSpace(Space, Slot, Slot),
}

/// What a comparison asks of two values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// Order of f64.
    F64(Modifier),
    /// `testp`
    Class(Modifier, Type),
}

/// What becomes of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// What holds where the comparison does, of integers.
    pub(crate) relation: Option<Relation>,
    /// Combined with this predicate first.
    pub(crate) combine: Option<(Logic, Flag)>,
    pub(crate) target: VerdictTarget,
}

/// Where a comparison's result goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VerdictTarget {
    /// To a predicate, and the combined complement to another.
    Flags(Option<Slot>, Option<Slot>),
    /// To a register: this value where it holds, else 0.
    Value(Slot, u32),
}

/// See [`Op::Float`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatOp {
    pub(crate) function: f32s::Operation,
    pub(crate) rounding: Rounding,
    pub(crate) flush: bool,
    pub(crate) saturate: bool,
    pub(crate) target: Slot,
    pub(crate) sources: [Slot; 3],
}

/// See [`Op::Half`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfOp {
    pub(crate) function: halves::Operation,
    pub(crate) ty: Type,
    pub(crate) target: Slot,
    pub(crate) sources: [Slot; 3],
}

/// See [`Op::Carry`]. Subtraction keeps a borrow in the flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarryOp {
    pub(crate) kind: CarryKind,
    /// Whether the flag is added (subtracted).
    pub(crate) reads: bool,
    /// Whether the flag is set.
    pub(crate) writes: bool,
    pub(crate) target: Place,
    pub(crate) sources: [Place; 3],
}

/// The arithmetic of a [`CarryOp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryKind {
    Add,
    Sub,
    /// The low half of a product, plus the third source.
    MadLo,
    /// The high half of a product (signed or not), plus the third source.
    MadHi {
        signed: bool,
    },
}

/// Which memory an instruction means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// The address says it.
    Generic,
    /// The instruction says it.
    In(Space),
}

/// A load, store or atomic.
#[derive(Clone, Debug)]
pub(crate) struct MemoryOp {
    pub(crate) kind: AccessKind,
    pub(crate) place: Where,
    pub(crate) order: Order,
    pub(crate) scope: Option<Scope>,
    pub(crate) nc: bool,
    /// Bytes of an element (16: a scalar of two rows).
    pub(crate) size: u32,
    /// Elements of the vector.
    pub(crate) elements: u32,
    /// Whether a loaded value is extended by its sign.
    pub(crate) signed: bool,
    /// The register that the address starts from; `Nowhere` if it is constant.
    pub(crate) base: Place,
    pub(crate) offset: i64,
    /// Destinations of a load (of an atomic: one, for the old value), or sources of a store; two for 16 bytes.
    pub(crate) registers: Vec<Place>,
    pub(crate) atomic: Option<Atomic>,
}

/// The read-modify-write of a [`MemoryOp`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atomic {
    pub(crate) operation: Operation,
    /// The operand; for `cas` the value to store.
    pub(crate) operand: Place,
    /// For `cas`: the value to find.
    pub(crate) expected: Place,
    pub(crate) returns: bool,
}

/// `bar` and `barrier`.
#[derive(Clone, Debug)]
pub(crate) struct BarrierOp {
    pub(crate) id: Slot,
    /// `None`: the whole block.
    pub(crate) count: Option<Slot>,
    pub(crate) kind: BarrierKind,
}

/// What arriving at a barrier does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BarrierKind {
    Arrive,
    Sync,
    /// All predicates are and-ed to a predicate.
    And(Flag, Slot),
    /// All predicates are or-ed to a predicate.
    Or(Flag, Slot),
    /// The true predicates are counted.
    Popc(Flag, Slot),
}

/// An operation of several lanes of a warp.
#[derive(Clone, Debug)]
pub(crate) struct LaneOp {
    /// The member mask.
    pub(crate) members: Slot,
    pub(crate) kind: LaneKind,
}

/// What a [`LaneOp`] computes.
#[derive(Clone, Debug)]
pub(crate) enum LaneKind {
    /// `bar.warp.sync`
    Meet,
    Shuffle {
        mode: Modifier,
        target: Slot,
        valid: Option<Slot>,
        value: Slot,
        lane: Slot,
        clamp: Slot,
    },
    /// `vote.all`, `.any`, `.uni`
    Vote {
        mode: Modifier,
        target: Slot,
        flag: Flag,
    },
    Ballot {
        target: Slot,
        flag: Flag,
    },
    MatchAny {
        target: Slot,
        value: Place,
    },
    MatchAll {
        target: Slot,
        same: Option<Slot>,
        value: Place,
    },
    /// Integer reduction over the members.
    Reduce {
        function: fn(u32, u32) -> u32,
        target: Slot,
        value: Slot,
    },
    /// `activemask`: needs nobody.
    Active {
        target: Slot,
    },
    /// `elect.sync`: the lowest member leads.
    Elect {
        target: Option<Slot>,
        leads: Slot,
    },
}
