//! PTX texts run and their results compared with exact values.

mod bits;
mod comparisons;
mod conversions;
mod floats;
mod integers;
mod slice;
mod support;
