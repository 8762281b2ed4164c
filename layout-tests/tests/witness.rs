//! Structs as device code was compiled with them, read back out of the shipped images.

use slabfence::layout::{STRUCTS, StructInfo};
use slabfence_layout_tests::{cubin::Cubin, ptx};
use slabfence_ptx::Image;

/// Size, alignment and field offsets, as kernels/abi.cuh puts them into its witness arrays.
fn expected(info: &StructInfo) -> Vec<u32> {
    let numbers = [info.size, info.align].into_iter();
    let numbers = numbers.chain(info.fields.iter().map(|field| field.offset));
    numbers
        .map(|number| u32::try_from(number).unwrap())
        .collect()
}

fn witness() -> &'static Image {
    slabfence_ptx::image("witness").expect("the images hold a witness")
}

#[test]
fn ptx_lays_out_every_struct_as_rust_does() {
    for info in STRUCTS {
        let found = ptx::words(witness().ptx, &format!("sf_layout_{}", info.name));
        assert_eq!(found, Some(expected(info)), "{}", info.name);
    }
}

#[test]
fn every_cubin_lays_out_every_struct_as_rust_does() {
    assert!(!witness().cubins.is_empty());
    for image in witness().cubins {
        let cubin = Cubin::parse(image.bytes).expect("a cubin is an ELF file");
        for info in STRUCTS {
            let found = cubin.words(&format!("sf_layout_{}", info.name));
            assert_eq!(
                found,
                Some(expected(info)),
                "{} in sm_{}",
                info.name,
                image.sm
            );
        }
    }
}

#[test]
fn images_carry_the_abi_number_of_the_layouts() {
    assert_eq!(slabfence_ptx::ABI, slabfence::layout::ABI);
}
