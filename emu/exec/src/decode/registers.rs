//! Where registers, constants and addresses live in a warp's register file.

use super::liveness::Liveness;
use crate::{
    CompileError,
    op::{Place, Slot},
};
use slabfence_emu_ptx::{Entry, Operand, RegisterId, SpecialRegister, Symbol, Type};
use std::collections::HashMap;

/// What a warp's register file looks like when the warp starts.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// 32-bit rows, each the same in all lanes.
    pub(crate) narrow: Vec<u32>,
    /// 64-bit rows.
    pub(crate) wide: Vec<u64>,
    /// How many predicates there are. The first is the carry flag, the second is never written.
    pub(crate) flags: usize,
    /// Rows that hold a special register.
    pub(crate) specials: Vec<Special>,
    /// 64-bit rows that hold the address of a global.
    pub(crate) globals: Vec<GlobalSlot>,
}

/// A row that holds a special register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Special {
    pub(crate) register: SpecialRegister,
    pub(crate) place: Place,
}

/// A row that holds the address of a global.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobalSlot {
    /// Index into `Module::globals`.
    pub(crate) global: usize,
    pub(crate) addend: i64,
    pub(crate) slot: Slot,
}

/// The predicate that holds the carry.
pub(crate) const CARRY: Slot = 0;

impl Image {
    /// A predicate that is false and is never written.
    pub(crate) fn no_flag(&self) -> Slot {
        1
    }

    /// A row for results that nobody wants.
    pub(crate) fn scratch_narrow(&self) -> Slot {
        0
    }

    /// The same, 64 bits.
    pub(crate) fn scratch_wide(&self) -> Slot {
        0
    }
}

/// Offsets of variables, and the sizes of their spaces.
#[derive(Debug, Default)]
pub(super) struct Layout {
    shared: Vec<u64>,
    local: Vec<u64>,
    pub(super) shared_bytes: u32,
    pub(super) dynamic_shared_at: u32,
    pub(super) local_bytes: u32,
}

/// The register file as it grows while a body is decoded.
pub(super) struct Registers<'a> {
    entry: &'a Entry,
    pub(super) image: Image,
    pub(super) layout: Layout,
    slots: Vec<Slot>,
    /// The most 32-bit registers that are needed at once.
    pub(super) most_live: u32,
    narrow_constants: HashMap<u32, Slot>,
    wide_constants: HashMap<u64, Slot>,
    specials: HashMap<SpecialRegister, Place>,
    globals: HashMap<(usize, i64), Slot>,
}

/// The most that shared memory of a block, or local memory of a thread, can hold.
const SPACE_LIMIT: u64 = 512 << 10;

impl<'a> Registers<'a> {
    pub(super) fn new(entry: &'a Entry) -> Result<Self, CompileError> {
        let layout = Layout::of(entry)?;
        let liveness = Liveness::of(entry);
        // Row 0 of each width takes results that nobody wants; predicates 0 and 1 are spoken for.
        let mut slots = vec![0; entry.registers.len()];
        let mut allot = |bytes: std::ops::RangeInclusive<u32>, start: usize, per_row: usize| {
            let which = entry
                .registers
                .iter()
                .enumerate()
                .filter(|(_, register)| bytes.contains(&register.ty.bytes()));
            let (rows, count) = liveness.rows(which.map(|(index, _)| index));
            for (register, row) in rows {
                slots[register] = slot(start + row * per_row, entry.line)?;
            }
            Ok(start + count * per_row)
        };
        let flags = allot(0..=0, 2, 1)?;
        let narrow = allot(1..=4, 1, 1)?;
        let wide = allot(8..=8, 1, 1)?;
        let wide = allot(16..=16, wide, 2)?;
        let image = Image {
            narrow: vec![0; narrow],
            wide: vec![0; wide],
            flags,
            ..Image::default()
        };
        Ok(Self {
            entry,
            image,
            layout,
            slots,
            most_live: liveness.most,
            narrow_constants: HashMap::new(),
            wide_constants: HashMap::new(),
            specials: HashMap::new(),
            globals: HashMap::new(),
        })
    }

    fn ty(&self, id: RegisterId) -> Type {
        self.entry.registers[id.0 as usize].ty
    }

    fn name(&self, id: RegisterId) -> &str {
        &self.entry.registers[id.0 as usize].name
    }

    /// The slot of a predicate register.
    pub(super) fn flag(&self, id: RegisterId, line: u32) -> Result<Slot, CompileError> {
        match self.ty(id) {
            Type::Pred => Ok(self.slots[id.0 as usize]),
            _ => refuse(line, format!("`{}` is no predicate", self.name(id))),
        }
    }

    /// Both rows of a 128-bit register.
    pub(super) fn halves(&self, operand: &Operand, line: u32) -> Result<[Place; 2], CompileError> {
        match operand {
            Operand::Register(id) if self.ty(*id) == Type::B128 => {
                let low = self.slots[id.0 as usize];
                Ok([Place::Wide(low), Place::Wide(low + 1)])
            }
            Operand::Sink => Ok([Place::Nowhere; 2]),
            _ => refuse(line, "a .b128 register is needed".into()),
        }
    }

    fn register(
        &self,
        id: RegisterId,
        ty: Type,
        wider: bool,
        line: u32,
    ) -> Result<Place, CompileError> {
        let own = self.ty(id);
        let fits = own.bytes() == ty.bytes() || wider && own.bytes() > ty.bytes();
        if !fits || own.bytes() == 16 || own == Type::Pred {
            let (name, own, ty) = (self.name(id), own.name(), ty.name());
            return refuse(
                line,
                format!("`{name}` is .{own}, which does not fit .{ty} here"),
            );
        }
        let slot = self.slots[id.0 as usize];
        Ok(match own.bytes() {
            8 => Place::Wide(slot),
            4 => Place::Narrow(slot, u32::MAX),
            2 => Place::Narrow(slot, 0xffff),
            _ => Place::Narrow(slot, 0xff),
        })
    }

    /// Where an instruction of this type puts its result.
    pub(super) fn target(
        &self,
        operand: &Operand,
        ty: Type,
        wider: bool,
        line: u32,
    ) -> Result<Place, CompileError> {
        match operand {
            Operand::Register(id) => self.register(*id, ty, wider, line),
            Operand::Sink => Ok(Place::Nowhere),
            _ => refuse(line, "a destination register is needed".into()),
        }
    }

    /// Where an instruction of this type finds a value.
    pub(super) fn source(
        &mut self,
        operand: &Operand,
        ty: Type,
        wider: bool,
        line: u32,
    ) -> Result<Place, CompileError> {
        match operand {
            Operand::Register(id) => self.register(*id, ty, wider, line),
            Operand::Special(special) => self.special(*special, ty, line),
            Operand::Symbol(symbol, addend) => self.symbol(*symbol, *addend, ty, line),
            _ => match constant(operand, ty) {
                Some(value) => self.constant(value, ty.bytes(), line),
                None => refuse(line, format!("the constant does not fit .{}", ty.name())),
            },
        }
    }

    /// The row of a constant of so many bytes.
    pub(super) fn constant(
        &mut self,
        value: u64,
        bytes: u32,
        line: u32,
    ) -> Result<Place, CompileError> {
        if bytes == 8 {
            let rows = &mut self.image.wide;
            let slot = *self
                .wide_constants
                .entry(value)
                .or_insert(slot(rows.len(), line)?);
            if usize::from(slot) == rows.len() {
                rows.push(value);
            }
            return Ok(Place::Wide(slot));
        }
        let value = value as u32 & (u32::MAX >> (32 - 8 * bytes.clamp(1, 4)));
        let rows = &mut self.image.narrow;
        let slot = *self
            .narrow_constants
            .entry(value)
            .or_insert(slot(rows.len(), line)?);
        if usize::from(slot) == rows.len() {
            rows.push(value);
        }
        Ok(Place::Narrow(slot, u32::MAX))
    }

    fn special(
        &mut self,
        register: SpecialRegister,
        ty: Type,
        line: u32,
    ) -> Result<Place, CompileError> {
        use SpecialRegister::*;
        if matches!(
            register,
            Clock | ClockHi | Clock64 | Globaltimer | GlobaltimerLo | GlobaltimerHi
        ) {
            return refuse(
                line,
                format!("`{}` is only supported in `mov`", register.name()),
            );
        }
        let bytes = if register == Gridid { 8 } else { 4 };
        if ty.bytes() != bytes {
            return refuse(
                line,
                format!("`{}` does not fit .{}", register.name(), ty.name()),
            );
        }
        if let Some(&place) = self.specials.get(&register) {
            return Ok(place);
        }
        let place = if bytes == 8 {
            self.image.wide.push(0);
            Place::Wide(slot(self.image.wide.len() - 1, line)?)
        } else {
            self.image.narrow.push(0);
            Place::Narrow(slot(self.image.narrow.len() - 1, line)?, u32::MAX)
        };
        self.specials.insert(register, place);
        self.image.specials.push(Special { register, place });
        Ok(place)
    }

    /// The offset of a variable in its space, unless it is a global.
    pub(super) fn offset(&self, symbol: Symbol) -> Option<u64> {
        match symbol {
            Symbol::Global(_) => None,
            Symbol::Shared(index) => Some(self.layout.shared[index]),
            Symbol::DynamicShared => Some(self.layout.dynamic_shared_at.into()),
            Symbol::Local(index) => Some(self.layout.local[index]),
            Symbol::Param(index) => Some(self.entry.params[index].offset.into()),
        }
    }

    /// A row with the address of a variable.
    pub(super) fn symbol(
        &mut self,
        symbol: Symbol,
        addend: i64,
        ty: Type,
        line: u32,
    ) -> Result<Place, CompileError> {
        let Symbol::Global(global) = symbol else {
            let offset = self.offset(symbol).unwrap_or(0);
            if ty.bytes() < 4 {
                return refuse(line, format!("an address does not fit .{}", ty.name()));
            }
            return self.constant(offset.wrapping_add_signed(addend), ty.bytes(), line);
        };
        if ty.bytes() != 8 {
            return refuse(
                line,
                format!("the address of a global does not fit .{}", ty.name()),
            );
        }
        let next = slot(self.image.wide.len(), line)?;
        let slot = *self.globals.entry((global, addend)).or_insert(next);
        if slot == next {
            self.image.wide.push(0);
            self.image.globals.push(GlobalSlot {
                global,
                addend,
                slot,
            });
        }
        Ok(Place::Wide(slot))
    }
}

fn slot(index: usize, line: u32) -> Result<Slot, CompileError> {
    Slot::try_from(index).map_err(|_| CompileError {
        line,
        message: "the kernel needs more than 65536 registers".into(),
    })
}

fn refuse<T>(line: u32, message: String) -> Result<T, CompileError> {
    Err(CompileError { line, message })
}

/// The bits of a constant as a type.
fn constant(operand: &Operand, ty: Type) -> Option<u64> {
    match (operand, ty.bytes()) {
        (Operand::Integer(value), 1..=8) if !ty.is_float() => Some(*value),
        (Operand::F32(bits), 4) => Some(u64::from(*bits)),
        (Operand::F64(bits), 8) => Some(*bits),
        (Operand::F64(bits), 4) if ty.is_float() => {
            Some(u64::from((f64::from_bits(*bits) as f32).to_bits()))
        }
        _ => None,
    }
}

impl Layout {
    fn of(entry: &Entry) -> Result<Self, CompileError> {
        let place = |variables: &[slabfence_emu_ptx::Variable]| {
            let (mut end, mut offsets) = (0u64, Vec::new());
            for variable in variables {
                let at = end.next_multiple_of(variable.align.into());
                offsets.push(at);
                end = at.saturating_add(variable.size);
                if end > SPACE_LIMIT {
                    return refuse(
                        entry.line,
                        format!("`{}`: variables of {end} bytes are too large", entry.name),
                    );
                }
            }
            Ok((offsets, end as u32))
        };
        let (shared, shared_bytes) = place(&entry.shared)?;
        let (local, local_bytes) = place(&entry.local)?;
        let align = entry.dynamic_shared_align.unwrap_or(1);
        let dynamic_shared_at = shared_bytes.next_multiple_of(align);
        // Threads' local memories lie side by side: each starts aligned.
        let local_bytes = local_bytes.next_multiple_of(16);
        Ok(Self {
            shared,
            local,
            shared_bytes,
            dynamic_shared_at,
            local_bytes,
        })
    }
}
