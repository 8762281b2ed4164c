//! Which rule two unordered accesses break.

use crate::{
    Rule,
    cell::Met,
    registry::{Registry, Stamp},
};

/// The rule that an access breaks by what it met, with the other side and what is special about it. `None`: it is in
/// order, since both are strong and their scopes include each other.
pub(crate) fn conflict(
    met: Met,
    me: Stamp,
    registry: &Registry,
    shared: bool,
) -> Option<(Rule, Option<Stamp>, &'static str)> {
    let (earlier, uncached) = match met {
        Met::Uncached(earlier, true) if registry.of(earlier).op != registry.of(me).op => {
            return None;
        }
        Met::Nothing if registry.of(me).warp.is_none() => return None,
        Met::Nothing => {
            let detail = match shared {
                true => "nothing was stored there since the block began",
                false => "nothing was stored there",
            };
            return Some((Rule::Uninitialised, None, detail));
        }
        Met::Uncached(earlier, _) => (earlier, true),
        Met::Unordered(earlier) => (earlier, me.how().is_nc()),
    };
    let found = |rule, detail| Some((rule, Some(earlier), detail));
    let (them, myself) = (registry.of(earlier), registry.of(me));
    if uncached {
        let detail = match them.op == myself.op {
            true => "the same kernel reads it with `.nc` and writes it",
            false => "the `.nc` load and the write are not ordered by a kernel boundary",
        };
        return found(Rule::NcLoad, detail);
    }
    let same_warp = earlier.lane().slot == me.lane().slot && std::ptr::eq(them, myself);
    let (was, is) = (earlier.how(), me.how());
    if same_warp && earlier.site == me.site && earlier.time == me.time {
        // Lanes of one instruction: which of them wins is not defined, but usually all store the same.
        return None;
    }
    if was.is_strong() && is.is_strong() {
        if !registry.mutual(earlier, me) {
            return found(
                Rule::Race,
                "both are strong, but a scope does not include the other thread",
            );
        }
        if was.size() != is.size() {
            return found(Rule::MixedSize, "both are strong, but of different size");
        }
        return None;
    }
    let detail = match (was.is_strong(), is.is_strong()) {
        (false, true) => "the earlier access is weak",
        (true, false) => "the later access is weak",
        _ => "both accesses are weak",
    };
    match (same_warp, shared) {
        (true, _) => found(Rule::MissingSyncwarp, detail),
        (_, true) => found(Rule::SharedRace, detail),
        _ => found(Rule::Race, detail),
    }
}
