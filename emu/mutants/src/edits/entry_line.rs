//! Entry lines: whether they are stored, how they are polled, and when.

use super::{comparison, entry_polls, entry_stores, equal_low_halves, slot_choices};
use crate::draft::{Draft, EditError, Result, only};
use crate::edits::barrier::{WORKERS_ARRIVED, barrier};
use crate::field::{Field, Part};

pub(crate) fn omit(draft: &mut Draft<'_>) -> Result<usize> {
    let stores = entry_stores(draft);
    stores.iter().for_each(|&at| draft.remove(at));
    Ok(stores.len())
}

pub(crate) fn narrow_polls(draft: &mut Draft<'_>) -> Result<usize> {
    let polls = entry_polls(draft);
    draft.replace_all(&polls, ".sys.", ".gpu.")
}

pub(crate) fn narrow_stores(draft: &mut Draft<'_>) -> Result<usize> {
    let stores = entry_stores(draft);
    draft.replace_all(&stores, ".sys.", ".gpu.")
}

pub(crate) fn relax_polls(draft: &mut Draft<'_>) -> Result<usize> {
    let polls = entry_polls(draft);
    draft.replace_all(&polls, ".acquire.", ".relaxed.")
}

pub(crate) fn weaken_polls(draft: &mut Draft<'_>) -> Result<usize> {
    let polls = entry_polls(draft);
    draft.replace_all(&polls, ".acquire.sys.", ".")
}

/// Compares the low half of the epoch in an entry line with that of the operation's; the line's second word repeats it.
pub(crate) fn low_half(draft: &mut Draft<'_>) -> Result<usize> {
    let mut compared = Vec::new();
    for poll in entry_polls(draft) {
        let words = draft.flow.at(poll).written();
        compared.extend(
            words
                .first()
                .and_then(|&seen| comparison(draft, poll, seen)),
        );
    }
    compared
        .iter()
        .try_for_each(|&at| equal_low_halves(draft, at))?;
    Ok(compared.len())
}

/// The control warp of CTA 0 looks at entry lines only when the workers have all their data.
pub(crate) fn behind_data(draft: &mut Draft<'_>) -> Result<usize> {
    // A barrier that the kernel does not use.
    const ALL: &str = "bar.sync 3, 288;";
    let received = barrier(draft, WORKERS_ARRIVED)?;
    draft.insert_after(
        received,
        format!(
            "{{
	.reg .pred mutant_first;
	.reg .b32 mutant_cta;
	mov.u32 mutant_cta, %ctaid.x;
	setp.eq.u32 mutant_first, mutant_cta, 0;
	@mutant_first {ALL}
	}}"
        ),
    );
    // Where the whole warp chooses the lines that it polls, before its loop.
    let mut polls = entry_polls(draft);
    polls.retain(|&at| draft.flow.in_loop(at));
    let poll = only(&polls, "poll of the own entry lines")?;
    let line = draft
        .flow
        .base(poll)
        .and_then(|line| draft.flow.writer(line));
    let line = line.ok_or_else(|| EditError::new("an entry line has several addresses"))?;
    let mut choices = slot_choices(draft, |field| matches!(field, Field::Own(_, Part::Entry)));
    choices.retain(|&at| {
        let chosen = &draft.flow.at(at).operands[0];
        draft.flow.at(line).operands.contains(chosen)
    });
    let choice = only(&choices, "choice of the own entry lines")?;
    draft.insert_before(choice, ALL.to_owned());
    Ok(2)
}
