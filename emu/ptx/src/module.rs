//! What a PTX text says, with every name resolved.

use crate::{Modifier, Opcode, SpecialRegister, Type};
use std::fmt;

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxError {
    /// Line of the text, from 1.
    pub line: u32,
    /// What is wrong there, quoting the offending text.
    pub message: String,
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for PtxError {}

/// A whole PTX text.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// `.version`: major, minor.
    pub version: (u8, u8),
    /// `.target sm_NN`: the number. (A suffix such as the `a` of `sm_90a` is in `target_suffix`.)
    pub target: u32,
    /// The suffix of the target (`a`, `f`), if any.
    pub target_suffix: Option<char>,
    /// Kernels, in the order of the text.
    pub entries: Vec<Entry>,
    /// `.global` and `.const` variables at module scope, in the order of the text.
    pub globals: Vec<Global>,
    /// `.file` directives.
    pub files: Vec<SourceFile>,
}

impl Module {
    /// The entry of this (mangled) name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The path of a `.file` number.
    pub fn file(&self, number: u32) -> Option<&str> {
        self.files
            .iter()
            .find(|file| file.number == number)
            .map(|file| file.path.as_str())
    }
}

/// One `.file` directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The number by which `.loc` names the file.
    pub number: u32,
    /// The path as the compiler wrote it.
    pub path: String,
}

/// One `.loc` directive: where in the kernel's source an instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loc {
    /// Number of a [`SourceFile`].
    pub file: u32,
    /// Line of that file, from 1.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
}

/// Where a module-scope variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalSpace {
    /// `.global`
    Global,
    /// `.const`: read-only for kernels.
    Const,
}

/// A module-scope variable in `.global` or `.const`. Whoever loads the module gives it memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its name, as `cuModuleGetGlobal` would look it up.
    pub name: String,
    /// Its state space.
    pub space: GlobalSpace,
    /// Its size in bytes.
    pub size: u64,
    /// Its alignment in bytes, a power of two.
    pub align: u32,
    /// Its first bytes; all bytes behind them are zero. Never longer than `size`.
    pub init: Vec<u8>,
    /// Places in it that hold the address of another variable.
    pub relocations: Vec<Relocation>,
    /// Line of its declaration.
    pub line: u32,
}

/// A 64-bit word of an initialiser that holds the address of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where in the initialised variable, in bytes.
    pub offset: u64,
    /// Index into [`Module::globals`].
    pub target: usize,
    /// Added to the address of the target.
    pub addend: i64,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its mangled name.
    pub name: String,
    /// Its parameters in order.
    pub params: Vec<Param>,
    /// Size of the parameter block in bytes (the end of the last parameter).
    pub param_bytes: u32,
    /// `.maxntid`
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub min_ctas_per_sm: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
    /// Registers that the body uses. A [`RegisterId`] is an index into this list.
    pub registers: Vec<Register>,
    /// Statically sized `.shared` variables that the body uses (its own and those at module scope).
    pub shared: Vec<Variable>,
    /// Alignment of the `extern .shared` arrays that the body uses; `None` when it uses none.
    pub dynamic_shared_align: Option<u32>,
    /// `.local` variables.
    pub local: Vec<Variable>,
    /// The instructions in order. Labels are indices into this list (its length for a label at the end).
    pub body: Vec<Instruction>,
    /// Line of the `.entry` directive.
    pub line: u32,
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Offset in the parameter block, bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A variable of an entry in `.shared` or `.local`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes, a power of two.
    pub align: u32,
}

/// A register that a body uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name with the leading `%`, if it has one. Registers of different scopes may share a name.
    pub name: String,
    /// Its declared type.
    pub ty: Type,
}

/// Index into [`Entry::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegisterId(pub u32);

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// A predicate register.
    pub register: RegisterId,
    /// Whether the instruction runs where the predicate is false.
    pub negated: bool,
}

/// One instruction, of an accepted form.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Where it runs, by predicate.
    pub guard: Option<Guard>,
    /// What it does.
    pub opcode: Opcode,
    /// Its modifiers other than types; the order of the text has no meaning.
    pub modifiers: Vec<Modifier>,
    /// Its types in the order of the text (`cvt.f32.s32`: destination first).
    pub types: Vec<Type>,
    /// Its operands in the order of the text.
    pub operands: Vec<Operand>,
    /// Line of the text, from 1.
    pub line: u32,
    /// The `.loc` in force.
    pub loc: Option<Loc>,
}

impl Instruction {
    /// Whether it carries this modifier.
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// Whether its first operand is what it writes.
    fn has_target(&self) -> bool {
        use Opcode::{
            Bar, Barrier, Bra, Exit, Fence, Griddepcontrol, Membar, Nanosleep, Red, Ret, St, Trap,
        };
        match self.opcode {
            Bar | Barrier => self.has(Modifier::Red),
            Bra | Exit | Fence | Griddepcontrol | Membar | Nanosleep | Red | Ret | St | Trap => {
                false
            }
            _ => true,
        }
    }

    /// The registers it writes. Where it is guarded, it may leave them as they were.
    pub fn written(&self) -> Vec<RegisterId> {
        let mut found = Vec::new();
        let targets = usize::from(self.has_target());
        self.operands
            .iter()
            .take(targets)
            .for_each(|operand| registers_of(operand, &mut found));
        found
    }

    /// The registers it reads, its guard included.
    pub fn read(&self) -> Vec<RegisterId> {
        let mut found: Vec<_> = self.guard.iter().map(|guard| guard.register).collect();
        let targets = usize::from(self.has_target());
        self.operands
            .iter()
            .skip(targets)
            .for_each(|operand| registers_of(operand, &mut found));
        found
    }

    /// Opcode and modifiers as PTX would write them (types last).
    pub fn mnemonic(&self) -> String {
        let mut text = self.opcode.name().to_owned();
        for modifier in &self.modifiers {
            text.push('.');
            text.push_str(modifier.name());
        }
        for ty in &self.types {
            text.push('.');
            text.push_str(ty.name());
        }
        text
    }
}

/// Registers of an operand, those inside it included.
fn registers_of(operand: &Operand, found: &mut Vec<RegisterId>) {
    match operand {
        Operand::Register(id) | Operand::Not(id) | Operand::Address(Base::Register(id), _) => {
            found.push(*id);
        }
        Operand::Pair(first, second) => {
            registers_of(first, found);
            registers_of(second, found);
        }
        Operand::Vector(parts) => parts.iter().for_each(|part| registers_of(part, found)),
        _ => {}
    }
}

/// An operand with its names resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Register(RegisterId),
    /// `!%p`
    Not(RegisterId),
    /// `%p|%q`: two destinations.
    Pair(Box<Operand>, Box<Operand>),
    /// `_`: a destination that is not wanted.
    Sink,
    /// An integer constant; negative ones as two's complement.
    Integer(u64),
    /// `0f…`: the bits of an f32.
    F32(u32),
    /// `0d…`: the bits of an f64.
    F64(u64),
    /// `%tid.x` and its like.
    Special(SpecialRegister),
    /// The address of a variable, plus bytes.
    Symbol(Symbol, i64),
    /// `{a, b, …}`
    Vector(Vec<Operand>),
    /// `[base + offset]`
    Address(Base, i64),
    /// A branch target: index into [`Entry::body`].
    Label(u32),
}

/// What the address of a memory operand starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The value of a register.
    Register(RegisterId),
    /// The address of a variable.
    Symbol(Symbol),
    /// Nothing: the offset is the whole address.
    Absolute,
}

/// A variable that an operand names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// Index into [`Module::globals`].
    Global(usize),
    /// Index into [`Entry::shared`].
    Shared(usize),
    /// An `extern .shared` array: the start of dynamic shared memory.
    DynamicShared,
    /// Index into [`Entry::local`].
    Local(usize),
    /// Index into [`Entry::params`].
    Param(usize),
}
