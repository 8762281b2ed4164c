// Every access to memory that another agent may touch, spelled out in PTX: order, scope and width are visible in one
// place, and the compiler can neither merge, widen nor hoist them, nor turn them into `.nc` loads.
#pragma once

#include "abi.cuh"

namespace sf {

using u32 = uint32_t;
using u64 = uint64_t;

#define SF_INLINE __device__ __forceinline__

// 16 bytes, the unit in which rows are moved.
struct Pack {
    u32 word[4];
};

SF_INLINE u64 load_relaxed_gpu(u64 address) {
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

SF_INLINE u64 load_relaxed_sys(u64 address) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

SF_INLINE u64 load_acquire_sys(u64 address) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

// Two scalar accesses to PTX, in no order; the words must carry what tells whether they belong together.
SF_INLINE void load_acquire_sys_pair(u64 address, u64& low, u64& high) {
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(address) : "memory");
}

SF_INLINE void store_relaxed_sys_pair(u64 address, u64 low, u64 high) {
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(low), "l"(high) : "memory");
}

SF_INLINE void store_relaxed_gpu(u64 address, u64 value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

SF_INLINE void store_relaxed_sys(u64 address, u64 value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

SF_INLINE void store_release_sys(u64 address, u64 value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

SF_INLINE void store_relaxed_sys_word(u64 address, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

// Releases what happened before, here or, by a barrier, in other threads of the CTA, with whatever is stored behind it.
SF_INLINE void fence_acq_rel_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

SF_INLINE u64 add_acq_rel_gpu(u64 address, u64 value) {
    u64 old;
    asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(value) : "memory");
    return old;
}

// Stores the larger of `value` and what is there, which it returns.
SF_INLINE u64 raise_relaxed_gpu(u64 address, u64 value) {
    u64 old;
    asm volatile("atom.max.relaxed.gpu.global.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(value) : "memory");
    return old;
}

SF_INLINE u64 exchange_relaxed_gpu(u64 address, u64 value) {
    u64 old;
    asm volatile("atom.exch.relaxed.gpu.global.b64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(value) : "memory");
    return old;
}

// Stores `value` where zero was; true for the one caller that did.
SF_INLINE bool claim_relaxed_gpu(u64 address, u64 value) {
    u64 old;
    asm volatile("atom.cas.relaxed.gpu.global.b64 %0, [%1], 0, %2;" : "=l"(old) : "l"(address), "l"(value) : "memory");
    return old == 0;
}

// Fire and forget.
SF_INLINE void count_relaxed_gpu(u64 address, u64 value) {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

SF_INLINE Pack load_pack(u64 address) {
    Pack pack;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pack.word[0]), "=r"(pack.word[1]), "=r"(pack.word[2]), "=r"(pack.word[3])
                 : "l"(address)
                 : "memory");
    return pack;
}

SF_INLINE void store_pack(u64 address, const Pack& pack) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(pack.word[0]), "r"(pack.word[1]),
                 "r"(pack.word[2]), "r"(pack.word[3])
                 : "memory");
}

SF_INLINE u32 load_word(u64 address) {
    u32 value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

SF_INLINE void store_word(u64 address, u32 value) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

// Shared memory of the CTA, ordered by its barriers.
SF_INLINE u64 load_shared(const u64& word) {
    const u32 address = static_cast<u32>(__cvta_generic_to_shared(&word));
    u64 value;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(value) : "r"(address) : "memory");
    return value;
}

SF_INLINE void store_shared(u64& word, u64 value) {
    const u32 address = static_cast<u32>(__cvta_generic_to_shared(&word));
    asm volatile("st.shared.u64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
}

// Two-way select between addresses from the parameter block. Kept opaque, so that no compiler turns it into
// arithmetic on the epoch: whatever the epoch is, the result is one of the two.
SF_INLINE u64 select(u32 odd, u64 even_address, u64 odd_address) {
    u64 result;
    asm("{\n\t.reg .pred odd;\n\tsetp.ne.u32 odd, %1, 0;\n\tselp.b64 %0, %3, %2, odd;\n\t}"
        : "=l"(result)
        : "r"(odd), "l"(even_address), "l"(odd_address));
    return result;
}

// Barrier `id` over `threads` threads; returns whether any of them brought true.
SF_INLINE bool barrier_or(u32 id, u32 threads, bool mine) {
    u32 any;
    asm volatile("{\n\t.reg .pred in, out;\n\tsetp.ne.u32 in, %3, 0;\n\tbar.red.or.pred out, %1, %2, in;\n\t"
                 "selp.u32 %0, 1, 0, out;\n\t}"
                 : "=r"(any)
                 : "r"(id), "r"(threads), "r"(static_cast<u32>(mine))
                 : "memory");
    return any != 0;
}

SF_INLINE u64 clock_ticks(u32 clock) {
    u64 ticks;
    if (clock == 0) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ticks)::"memory");
    } else {
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(ticks)::"memory");
    }
    return ticks;
}

} // namespace sf
