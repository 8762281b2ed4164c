//! How devices print.

use core::fmt;

use crate::generated::types::{CUdevice, CUuuid};

impl fmt::Debug for CUdevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUdevice({})", self.0)
    }
}

impl fmt::Debug for CUuuid {
    /// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, as `nvidia-smi -L` prints that of a whole device. The bytes do not tell one
    /// from a MIG instance, of which it prints `MIG-` in front.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPU-")?;
        for (index, byte) in self.bytes.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
