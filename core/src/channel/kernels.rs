//! The kernels of a pool, loaded once, at set-up: a load inside a capture or behind a waiting kernel can deadlock.

use crate::collective::geometry::BLOCK_THREADS;
use crate::collective::plan::Entry;
use crate::driver::{Device, Kernel, Module};
use crate::error::{Error, Result};
use crate::layout::{DType, Transport};

use super::contract::Contract;

/// One kernel per entry that the contract's transport and the group's world can need.
#[derive(Debug)]
pub(super) struct Kernels {
    gather: Kernel,
    reduce: [Kernel; 3],
}

impl Kernels {
    pub(super) fn load(device: &Device, transport: Transport, world: u32) -> Result<Self> {
        let gather = load_image(device, "gather")?;
        let reduce = load_image(device, "reduce")?;
        let of = |dtype| reduce.kernel(&reduce_entry(transport, dtype, world));
        Ok(Self {
            gather: gather.kernel(gather_entry(transport))?,
            reduce: [of(DType::F32)?, of(DType::F16)?, of(DType::Bf16)?],
        })
    }

    pub(super) fn get(&self, entry: Entry) -> Option<&Kernel> {
        let [f32, f16, bf16] = &self.reduce;
        match entry {
            Entry::Gather => Some(&self.gather),
            Entry::Reduce(DType::F32) => Some(f32),
            Entry::Reduce(DType::F16) => Some(f16),
            Entry::Reduce(DType::Bf16) => Some(bf16),
            Entry::Reduce(_) => None,
        }
    }

    /// Refuses a contract whose operations could not all be resident: a CTA that is not waits for ever for one that is.
    pub(super) fn check_residency(&self, contract: &Contract, ranks_here: u32) -> Result<()> {
        let needed = u64::from(ranks_here)
            * u64::from(contract.concurrent_operations)
            * u64::from(contract.max_grid);
        for kernel in std::iter::once(&self.gather).chain(&self.reduce) {
            let room = kernel.max_resident_ctas(BLOCK_THREADS)?;
            if needed > u64::from(room) {
                let info = kernel.module().device().info();
                return Err(Error::Argument {
                    operation: "Pool::create",
                    what: format!(
                        "{ranks_here} rank(s) here × concurrent_operations {} × max_grid {} = {needed} CTAs must be resident at once; \
                         device {} ({}) holds {room} of {}; lower max_grid or concurrent_operations",
                        contract.concurrent_operations,
                        contract.max_grid,
                        info.ordinal,
                        info.name,
                        kernel.name()
                    ),
                });
            }
        }
        Ok(())
    }
}

/// Loads one of the shipped images.
pub(crate) fn load_image(device: &Device, name: &'static str) -> Result<Module> {
    let image = slabfence_ptx::image(name).ok_or_else(|| Error::Refused {
        operation: "loading kernels",
        why: format!("this build has no image '{name}'; build it with `cargo xtask kernels`"),
    })?;
    Module::load(device, image)
}

fn gather_entry(transport: Transport) -> &'static str {
    match transport {
        Transport::Push => "sf_gather_push",
        Transport::Pull => "sf_gather_pull",
    }
}

/// The form for the smallest of the compiled worlds that holds this one.
fn reduce_entry(transport: Transport, dtype: DType, world: u32) -> String {
    let direction = match transport {
        Transport::Push => "push",
        Transport::Pull => "pull",
    };
    let width = match world {
        ..=2 => 2,
        3..=4 => 4,
        _ => 16,
    };
    format!("sf_reduce_{direction}_{}_w{width}", element(dtype))
}

/// An element type as entry names have it.
pub(crate) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F8E4M3 => "f8e4m3",
        DType::F8E5M2 => "f8e5m2",
        DType::U8 => "u8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_the_smallest_width_that_holds_the_world() {
        let entry = |world| reduce_entry(Transport::Push, DType::Bf16, world);
        assert_eq!(entry(2), "sf_reduce_push_bf16_w2");
        assert_eq!(entry(3), "sf_reduce_push_bf16_w4");
        assert_eq!(entry(4), "sf_reduce_push_bf16_w4");
        assert_eq!(entry(5), "sf_reduce_push_bf16_w16");
        assert_eq!(
            reduce_entry(Transport::Pull, DType::F32, 16),
            "sf_reduce_pull_f32_w16"
        );
        assert_eq!(gather_entry(Transport::Pull), "sf_gather_pull");
    }

    #[test]
    fn every_entry_that_a_pool_may_ask_for_is_in_the_shipped_images() {
        let gather = slabfence_ptx::image("gather").unwrap();
        let reduce = slabfence_ptx::image("reduce").unwrap();
        for transport in [Transport::Push, Transport::Pull] {
            assert!(gather.entries.contains(&gather_entry(transport)));
            for dtype in [DType::F32, DType::F16, DType::Bf16] {
                for world in 2..=16 {
                    let name = reduce_entry(transport, dtype, world);
                    assert!(reduce.entries.contains(&name.as_str()), "{name}");
                }
            }
        }
    }
}
