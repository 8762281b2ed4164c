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

#[test]
fn every_ptx_lays_out_every_struct_as_rust_does() {
    for image in Image::all() {
        for info in STRUCTS {
            let found = ptx::words(image.ptx, &array(info));
            assert_eq!(
                found,
                Some(expected(info)),
                "{} in {}",
                info.name,
                image.name
            );
        }
    }
}

/// Every cubin, and what to call it.
fn cubins() -> impl Iterator<Item = (String, &'static [u8])> {
    Image::all().iter().flat_map(|image| {
        assert!(!image.cubins.is_empty(), "{}", image.name);
        let cubins = image.cubins.iter();
        cubins.map(|cubin| (format!("{}.sm_{}", image.name, cubin.sm), cubin.bytes))
    })
}

#[test]
fn every_cubin_lays_out_every_struct_as_rust_does() {
    for (name, file) in cubins() {
        let cubin = Cubin::parse(file).expect("a cubin is an ELF file");
        for info in STRUCTS {
            let found = cubin.words(&array(info));
            assert_eq!(found, Some(expected(info)), "{} in {name}", info.name);
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
fn each_number_changed_in_a_ptx_is_noticed() {
    for image in Image::all() {
        // What comes after the arrays is long, and the same in all of them.
        let (head, _) = image
            .ptx
            .split_once(".entry ")
            .expect("an image has kernels");
        for info in STRUCTS {
            let opening = format!(" {}[", array(info));
            let line = head.lines().find(|line| line.contains(&opening)).unwrap();
            let (declaration, _) = line.split_once(" = ").unwrap();
            for numbers in changed(info) {
                let list = bytes(&numbers)
                    .iter()
                    .map(u8::to_string)
                    .collect::<Vec<_>>()
                    .join(", ");
                let other = head.replace(line, &format!("{declaration} = {{{list}}};"));
                let found = ptx::words(&other, &array(info));
                assert_eq!(found, Some(numbers), "{} in {}", info.name, image.name);
            }
        }
    }
}

#[test]
fn each_number_changed_in_a_cubin_is_noticed() {
    for (name, file) in cubins() {
        let mut other = file.to_vec();
        for info in STRUCTS {
            let right = bytes(&expected(info));
            let place = Cubin::parse(file).and_then(|cubin| cubin.place(&array(info)));
            let place = place.expect("the array is in the file");
            assert_eq!(file[place.clone()], right, "{} in {name}", info.name);
            for numbers in changed(info) {
                other[place.clone()].copy_from_slice(&bytes(&numbers));
                let cubin = Cubin::parse(&other).expect("the rest of the file is as it was");
                let found = cubin.words(&array(info));
                assert_eq!(found, Some(numbers), "{} in {name}", info.name);
            }
            other[place].copy_from_slice(&right);
        }
    }
}

#[test]
fn images_carry_the_abi_number_of_the_layouts() {
    assert_eq!(slabfence_ptx::ABI, slabfence::layout::ABI);
}
