// all_gather_heads: [B, H/W, D] on each rank to [B, H, D] on every rank. Bytes are moved, never looked at.
#include "protocol.cuh"

namespace sf {

// Packs that a thread keeps in flight.
constexpr u32 BATCH = 4;

// Walks the packs of one rank that this thread moves: i, i + stride, … and where each lies in the output.
struct PackWalk {
    u32 index, stride;
    u32 token, in_token; // index = token * token_packs + in_token
    u32 token_step, in_token_step;

    __device__ __forceinline__ explicit PackWalk(const GatherParams& p)
        : index(blockIdx.x * WORKERS + threadIdx.x), stride(gridDim.x * WORKERS) {
        token = index / p.token_packs;
        in_token = index - token * p.token_packs;
        token_step = stride / p.token_packs;
        in_token_step = stride - token_step * p.token_packs;
    }
    __device__ __forceinline__ void next(const GatherParams& p) {
        index += stride;
        token += token_step;
        in_token += in_token_step;
        if (in_token >= p.token_packs) {
            in_token -= p.token_packs;
            ++token;
        }
    }
    // Output offset of this pack as rank `source` contributes it.
    __device__ __forceinline__ u64 output(const GatherParams& p, u32 source) const {
        return ((u64(token) * p.header.world + source) * p.token_packs + in_token) * 16;
    }
};

// Copies one rank's packs from `from`, where they lie compactly, to their place in the output.
SF_INLINE void place(const GatherParams& p, PackWalk walk, u64 from, u32 source) {
    while (walk.index < p.packs) {
        Pack pack[BATCH];
        PackWalk ahead = walk;
        #pragma unroll
        for (u32 i = 0; i < BATCH; ++i) {
            if (ahead.index < p.packs) pack[i] = load_pack(from + u64(ahead.index) * 16);
            ahead.index += ahead.stride;
        }
        #pragma unroll
        for (u32 i = 0; i < BATCH; ++i) {
            if (walk.index < p.packs) store_pack(p.output + walk.output(p, source), pack[i]);
            walk.next(p);
        }
    }
}

SF_INLINE void poison_output(const GatherParams& p, PackWalk walk) {
    for (; walk.index < p.packs; walk.next(p)) {
        for (u32 source = 0; source < p.header.world; ++source) {
            store_pack(p.output + walk.output(p, source), poison_pack());
        }
    }
}

template <bool PUSH>
SF_INLINE void stage(const GatherParams& p, const Operation& op, Pack (&pack)[BATCH]) {
    const Header& h = p.header;
    const u32 stride = gridDim.x * WORKERS;
    for (u32 first = blockIdx.x * WORKERS + threadIdx.x; first < p.packs; first += BATCH * stride) {
        if (PUSH) {
            for (u32 step = 1; step < h.world; ++step) {
                const PeerAddresses& there = h.peers[rotated(h, step)];
                const u64 inbox = select(op.odd, there.slot[0].inbox, there.slot[1].inbox);
                #pragma unroll
                for (u32 i = 0; i < BATCH; ++i) {
                    const u32 index = first + i * stride;
                    if (index < p.packs) store_pack(inbox + u64(index) * 16, pack[i]);
                }
            }
        } else {
            const u64 outbox = select(op.odd, h.own[0].outbox, h.own[1].outbox);
            #pragma unroll
            for (u32 i = 0; i < BATCH; ++i) {
                const u32 index = first + i * stride;
                if (index < p.packs) store_pack(outbox + u64(index) * 16, pack[i]);
            }
        }
        #pragma unroll
        for (u32 i = 0; i < BATCH; ++i) {
            const u32 index = first + (BATCH + i) * stride;
            if (index < p.packs) pack[i] = load_pack(p.input + u64(index) * 16);
        }
    }
}

template <bool PUSH>
SF_INLINE void gather(const GatherParams& p) {
    const Header& h = p.header;
    __shared__ u64 epochs[WARPS];
    const Look seen = look(h);
    // The first packs are on their way before the epoch is known.
    Pack pack[BATCH];
    if (!is_control()) {
        #pragma unroll
        for (u32 i = 0; i < BATCH; ++i) {
            const u32 index = (i * gridDim.x + blockIdx.x) * WORKERS + threadIdx.x;
            if (index < p.packs) pack[i] = load_pack(p.input + u64(index) * 16);
        }
    }
    const PackWalk walk(p);
    Operation op = begin(seen);
    if (op.cause == 0) {
        if (!is_control()) {
            stage<PUSH>(p, op, pack);
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
            place(p, walk, p.input, h.rank);
            good = received(h, op, 0);
        }
        if (!good) {
            poison_output(p, walk);
        } else {
            for (u32 step = 1; step < h.world; ++step) {
                const u32 source = rotated(h, step);
                const u64 from = PUSH ? select(op.odd, h.own[0].inbox, h.own[1].inbox) + source * h.inbox_stride
                                      : select(op.odd, h.peers[source].slot[0].outbox, h.peers[source].slot[1].outbox);
                place(p, walk, from, source);
            }
        }
    }
    retire(h);
}

} // namespace sf

extern "C" __global__ void __launch_bounds__(sf::CTA_THREADS)
    sf_gather_push(const __grid_constant__ sf::GatherParams p) {
    sf::gather<true>(p);
}

extern "C" __global__ void __launch_bounds__(sf::CTA_THREADS)
    sf_gather_pull(const __grid_constant__ sf::GatherParams p) {
    sf::gather<false>(p);
}
