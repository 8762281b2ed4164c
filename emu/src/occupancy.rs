//! How many blocks of a kernel fit a multiprocessor.

use slabfence_emu_exec::Kernel;

use crate::profile::Profile;

/// 32-bit registers of a multiprocessor.
pub(crate) const REGISTERS: u32 = 65536;
/// Shared memory that the system takes from every resident block, bytes.
pub(crate) const RESERVED_SHARED: u32 = 1024;

/// What a block takes of a multiprocessor, or a multiprocessor has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    threads: u32,
    blocks: u32,
    shared: u32,
    registers: u32,
}

impl Room {
    /// What an empty multiprocessor has.
    pub(crate) fn of(profile: &Profile) -> Room {
        let (threads, blocks) = (profile.threads_per_sm, profile.ctas_per_sm);
        Room {
            threads,
            blocks,
            shared: profile.shared_per_sm,
            registers: REGISTERS,
        }
    }

    /// What one block of a kernel takes.
    pub(crate) fn block(kernel: &Kernel, threads: u32, dynamic_shared: u32) -> Room {
        let threads = threads.next_multiple_of(32);
        let per_warp = (kernel.registers().max(1) * 32).next_multiple_of(256);
        let shared = kernel
            .static_shared_bytes()
            .saturating_add(dynamic_shared)
            .saturating_add(RESERVED_SHARED);
        Room {
            threads,
            blocks: 1,
            shared,
            registers: per_warp.saturating_mul(threads / 32),
        }
    }

    /// How many such blocks fit at once.
    pub(crate) fn fits(&self, block: Room) -> u32 {
        let by = [
            self.threads / block.threads.max(1),
            self.blocks / block.blocks.max(1),
            self.shared / block.shared.max(1),
            self.registers / block.registers.max(1),
        ];
        by.into_iter().min().unwrap_or(0)
    }

    /// A block comes.
    pub(crate) fn take(&mut self, block: Room) {
        self.threads -= block.threads;
        self.blocks -= block.blocks;
        self.shared -= block.shared;
        self.registers -= block.registers;
    }

    /// A block goes.
    pub(crate) fn give(&mut self, block: Room) {
        self.threads += block.threads;
        self.blocks += block.blocks;
        self.shared += block.shared;
        self.registers += block.registers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_decides_how_many_blocks_fit() {
        let sm = Room {
            threads: 2048,
            blocks: 32,
            shared: 1000,
            registers: 65536,
        };
        let block = |threads, shared, registers| Room {
            threads,
            blocks: 1,
            shared,
            registers,
        };
        assert_eq!(sm.fits(block(1024, 1, 1)), 2);
        assert_eq!(sm.fits(block(32, 1, 1)), 32);
        assert_eq!(sm.fits(block(32, 300, 1)), 3);
        assert_eq!(sm.fits(block(32, 1, 65537)), 0);
    }
}
