//! What the mutations change. Each edit gives the number of places that it found.

pub(crate) mod barrier;
pub(crate) mod counters;
pub(crate) mod data;
pub(crate) mod entry_line;
pub(crate) mod flag;
pub(crate) mod poison;
pub(crate) mod slot;

use slabfence_emu_ptx::{Modifier, Opcode, Operand, RegisterId};

use slabfence::layout::LocalBlock;

use crate::draft::{Draft, EditError, Result, only};
use crate::field::{Field, Part};

/// The polls of the own data flags: the first look and the one in the loop.
fn flag_polls(draft: &Draft<'_>) -> Vec<usize> {
    let own = |field| matches!(field, Field::Own(_, Part::Flags));
    draft.flow.find_at(Opcode::Ld, &[Modifier::Acq], own)
}

/// The looks at the own entry lines: the poll, and the one behind a wait for data that has failed.
fn entry_polls(draft: &Draft<'_>) -> Vec<usize> {
    let own = |field| matches!(field, Field::Own(_, Part::Entry));
    draft
        .flow
        .find_at(Opcode::Ld, &[Modifier::Acq, Modifier::V2], own)
}

/// The store of a data flag at a peer.
fn flag_stores(draft: &Draft<'_>) -> Vec<usize> {
    let peer = |field| matches!(field, Field::Peer(_, Part::Flags));
    draft.flow.find_at(Opcode::St, &[Modifier::Relaxed], peer)
}

/// The fence that releases rows before the data flags.
fn flag_fence(draft: &Draft<'_>) -> Result<usize> {
    let fences = draft.flow.find(Opcode::Fence, &[Modifier::Sys]);
    only(&fences, "fence before the data flags")
}

/// The store of an entry line at a peer.
fn entry_stores(draft: &Draft<'_>) -> Vec<usize> {
    let peer = |field| matches!(field, Field::Peer(_, Part::Entry));
    draft.flow.find_at(Opcode::St, &[Modifier::V2], peer)
}

/// Instructions that access one word of the channel's local block.
fn local(draft: &Draft<'_>, opcode: Opcode, modifiers: &[Modifier], offset: usize) -> Vec<usize> {
    let mut found = draft.flow.find(opcode, modifiers);
    found.retain(|&at| draft.flow.local_word(at) == Some(offset));
    found
}

/// The register that holds the epoch.
fn epoch(draft: &Draft<'_>) -> Result<RegisterId> {
    let loads = local(
        draft,
        Opcode::Ld,
        &[Modifier::Relaxed],
        core::mem::offset_of!(LocalBlock, epoch),
    );
    target(draft, only(&loads, "load of the epoch")?)
}

/// The register that an instruction writes.
fn target(draft: &Draft<'_>, at: usize) -> Result<RegisterId> {
    match draft.flow.at(at).written().as_slice() {
        &[register] => Ok(register),
        _ => Err(EditError::new(format!(
            "`{}` does not write one register",
            draft.text(at)
        ))),
    }
}

/// The first comparison of a register behind the load that writes it.
fn comparison(draft: &Draft<'_>, load: usize, seen: RegisterId) -> Option<usize> {
    let seen = Operand::Register(seen);
    let all = draft.flow.find(Opcode::Setp, &[]).into_iter();
    all.filter(|&at| at > load && draft.flow.at(at).operands[1..].contains(&seen))
        .min()
}

/// The names of what a comparison writes and of the two that it compares.
fn compared_registers(draft: &Draft<'_>, at: usize) -> Result<(String, String, String)> {
    let name = |index| draft.operand(at, index).map(str::to_owned);
    Ok((name(0)?, name(1)?, name(2)?))
}

/// Compares the low halves of two registers of 64 bits for equality, where all bits were compared.
fn equal_low_halves(draft: &mut Draft<'_>, at: usize) -> Result<()> {
    let compare = match draft.flow.at(at).has(Modifier::Eq) {
        true => "eq",
        false => "ne",
    };
    compare_low_halves(draft, at, compare, "b32")
}

/// Compares the low halves of two registers of 64 bits.
fn compare_low_halves(draft: &mut Draft<'_>, at: usize, compare: &str, ty: &str) -> Result<()> {
    let (passes, one, other) = compared_registers(draft, at)?;
    draft.rewrite(
        at,
        format!(
            "{{
	.reg .b32 mutant_one, mutant_other;
	cvt.u32.u64 mutant_one, {one};
	cvt.u32.u64 mutant_other, {other};
	setp.{compare}.{ty} {passes}, mutant_one, mutant_other;
	}}"
        ),
    );
    Ok(())
}

/// The addition to the ticket.
fn arrival(draft: &Draft<'_>) -> Result<usize> {
    let ticket = core::mem::offset_of!(LocalBlock, ticket);
    only(
        &local(draft, Opcode::Atom, &[Modifier::Add], ticket),
        "arrival at the ticket",
    )
}

/// Choices between the addresses of both slots, where these are of a wanted kind.
fn slot_choices(draft: &Draft<'_>, wanted: impl Fn(Field) -> bool) -> Vec<usize> {
    let mut found = draft.flow.find(Opcode::Selp, &[]);
    found.retain(|&at| match draft.flow.at(at).operands.as_slice() {
        [_, Operand::Register(odd), Operand::Register(even), _] => {
            let one = |register| {
                let sources: Vec<_> = draft.flow.sources(register).into_iter().collect();
                match sources.as_slice() {
                    &[field @ (Field::Own(..) | Field::Peer(..))] => Some(field),
                    _ => None,
                }
            };
            match (one(*odd), one(*even)) {
                (Some(Field::Own(1, odd)), Some(even @ Field::Own(0, part))) => {
                    odd == part && wanted(even)
                }
                (Some(Field::Peer(1, odd)), Some(even @ Field::Peer(0, part))) => {
                    odd == part && wanted(even)
                }
                _ => false,
            }
        }
        _ => false,
    });
    found
}

/// Whether a field is where this rank stages rows.
fn is_staging(draft: &Draft<'_>, field: Field) -> bool {
    match field {
        Field::Peer(_, Part::Inbox) => draft.family.pushes(),
        Field::Own(_, Part::Outbox) => !draft.family.pushes(),
        _ => false,
    }
}

/// Whether a field is where peers' rows are read.
fn is_staged(draft: &Draft<'_>, field: Field) -> bool {
    match field {
        Field::Own(_, Part::Inbox) => draft.family.pushes(),
        Field::Peer(_, Part::Outbox) => !draft.family.pushes(),
        _ => false,
    }
}
