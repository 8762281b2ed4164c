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
// Polls between two looks at the clock and at the poison lines.
constexpr u32 POLLS_PER_LOOK = 64;

#define SF_LOCAL(header, field) ((header).local + offsetof(LocalBlock, field))

SF_INLINE u32 lane() { return threadIdx.x & 31; }
SF_INLINE bool is_control() { return threadIdx.x >= WORKERS; }

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

// Reads the epoch, the overlap guard and the poison lines; every warp does, in parallel, since each of them needs to
// know before its first store to a peer whether it may.
SF_INLINE Operation begin(const Header& h) {
    Operation op;
    op.epoch = load_relaxed_gpu(SF_LOCAL(h, epoch));
    const u64 started = load_relaxed_gpu(SF_LOCAL(h, started));
    const u64 retired = load_relaxed_gpu(SF_LOCAL(h, retired));
    const u64 poison = lane() < h.world ? load_relaxed_sys(h.poison + lane() * LINE) : 0;
    op.odd = static_cast<u32>(op.epoch) & 1;
    op.cause = 0;
    if (__any_sync(0xffffffff, poison != 0)) {
        op.cause = Cause::Skipped;
    } else if (retired < started) {
        op.cause = Cause::Overlap;
    }
    return op;
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
    store_relaxed_sys(h.health_header + offsetof(HealthHeader, fault), word);
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
    store_relaxed_sys(h.health_header + offsetof(HealthHeader, warning), op.epoch);
}

// Polls until `arrived(seen)` holds, the channel is poisoned, or the fail threshold has passed.
template <class Arrived>
SF_INLINE Fault await(const Header& h, const Operation& op, u32 phase, u32 timeout_cause, u32 source, u64 expected,
                      Arrived arrived) {
    Fault fault = {0, source, expected, 0, 0};
    u64 since = 0;
    bool warned = false;
    #pragma unroll 1
    for (u32 polls = 1; !arrived(fault.seen); ++polls) {
        if (polls % POLLS_PER_LOOK != 0) continue;
        #pragma unroll 1
        for (u32 rank = 0; rank < h.world; ++rank) {
            const u64 poison = load_relaxed_sys(h.poison + rank * LINE);
            if (poison == 0) continue;
            fault.cause = Cause::PeerFailed;
            fault.late = rank;
            fault.seen = poison;
            return fault;
        }
        const u64 now = clock_ticks(h.clock);
        if (since == 0) since = now;
        fault.waited = now - since;
        if (h.fail_ticks != 0 && fault.waited >= h.fail_ticks) {
            fault.cause = timeout_cause;
            return fault;
        }
        if (h.warn_ticks != 0 && !warned && fault.waited >= h.warn_ticks) {
            warned = true;
            Fault warning = fault;
            warning.cause = timeout_cause;
            warn(h, op, phase, warning);
        }
    }
    return fault;
}

// Control warp, CTA 0: enters the operation at every peer.
SF_INLINE void enter(const Header& h, const Operation& op) {
    const u32 peer = lane();
    if (peer >= h.world || peer == h.rank) return;
    const PeerAddresses& there = h.peers[peer];
    store_relaxed_sys_pair(select(op.odd, there.slot[0].entry, there.slot[1].entry), op.epoch,
                           (h.tag << 32) | static_cast<u32>(op.epoch));
}

// Control warp, CTA 0: waits until every peer has entered this epoch, and compares operation tags.
SF_INLINE Fault meet(const Header& h, const Operation& op) {
    const u32 source = lane();
    if (source >= h.world || source == h.rank) return Fault{0, source, 0, 0, 0};
    const u64 line = select(op.odd, h.own[0].entry, h.own[1].entry) + source * LINE;
    const u32 tag = static_cast<u32>(h.tag);
    u32 their_tag = tag;
    Fault fault = await(h, op, 0, Cause::EntryTimeout, source, op.epoch, [&](u64& seen) {
        u64 check;
        load_acquire_sys_pair(line, seen, check);
        their_tag = static_cast<u32>(check >> 32);
        return seen == op.epoch && static_cast<u32>(check) == static_cast<u32>(op.epoch);
    });
    if (fault.cause == 0 && their_tag != tag) {
        fault.cause = Cause::TagMismatch;
        fault.expected = tag;
        fault.seen = their_tag;
    }
    return fault;
}

// One thread of the control warp, behind a barrier that every warp's epoch read has passed: the last CTA to arrive
// advances the epoch. Arrives on every path, poisoned ones too, since the next operation needs a whole ticket.
SF_INLINE u32 arrive(const Header& h, const Operation& op) {
    const u64 mine = 1 + (((h.tag >> 32) & 0xffff) << 16);
    const u64 total = add_acq_rel_gpu(SF_LOCAL(h, ticket), mine) + mine;
    const u32 count = static_cast<u32>(total & 0xffff);
    if (count < gridDim.x) return 0;
    const bool whole = total == mine * gridDim.x;
    store_relaxed_gpu(SF_LOCAL(h, ticket), 0);
    count_relaxed_gpu(SF_LOCAL(h, started), u64(gridDim.x) * WARPS);
    const u64 old = exchange_relaxed_gpu(SF_LOCAL(h, epoch), op.epoch + 1);
    return whole && old == op.epoch ? 0 : Cause::Overlap;
}

// Stands for a cause that another warp of the CTA knows.
constexpr u32 CAUSE_ELSEWHERE = ~0u;

// All threads: everything that this CTA stages is in place. False when the CTA must not go on: what one warp saw holds
// for all, since poison, or the end of an overlap, may have come between two warps' looks.
SF_INLINE bool staged(Operation& op) {
    if (barrier_or(1, CTA_THREADS, op.cause != 0) && op.cause == 0) op.cause = CAUSE_ELSEWHERE;
    return op.cause == 0;
}

SF_INLINE bool poisoned(const Header& h) {
    return __any_sync(0xffffffff, lane() < h.world && load_relaxed_sys(h.poison + lane() * LINE) != 0);
}

// Control warp, after `staged`.
SF_INLINE void control(const Header& h, Operation op) {
    // Behind the barrier the poison that another warp saw is seen here too.
    if (op.cause == CAUSE_ELSEWHERE) op.cause = poisoned(h) ? Cause::Skipped : Cause::Overlap;
    Fault fault = {op.cause, h.rank, op.epoch, 0, 0};
    if (lane() == 0) {
        const u32 overlap = arrive(h, op);
        if (fault.cause == 0) fault.cause = overlap;
    }
    if (op.cause == 0 && blockIdx.x == 0) {
        const Fault met = meet(h, op);
        if (fault.cause == 0) fault = met;
    }
    // A cause that the whole warp found is reported once.
    if (fault.cause != 0 && (op.cause == 0 || lane() == 0)) report(h, op, 0, fault);
}

SF_INLINE u32 flag_offset(const Header& h, u32 phase, u32 source) {
    return ((phase * h.flag_grid + blockIdx.x) * h.world + source) * LINE;
}

// Worker threads, after `staged`: tells CTA b of every peer that the rows of this CTA are in place.
SF_INLINE void signal(const Header& h, const Operation& op, u32 phase) {
    const u32 peer = threadIdx.x;
    if (peer >= h.world || peer == h.rank) return;
    const PeerAddresses& there = h.peers[peer];
    const u64 flags = select(op.odd, there.slot[0].flags, there.slot[1].flags);
    store_release_sys(flags + flag_offset(h, phase, h.rank), op.epoch);
}

// Worker threads: waits for CTA b of every peer. False when its rows must not be used.
SF_INLINE bool received(const Header& h, const Operation& op, u32 phase) {
    const u32 source = threadIdx.x;
    u32 cause = 0;
    if (source < h.world && source != h.rank) {
        const u64 flag = select(op.odd, h.own[0].flags, h.own[1].flags) + flag_offset(h, phase, source);
        const Fault fault = await(h, op, phase, Cause::DataTimeout, source, op.epoch, [&](u64& seen) {
            seen = load_acquire_sys(flag);
            return seen == op.epoch;
        });
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
