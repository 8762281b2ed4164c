// The protocol that every collective runs (docs/protocol.md says why each step is there).
//
// A CTA has WORKERS worker threads and, behind them, one control warp. Workers move rows; the control warp enters the
// operation at the peers, advances the epoch and compares tags, so that none of it stands in the way of data.
#pragma once

#include "memory.cuh"

namespace sf {

constexpr u32 WORKERS = 256;
constexpr u32 CTA_THREADS = WORKERS + 32;
constexpr u32 WARPS = CTA_THREADS / 32;
// The first warp, which stores the flags.
constexpr u32 SIGNALLERS = 32;
static_assert(MAX_WORLD <= SIGNALLERS, "a thread for each peer");
// Polls between two looks at the clock and at the poison lines.
constexpr u32 POLLS_PER_LOOK = 64;
// Where the ticket's sums begin: CTAs in the lowest bits, then their tags, then their epochs, modulo 2^24.
constexpr u32 TICKET_TAGS = 16;
constexpr u32 TICKET_EPOCHS = 40;
static_assert(u64(MAX_GRID) * 0xffff < u64(1) << (TICKET_EPOCHS - TICKET_TAGS), "tags would run into the epochs");
// The bits of `started` that name an epoch.
constexpr u32 STARTED_EPOCH = (1u << STARTED_EPOCH_BITS) - 1;

#define SF_LOCAL(header, field) ((header).local + offsetof(LocalBlock, field))

SF_INLINE u32 lane() { return threadIdx.x & 31; }
SF_INLINE bool is_control() { return threadIdx.x >= WORKERS; }
SF_INLINE bool any_lane(bool mine) { return __any_sync(0xffffffff, mine); }

// What a warp knows of the running operation.
struct Operation {
    u64 epoch;
    u32 odd;   // the staging slot
    u32 cause; // why nothing must be touched, or 0
};

// How a wait ended.
struct Fault {
    u32 cause; // 0: what was waited for has come
    u32 late;
    u64 expected;
    u64 seen;
    u64 waited;
};

// The peers in turn for step 1…W−1, starting behind the own rank, so that no peer is everybody's first.
SF_INLINE u32 rotated(const Header& h, u32 step) {
    const u32 rank = h.rank + step;
    return rank < h.world ? rank : rank - h.world;
}

SF_INLINE u64 verdict_word(u32 cause, u64 epoch) {
    return (static_cast<u64>(cause) << 56) | (epoch & ((u64(1) << 56) - 1));
}

// Divides, where `reciprocal` = (2^32 - 1) / divisor: the estimate is right or one too small.
SF_INLINE u32 divide(u32 dividend, u32 divisor, u32 reciprocal) {
    const u32 estimate = __umulhi(dividend, reciprocal);
    return dividend - estimate * divisor < divisor ? estimate : estimate + 1;
}

// The overlap guard. Nothing orders the last CTA's addition to `started` before its rise of the epoch, nor the loads
// of the two here, so `started` says which epoch it belongs to: with any other, another operation is at work. Warps that
// ended early may have made `retired` the larger; as many warps as the words can differ by fit into half their bits.
SF_INLINE bool overlaps(u64 epoch, u64 started, u64 retired) {
    const u32 equal = (static_cast<u32>(retired) << STARTED_EPOCH_BITS) | (static_cast<u32>(epoch) & STARTED_EPOCH);
    return ((equal - static_cast<u32>(started)) & (0x80000000u | STARTED_EPOCH)) != 0;
}

// What every warp reads first: the epoch, the overlap guard and the poison lines.
struct Look {
    u64 epoch;
    u64 started;
    u64 retired;
    u64 poison;
};

// Every warp looks, in parallel, since each of them needs to know before its first store to a peer whether it may. A
// kernel begins with it, so that addresses are worked out, and the first rows loaded, while it is on its way.
SF_INLINE Look look(const Header& h) {
    Look seen;
    seen.epoch = load_relaxed_gpu(SF_LOCAL(h, epoch));
    seen.started = load_relaxed_gpu(SF_LOCAL(h, started));
    seen.retired = load_relaxed_gpu(SF_LOCAL(h, retired));
    seen.poison = lane() < h.world ? load_relaxed_sys(h.poison + lane() * LINE) : 0;
    return seen;
}

// What a warp goes by is one for all its lanes: to PTX, 32 lanes that load a word are 32 loads.
SF_INLINE Operation begin(const Look& seen) {
    Operation op;
    op.epoch = __shfl_sync(0xffffffff, seen.epoch, 0);
    op.odd = static_cast<u32>(op.epoch) & 1;
    op.cause = 0;
    if (any_lane(seen.poison != 0)) {
        op.cause = Cause::Skipped;
    } else if (any_lane(overlaps(op.epoch, seen.started, seen.retired))) {
        op.cause = Cause::Overlap;
    }
    return op;
}

// Where a peer stores its entry line of this operation.
SF_INLINE u64 entry_line(const Header& h, const Operation& op, u32 source) {
    return select(op.odd, h.own[0].entry, h.own[1].entry) + source * LINE;
}

// Where CTA b of a source stores its flag for this CTA b.
SF_INLINE u32 flag_offset(const Header& h, u32 phase, u32 source) {
    return ((phase * h.flag_grid + blockIdx.x) * h.world + source) * LINE;
}

SF_INLINE u64 flag(const Header& h, const Operation& op, u32 phase, u32 source) {
    return select(op.odd, h.own[0].flags, h.own[1].flags) + flag_offset(h, phase, source);
}

// The ranks that a wait with this cause is for, a bit each: all that are late, not only the one that was noticed.
SF_INLINE u64 late_ranks(const Header& h, const Operation& op, u32 phase, const Fault& fault) {
    u64 late = fault.late == h.rank ? 0 : u64(1) << fault.late;
    if (fault.cause != Cause::EntryTimeout && fault.cause != Cause::DataTimeout) return late;
    #pragma unroll 1
    for (u32 source = 0; source < h.world; ++source) {
        if (source == h.rank) continue;
        const u64 line = fault.cause == Cause::EntryTimeout ? entry_line(h, op, source) : flag(h, op, phase, source);
        if (load_relaxed_sys(line) != op.epoch) late |= u64(1) << source;
    }
    return late;
}

SF_INLINE void write_record(u64 record, const Header& h, const Operation& op, u32 phase, const Fault& fault) {
    const u64 a = record;
    store_relaxed_sys(a + offsetof(FaultRecord, cause), (u64(h.preamble.operation) << 32) | fault.cause);
    store_relaxed_sys(a + offsetof(FaultRecord, rank), (u64(fault.late) << 32) | h.rank);
    store_relaxed_sys(a + offsetof(FaultRecord, cta), (u64(phase) << 32) | blockIdx.x);
    store_relaxed_sys(a + offsetof(FaultRecord, expected), fault.expected);
    store_relaxed_sys(a + offsetof(FaultRecord, seen), fault.seen);
    store_relaxed_sys(a + offsetof(FaultRecord, waited), fault.waited);
    store_relaxed_sys(a + offsetof(FaultRecord, tag), h.tag);
    store_relaxed_sys(a + offsetof(FaultRecord, late_ranks), late_ranks(h, op, phase, fault));
    store_release_sys(a + offsetof(FaultRecord, state), op.epoch);
}

// Sets the verdict, leaves the first record, and tells every rank. An operation that was skipped tells nobody: the
// ranks know, and a reset may already be under way at a peer.
SF_INLINE void report(const Header& h, const Operation& op, u32 phase, const Fault& fault) {
    const u64 word = verdict_word(fault.cause, op.epoch);
    claim_relaxed_gpu(SF_LOCAL(h, status), word);
    count_relaxed_gpu(SF_LOCAL(h, failed), 1);
    if (claim_relaxed_gpu(SF_LOCAL(h, fault_claim), op.epoch)) {
        write_record(h.health + offsetof(ChannelHealth, fault), h, op, phase, fault);
    }
    store_relaxed_sys_word(h.health_header + offsetof(HealthHeader, fault), fault.cause);
    if (fault.cause == Cause::Skipped) return;
    store_relaxed_sys(h.poison + h.rank * LINE, word);
    #pragma unroll 1
    for (u32 peer = 0; peer < h.world; ++peer) {
        if (peer != h.rank) store_relaxed_sys(h.peers[peer].poison, word);
    }
}

// Leaves a record of a wait that goes on: one an operation, whoever notices first.
SF_INLINE void warn(const Header& h, const Operation& op, u32 phase, const Fault& fault) {
    if (exchange_relaxed_gpu(SF_LOCAL(h, warn_claim), op.epoch) == op.epoch) return;
    write_record(h.health + offsetof(ChannelHealth, warning), h, op, phase, fault);
    store_relaxed_sys_word(h.health_header + offsetof(HealthHeader, warning), fault.cause);
}

// What a thread knows of its wait.
struct Wait {
    Fault fault;
    u64 since;
    bool warned;
};

// One look, between polls, at the poison lines and the clock. True: the wait is over, and `wait.fault` says why.
SF_INLINE bool given_up(const Header& h, const Operation& op, u32 phase, u32 timeout_cause, Wait& wait) {
    Fault& fault = wait.fault;
    #pragma unroll 1
    for (u32 rank = 0; rank < h.world; ++rank) {
        const u64 poison = load_relaxed_sys(h.poison + rank * LINE);
        if (poison == 0) continue;
        fault.cause = Cause::PeerFailed;
        fault.late = rank;
        fault.seen = poison;
        return true;
    }
    const u64 now = clock_ticks(h.clock);
    if (wait.since == 0) wait.since = now;
    fault.waited = now - wait.since;
    if (h.fail_ticks != 0 && fault.waited >= h.fail_ticks) {
        fault.cause = timeout_cause;
        return true;
    }
    if (h.warn_ticks != 0 && !wait.warned && fault.waited >= h.warn_ticks) {
        wait.warned = true;
        Fault warning = fault;
        warning.cause = timeout_cause;
        warn(h, op, phase, warning);
    }
    return false;
}

// Polls until `arrived(seen)` holds, the channel is poisoned, or the fail threshold has passed.
template <class Arrived>
SF_INLINE Fault await(const Header& h, const Operation& op, u32 phase, u32 timeout_cause, u32 source, u64 expected,
                      Arrived arrived) {
    Wait wait = {{0, source, expected, 0, 0}, 0, false};
    #pragma unroll 1
    for (u32 polls = 1; !arrived(wait.fault.seen); ++polls) {
        if (polls % POLLS_PER_LOOK == 0 && given_up(h, op, phase, timeout_cause, wait)) break;
    }
    return wait.fault;
}

// Control warp, CTA 0: enters the operation at every peer.
SF_INLINE void enter(const Header& h, const Operation& op) {
    const u32 peer = lane();
    if (peer >= h.world || peer == h.rank) return;
    const PeerAddresses& there = h.peers[peer];
    store_relaxed_sys_pair(select(op.odd, there.slot[0].entry, there.slot[1].entry), op.epoch,
                           (h.tag << 32) | static_cast<u32>(op.epoch));
}

// One look at an entry line: whether its source has entered this operation, and if so, with which tag.
SF_INLINE bool entered(const Operation& op, u64 line, u64& seen, u32& tag) {
    u64 check;
    load_acquire_sys_pair(line, seen, check);
    tag = static_cast<u32>(check >> 32);
    return seen == op.epoch && static_cast<u32>(check) == static_cast<u32>(op.epoch);
}

// Control warp, CTA 0: waits until every peer has entered this epoch, and compares operation tags. The warp stays
// together, so that it can leave at the first tag that differs, whoever else has yet to come. Each lane polls a line.
struct Meeting {
    u64 line;
    bool waits;
    bool differs;
    Wait wait;

    // Polls once.
    __device__ __forceinline__ void begin(const Header& h, const Operation& op) {
        line = entry_line(h, op, lane());
        waits = lane() < h.world && lane() != h.rank;
        differs = false;
        wait = {{0, lane(), op.epoch, 0, 0}, 0, false};
        poll(h, op);
    }

    __device__ __forceinline__ void poll(const Header& h, const Operation& op) {
        const u32 tag = static_cast<u32>(h.tag);
        u32 their_tag;
        if (!waits || !entered(op, line, wait.fault.seen, their_tag)) return;
        waits = false;
        differs = their_tag != tag;
        if (differs) {
            wait.fault.cause = Cause::TagMismatch;
            wait.fault.expected = tag;
            wait.fault.seen = their_tag;
        }
    }

    // True: some have yet to come, and nothing is wrong so far.
    __device__ __forceinline__ bool goes_on() const { return any_lane(waits) && !any_lane(differs); }

    __device__ __forceinline__ void finish(const Header& h, const Operation& op) {
        #pragma unroll 1
        for (u32 polls = 1; goes_on(); ++polls) {
            poll(h, op);
            if (polls % POLLS_PER_LOOK != 0) continue;
            if (any_lane(waits && given_up(h, op, 0, Cause::EntryTimeout, wait))) break;
        }
    }
};

// One thread of the control warp, behind a barrier that every warp's epoch read has passed: the last CTA to arrive
// advances the epoch. Arrives on every path, poisoned ones too, since the next operation needs a whole ticket.
SF_INLINE u32 arrive(const Header& h, const Operation& op) {
    const u64 mine = 1 + (((h.tag >> 32) & 0xffff) << TICKET_TAGS) + (op.epoch << TICKET_EPOCHS);
    const u64 total = add_acq_rel_gpu(SF_LOCAL(h, ticket), mine) + mine;
    const u32 count = static_cast<u32>(total & 0xffff);
    if (count < gridDim.x) return 0;
    const bool whole = total == mine * gridDim.x;
    store_relaxed_gpu(SF_LOCAL(h, ticket), 0);
    const u64 next = op.epoch + 1;
    // Counts the warps and puts the next epoch's name into the place of this one's.
    count_relaxed_gpu(SF_LOCAL(h, started), (u64(gridDim.x) * WARPS << STARTED_EPOCH_BITS) + (next & STARTED_EPOCH) -
                                                (op.epoch & STARTED_EPOCH));
    // Never lowers it: an operation that others have overtaken comes late.
    const u64 old = raise_relaxed_gpu(SF_LOCAL(h, epoch), next);
    return whole && old == op.epoch ? 0 : Cause::Overlap;
}

// Stands for a cause that another warp of the CTA knows.
constexpr u32 CAUSE_ELSEWHERE = ~0u;

// All threads: everything that this CTA stages is in place. False when the CTA must not go on: what one warp saw holds
// for all, since poison, or the end of an overlap, may have come between two warps' looks. So may the next epoch.
// `epochs` are what the warps have read, in shared memory. Rows are released here, for the flags that `signal` stores: that
// takes longest of all, so the look at the epochs is under way meanwhile.
SF_INLINE bool staged(Operation& op, u64 (&epochs)[WARPS]) {
    if (lane() == 0) store_shared(epochs[threadIdx.x / 32], op.epoch);
    const bool stopped = barrier_or(1, CTA_THREADS, op.cause != 0);
    const u64 theirs = load_shared(epochs[lane() < WARPS ? lane() : 0]);
    if (threadIdx.x < SIGNALLERS) fence_acq_rel_sys();
    const bool differs = any_lane(theirs != op.epoch);
    if ((stopped || differs) && op.cause == 0) op.cause = CAUSE_ELSEWHERE;
    return op.cause == 0;
}

SF_INLINE bool poisoned(const Header& h) {
    return any_lane(lane() < h.world && load_relaxed_sys(h.poison + lane() * LINE) != 0);
}

// Control warp, after `staged`.
SF_INLINE void control(const Header& h, Operation op) {
    // Behind the barrier the poison that another warp saw is seen here too.
    if (op.cause == CAUSE_ELSEWHERE) op.cause = poisoned(h) ? Cause::Skipped : Cause::Overlap;
    // The first poll comes before the arrival, which waits for memory: the workers' flags are on their way by then
    // (docs/performance.md, *What safety costs*).
    const bool meets = op.cause == 0 && blockIdx.x == 0;
    Meeting meeting;
    bool differs = false;
    if (meets) {
        meeting.begin(h, op);
        differs = any_lane(meeting.differs);
    }
    const u32 overlap = lane() == 0 ? arrive(h, op) : 0;
    // At once: when calls overlap, an entry line that has yet to be seen may have been overwritten.
    if (op.cause == 0 && !differs && any_lane(overlap != 0)) op.cause = Cause::Overlap;
    Fault fault = {op.cause, h.rank, op.epoch, 0, 0};
    if (op.cause == 0 && meets) {
        meeting.finish(h, op);
        fault = meeting.wait.fault;
    }
    // A cause that the whole warp found is reported once.
    if (fault.cause != 0 && (op.cause == 0 || lane() == 0)) report(h, op, 0, fault);
}

// Worker threads, after `staged`, which has released the rows: tells CTA b of every peer that those of this CTA are in place.
SF_INLINE void signal(const Header& h, const Operation& op, u32 phase) {
    const u32 peer = threadIdx.x;
    if (peer >= h.world || peer == h.rank) return;
    const PeerAddresses& there = h.peers[peer];
    const u64 flags = select(op.odd, there.slot[0].flags, there.slot[1].flags);
    store_relaxed_sys(flags + flag_offset(h, phase, h.rank), op.epoch);
}

// Worker threads: waits for CTA b of every peer. False when its rows must not be used.
SF_INLINE bool received(const Header& h, const Operation& op, u32 phase) {
    const u32 source = threadIdx.x;
    u32 cause = 0;
    if (source < h.world && source != h.rank) {
        const u64 line = flag(h, op, phase, source);
        Fault fault = await(h, op, phase, Cause::DataTimeout, source, op.epoch, [&](u64& seen) {
            seen = load_acquire_sys(line);
            return seen == op.epoch;
        });
        // Both waits may end at the same time. Whoever has not entered is not late with its data.
        u64 seen;
        u32 tag;
        if (fault.cause == Cause::DataTimeout && !entered(op, entry_line(h, op, source), seen, tag)) {
            fault.cause = Cause::EntryTimeout;
            fault.seen = seen;
        }
        cause = fault.cause;
        if (cause != 0) report(h, op, phase, fault);
    }
    return !barrier_or(2, WORKERS, cause != 0);
}

// Every warp, last of all and on every path.
SF_INLINE void retire(const Header& h) {
    __syncwarp();
    if (lane() == 0) count_relaxed_gpu(SF_LOCAL(h, retired), 1);
}

SF_INLINE Pack poison_pack() { return Pack{{~0u, ~0u, ~0u, ~0u}}; }

} // namespace sf
