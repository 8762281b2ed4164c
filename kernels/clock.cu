// Reads both clocks of a device, so that the host can find out which of them measures time.
#include "memory.cuh"

extern "C" __global__ void __launch_bounds__(32) sf_clock(const __grid_constant__ sf::ClockParams p) {
    if (threadIdx.x != 0) return;
    sf::store_relaxed_sys(p.output, sf::clock_ticks(0));
    sf::store_relaxed_sys(p.output + 8, sf::clock_ticks(1));
}
