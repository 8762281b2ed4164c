//! One mapping of one kind.

use core::marker::PhantomData;

use std::os::fd::OwnedFd;

use super::kind::Kind;
use super::range::Range;
use crate::driver::{Apart, Device, fork, vmm::GuardedMapping};
use crate::error::{Error, Result};

/// Device memory of one kind: one physical allocation, mapped whole between two unmapped guards of at least one granule,
/// readable and writable by its own device, all zero.
#[derive(Debug)]
pub struct Mapping<K: Kind> {
    memory: GuardedMapping,
    _kind: PhantomData<K>,
}

impl<K: Kind> Mapping<K> {
    /// Allocates and maps `bytes` bytes, rounded up to the device's granularity.
    pub fn create(device: &Device, bytes: usize) -> Result<Self> {
        Ok(Self {
            memory: GuardedMapping::create(device, bytes)?,
            _kind: PhantomData,
        })
    }

    /// Gives the devices with these ordinals what this kind allows to peers. The own device keeps its right to everything;
    /// naming it changes nothing.
    pub fn grant(&self, ordinals: &[u32]) -> Result<()> {
        fork::refuse()?;
        let own = self.device().ordinal();
        for &ordinal in ordinals.iter().filter(|&&ordinal| ordinal != own) {
            let access = K::PEERS.ok_or_else(|| Error::Refused {
                operation: "Mapping::grant",
                why: format!(
                    "device {ordinal} asks for {} memory, which is never shared",
                    K::NAME
                ),
            })?;
            if !self.device().is_accessible_from(ordinal)? {
                return Err(Error::Refused {
                    operation: "Mapping::grant",
                    why: format!(
                        "device {ordinal} has no peer access to device {own}; {}",
                        Apart::Denied
                    ),
                });
            }
            self.memory.set_access(ordinal, access)?;
        }
        Ok(())
    }

    /// A descriptor of the memory, for another process of this machine to import. Whoever holds it can have the memory:
    /// it goes to peers only.
    pub(crate) fn export(&self) -> Result<OwnedFd> {
        if K::PEERS.is_none() {
            return Err(Error::Refused {
                operation: "Mapping::export",
                why: format!("{} memory is never shared", K::NAME),
            });
        }
        self.memory.export()
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// Everything that is mapped.
    pub fn range(&self) -> Range<K> {
        Range::new(self.memory.base(), self.memory.bytes())
    }

    /// Bytes of the unmapped guard on each side.
    pub fn guard(&self) -> usize {
        self.memory.guard()
    }

    /// Copies host memory to `offset` and waits. Not ordered with what streams do.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        self.memory.write(offset, from)
    }

    /// Copies from `offset` into host memory and waits. Not ordered with what streams do.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        self.memory.read(offset, to)
    }

    /// Sets `bytes` bytes at `offset` to `value` and waits. Not ordered with what streams do.
    pub fn fill(&self, offset: usize, value: u8, bytes: usize) -> Result<()> {
        self.memory.fill(offset, value, bytes)
    }

    /// Bytes that are mapped now: none after a close.
    pub(crate) fn held(&self) -> usize {
        self.memory.held()
    }

    /// Whether it can be used: not after a close, also one that failed.
    pub(crate) fn is_mapped(&self) -> bool {
        self.memory.is_mapped()
    }

    /// Unmaps and frees everything. After a failure what is left stays, and a later call goes on there; once all is given
    /// back, further calls do nothing. Afterwards no kernel may use an address of this mapping.
    pub fn close(&mut self) -> Result<()> {
        self.memory.close()
    }
}
