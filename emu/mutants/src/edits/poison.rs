//! Poison: who looks at its lines, the scope of their accesses, and what it leaves in outputs.

use slabfence_emu_ptx::{Modifier, Opcode, Operand};

use super::{entry_polls, flag_polls, target};
use crate::draft::{Draft, EditError, Result};
use crate::field::Field;

/// All looks at the own poison lines.
fn looks(draft: &Draft<'_>) -> Vec<usize> {
    let own = |field| field == Field::Poison;
    draft
        .flow
        .find_at(Opcode::Ld, &[Modifier::Relaxed, Modifier::Sys], own)
}

/// The look of every warp when the kernel begins: the first.
fn first_look(draft: &Draft<'_>) -> Result<usize> {
    let first = looks(draft).into_iter().min();
    first.ok_or_else(|| EditError::new("no look at poison"))
}

/// The looks in the loops that these polls are in.
fn looks_beside(draft: &Draft<'_>, polls: &[usize]) -> Vec<usize> {
    let mut found = looks(draft);
    found.retain(|&at| polls.iter().any(|&poll| draft.flow.in_one_loop(at, poll)));
    found
}

/// These looks see nothing.
fn blind(draft: &mut Draft<'_>, looks: &[usize]) -> Result<usize> {
    for &at in looks {
        let seen = draft.name(target(draft, at)?).to_owned();
        draft.rewrite(at, format!("mov.b64 {seen}, 0;"));
    }
    Ok(looks.len())
}

pub(crate) fn unseen_at_start(draft: &mut Draft<'_>) -> Result<usize> {
    let first = first_look(draft)?;
    blind(draft, &[first])
}

pub(crate) fn unseen_for_data(draft: &mut Draft<'_>) -> Result<usize> {
    let looks = looks_beside(draft, &flag_polls(draft));
    blind(draft, &looks)
}

pub(crate) fn unseen_for_entries(draft: &mut Draft<'_>) -> Result<usize> {
    let looks = looks_beside(draft, &entry_polls(draft));
    blind(draft, &looks)
}

pub(crate) fn narrow_at_start(draft: &mut Draft<'_>) -> Result<usize> {
    let first = first_look(draft)?;
    draft.replace_all(&[first], ".sys.", ".gpu.")
}

pub(crate) fn narrow_for_data(draft: &mut Draft<'_>) -> Result<usize> {
    let looks = looks_beside(draft, &flag_polls(draft));
    draft.replace_all(&looks, ".sys.", ".gpu.")
}

pub(crate) fn narrow_for_entries(draft: &mut Draft<'_>) -> Result<usize> {
    let looks = looks_beside(draft, &entry_polls(draft));
    draft.replace_all(&looks, ".sys.", ".gpu.")
}

/// The stores at peers. The own line is for this rank alone.
pub(crate) fn narrow_stores(draft: &mut Draft<'_>) -> Result<usize> {
    let peer = |field| field == Field::PeerPoison;
    let stores = draft
        .flow
        .find_at(Opcode::St, &[Modifier::Relaxed, Modifier::Sys], peer);
    draft.replace_all(&stores, ".sys.", ".gpu.")
}

/// The stores of a pack whose words are all one register, at addresses of the caller's.
fn fills(draft: &Draft<'_>) -> Vec<usize> {
    let mut found = draft
        .flow
        .find_at(Opcode::St, &[], |field| field == Field::User);
    found.retain(|&at| match draft.flow.at(at).operands.as_slice() {
        [_, Operand::Vector(words)] => words.len() == 4 && words.iter().all(|one| *one == words[0]),
        _ => false,
    });
    found
}

/// CTA 0 fills its part of the output, and no other does.
pub(crate) fn fill_by_one_cta(draft: &mut Draft<'_>) -> Result<usize> {
    let fills = fills(draft);
    for &at in &fills {
        let store = draft.text(at);
        draft.rewrite(
            at,
            format!(
                "{{
	.reg .pred mutant_first;
	.reg .b32 mutant_cta;
	mov.u32 mutant_cta, %ctaid.x;
	setp.eq.u32 mutant_first, mutant_cta, 0;
	@mutant_first {store}
	}}"
            ),
        );
    }
    Ok(fills.len())
}
