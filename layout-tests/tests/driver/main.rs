//! The driver's bindings against cuda-driver-sys, which somebody else made with another generator from the headers of CUDA
//! 10.2: a second witness of all that both have. The proofs are the compiler's; `tests/compile` has one number of each kind
//! changed and must not compile.

mod linkage;
mod records;
mod values;
