//! Layout proofs and programs that must not compile.
