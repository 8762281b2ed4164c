//! PTX texts run and their results compared with exact values.

mod atomics;
mod barriers;
mod bits;
mod comparisons;
mod compiled;
mod concurrent;
mod control;
mod conversions;
mod faults;
mod floats;
mod hooks;
mod integers;
mod memory;
mod polling;
mod slice;
mod source_lines;
mod support;
mod upcoming;
mod warps;
