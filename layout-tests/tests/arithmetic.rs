//! Shipped PTX holds only arithmetic whose result is specified to the bit.

use slabfence_layout_tests::arithmetic::refusals;
use slabfence_ptx::Image;

#[test]
fn no_image_holds_arithmetic_with_an_open_result() {
    for image in Image::all() {
        assert_eq!(refusals(image.ptx), [], "{}.ptx", image.name);
    }
}

/// A modifier and what to make of it.
const CHANGES: [(&str, &str); 4] = [
    (".rn.", "."),
    (".rn.", ".rz."),
    (".rn.", ".rn.ftz."),
    (".rn.", ".approx."),
];

/// Operations whose results depend on their modifiers.
const OPERATIONS: [&str; 5] = ["add", "sub", "mul", "fma", "rcp"];

#[test]
fn each_modifier_changed_in_an_image_is_noticed() {
    for (name, operations) in [
        ("attention", &["add", "sub", "mul", "fma"][..]),
        ("reduce", &OPERATIONS),
    ] {
        let image = slabfence_ptx::image(name).expect("the image is shipped");
        let mut lines: Vec<String> = image.ptx.lines().map(str::to_owned).collect();
        let mut changed = Vec::new();
        for operation in operations {
            let instruction = format!("{operation}.rn.f32");
            for (modifier, other) in CHANGES {
                let mut untouched = lines.iter_mut().enumerate();
                let found = untouched.find(|(_, line)| line.trim_start().starts_with(&instruction));
                let (index, line) = found.unwrap_or_else(|| panic!("{instruction} in {name}"));
                *line = line.replacen(modifier, other, 1);
                changed.push(index + 1);
            }
        }
        changed.sort_unstable();
        let refused: Vec<usize> = refusals(&lines.join("\n")).iter().map(|r| r.line).collect();
        assert_eq!(refused, changed, "{name}");
    }
}
