//! Every kernel takes exactly one parameter: the block that the host builds for it.

use slabfence::layout::{AttentionParams, ClockParams, GatherParams, ReduceParams};
use slabfence_layout_tests::cubin::{Cubin, Parameter};
use slabfence_layout_tests::ptx;
use slabfence_ptx::Image;

/// Bytes of the parameter block of a kernel, by the first part of its name.
fn block_bytes(entry: &str) -> usize {
    let blocks = [
        ("sf_gather_", size_of::<GatherParams>()),
        ("sf_reduce_", size_of::<ReduceParams>()),
        ("sf_attention_", size_of::<AttentionParams>()),
        ("sf_clock", size_of::<ClockParams>()),
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
            assert_eq!(
                entry.parameters,
                [block_bytes(&entry.name)],
                "{}",
                entry.name
            );
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
                    size: u32::try_from(block_bytes(entry)).unwrap(),
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
fn a_block_of_another_size_is_noticed() {
    for image in Image::all() {
        // The witness has no kernels.
        let Some(&entry) = image.entries.first() else {
            continue;
        };
        let right = block_bytes(entry);
        let ptx = image
            .ptx
            .replace(&format!("[{right}]"), &format!("[{}]", right + 4));
        let entries = ptx::entries(&ptx).expect("the form is as it was");
        assert_eq!(entries[0].parameters, [right + 4], "{entry}");
        for file in image.cubins {
            // Ordinal 0 at offset 0: the size follows, above 18 bits of other facts.
            let record = [4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let places = file.bytes.windows(record.len()).enumerate();
            let places = places.filter(|(_, window)| *window == record);
            let mut other = file.bytes.to_vec();
            for (at, _) in places {
                other[at + record.len() + 2] ^= 4;
            }
            let cubin = Cubin::parse(&other).expect("the rest of the file is as it was");
            let found = cubin.parameters(entry).expect("the form is as it was");
            assert_eq!(
                found[0].size as usize,
                right ^ 1,
                "{entry} in sm_{}",
                file.sm
            );
        }
    }
}
