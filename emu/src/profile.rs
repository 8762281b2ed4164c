//! What an emulated device claims to be.

/// The claims of a machine's devices. All devices of a machine are alike.
///
/// Numbers are the real product's, except `memory`: emulated device memory is this host's memory, so a device owns
/// far less than the card does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name that [`Profile::named`] knows.
    pub name: &'static str,
    /// `cuDeviceGetName`. Says EMULATED, so that nothing mistakes it for hardware.
    pub device_name: &'static str,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors per device.
    pub sm_count: u32,
    /// Resident threads per SM.
    pub threads_per_sm: u32,
    /// Resident CTAs per SM.
    pub ctas_per_sm: u32,
    /// Shared memory per SM, bytes.
    pub shared_per_sm: u32,
    /// Shared memory that one CTA may use after opting in, bytes.
    pub shared_per_cta_optin: u32,
    /// `cuDriverGetVersion`.
    pub driver_version: i32,
    /// Newest PTX ISA version that the driver takes, major and minor.
    pub ptx_version: (u32, u32),
    /// Whether a peer link carries atomics (NVLink) or not (PCIe).
    pub native_peer_atomics: bool,
    /// Memory per device, bytes.
    pub memory: u64,
    /// Granularity of `cuMemCreate` and of addresses, bytes.
    pub granularity: u64,
}

impl Profile {
    /// The profiles by name: `h200-nvlink`, `sm120-pcie`.
    pub const NAMES: [&'static str; 2] = ["h200-nvlink", "sm120-pcie"];

    /// The profile of this name, `None` for an unknown one.
    pub fn named(name: &str) -> Option<Profile> {
        match name {
            "h200-nvlink" => Some(Profile {
                name: "h200-nvlink",
                device_name: "EMULATED H200 (h200-nvlink)",
                compute_capability: (9, 0),
                sm_count: 132,
                threads_per_sm: 2048,
                ctas_per_sm: 32,
                shared_per_sm: 228 << 10,
                shared_per_cta_optin: 227 << 10,
                driver_version: 13000,
                ptx_version: (9, 0),
                native_peer_atomics: true,
                memory: 4 << 30,
                granularity: 2 << 20,
            }),
            "sm120-pcie" => Some(Profile {
                name: "sm120-pcie",
                device_name: "EMULATED RTX PRO 6000 (sm120-pcie)",
                compute_capability: (12, 0),
                sm_count: 188,
                threads_per_sm: 1536,
                ctas_per_sm: 24,
                shared_per_sm: 100 << 10,
                shared_per_cta_optin: 99 << 10,
                driver_version: 13000,
                ptx_version: (9, 0),
                native_peer_atomics: false,
                memory: 4 << 30,
                granularity: 2 << 20,
            }),
            _ => None,
        }
    }

    /// The UUID of a device of the host: the same in every process, whatever number the device has there.
    pub fn uuid(&self, board: u32) -> [u8; 16] {
        let mut bytes = *b"EMU\0............";
        let name = self.name.bytes().chain(std::iter::repeat(0));
        for (byte, from) in bytes[4..15].iter_mut().zip(name) {
            *byte = from;
        }
        bytes[15] = board as u8;
        bytes
    }
}
