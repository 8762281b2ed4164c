//! Data flags: order, scope and width of their accesses, what is compared, who is waited for, and when they are set.

use core::mem::offset_of;

use slabfence::layout::{Header, LINE, PeerAddresses, SlotAddresses};
use slabfence_emu_ptx::Modifier;

use super::barrier::{STAGED, barrier};
use super::{
    compare_low_halves, compared_registers, comparison, epoch, equal_low_halves, flag_fence,
    flag_polls, flag_stores, slot, target,
};
use crate::draft::{Draft, EditError, Result, only};
use crate::entry::Family;

pub(crate) fn relax_polls(draft: &mut Draft<'_>) -> Result<usize> {
    let polls = flag_polls(draft);
    draft.replace_all(&polls, ".acquire.", ".relaxed.")
}

pub(crate) fn drop_fence(draft: &mut Draft<'_>) -> Result<usize> {
    let fence = flag_fence(draft)?;
    draft.remove(fence);
    Ok(1)
}

pub(crate) fn narrow_fence(draft: &mut Draft<'_>) -> Result<usize> {
    let fence = flag_fence(draft)?;
    draft.replace_all(&[fence], ".sys", ".gpu")
}

/// The fence stands before the CTA's barrier: what other threads have staged is behind it.
pub(crate) fn early_fence(draft: &mut Draft<'_>) -> Result<usize> {
    let fence = flag_fence(draft)?;
    let staged = barrier(draft, STAGED)?;
    draft.remove(fence);
    draft.insert_before(staged, "fence.acq_rel.sys;".to_owned());
    Ok(1)
}

pub(crate) fn narrow_polls(draft: &mut Draft<'_>) -> Result<usize> {
    let polls = flag_polls(draft);
    draft.replace_all(&polls, ".sys.", ".gpu.")
}

pub(crate) fn narrow_stores(draft: &mut Draft<'_>) -> Result<usize> {
    let stores = flag_stores(draft);
    draft.replace_all(&stores, ".sys.", ".gpu.")
}

pub(crate) fn weaken_polls(draft: &mut Draft<'_>) -> Result<usize> {
    let polls = flag_polls(draft);
    draft.replace_all(&polls, ".acquire.sys.", ".")
}

pub(crate) fn volatile_polls(draft: &mut Draft<'_>) -> Result<usize> {
    let polls = flag_polls(draft);
    draft.replace_all(&polls, ".acquire.sys.", ".volatile.")
}

/// The comparisons of a polled flag with the epoch: of each poll the first.
fn comparisons(draft: &Draft<'_>) -> Result<Vec<usize>> {
    let mut compared = Vec::new();
    for poll in flag_polls(draft) {
        compared.extend(comparison(draft, poll, target(draft, poll)?));
    }
    Ok(compared)
}

/// Compares a polled flag with the epoch as a counter of 32 bits with a sign.
pub(crate) fn at_least(draft: &mut Draft<'_>) -> Result<usize> {
    let compared = comparisons(draft)?;
    for &at in &compared {
        compare_low_halves(draft, at, order(draft, at), "s32")?;
    }
    Ok(compared.len())
}

/// Compares all bits of a polled flag with the epoch, as numbers without a sign.
pub(crate) fn whole_at_least(draft: &mut Draft<'_>) -> Result<usize> {
    let compared = comparisons(draft)?;
    for &at in &compared {
        let (passes, seen, epoch) = compared_registers(draft, at)?;
        let order = order(draft, at);
        draft.rewrite(at, format!("setp.{order}.u64 {passes}, {seen}, {epoch};"));
    }
    Ok(compared.len())
}

/// What stands for "not below" in place of equality.
fn order(draft: &Draft<'_>, at: usize) -> &'static str {
    match draft.flow.at(at).has(Modifier::Eq) {
        true => "ge",
        false => "lt",
    }
}

/// Compares the low half of a polled flag with that of the epoch.
pub(crate) fn low_half(draft: &mut Draft<'_>) -> Result<usize> {
    let compared = comparisons(draft)?;
    compared
        .iter()
        .try_for_each(|&at| equal_low_halves(draft, at))?;
    Ok(compared.len())
}

/// Nobody waits for rank 0.
pub(crate) fn forget_rank_zero(draft: &mut Draft<'_>) -> Result<usize> {
    let first: Vec<_> = flag_polls(draft)
        .into_iter()
        .filter(|&at| !draft.flow.in_loop(at))
        .collect();
    let poll = only(&first, "first look at a data flag")?;
    let branch = draft.flow.branch_before(poll);
    let branch = branch.ok_or_else(|| EditError::new("no branch guards the wait"))?;
    let Some((_, label)) = draft.text(branch).split_once("bra") else {
        return Err(EditError::new("the guarding branch is none"));
    };
    let label = label.trim().to_owned();
    draft.insert_before(
        branch,
        format!(
            "{{
	.reg .pred mutant_zero;
	.reg .b32 mutant_thread;
	mov.u32 mutant_thread, %tid.x;
	setp.eq.u32 mutant_zero, mutant_thread, 0;
	@mutant_zero bra {label}
	}}"
        ),
    );
    Ok(1)
}

/// Waits for the flag of the next CTA, and reads the rows of the own one.
pub(crate) fn next_cta(draft: &mut Draft<'_>) -> Result<usize> {
    let address = poll_address(draft)?;
    let writer = draft
        .flow
        .writer(address)
        .ok_or_else(|| EditError::new("the flag's address has several origins"))?;
    let (name, block) = (draft.name(address).to_owned(), draft.block()?.to_owned());
    let world = offset_of!(Header, world);
    draft.insert_after(
        writer,
        format!(
            "{{
	.reg .pred mutant_last;
	.reg .b32 mutant_cta, mutant_next, mutant_grid, mutant_world;
	.reg .b64 mutant_step;
	mov.u32 mutant_cta, %ctaid.x;
	mov.u32 mutant_grid, %nctaid.x;
	add.u32 mutant_next, mutant_cta, 1;
	setp.eq.u32 mutant_last, mutant_next, mutant_grid;
	selp.b32 mutant_next, 0, mutant_next, mutant_last;
	sub.s32 mutant_next, mutant_next, mutant_cta;
	ld.param.u32 mutant_world, [{block}+{world}];
	mul.lo.s32 mutant_next, mutant_next, mutant_world;
	mul.wide.s32 mutant_step, mutant_next, {LINE};
	add.s64 {name}, {name}, mutant_step;
	}}"
        ),
    );
    Ok(1)
}

/// Reductions use the flags of the second phase, as operations with other signals would: no bug.
pub(crate) fn part_reductions(draft: &mut Draft<'_>) -> Result<usize> {
    if matches!(draft.family, Family::GatherPush | Family::GatherPull) {
        return Ok(0);
    }
    let stores = flag_stores(draft);
    let store = draft.flow.base(only(&stores, "store of a data flag")?);
    let addresses = [
        poll_address(draft)?,
        store.ok_or_else(|| EditError::new("a flag at a fixed address"))?,
    ];
    let (world, grid) = (offset_of!(Header, world), offset_of!(Header, flag_grid));
    for address in addresses {
        let writer = draft.flow.writer(address);
        let writer =
            writer.ok_or_else(|| EditError::new("a flag's address has several origins"))?;
        let (name, block) = (draft.name(address).to_owned(), draft.block()?.to_owned());
        draft.insert_after(
            writer,
            format!(
                "{{
	.reg .b32 mutant_world, mutant_grid;
	.reg .b64 mutant_step;
	ld.param.u32 mutant_world, [{block}+{world}];
	ld.param.u32 mutant_grid, [{block}+{grid}];
	mul.lo.s32 mutant_grid, mutant_grid, mutant_world;
	mul.wide.u32 mutant_step, mutant_grid, {LINE};
	add.s64 {name}, {name}, mutant_step;
	}}"
            ),
        );
    }
    Ok(addresses.len())
}

fn poll_address(draft: &Draft<'_>) -> Result<slabfence_emu_ptx::RegisterId> {
    let addresses: std::collections::BTreeSet<_> = flag_polls(draft)
        .into_iter()
        .filter_map(|at| draft.flow.base(at))
        .collect();
    let mut addresses = addresses.into_iter();
    match (addresses.next(), addresses.next()) {
        (Some(address), None) => Ok(address),
        _ => Err(EditError::new("the polls of a data flag share no register")),
    }
}

/// Sets the flag as soon as the slot is known, before any row is staged.
pub(crate) fn early(draft: &mut Draft<'_>) -> Result<usize> {
    let store = only(&flag_stores(draft), "store of a data flag")?;
    let known = slot::first_parity(draft)?;
    let odd = draft.name(target(draft, known)?).to_owned();
    let epoch = draft.name(epoch(draft)?).to_owned();
    let block = draft.block()?.to_owned();
    let (rank, world) = (offset_of!(Header, rank), offset_of!(Header, world));
    let peer = size_of::<PeerAddresses>();
    let flags = offset_of!(Header, peers)
        + offset_of!(PeerAddresses, slot)
        + offset_of!(SlotAddresses, flags);
    let other = flags + size_of::<SlotAddresses>();
    draft.remove(store);
    draft.insert_after(
        known,
        format!(
            "{{
	.reg .pred mutant_worker, mutant_other, mutant_odd;
	.reg .b32 mutant_thread, mutant_rank, mutant_world, mutant_cta;
	.reg .b64 mutant_peer, mutant_flags, mutant_odd_flags;
	mov.u32 mutant_thread, %tid.x;
	mov.u32 mutant_cta, %ctaid.x;
	ld.param.u32 mutant_rank, [{block}+{rank}];
	ld.param.u32 mutant_world, [{block}+{world}];
	setp.lt.u32 mutant_worker, mutant_thread, mutant_world;
	setp.ne.u32 mutant_other, mutant_thread, mutant_rank;
	and.pred mutant_worker, mutant_worker, mutant_other;
	setp.ne.u32 mutant_odd, {odd}, 0;
	mov.b64 mutant_peer, {block};
	mad.wide.u32 mutant_peer, mutant_thread, {peer}, mutant_peer;
	@mutant_worker ld.param.u64 mutant_flags, [mutant_peer+{flags}];
	@mutant_worker ld.param.u64 mutant_odd_flags, [mutant_peer+{other}];
	selp.b64 mutant_flags, mutant_odd_flags, mutant_flags, mutant_odd;
	mad.lo.u32 mutant_cta, mutant_cta, mutant_world, mutant_rank;
	mad.wide.u32 mutant_flags, mutant_cta, {LINE}, mutant_flags;
	@mutant_worker st.release.sys.global.u64 [mutant_flags], {epoch};
	}}"
        ),
    );
    Ok(1)
}

/// CTA 1 of rank 1 stores no flags.
pub(crate) fn withhold(draft: &mut Draft<'_>) -> Result<usize> {
    let (stores, block) = (flag_stores(draft), draft.block()?.to_owned());
    let rank = offset_of!(Header, rank);
    for &at in &stores {
        let store = draft.text(at);
        draft.rewrite(
            at,
            format!(
                "{{
	.reg .pred mutant_cta_stores, mutant_stores;
	.reg .b32 mutant_cta, mutant_rank;
	mov.u32 mutant_cta, %ctaid.x;
	setp.ne.u32 mutant_cta_stores, mutant_cta, 1;
	ld.param.u32 mutant_rank, [{block}+{rank}];
	setp.ne.u32 mutant_stores, mutant_rank, 1;
	or.pred mutant_stores, mutant_stores, mutant_cta_stores;
	@mutant_stores {store}
	}}"
            ),
        );
    }
    Ok(stores.len())
}
