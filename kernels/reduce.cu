// lse_reduce_scatter: every rank has partial outputs [B, H, D] of all heads over its shard of keys, with their
// log-sum-exp [B, H]; each rank gets the combined outputs [B, H/W, D] of its own heads.
//
//   m = max over ranks of lse, w_r = 2^((lse_r - m) c) / sum, out = sum over ranks 0…W−1 of w_r partial_r
//
// with c = log2 e for LSE in base e and 1 in base 2. An LSE that is not finite marks an empty shard: weight 0, and a
// partial of weight 0 takes no part, so that 0 × NaN poisons nothing. All shards empty give zeros.
//
// Row (b, h) of a destination is staged by CTA c of every source and read by CTA c of the destination, payload and LSE
// alike: the flag of CTA c speaks for nothing else.
#include "arithmetic.cuh"
#include "protocol.cuh"

namespace sf {

// Packs of one destination that a thread has in flight while it stages.
constexpr u32 BATCH = 4;

// Walks the packs of one rank's rows that this thread moves, one row after the other. Threads share a row in groups, so
// that a row belongs to one CTA.
struct PackWalk {
    u32 row, token, head; // row = token * heads + head
    u32 pack;             // within the row
    u32 first_pack, rows, row_step, token_step, head_step;

    __device__ __forceinline__ explicit PackWalk(const ReduceParams& p) {
        const u32 groups = WORKERS >> p.row_threads_log2;
        first_pack = pack = threadIdx.x & ((1u << p.row_threads_log2) - 1);
        rows = p.batch * p.heads;
        row_step = gridDim.x * groups;
        token_step = divide(row_step, p.heads, p.heads_reciprocal);
        head_step = row_step - token_step * p.heads;
        row = blockIdx.x * groups + (threadIdx.x >> p.row_threads_log2);
        token = divide(row, p.heads, p.heads_reciprocal);
        head = row - token * p.heads;
        if (pack >= p.row_packs) row = rows;
    }
    __device__ __forceinline__ bool more() const { return row < rows; }
    __device__ __forceinline__ void next(const ReduceParams& p) {
        pack += 1u << p.row_threads_log2;
        if (pack < p.row_packs) return;
        pack = first_pack;
        row += row_step;
        token += token_step;
        head += head_step;
        if (head >= p.heads) {
            head -= p.heads;
            ++token;
        }
    }
    // Where this pack, and the LSE of its row, lie in a rank's input, in a staged part, and in the output.
    __device__ __forceinline__ u64 input(const ReduceParams& p, u32 rank) const {
        return p.input + token * p.in_token_stride + (rank * p.heads + head) * p.in_head_stride + pack * 16;
    }
    __device__ __forceinline__ u64 input_lse(const ReduceParams& p, u32 rank) const {
        return p.lse + ((u64(token) * p.header.world + rank) * p.heads + head) * 4;
    }
    __device__ __forceinline__ u64 staged(const ReduceParams& p, u64 part) const {
        return part + (u64(row) * p.row_packs + pack) * 16;
    }
    __device__ __forceinline__ u64 staged_lse(const ReduceParams& p, u64 part) const {
        return part + p.lse_offset + row * 4;
    }
    __device__ __forceinline__ u64 output(const ReduceParams& p) const {
        return p.output + token * p.out_token_stride + head * p.out_head_stride + pack * 16;
    }
};

// What a thread is about to stage for one destination.
struct Batch {
    Pack pack[BATCH];
    u32 lse[BATCH];

    __device__ __forceinline__ void fetch(const ReduceParams& p, u32 destination, PackWalk walk) {
        #pragma unroll
        for (u32 i = 0; i < BATCH; ++i) {
            if (!walk.more()) return;
            pack[i] = load_pack(walk.input(p, destination));
            if (walk.pack == 0) lse[i] = load_word(walk.input_lse(p, destination));
            walk.next(p);
        }
    }
    __device__ __forceinline__ void deliver(const ReduceParams& p, u64 part, PackWalk& walk) const {
        #pragma unroll
        for (u32 i = 0; i < BATCH; ++i) {
            if (!walk.more()) return;
            store_pack(walk.staged(p, part), pack[i]);
            if (walk.pack == 0) store_word(walk.staged_lse(p, part), lse[i]);
            walk.next(p);
        }
    }
};

// `batch` holds what `begin` and `destination` 1 need first.
template <bool PUSH>
SF_INLINE void stage(const ReduceParams& p, const Operation& op, const PackWalk& begin, Batch& batch) {
    const Header& h = p.header;
    #pragma unroll 1
    for (u32 step = 1; step < h.world; ++step) {
        const u32 destination = rotated(h, step);
        const PeerAddresses& there = h.peers[destination];
        const u64 part = PUSH ? select(op.odd, there.slot[0].inbox, there.slot[1].inbox)
                              : select(op.odd, h.own[0].outbox, h.own[1].outbox) + destination * p.part_bytes;
        PackWalk walk = begin;
        #pragma unroll 1
        while (walk.more()) {
            batch.deliver(p, part, walk);
            const bool last = !walk.more();
            if (last && step + 1 == h.world) break;
            batch.fetch(p, last ? rotated(h, step + 1) : destination, last ? begin : walk);
        }
    }
}

// Turns the LSE of each source into its weight, in place.
template <u32 N>
SF_INLINE void weigh(const ReduceParams& p, float (&weight)[N]) {
    const float factor = p.lse_base2 != 0 ? 1.0f : LOG2_E;
    float largest = NEGATIVE_INFINITY;
    #pragma unroll
    for (u32 source = 0; source < N; ++source) {
        if (is_finite(weight[source])) largest = fmaxf(largest, weight[source]);
    }
    float sum = 0.0f;
    #pragma unroll
    for (u32 source = 0; source < N; ++source) {
        const float x = weight[source];
        weight[source] = is_finite(x) ? exp2_nonpositive(multiply(subtract(x, largest), factor)) : 0.0f;
        sum = add(sum, weight[source]);
    }
    // The largest LSE has weight 1, so the sum is at least 1, or 0 when every shard is empty.
    const float inverse = sum > 0.0f ? __frcp_rn(sum) : 0.0f;
    #pragma unroll
    for (u32 source = 0; source < N; ++source) weight[source] = multiply(weight[source], inverse);
}

// One pack of the output and what it is made of. Sources beyond the world count as empty shards.
template <class T, u32 N>
struct Combination {
    Pack pack[N];
    float weight[N];

    template <bool PUSH>
    __device__ __forceinline__ void fetch(const ReduceParams& p, const Operation& op, const PackWalk& walk) {
        const Header& h = p.header;
        #pragma unroll
        for (u32 source = 0; source < N; ++source) {
            weight[source] = NEGATIVE_INFINITY;
            if (source >= h.world) continue;
            u64 from, lse;
            if (source == h.rank) {
                from = walk.input(p, source);
                lse = walk.input_lse(p, source);
            } else {
                const PeerAddresses& there = h.peers[source];
                const u64 part = PUSH ? select(op.odd, h.own[0].inbox, h.own[1].inbox) + source * h.inbox_stride
                                      : select(op.odd, there.slot[0].outbox, there.slot[1].outbox) +
                                            h.rank * p.part_bytes;
                from = walk.staged(p, part);
                lse = walk.staged_lse(p, part);
            }
            weight[source] = __uint_as_float(load_word(lse));
            pack[source] = load_pack(from);
        }
    }
    __device__ __forceinline__ Pack result(const ReduceParams& p) {
        weigh<N>(p, weight);
        float sum[T::PER_PACK] = {};
        #pragma unroll
        for (u32 source = 0; source < N; ++source) {
            if (weight[source] == 0.0f) continue;
            #pragma unroll
            for (u32 i = 0; i < T::PER_PACK; ++i) sum[i] = fused(weight[source], T::get(pack[source], i), sum[i]);
        }
        return T::put(sum);
    }
};

template <class T, u32 N, bool PUSH>
SF_INLINE void combine(const ReduceParams& p, const Operation& op, PackWalk walk) {
    // Loads in flight: all sources of this many packs.
    constexpr u32 TOGETHER = N <= 2 ? 4 : N <= 4 ? 2 : 1;
    #pragma unroll 1
    while (walk.more()) {
        Combination<T, N> combination[TOGETHER];
        PackWalk ahead = walk;
        #pragma unroll
        for (u32 i = 0; i < TOGETHER; ++i) {
            if (!ahead.more()) break;
            combination[i].template fetch<PUSH>(p, op, ahead);
            ahead.next(p);
        }
        #pragma unroll
        for (u32 i = 0; i < TOGETHER; ++i) {
            if (!walk.more()) break;
            store_pack(walk.output(p), combination[i].result(p));
            walk.next(p);
        }
    }
}

SF_INLINE void poison_output(const ReduceParams& p, PackWalk walk) {
    #pragma unroll 1
    for (; walk.more(); walk.next(p)) store_pack(walk.output(p), poison_pack());
}

template <class T, u32 N, bool PUSH>
SF_INLINE void reduce(const ReduceParams& p) {
    const Header& h = p.header;
    __shared__ u64 epochs[WARPS];
    const Look seen = look(h);
    const PackWalk walk(p);
    // The first packs are on their way before the epoch is known.
    Batch batch;
    if (!is_control()) batch.fetch(p, rotated(h, 1), walk);
    Operation op = begin(seen);
    if (op.cause == 0) {
        if (!is_control()) {
            stage<PUSH>(p, op, walk, batch);
        } else if (blockIdx.x == 0) {
            enter(h, op);
        }
    }
    bool good = staged(op, epochs);
    if (is_control()) {
        control(h, op);
    } else {
        if (good) {
            signal(h, op, 0);
            good = received(h, op, 0);
        }
        if (good) {
            combine<T, N, PUSH>(p, op, walk);
        } else {
            poison_output(p, walk);
        }
    }
    retire(h);
}

} // namespace sf

// N bounds the world: loops over sources are unrolled N times, so that all loads of a pack are in flight at once.
#define SF_REDUCE(transport, PUSH, dtype, T, N)                                                \
    extern "C" __global__ void __launch_bounds__(sf::CTA_THREADS)                              \
        sf_reduce_##transport##_##dtype##_w##N(const __grid_constant__ sf::ReduceParams p) {   \
        sf::reduce<sf::T, N, PUSH>(p);                                                         \
    }
#define SF_REDUCE_WORLDS(transport, PUSH, dtype, T) \
    SF_REDUCE(transport, PUSH, dtype, T, 2)         \
    SF_REDUCE(transport, PUSH, dtype, T, 4)         \
    SF_REDUCE(transport, PUSH, dtype, T, 16)
#define SF_REDUCE_TYPES(transport, PUSH)            \
    SF_REDUCE_WORLDS(transport, PUSH, f32, F32)     \
    SF_REDUCE_WORLDS(transport, PUSH, f16, F16)     \
    SF_REDUCE_WORLDS(transport, PUSH, bf16, Bf16)

SF_REDUCE_TYPES(push, true)
SF_REDUCE_TYPES(pull, false)
