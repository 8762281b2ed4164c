//! The channel's counters: epoch, ticket, retired.

use core::mem::offset_of;

use slabfence::layout::{Cause, LocalBlock};
use slabfence_emu_ptx::{Modifier, Opcode, Operand};

use super::{arrival, epoch, local, target};
use crate::draft::{Draft, EditError, Result, only};

pub(crate) fn relax_ticket(draft: &mut Draft<'_>) -> Result<usize> {
    let at = arrival(draft)?;
    draft.replace(at, ".acq_rel.", ".relaxed.")?;
    Ok(1)
}

/// CTA 0 advances the epoch when it arrives, whoever else has.
pub(crate) fn advance_early(draft: &mut Draft<'_>) -> Result<usize> {
    let exchanges = local(
        draft,
        Opcode::Atom,
        &[Modifier::Max],
        offset_of!(LocalBlock, epoch),
    );
    let exchange = only(&exchanges, "advance of the epoch")?;
    let epoch = draft.name(epoch(draft)?).to_owned();
    let old = draft.operand(exchange, 0)?.to_owned();
    draft.rewrite(exchange, format!("mov.b64 {old}, {epoch};"));
    let arrival = arrival(draft)?;
    let block = draft.block()?.to_owned();
    let local = offset_of!(slabfence::layout::Header, local);
    let word = offset_of!(LocalBlock, epoch);
    draft.insert_before(
        arrival,
        format!(
            "{{
	.reg .pred mutant_first;
	.reg .b32 mutant_cta;
	.reg .b64 mutant_local, mutant_epoch;
	mov.u32 mutant_cta, %ctaid.x;
	setp.eq.u32 mutant_first, mutant_cta, 0;
	ld.param.u64 mutant_local, [{block}+{local}];
	add.s64 mutant_epoch, {epoch}, 1;
	@mutant_first atom.max.relaxed.gpu.global.u64 mutant_epoch, [mutant_local+{word}], mutant_epoch;
	}}"
        ),
    );
    Ok(1)
}

/// A warp that skipped the operation does not count itself.
pub(crate) fn skipped_stays(draft: &mut Draft<'_>) -> Result<usize> {
    let counts = local(
        draft,
        Opcode::Red,
        &[Modifier::Add],
        offset_of!(LocalBlock, retired),
    );
    let count = only(&counts, "count of retired warps")?;
    let cause = draft.name(cause(draft)?).to_owned();
    let text = draft.text(count);
    draft.rewrite(
        count,
        format!(
            "{{
	.reg .pred mutant_ran;
	setp.ne.u32 mutant_ran, {cause}, {};
	@mutant_ran {text}
	}}",
            Cause::Skipped as u32
        ),
    );
    Ok(1)
}

/// The register that holds why nothing must be touched: set behind the first vote, which is on poison.
fn cause(draft: &Draft<'_>) -> Result<slabfence_emu_ptx::RegisterId> {
    let skipped = Operand::Integer(u64::from(Cause::Skipped as u32));
    let votes = draft.flow.find(Opcode::Vote, &[Modifier::Any]);
    let first = votes
        .first()
        .ok_or_else(|| EditError::new("no vote on poison"))?;
    let mut sets = draft.flow.find(Opcode::Mov, &[]);
    sets.retain(|&at| at > *first && draft.flow.at(at).operands[1] == skipped);
    let set = sets
        .first()
        .ok_or_else(|| EditError::new("no cause is set"))?;
    target(draft, *set)
}
