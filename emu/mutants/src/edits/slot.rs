//! The choice of the slot.

use core::mem::offset_of;
use std::collections::BTreeSet;

use slabfence::layout::{Header, LocalBlock, NormCounter};
use slabfence_emu_ptx::{Opcode, Operand, RegisterId};

use super::{arrival, slot_choices, target};
use crate::draft::{Draft, EditError, Result};
use crate::field::{Field, Part};

/// Rows are always in slot 0; flags and entry lines alternate as ever.
pub(crate) fn freeze_data(draft: &mut Draft<'_>) -> Result<usize> {
    freeze(draft, |part| matches!(part, Part::Inbox | Part::Outbox))
}

/// Flags and entry lines are always in slot 0; rows alternate as ever.
pub(crate) fn freeze_signals(draft: &mut Draft<'_>) -> Result<usize> {
    freeze(draft, |part| matches!(part, Part::Entry | Part::Flags))
}

fn freeze(draft: &mut Draft<'_>, wanted: fn(Part) -> bool) -> Result<usize> {
    let choices = slot_choices(draft, |field| match field {
        Field::Own(_, part) | Field::Peer(_, part) => wanted(part),
        _ => false,
    });
    for &at in &choices {
        let (chosen, even) = (draft.operand(at, 0)?, draft.operand(at, 2)?);
        let text = format!("mov.b64 {chosen}, {even};");
        draft.rewrite(at, text);
    }
    Ok(choices.len())
}

/// Instructions that take the lowest bit of the epoch: the kernel does again and again, to save a register.
fn parities(draft: &Draft<'_>) -> Result<Vec<usize>> {
    let mut odd: BTreeSet<RegisterId> = BTreeSet::new();
    for at in slot_choices(draft, |_| true) {
        let [_, _, _, Operand::Register(predicate)] = draft.flow.at(at).operands.as_slice() else {
            return Err(EditError::new(format!(
                "`{}` chooses by no register",
                draft.text(at)
            )));
        };
        let test = draft
            .flow
            .writer(*predicate)
            .map(|test| draft.flow.at(test).operands.as_slice());
        let Some([_, Operand::Register(register), Operand::Integer(0)]) = test else {
            return Err(EditError::new(format!(
                "`{}` chooses by no comparison with 0",
                draft.text(at)
            )));
        };
        odd.insert(*register);
    }
    let mut found = Vec::new();
    for register in odd {
        for &at in draft.flow.writers(register) {
            match draft.flow.at(at).operands.as_slice() {
                [_, _, Operand::Integer(1)] if draft.flow.at(at).opcode == Opcode::And => {
                    found.push(at)
                }
                _ => return Err(EditError::new(format!("`{}` makes a slot", draft.text(at)))),
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The first of them.
pub(super) fn first_parity(draft: &Draft<'_>) -> Result<usize> {
    let found = parities(draft)?;
    found
        .first()
        .copied()
        .ok_or_else(|| EditError::new("no slot is chosen"))
}

/// Each CTA counts the operations that it took part in, and takes its slot from its own count.
pub(crate) fn count_each_cta(draft: &mut Draft<'_>) -> Result<usize> {
    const SLOT: &str = "mutant_slot";
    let places = parities(draft)?;
    let arrival = arrival(draft)?;
    let block = draft.block()?.to_owned();
    let local = offset_of!(Header, local);
    // The counters of fused norms, which these kernels do not use.
    let counters = offset_of!(LocalBlock, norm) + offset_of!(NormCounter, arrived);
    let size = size_of::<NormCounter>();
    let counter = format!(
        "mov.u32 mutant_cta, %ctaid.x;
	ld.param.u64 mutant_counter, [{block}+{local}];
	mad.wide.u32 mutant_counter, mutant_cta, {size}, mutant_counter;"
    );
    for (index, &at) in places.iter().enumerate() {
        let odd = draft.name(target(draft, at)?).to_owned();
        let read = format!(
            "{{
	.reg .b32 mutant_cta;
	.reg .b64 mutant_counter, mutant_count;
	{counter}
	ld.relaxed.gpu.global.u64 mutant_count, [mutant_counter+{counters}];
	cvt.u32.u64 {SLOT}, mutant_count;
	and.b32 {SLOT}, {SLOT}, 1;
	}}"
        );
        let first = (index == 0).then_some(read).into_iter();
        let text: Vec<String> = first.chain([format!("mov.u32 {odd}, {SLOT};")]).collect();
        draft.insert_after(at, text.join("\n\t"));
    }
    draft.declare(format!(".reg .b32 {SLOT};"));
    draft.insert_before(
        arrival,
        format!(
            "{{
	.reg .b32 mutant_cta;
	.reg .b64 mutant_counter, mutant_one;
	{counter}
	mov.u64 mutant_one, 1;
	red.relaxed.gpu.global.add.u64 [mutant_counter+{counters}], mutant_one;
	}}"
        ),
    );
    Ok(places.len())
}
