// Kernels of the driver tests. kernels.ptx is this file through
//   nvcc -O3 -std=c++17 --ptx -arch=compute_80
extern "C" {
__device__ unsigned int counter = 7;
__constant__ unsigned int table[4] = {1, 2, 3, 4};

// out[i] = value + i for all threads of the grid.
__global__ void iota(unsigned int* out, unsigned long long value) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = (unsigned int)value + i;
}

// Adds to a word.
__global__ void add(unsigned int* out, unsigned long long value) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *out += (unsigned int)value;
}

// Waits until a word has a value.
__global__ void await(unsigned int* flag, unsigned long long value) {
  if (threadIdx.x == 0) {
    unsigned int seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    } while (seen != (unsigned int)value);
  }
  __syncthreads();
}

__device__ __forceinline__ void wait_for(unsigned int* flag, unsigned int value) {
  unsigned int seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (seen != value);
}

// `rounds` times: the first (1) sets the flag of the peer to the round, the other (0) answers.
__global__ void pingpong(unsigned int* mine, unsigned int* peers, unsigned long long first, unsigned long long rounds) {
  for (unsigned int round = 1; round <= (unsigned int)rounds; ++round) {
    // The first has nothing to wait for before its first store.
    wait_for(mine, round - (unsigned int)first);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(peers), "r"(round) : "memory");
  }
}

// Copies a word from one device to another.
__global__ void move(unsigned int* to, const unsigned int* from) { *to = *from; }

// Copies the module's variables.
__global__ void globals(unsigned int* out) {
  out[0] = atomicAdd(&counter, 1);
  out[1] = table[out[0] & 3];
}

// Sums a block through shared memory.
__global__ void sum(unsigned int* out, const unsigned int* in) {
  __shared__ unsigned int part[256];
  part[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

__global__ void trap() { asm volatile("trap;"); }
}
