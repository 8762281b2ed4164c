//! PTX texts run and their results compared with exact values.

mod slice;
mod support;
