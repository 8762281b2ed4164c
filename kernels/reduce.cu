// lse_reduce_scatter: every rank has partial outputs [B, H, D] of all heads over its shard of keys, with their
// log-sum-exp [B, H]; each rank gets the combined outputs [B, H/W, D] of its own heads.
//
//   m = max over ranks of lse, w_r = 2^((lse_r - m) c) / sum, out = sum over ranks 0…W−1 of w_r partial_r
//
// with c = log2 e for LSE in base e and 1 in base 2. An LSE that is not finite marks an empty shard: weight 0, and a
// partial of weight 0 is never looked at. All shards empty give zeros.
//
// Row (b, h) of a destination is staged by CTA c of every source and read by CTA c of the destination, payload and LSE
// alike: the flag of CTA c speaks for nothing else.
#include "arithmetic.cuh"
#include "protocol.cuh"

namespace sf {

// Sources whose packs a thread has in flight at once.
constexpr u32 IN_FLIGHT = 4;

// Walks the rows that this thread's group shares, and says which packs of a row are this thread's.
struct RowWalk {
    u32 row, rows, step;
    u32 first_pack, pack_step;

    __device__ __forceinline__ explicit RowWalk(const ReduceParams& p) {
        const u32 groups = WORKERS >> p.row_threads_log2;
        pack_step = 1u << p.row_threads_log2;
        first_pack = threadIdx.x & (pack_step - 1);
        row = blockIdx.x * groups + (threadIdx.x >> p.row_threads_log2);
        rows = p.batch * p.heads;
        step = gridDim.x * groups;
    }
    __device__ __forceinline__ bool more() const { return row < rows; }
    __device__ __forceinline__ void next() { row += step; }
};

SF_INLINE u64 input_row(const ReduceParams& p, u32 destination, u32 token, u32 head) {
    return p.input + token * p.in_token_stride + u64(destination * p.heads + head) * p.in_head_stride;
}

SF_INLINE u64 input_lse(const ReduceParams& p, u32 destination, u32 token, u32 head) {
    return p.lse + (u64(token) * p.header.world * p.heads + destination * p.heads + head) * 4;
}

template <bool PUSH>
SF_INLINE void stage(const ReduceParams& p, const Operation& op) {
    const Header& h = p.header;
    #pragma unroll 1
    for (u32 step = 1; step < h.world; ++step) {
        const u32 destination = rotated(h, step);
        const PeerAddresses& there = h.peers[destination];
        const u64 part = PUSH ? select(op.odd, there.slot[0].inbox, there.slot[1].inbox)
                              : select(op.odd, h.own[0].outbox, h.own[1].outbox) + destination * p.part_bytes;
        for (RowWalk walk(p); walk.more(); walk.next()) {
            const u32 token = walk.row / p.heads;
            const u32 head = walk.row - token * p.heads;
            const u64 from = input_row(p, destination, token, head);
            const u64 to = part + u64(walk.row) * p.row_packs * 16;
            for (u32 pack = walk.first_pack; pack < p.row_packs; pack += walk.pack_step) {
                store_pack(to + u64(pack) * 16, load_pack(from + u64(pack) * 16));
            }
            if (walk.first_pack == 0) {
                store_word(part + p.lse_offset + u64(walk.row) * 4, load_word(input_lse(p, destination, token, head)));
            }
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

// Pack loops are not unrolled: a thread has one or two packs of a row, and the loads that matter are those of the sources.
template <class T, u32 N, bool PUSH>
SF_INLINE void combine(const ReduceParams& p, const Operation& op) {
    const Header& h = p.header;
    // Where each source's part for this rank lies; the own one is read from the input.
    u64 part[N];
    #pragma unroll
    for (u32 source = 0; source < N; ++source) {
        if (source >= h.world || source == h.rank) continue;
        part[source] = PUSH ? select(op.odd, h.own[0].inbox, h.own[1].inbox) + source * h.inbox_stride
                            : select(op.odd, h.peers[source].slot[0].outbox, h.peers[source].slot[1].outbox) +
                                  h.rank * p.part_bytes;
    }
    for (RowWalk walk(p); walk.more(); walk.next()) {
        const u32 token = walk.row / p.heads;
        const u32 head = walk.row - token * p.heads;
        float weight[N];
        u64 from[N];
        #pragma unroll
        for (u32 source = 0; source < N; ++source) {
            weight[source] = NEGATIVE_INFINITY;
            if (source >= h.world) continue;
            const bool own = source == h.rank;
            from[source] = own ? input_row(p, source, token, head) : part[source] + u64(walk.row) * p.row_packs * 16;
            weight[source] = __uint_as_float(load_word(own ? input_lse(p, source, token, head)
                                                           : part[source] + p.lse_offset + u64(walk.row) * 4));
        }
        weigh<N>(p, weight); // 0 beyond the world
        const u64 to = p.output + token * p.out_token_stride + head * p.out_head_stride;
        #pragma unroll 1
        for (u32 pack = walk.first_pack; pack < p.row_packs; pack += walk.pack_step) {
            float sum[T::PER_PACK] = {};
            #pragma unroll
            for (u32 first = 0; first < N; first += IN_FLIGHT) {
                Pack x[IN_FLIGHT];
                #pragma unroll
                for (u32 i = 0; i < IN_FLIGHT && first + i < N; ++i) {
                    if (weight[first + i] != 0.0f) x[i] = load_pack(from[first + i] + u64(pack) * 16);
                }
                #pragma unroll
                for (u32 i = 0; i < IN_FLIGHT && first + i < N; ++i) {
                    if (weight[first + i] == 0.0f) continue;
                    #pragma unroll
                    for (u32 j = 0; j < T::PER_PACK; ++j) sum[j] = fused(weight[first + i], T::get(x[i], j), sum[j]);
                }
            }
            store_pack(to + u64(pack) * 16, T::put(sum));
        }
    }
}

SF_INLINE void poison_output(const ReduceParams& p) {
    for (RowWalk walk(p); walk.more(); walk.next()) {
        const u32 token = walk.row / p.heads;
        const u64 to = p.output + token * p.out_token_stride + (walk.row - token * p.heads) * p.out_head_stride;
        #pragma unroll 1
        for (u32 pack = walk.first_pack; pack < p.row_packs; pack += walk.pack_step) {
            store_pack(to + u64(pack) * 16, poison_pack());
        }
    }
}

template <class T, u32 N, bool PUSH>
SF_INLINE void reduce(const ReduceParams& p) {
    const Header& h = p.header;
    Operation op = begin(h);
    if (op.cause == 0) {
        if (!is_control()) {
            stage<PUSH>(p, op);
        } else if (blockIdx.x == 0) {
            enter(h, op);
        }
    }
    bool good = staged(op);
    if (is_control()) {
        control(h, op);
    } else {
        if (good) {
            signal(h, op, 0);
            good = received(h, op, 0);
        }
        if (good) {
            combine<T, N, PUSH>(p, op);
        } else {
            poison_output(p);
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
