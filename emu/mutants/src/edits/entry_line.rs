//! Entry lines: whether they are stored, how they are polled, and when.

use super::{entry_polls, entry_stores};
use crate::draft::{Draft, EditError, Result, only};
use crate::edits::barrier::{WORKERS_ARRIVED, barrier};

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

pub(crate) fn weaken_polls(draft: &mut Draft<'_>) -> Result<usize> {
    let polls = entry_polls(draft);
    draft.replace_all(&polls, ".acquire.sys.", ".")
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
    let first: Vec<_> = entry_polls(draft)
        .into_iter()
        .filter(|&at| !draft.flow.in_loop(at))
        .collect();
    let poll = only(&first, "first look at an entry line")?;
    // Of a lane's own branch, which all lanes of the warp come to.
    let branch = draft.flow.branch_before(poll);
    let branch =
        branch.ok_or_else(|| EditError::new("no branch guards the look at entry lines"))?;
    draft.insert_before(branch, ALL.to_owned());
    Ok(2)
}
