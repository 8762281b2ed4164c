// Reference decode attention over one shard of keys: what a runtime has a tuned kernel for. One CTA for each (token,
// head), one pass over the keys with a running maximum. Scores are kept in base 2:
//
//   s_j = scale_log2 q·k_j, m = max s_j, l = sum 2^(s_j - m), out = sum 2^(s_j - m) v_j / l,
//   lse = (m + log2 l) lse_factor
#include "arithmetic.cuh"

namespace sf {

constexpr u32 THREADS = 128;
constexpr u32 MAX_DIM = 1024;
constexpr u32 VALUES_PER_THREAD = MAX_DIM / THREADS;

template <class T>
struct Element;
template <>
struct Element<F32> {
    static SF_INLINE float load(u64 array, u64 index) { return __uint_as_float(load_word(array + index * 4)); }
    static SF_INLINE void store(u64 array, u64 index, float x) { store_word(array + index * 4, __float_as_uint(x)); }
};
template <class Pair>
struct Element<Half<Pair>> {
    static SF_INLINE float load(u64 array, u64 index) {
        unsigned short x;
        asm volatile("ld.global.u16 %0, [%1];" : "=h"(x) : "l"(array + index * 2) : "memory");
        return Pair::widen(x);
    }
    static SF_INLINE void store(u64 array, u64 index, float x) {
        const unsigned short y = static_cast<unsigned short>(Pair::narrow(x, 0.0f));
        asm volatile("st.global.u16 [%0], %1;" ::"l"(array + index * 2), "h"(y) : "memory");
    }
};

// Over all threads, the same value in each, in a fixed order.
template <class Combine>
SF_INLINE float across_cta(float x, float* scratch, Combine combine) {
    #pragma unroll
    for (u32 distance = 16; distance != 0; distance /= 2) x = combine(x, __shfl_xor_sync(0xffffffff, x, distance));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    float all = scratch[0];
    #pragma unroll
    for (u32 warp = 1; warp < THREADS / 32; ++warp) all = combine(all, scratch[warp]);
    return all;
}

template <class T>
SF_INLINE void attend(const AttentionParams& p) {
    __shared__ alignas(16) float query[MAX_DIM];
    __shared__ alignas(16) float probability[THREADS];
    __shared__ float scratch[THREADS / 32];
    const u32 row = blockIdx.x; // token * heads + head
    const u32 head = row % p.heads;
    for (u32 i = threadIdx.x; i < p.key_dim; i += THREADS) {
        query[i] = Element<T>::load(p.query, u64(row) * p.key_dim + i);
    }
    float sum[VALUES_PER_THREAD] = {};
    float largest = NEGATIVE_INFINITY;
    float total = 0.0f;
    for (u32 base = 0; base < p.keys; base += THREADS) {
        __syncthreads();
        const u32 key = base + threadIdx.x;
        float score = NEGATIVE_INFINITY;
        if (key < p.keys) {
            const u64 first = u64(key) * p.key_stride + head * p.key_head_stride;
            // A row is a multiple of 16 bytes, so a pack never crosses its end.
            float dot = 0.0f;
            for (u32 i = 0; i < p.key_dim; i += T::PER_PACK) {
                const Pack pack = load_pack(p.key + (first + i) * T::BYTES);
                #pragma unroll
                for (u32 j = 0; j < T::PER_PACK; ++j) dot = fused(query[i + j], T::get(pack, j), dot);
            }
            score = multiply(dot, p.scale_log2);
        }
        const float tile = across_cta(score, scratch, [](float a, float b) { return fmaxf(a, b); });
        const float now = fmaxf(largest, tile);
        const float fade = largest == NEGATIVE_INFINITY ? 0.0f : exp2_nonpositive(subtract(largest, now));
        const float mine = key < p.keys ? exp2_nonpositive(subtract(score, now)) : 0.0f;
        probability[threadIdx.x] = mine;
        total = fused(total, fade, across_cta(mine, scratch, [](float a, float b) { return add(a, b); }));
        largest = now;
        const u32 here = min(THREADS, p.keys - base);
        #pragma unroll
        for (u32 i = 0; i < VALUES_PER_THREAD; ++i) {
            const u32 dim = threadIdx.x + i * THREADS;
            if (dim >= p.value_dim) break;
            float value = multiply(sum[i], fade);
            const u64 first = u64(base) * p.value_stride + head * p.value_head_stride + dim;
            for (u32 j = 0; j < here; ++j) {
                value = fused(probability[j], Element<T>::load(p.value, first + j * p.value_stride), value);
            }
            sum[i] = value;
        }
    }
    const float inverse = p.keys != 0 ? __frcp_rn(total) : 0.0f;
    #pragma unroll
    for (u32 i = 0; i < VALUES_PER_THREAD; ++i) {
        const u32 dim = threadIdx.x + i * THREADS;
        if (dim < p.value_dim) {
            Element<T>::store(p.output, u64(row) * p.value_dim + dim, multiply(sum[i], inverse));
        }
    }
    if (threadIdx.x == 0) {
        const float lse =
            p.keys != 0 ? multiply(add(largest, log2_positive(total)), p.lse_factor) : NEGATIVE_INFINITY;
        store_word(p.lse + u64(row) * 4, __float_as_uint(lse));
    }
}

} // namespace sf

#define SF_ATTENTION(dtype, T)                                                    \
    extern "C" __global__ void __launch_bounds__(sf::THREADS)                     \
        sf_attention_##dtype(const __grid_constant__ sf::AttentionParams p) {     \
        sf::attend<sf::T>(p);                                                     \
    }
SF_ATTENTION(f32, F32)
SF_ATTENTION(f16, F16)
SF_ATTENTION(bf16, Bf16)
