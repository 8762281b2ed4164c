//! The CTA's barriers.

use slabfence_emu_ptx::{Modifier, Opcode};

use crate::draft::{Draft, EditError, Result, only};

/// Over all threads, behind staging.
pub(super) const STAGED: u64 = 1;
/// Over the workers, behind the wait for data.
pub(super) const WORKERS_ARRIVED: u64 = 2;

/// The barrier of this number.
pub(super) fn barrier(draft: &Draft<'_>, id: u64) -> Result<usize> {
    let mut found = draft.flow.find(Opcode::Bar, &[Modifier::Red, Modifier::Or]);
    found.retain(|&at| draft.flow.constant(&draft.flow.at(at).operands[1]) == Some(id));
    only(&found, "barrier")
}

pub(crate) fn skip_staged(draft: &mut Draft<'_>) -> Result<usize> {
    skip(draft, STAGED)
}

pub(crate) fn skip_received(draft: &mut Draft<'_>) -> Result<usize> {
    skip(draft, WORKERS_ARRIVED)
}

/// Nobody waits; each thread knows what it knew itself.
fn skip(draft: &mut Draft<'_>, id: u64) -> Result<usize> {
    let at = barrier(draft, id)?;
    let operands = draft.text(at).split_once(' ').map(|(_, operands)| operands);
    let operands =
        operands.map(|operands| operands.trim_end_matches(';').split(',').map(str::trim));
    match operands.map(Iterator::collect::<Vec<_>>).as_deref() {
        Some([out, _, _, own]) => {
            draft.rewrite(at, format!("mov.pred {out}, {own};"));
            Ok(1)
        }
        _ => Err(EditError::new(format!(
            "`{}` is no reduction over some threads",
            draft.text(at)
        ))),
    }
}
