//! What a kernel's fault means: the code that its context gets, and the words for a human.

use slabfence_emu_exec::{AccessKind, Fault, FaultKind, Space};

use crate::code::Code;
use crate::va::AddressMap;

/// The code that the context is broken with.
pub(crate) fn code(kind: &FaultKind) -> Code {
    match kind {
        FaultKind::IllegalAddress { .. } => Code::ILLEGAL_ADDRESS,
        FaultKind::Misaligned { .. } => Code::MISALIGNED_ADDRESS,
        FaultKind::Trap | FaultKind::Barrier(_) => Code::LAUNCH_FAILED,
        FaultKind::NotInMemberMask { .. } => Code::ILLEGAL_INSTRUCTION,
    }
}

/// The fault in words: what, where in the kernel, and what the address is.
pub(crate) fn describe(fault: &Fault, device: u32, map: &AddressMap) -> String {
    let mut words = format!("device {device}: {fault}");
    if let FaultKind::IllegalAddress {
        addr,
        access,
        space: Space::Global | Space::Const,
        ..
    } = &fault.kind
    {
        let there = map.describe(device, *addr, *access != AccessKind::Load);
        words = format!("{words}; {addr:#x} is: {there}");
    }
    words
}
