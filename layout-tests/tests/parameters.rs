//! Every kernel takes exactly one parameter: the block that the host builds for it.

use slabfence::layout::{AttentionParams, ClockParams, GatherParams, ReduceParams};
use slabfence_layout_tests::cubin::{Cubin, Parameter};
use slabfence_layout_tests::ptx::{self, Block};
use slabfence_ptx::Image;

/// The parameter block of a kernel, by the first part of its name.
fn block(entry: &str) -> Block {
    const fn of<T>() -> Block {
        Block {
            size: size_of::<T>(),
            align: align_of::<T>(),
        }
    }
    let blocks = [
        ("sf_gather_", of::<GatherParams>()),
        ("sf_reduce_", of::<ReduceParams>()),
        ("sf_attention_", of::<AttentionParams>()),
        ("sf_clock", of::<ClockParams>()),
    ];
    let found = blocks.iter().find(|(prefix, _)| entry.starts_with(prefix));
    found
        .unwrap_or_else(|| panic!("no parameter block is known for {entry}"))
        .1
}

#[test]
fn ptx_declares_the_block_of_the_host() {
    for image in Image::all() {
        let entries = ptx::entries(image.ptx)
            .unwrap_or_else(|| panic!("{}: unknown form of an entry", image.name));
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, image.entries, "{}", image.name);
        for entry in &entries {
            assert_eq!(entry.parameters, [block(&entry.name)], "{}", entry.name);
        }
    }
}

#[test]
fn every_cubin_declares_the_block_of_the_host() {
    for image in Image::all() {
        for file in image.cubins {
            let cubin = Cubin::parse(file.bytes).expect("a cubin is an ELF file");
            assert_eq!(cubin.sm(), file.sm, "{}", image.name);
            for entry in image.entries {
                let expected = Parameter {
                    ordinal: 0,
                    offset: 0,
                    size: u32::try_from(block(entry).size).unwrap(),
                };
                assert_eq!(
                    cubin.parameters(entry),
                    Some(vec![expected]),
                    "{entry} in sm_{}",
                    file.sm
                );
            }
        }
    }
}

#[test]
fn every_cubin_holds_the_kernels_of_its_ptx_and_no_others() {
    for image in Image::all() {
        let mut expected = image.entries.to_vec();
        expected.sort_unstable();
        for file in image.cubins {
            let cubin = Cubin::parse(file.bytes).expect("a cubin is an ELF file");
            assert_eq!(
                cubin.kernels(),
                expected,
                "{} in sm_{}",
                image.name,
                file.sm
            );
        }
    }
}

#[test]
fn a_block_of_another_size_or_alignment_in_a_ptx_is_noticed_in_each_entry() {
    for image in Image::all() {
        for (index, entry) in image.entries.iter().enumerate() {
            let right = block(entry);
            let declared = |block: Block| {
                let Block { size, align } = block;
                format!(".align {align} .b8 {entry}_param_0[{size}]")
            };
            let larger = Block {
                size: right.size + 4,
                ..right
            };
            let looser = Block {
                align: right.align / 2,
                ..right
            };
            for wrong in [larger, looser] {
                let ptx = image.ptx.replace(&declared(right), &declared(wrong));
                let entries = ptx::entries(&ptx).expect("the form is as it was");
                assert_eq!(entries[index].parameters, [wrong], "{entry}");
            }
        }
    }
}

/// A parameter's record: ordinal 0 at offset 0. The size follows, above 18 bits of other facts.
const RECORD: [u8; 12] = [4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn each_number_of_a_parameter_changed_in_a_cubin_is_noticed_in_each_entry() {
    for image in Image::all() {
        for file in image.cubins {
            let right = Cubin::parse(file.bytes).expect("a cubin is an ELF file");
            let places = file.bytes.windows(RECORD.len()).enumerate();
            let places = places.filter(|(_, window)| *window == RECORD);
            let mut noticed = Vec::new();
            for (at, _) in places {
                let changed = |byte: usize, change: u8| {
                    let mut other = file.bytes.to_vec();
                    other[at + byte] ^= change;
                    let cubin = Cubin::parse(&other).expect("the rest of the file is as it was");
                    let entries = image.entries.iter().map(|entry| cubin.parameters(entry));
                    let entries = entries.collect::<Option<Vec<_>>>();
                    entries.expect("the form is as it was")
                };
                let ordinals = changed(8, 1);
                let offsets = changed(10, 8);
                let sizes = changed(RECORD.len() + 2, 4);
                for (index, entry) in image.entries.iter().enumerate() {
                    let right = right.parameters(entry).expect("the entry is described")[0];
                    if ordinals[index] == [right] {
                        continue;
                    }
                    let of = format!("{entry} in sm_{}", file.sm);
                    let (ordinal, offset, size) = (1, 8, right.size ^ 1);
                    assert_eq!(ordinals[index], [Parameter { ordinal, ..right }], "{of}");
                    assert_eq!(offsets[index], [Parameter { offset, ..right }], "{of}");
                    assert_eq!(sizes[index], [Parameter { size, ..right }], "{of}");
                    noticed.push(*entry);
                }
            }
            noticed.sort_unstable();
            let mut entries = image.entries.to_vec();
            entries.sort_unstable();
            assert_eq!(noticed, entries, "{} in sm_{}", image.name, file.sm);
        }
    }
}
