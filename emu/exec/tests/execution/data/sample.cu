// A little of everything that nvcc makes of integer and float code. `compiled.rs` computes the same in Rust.
// nvcc -O3 -std=c++17 --ptx -arch=compute_80 -o sample.ptx sample.cu
#include <cstdint>

struct Params {
    uint64_t out;
    uint64_t table[4];
    uint32_t rounds;
    unsigned char tail[3];
};

__constant__ int weights[4] = {3, -5, 7, -11};
extern "C" __device__ const unsigned long long witness[2] = {sizeof(Params), alignof(Params)};

extern "C" __global__ void __launch_bounds__(64) sample(const __grid_constant__ Params p) {
    __shared__ uint64_t row[64];
    const uint32_t t = threadIdx.x;
    uint64_t x = p.table[t & 3] + p.tail[t % 3] + t;
    int64_t y = static_cast<int64_t>(x) * -7919;
    uint32_t history[4] = {1, 2, 3, 4};
    for (uint32_t i = 0; i < p.rounds; ++i) {
        switch ((x >> 3) & 7) {
            case 0: x = x * 6364136223846793005ull + 1442695040888963407ull; break;
            case 1: x ^= x >> 17; break;
            case 2: x += static_cast<uint64_t>(weights[i & 3] * static_cast<int>(t)); break;
            case 3: x = x / (t + 3) + x % (t + 7); break;
            case 4: y = y / 11 - y % 13; x ^= static_cast<uint64_t>(y); break;
            case 5: x = __umul64hi(x, 0x9e3779b97f4a7c15ull) + static_cast<uint64_t>(__mul64hi(y, 12345678901ll)); break;
            case 6: x = (x << (t & 63)) | (x >> (63 - (t & 63)) >> 1); break;
            default: x = __brevll(x) + __popcll(x) * 5 + __clzll(x); break;
        }
        history[i & 3] = __byte_perm(static_cast<uint32_t>(x), history[(i + 1) & 3], 0x5140) + __funnelshift_l(t, history[i & 3], i);
        x += history[x & 3];
        row[t] = x;
        __syncthreads();
        x ^= row[t ^ 33];
        __syncthreads();
        x += __shfl_xor_sync(0xffffffffu, static_cast<uint32_t>(x), 1 + (i & 15));
        const unsigned __int128 wide = static_cast<unsigned __int128>(x) * x + static_cast<uint64_t>(y);
        x = static_cast<uint64_t>(wide >> 64) ^ static_cast<uint64_t>(wide);
    }
    float f = static_cast<float>(static_cast<uint32_t>(x)) * 0.00390625f + static_cast<float>(static_cast<short>(y));
    f = __fadd_rn(__fmul_rn(f, 1.25f), __fsqrt_rn(fabsf(f))) + __fdiv_rn(1.0f, static_cast<float>(static_cast<signed char>(x)) + 0.5f);
    uint64_t* out = reinterpret_cast<uint64_t*>(p.out);
    out[2 * t] = x + witness[t & 1];
    out[2 * t + 1] = static_cast<uint64_t>(static_cast<int64_t>(f)) ^ (static_cast<uint64_t>(__float_as_uint(f)) << 32);
}
