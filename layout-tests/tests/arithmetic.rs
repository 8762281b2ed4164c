//! Shipped PTX holds only arithmetic whose result is specified to the bit.

use slabfence_layout_tests::arithmetic::refusals;
use slabfence_ptx::Image;

#[test]
fn no_image_holds_arithmetic_with_an_open_result() {
    for image in Image::all() {
        assert_eq!(refusals(image.ptx), [], "{}.ptx", image.name);
    }
}
