//! All mutations.

use crate::edits::{barrier, counters, data, entry_line, flag, poison, slot};
use crate::entry::{Entry, Family};
use crate::mutation::{Mutation, Scenario};

/// Choices of the memory that rows are staged in: once in each copy of an unrolled loop over peers.
fn stagings(entry: &Entry) -> usize {
    if entry.family == Family::GatherPush {
        7
    } else {
        1
    }
}

/// Those, and the choices of the memory that peers' rows are read from: for each source where it is at the peers.
fn data_choices(entry: &Entry) -> usize {
    let read = if entry.family == Family::ReducePull {
        entry.sources()
    } else {
        1
    };
    stagings(entry) + read
}

/// Loads of peers' rows: of the packs that are in flight at once, and of the LSE beside each.
fn row_loads(entry: &Entry) -> usize {
    match entry.sources() {
        1 => 4,
        sources @ ..=2 => 2 * sources * 4,
        sources @ ..=4 => 2 * sources * 2,
        sources => 2 * sources,
    }
}

/// Times that the parity of the epoch is taken.
fn parities(entry: &Entry) -> usize {
    match entry.family {
        Family::GatherPush => 4,
        _ => 1,
    }
}

/// Stores that fill the output of an operation that failed.
fn fills(entry: &Entry) -> usize {
    match entry.family {
        Family::GatherPush | Family::GatherPull => 7,
        Family::ReducePush | Family::ReducePull => 1,
    }
}

macro_rules! mutations {
    ($(#[$doc:meta])* $table:ident; $($name:literal: $bug:literal, $scenario:ident, $rules:expr, $places:expr, $edit:path $(, on $ground:path)?;)*) => {
        $(#[$doc])*
        pub const $table: &[Mutation] = &[$(Mutation {
            name: $name,
            bug: $bug,
            scenario: Scenario::$scenario,
            rules: &$rules,
            places: $places,
            edit: $edit,
            ground: mutations!(@ground $($ground)?),
        },)*];
    };
    (@ground) => { None };
    (@ground $ground:path) => { Some($ground) };
}

mutations! {
    /// All mutations, by topic.
    MUTATIONS;
    "flag-poll-relaxed": "Data flags are polled with relaxed loads.",
        Single, ["race"], |_| 2, flag::relax_polls;
    "flag-store-relaxed": "Data flags are stored without a release: the fence before them is missing.",
        Single, ["race"], |_| 1, flag::drop_fence;
    "flag-fence-gpu": "The fence before the data flags has the scope of one GPU.",
        Single, ["race"], |_| 1, flag::narrow_fence;
    "flag-fence-early": "The fence before the data flags stands before the CTA barrier, behind which other threads' rows are.",
        Single, ["race"], |_| 1, flag::early_fence;
    "flag-poll-gpu": "Data flags are polled with the scope of one GPU.",
        Single, ["race"], |_| 2, flag::narrow_polls;
    "flag-store-gpu": "Data flags are stored with the scope of one GPU.",
        Single, ["race"], |_| 1, flag::narrow_stores;
    "flag-poll-weak": "Data flags are polled with ordinary loads.",
        Single, ["weak-signal", "race"], |_| 2, flag::weaken_polls;
    "flag-poll-volatile": "Data flags are polled with volatile loads, which acquire nothing.",
        Single, ["race"], |_| 2, flag::volatile_polls;
    "flag-at-least": "A data flag passes when it is not below the epoch, both cut to signed numbers of 32 bits.",
        HighEpochs, ["stale-accept", "race"], |_| 2, flag::at_least;
    "flag-low-half": "A data flag passes when its low 32 bits are those of the epoch.",
        EqualLowHalves, ["stale-accept", "race"], |_| 2, flag::low_half;
    "flag-of-one-peer": "Nobody waits for the data flag of rank 0.",
        Single, ["race", "uninitialised"], |_| 1, flag::forget_rank_zero;
    "flag-of-next-cta": "A CTA reads rows that another CTA staged: it waits for the data flag of the next one.",
        Single, ["race", "uninitialised"], |_| 1, flag::next_cta;
    "flag-before-data": "The data flag is stored before the rows.",
        Single, ["race", "uninitialised"], |_| 1, flag::early;
    "barrier-before-flag": "The CTA barrier between staging and the data flag is missing.",
        Single, ["race", "unordered-overwrite"], |_| 1, barrier::skip_staged;
    "barrier-after-poll": "The barrier of the workers between the wait for data and the rows is missing.",
        Single, ["race"], |_| 1, barrier::skip_received;
    "slot-frozen": "Rows of every operation are in slot 0.",
        Reuse, ["wrong-slot", "race"], data_choices, slot::freeze_data;
    "signal-slot-frozen": "Data flags and entry lines of every operation are in slot 0.",
        Reuse, ["wrong-slot", "unordered-overwrite", "deadlock"], |_| 11, slot::freeze_signals;
    "slot-of-each-cta": "A CTA takes its slot from a counter of its own.",
        Grids, ["wrong-slot", "race"], parities, slot::count_each_cta;
    "row-past-range": "A row is stored far past the range in which rows are staged.",
        Single, ["out-of-bounds", "wrong-region"], stagings, data::row_behind;
    "row-in-next-range": "A row is stored in the range next to the one in which rows are staged.",
        Single, ["wrong-region", "wrong-slot", "out-of-bounds"], stagings, data::row_in_next_range;
    "next-range": "Rows are staged in the range next to the right one.",
        Single, ["wrong-region", "wrong-slot", "out-of-bounds"], stagings, data::next_range;
    "data-cached": "Peers' rows are read with `.nc` loads.",
        Single, ["nc-load"], row_loads, data::cached_loads;
    "epoch-by-first-cta": "CTA 0 advances the epoch when it arrives, before others have read it.",
        Single, ["unordered-overwrite", "race"], |_| 1, counters::advance_early;
    "ticket-relaxed": "CTAs arrive at the ticket with a relaxed addition.",
        Single, ["unordered-overwrite", "race"], |_| 1, counters::relax_ticket;
    "entry-omitted": "No entry lines are stored.",
        Single, ["deadlock"], |_| 1, entry_line::omit;
    "entry-poll-gpu": "Entry lines are polled with the scope of one GPU.",
        Single, ["race"], |_| 3, entry_line::narrow_polls;
    "entry-store-gpu": "Entry lines are stored with the scope of one GPU.",
        Single, ["race"], |_| 1, entry_line::narrow_stores;
    "entry-poll-weak": "Entry lines are polled with ordinary loads.",
        Single, ["weak-signal", "race"], |_| 3, entry_line::weaken_polls;
    "entry-low-half": "An entry line passes when the low 32 bits of its epoch, which its second word repeats, are those of the operation's.",
        EqualLowHalves, ["stale-accept"], |_| 3, entry_line::low_half;
    "entry-behind-data": "Entry lines are polled behind the wait for data.",
        Mismatch, ["deadlock"], |_| 2, entry_line::behind_data, on flag::part_reductions;
    "poison-unseen-at-start": "A kernel that begins does not look at the poison lines.",
        Tripped, ["verdict"], |_| 1, poison::unseen_at_start;
    "poison-unseen-for-data": "The wait for data does not look at the poison lines.",
        Tripped, ["deadlock"], |_| 1, poison::unseen_for_data;
    "poison-unseen-for-entries": "The wait for entry lines does not look at the poison lines.",
        Tripped, ["deadlock"], |_| 1, poison::unseen_for_entries;
    "poison-start-gpu": "A kernel that begins looks at the poison lines with the scope of one GPU.",
        Tripped, ["race"], |_| 1, poison::narrow_at_start;
    "poison-poll-gpu-for-data": "The wait for data looks at the poison lines with the scope of one GPU.",
        Tripped, ["race"], |_| 1, poison::narrow_for_data;
    "poison-poll-gpu-for-entries": "The wait for entry lines looks at the poison lines with the scope of one GPU.",
        Tripped, ["race"], |_| 1, poison::narrow_for_entries;
    "poison-store-gpu": "Poison lines are stored at peers with the scope of one GPU.",
        Tripped, ["race"], |_| 2, poison::narrow_stores;
    "skipped-not-retired": "An operation that was skipped does not count in `retired`.",
        Tripped, ["counters"], |_| 1, counters::skipped_stays;
}

mutations! {
    /// Changes that look like bugs and are none, whatever ranks do that keep to what is assumed of them: nothing must be found.
    /// `docs/checker.md` says why.
    EQUIVALENT;
    "entry-poll-relaxed": "Entry lines are polled with relaxed loads; the data flags of the same operation order as much.",
        Grids, [], |_| 3, entry_line::relax_polls;
    "flag-at-least-whole": "A data flag passes when it is not below the epoch, all 64 bits without a sign; none is ever above.",
        EqualLowHalves, [], |_| 2, flag::whole_at_least;
}

mutations! {
    /// Bugs for tests that name them: of how operations fail, at which the scenarios of the others do not look.
    FAILING;
    "flag-withheld": "CTA 1 of rank 1 stores no data flags.",
        Single, ["deadlock"], |_| 1, flag::withhold;
    "fill-by-one-cta": "Of the output of an operation that failed only the part of CTA 0 is filled.",
        Tripped, ["wrong-result"], fills, poison::fill_by_one_cta;
}
