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

fn array(info: &StructInfo) -> String {
    format!("sf_layout_{}", info.name)
}

fn witness() -> &'static Image {
    slabfence_ptx::image("witness").expect("the images hold a witness")
}

#[test]
fn ptx_lays_out_every_struct_as_rust_does() {
    for info in STRUCTS {
        let found = ptx::words(witness().ptx, &array(info));
        assert_eq!(found, Some(expected(info)), "{}", info.name);
    }
}

#[test]
fn every_cubin_lays_out_every_struct_as_rust_does() {
    assert!(!witness().cubins.is_empty());
    for image in witness().cubins {
        let cubin = Cubin::parse(image.bytes).expect("a cubin is an ELF file");
        for info in STRUCTS {
            let found = cubin.words(&array(info));
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

/// Every number of the struct's, with one added to it.
fn changed(info: &StructInfo) -> impl Iterator<Item = Vec<u32>> {
    let right = expected(info);
    (0..right.len()).map(move |index| {
        let mut numbers = right.clone();
        numbers[index] += 1;
        numbers
    })
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn each_number_changed_in_the_ptx_is_noticed() {
    let ptx = witness().ptx;
    for info in STRUCTS {
        let opening = format!(" {}[", array(info));
        let line = ptx.lines().find(|line| line.contains(&opening)).unwrap();
        let (declaration, _) = line.split_once(" = ").unwrap();
        for numbers in changed(info) {
            let list = bytes(&numbers)
                .iter()
                .map(u8::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            let other = ptx.replace(line, &format!("{declaration} = {{{list}}};"));
            assert_eq!(
                ptx::words(&other, &array(info)),
                Some(numbers),
                "{}",
                info.name
            );
        }
    }
}

#[test]
fn each_number_changed_in_a_cubin_is_noticed() {
    let image = &witness().cubins[0];
    for info in STRUCTS {
        let right = bytes(&expected(info));
        let places = image.bytes.windows(right.len()).enumerate();
        let places: Vec<usize> = places
            .filter(|(_, window)| *window == right)
            .map(|(at, _)| at)
            .collect();
        for numbers in changed(info) {
            // Structs of the same numbers have arrays of the same bytes: the struct's own is one of them.
            let noticed = places.iter().filter(|&&at| {
                let mut other = image.bytes.to_vec();
                other[at..at + right.len()].copy_from_slice(&bytes(&numbers));
                let cubin = Cubin::parse(&other).expect("the rest of the file is as it was");
                cubin.words(&array(info)).as_ref() == Some(&numbers)
            });
            assert_eq!(noticed.count(), 1, "{}", info.name);
        }
    }
}

#[test]
fn images_carry_the_abi_number_of_the_layouts() {
    assert_eq!(slabfence_ptx::ABI, slabfence::layout::ABI);
}
