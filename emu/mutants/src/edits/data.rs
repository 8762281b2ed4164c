//! Rows: where they are staged, and how they are read.

use core::mem::offset_of;

use slabfence::layout::Header;
use slabfence_emu_ptx::{Modifier, Opcode};

use super::{is_staged, is_staging, slot_choices};
use crate::draft::{Draft, Result};

/// Physical memory comes in pieces of so many bytes, and the ranges of small channels end within the first.
const PIECE: usize = 2 << 20;

/// Reads peers' rows through the cache that never sees a write.
pub(crate) fn cached_loads(draft: &mut Draft<'_>) -> Result<usize> {
    let weak = |draft: &Draft<'_>, at| {
        !draft.flow.at(at).has(Modifier::Relaxed) && !draft.flow.at(at).has(Modifier::Acq)
    };
    let mut loads = draft
        .flow
        .find_at(Opcode::Ld, &[Modifier::Global], |field| {
            is_staged(draft, field)
        });
    loads.retain(|&at| weak(draft, at));
    draft.replace_all(&loads, "ld.global.", "ld.global.nc.")
}

/// Stores one pack far behind the range, besides all that belong there.
pub(crate) fn row_behind(draft: &mut Draft<'_>) -> Result<usize> {
    let bases = slot_choices(draft, |field| is_staging(draft, field));
    for &at in &bases {
        let base = draft.operand(at, 0)?;
        let address = format!("add.s64 mutant_row, {base}, {PIECE};");
        store_pack_at(draft, at, &address);
    }
    Ok(bases.len())
}

/// Stores one pack where the next range begins, besides all that belong there: pushed rows are followed by the next source's,
/// and rows to pull have but the other slot's.
pub(crate) fn row_in_next_range(draft: &mut Draft<'_>) -> Result<usize> {
    let bases = slot_choices(draft, |field| is_staging(draft, field));
    let stride = offset_of!(Header, inbox_stride);
    for &at in &bases {
        let (base, block) = (draft.operand(at, 0)?, draft.block()?);
        let address = if draft.family.pushes() {
            format!(
                "ld.param.u64 mutant_row, [{block}+{stride}];
	add.s64 mutant_row, mutant_row, {base};"
            )
        } else {
            other_slot(draft, at, "mutant_row")?
        };
        store_pack_at(draft, at, &address);
    }
    Ok(bases.len())
}

/// Lets the first thread of CTA 0 store a pack behind the choice of a base, where `address` puts `mutant_row`.
fn store_pack_at(draft: &mut Draft<'_>, at: usize, address: &str) {
    draft.insert_after(
        at,
        format!(
            "{{
	.reg .pred mutant_first;
	.reg .b32 mutant_thread, mutant_cta, mutant_zero;
	.reg .b64 mutant_row;
	mov.u32 mutant_thread, %tid.x;
	mov.u32 mutant_cta, %ctaid.x;
	or.b32 mutant_thread, mutant_thread, mutant_cta;
	setp.eq.u32 mutant_first, mutant_thread, 0;
	mov.u32 mutant_zero, 0;
	{address}
	@mutant_first st.global.v4.u32 [mutant_row], {{mutant_zero, mutant_zero, mutant_zero, mutant_zero}};
	}}"
        ),
    );
}

/// The choice of a base with its two slots exchanged.
fn other_slot(draft: &Draft<'_>, at: usize, to: &str) -> Result<String> {
    let (odd, even, by) = (
        draft.operand(at, 1)?,
        draft.operand(at, 2)?,
        draft.operand(at, 3)?,
    );
    Ok(format!("selp.b64 {to}, {even}, {odd}, {by};"))
}

/// Stages in the next range: pushed rows in the next source's, rows to pull in the other slot's.
pub(crate) fn next_range(draft: &mut Draft<'_>) -> Result<usize> {
    let bases = slot_choices(draft, |field| is_staging(draft, field));
    let stride = offset_of!(Header, inbox_stride);
    for &at in &bases {
        let base = draft.operand(at, 0)?.to_owned();
        if draft.family.pushes() {
            let block = draft.block()?.to_owned();
            draft.insert_after(
                at,
                format!(
                    "{{
	.reg .b64 mutant_stride;
	ld.param.u64 mutant_stride, [{block}+{stride}];
	add.s64 {base}, {base}, mutant_stride;
	}}"
                ),
            );
        } else {
            let text = other_slot(draft, at, &base)?;
            draft.rewrite(at, text);
        }
    }
    Ok(bases.len())
}
