//! What can be found: stable names, each with what is wrong and how it is usually repaired.

use std::fmt;

macro_rules! rules {
    ($($(#[$meta:meta])* $name:ident $text:literal: $wrong:literal, $repair:literal;)*) => {
        /// A rule of the checker. Names are stable; `docs/checker.md` lists them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $wrong] $name,)* }

        impl Rule {
            /// All rules, in the order of the documentation.
            pub const ALL: &'static [Rule] = &[$(Rule::$name,)*];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$name => $text,)* }
            }

            /// One sentence: what is wrong.
            pub fn wrong(self) -> &'static str {
                match self { $(Rule::$name => $wrong,)* }
            }

            /// One sentence: the usual repair.
            pub fn repair(self) -> &'static str {
                match self { $(Rule::$name => $repair,)* }
            }
        }
    };
}

rules! {
    Race "race":
        "Two accesses to a word conflict, no chain of synchronisation orders them, and they are not both strong with scopes that include each other.",
        "Store the flag with release after the data (behind a CTA barrier where other threads wrote it) and poll it with acquire, both `.sys` between devices.";
    NcLoad "nc-load":
        "A word is read with `ld.global.nc` and written while that kernel runs, or not ordered before it started.",
        "Keep `const __restrict__` and `__ldg` off memory that anybody writes meanwhile, so that the load is an ordinary one.";
    MixedSize "mixed-size":
        "Strong accesses to the same bytes differ in size, so that the memory model promises nothing about them.",
        "Use one size for a flag in every access, on both sides.";
    TornVector "torn-vector":
        "A strong vector load reads what a vector store of another thread may still be writing, though vectors are stored and loaded element by element.",
        "Put the data and the stamp that vouches for it into one scalar access (`.b64` or `.b128`), or repeat the stamp in each element.";
    WeakSignal "weak-signal":
        "A kernel loads a word of the protocol with an ordinary load, which need never see a new value.",
        "Load it with `.relaxed` or `.acquire` and a scope.";
    UnorderedOverwrite "unordered-overwrite":
        "A word of the protocol is overwritten by a store that is not ordered after those who used or wrote its old value.",
        "Let the writer first acquire what the readers released behind their last use: the ticket with acq_rel, or the readers' entry lines of the next operation.";
    StaleAccept "stale-accept":
        "A wait ended on a value that another operation had stored, or that was there before.",
        "Wait for equality with the whole epoch of this operation, in the slot of this operation.";
    PacketLost "packet-lost":
        "A packet was overwritten before its receiver had read it.",
        "Alternate slots by the device's epoch, and enter operation k + 2 only behind the entry lines of k + 1.";
    WrongRegion "wrong-region":
        "An access hits memory of a known use that no parameter of the launch points to, that this rank must not write, or that its device has no right to.",
        "Derive each address from the base that the launch's parameters hold for that memory, keep offsets inside it, and give each device access to what it uses.";
    WrongSlot "wrong-slot":
        "An operation touches the slot that is not its epoch's.",
        "Select the slot's addresses on the device by the parity of the epoch that was read there.";
    OutOfBounds "out-of-bounds":
        "An access hits no memory, or runs past the end of what it starts in.",
        "Compare the launch's sizes and strides with the allocation.";
    Misaligned "misaligned":
        "An access is at no multiple of its size.",
        "Keep bases, strides and offsets multiples of the widest access, or use narrower ones.";
    StaleAddress "stale-address":
        "An address that was taken earlier is used, though the memory there has been replaced or given back since.",
        "Capture again after memory was remapped, or keep it mapped as long as a graph holds its address.";
    Uninitialised "uninitialised":
        "A load reads bytes that nothing has written.",
        "Write or clear the memory before its first use, or order the load behind the store that fills it.";
    PeerAtomic "peer-atomic":
        "A read-modify-write goes to another device's memory, and the pair has no native atomics.",
        "Give each writer a word of its own and store to it.";
    GpuScopePeerAtomic "gpu-scope-peer-atomic":
        "A read-modify-write of less than system scope goes to a word that other devices see.",
        "Use `.sys` (`atomicAdd_system`); plain `atomicAdd` is `.relaxed.gpu`.";
    SharedRace "shared-race":
        "Two warps access the same shared memory, at least one of them writes, and no barrier orders them.",
        "Put `__syncthreads()` between the two accesses.";
    MissingSyncwarp "missing-syncwarp":
        "Two lanes of a warp access the same memory, at least one of them writes, and no barrier of the warp orders them.",
        "Put `__syncwarp()` between the two accesses; shuffles and votes order no memory.";
    Deadlock "deadlock":
        "Everybody who is resident waits, and nobody can change what they wait for.",
        "Find the waiter whose value has a possible writer that is not waiting or not resident: keep whole grids resident, and the operations in the same order on every rank.";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
