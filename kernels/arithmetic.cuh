// Arithmetic that is bit-identical on every rank, on every GPU and on the emulated one: only operations with a stated
// rounding, never an approximation of the hardware's, never a product and a sum that a compiler may fuse.
#pragma once

#include "memory.cuh"

namespace sf {

SF_INLINE float add(float a, float b) { return __fadd_rn(a, b); }
SF_INLINE float subtract(float a, float b) { return __fsub_rn(a, b); }
SF_INLINE float multiply(float a, float b) { return __fmul_rn(a, b); }
SF_INLINE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }

constexpr float LOG2_E = 1.44269504088896341f;
constexpr float NEGATIVE_INFINITY = -__builtin_huge_valf();

SF_INLINE bool is_finite(float x) { return (__float_as_uint(x) & 0x7f800000) != 0x7f800000; }

// 2^x for x <= 0, zero below -125 (so that no result is subnormal). The nearest integer n comes out of the magic sum
// 1.5 × 2^23 + x; 2^(x - n) is its Taylor polynomial of degree 7 on [-1/2, 1/2] (next term: 5.2e-9), Horner by fma.
// Largest error: docs/arithmetic.md.
SF_INLINE float exp2_nonpositive(float x) {
    if (!(x >= -125.0f)) return 0.0f;
    const float magic = 12582912.0f;
    const float shifted = add(x, magic);
    const float f = subtract(x, subtract(shifted, magic));
    float y = 1.52527338e-5f;
    y = fused(y, f, 1.54035304e-4f);
    y = fused(y, f, 1.33335581e-3f);
    y = fused(y, f, 9.61812911e-3f);
    y = fused(y, f, 5.55041087e-2f);
    y = fused(y, f, 2.40226507e-1f);
    y = fused(y, f, 6.93147181e-1f);
    y = fused(y, f, 1.0f);
    return __uint_as_float(__float_as_uint(y) + ((__float_as_uint(shifted) - 0x4b400000u) << 23));
}

// log2 of a finite normal x > 0. x = 2^n m with m in [sqrt(1/2), sqrt(2)); log2(m) = 2/ln2 atanh(s), s = (m-1)/(m+1),
// by its series up to s^9 (next term: 1.2e-9). Largest error: docs/arithmetic.md.
SF_INLINE float log2_positive(float x) {
    const u32 bits = __float_as_uint(x) - 0x3f3504f3u;
    const float n = __int2float_rn(static_cast<int>(bits) >> 23);
    const float m = __uint_as_float((bits & 0x7fffff) + 0x3f3504f3u);
    const float s = __fdiv_rn(subtract(m, 1.0f), add(m, 1.0f));
    const float s2 = multiply(s, s);
    float y = 3.20598898e-1f;
    y = fused(y, s2, 4.12198585e-1f);
    y = fused(y, s2, 5.77078016e-1f);
    y = fused(y, s2, 9.61796694e-1f);
    y = fused(y, s2, 2.88539008f);
    return fused(y, s, n);
}

// Element types: a pack as floats and back, rounding to nearest even, NaN in its canonical form.
struct F32 {
    static constexpr u32 BYTES = 4;
    static constexpr u32 PER_PACK = 4;
    static SF_INLINE float get(const Pack& p, u32 i) { return __uint_as_float(p.word[i]); }
    static SF_INLINE Pack put(const float (&x)[PER_PACK]) {
        return Pack{{__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3])}};
    }
};

template <class Pair>
struct Half {
    static constexpr u32 BYTES = 2;
    static constexpr u32 PER_PACK = 8;
    static SF_INLINE float get(const Pack& p, u32 i) {
        return Pair::widen(static_cast<unsigned short>(p.word[i / 2] >> (i % 2 * 16)));
    }
    static SF_INLINE Pack put(const float (&x)[PER_PACK]) {
        return Pack{{Pair::narrow(x[0], x[1]), Pair::narrow(x[2], x[3]), Pair::narrow(x[4], x[5]),
                     Pair::narrow(x[6], x[7])}};
    }
};

struct F16Pair {
    static SF_INLINE float widen(unsigned short x) {
        float y;
        asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
        return y;
    }
    static SF_INLINE u32 narrow(float low, float high) {
        u32 y;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
        return y;
    }
};

struct Bf16Pair {
    static SF_INLINE float widen(unsigned short x) { return __uint_as_float(static_cast<u32>(x) << 16); }
    static SF_INLINE u32 narrow(float low, float high) {
        u32 y;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
        return y;
    }
};

using F16 = Half<F16Pair>;
using Bf16 = Half<Bf16Pair>;

} // namespace sf
