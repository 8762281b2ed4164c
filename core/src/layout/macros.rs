//! [`device_struct!`](crate::layout): a struct shared with device code, and everything that is derived from it.

/// A scalar or struct that device code knows under the name [`DeviceType::C_NAME`].
pub trait DeviceType {
    /// The name in `kernels/abi.cuh`.
    const C_NAME: &'static str;
    /// Number of array elements; 1 for what is no array.
    const COUNT: usize = 1;
}

impl DeviceType for u32 {
    const C_NAME: &'static str = "uint32_t";
}
impl DeviceType for u64 {
    const C_NAME: &'static str = "uint64_t";
}
impl DeviceType for f32 {
    const C_NAME: &'static str = "float";
}
impl<T: DeviceType, const N: usize> DeviceType for [T; N] {
    const C_NAME: &'static str = T::C_NAME;
    const COUNT: usize = N;
}

/// One field of a shared struct, as the generator of `kernels/abi.cuh` and the layout tests read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name, the same in Rust and in C++.
    pub name: &'static str,
    /// Element type in C++.
    pub c_type: &'static str,
    /// Array length; 1 for what is no array.
    pub count: usize,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// Bytes of the whole field.
    pub size: usize,
}

/// A struct whose layout device code shares.
pub trait DeviceStruct: Sized {
    /// Name, the same in Rust and in C++.
    const NAME: &'static str;
    /// Every field in order of its offset.
    const FIELDS: &'static [Field];
    /// Doc comment of the struct, one entry a line.
    const DOC: &'static [&'static str];
}

/// Defines a `#[repr(C)]` struct with every offset and the size written down and asserted at compile time.
///
/// The numbers are repeated by hand on purpose: a field that moves has to be moved twice, knowingly.
macro_rules! device_struct {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident [size = $size:literal, align = $align:literal] {
            $( $(#[doc = $fdoc:literal])* $field:ident : $ty:ty = $offset:literal, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[repr(C, align($align))]
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            $( $(#[doc = $fdoc])* pub $field: $ty, )*
        }

        const _: () = {
            assert!(core::mem::size_of::<$name>() == $size, concat!(stringify!($name), ": size"));
            assert!(core::mem::align_of::<$name>() == $align, concat!(stringify!($name), ": alignment"));
            $( assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!(stringify!($name), ".", stringify!($field), ": offset")
            ); )*
        };

        impl $crate::layout::DeviceType for $name {
            const C_NAME: &'static str = stringify!($name);
        }

        impl $crate::layout::DeviceStruct for $name {
            const NAME: &'static str = stringify!($name);
            const DOC: &'static [&'static str] = &[$($doc),*];
            const FIELDS: &'static [$crate::layout::Field] = &[
                $( $crate::layout::Field {
                    name: stringify!($field),
                    c_type: <$ty as $crate::layout::DeviceType>::C_NAME,
                    count: <$ty as $crate::layout::DeviceType>::COUNT,
                    offset: core::mem::offset_of!($name, $field),
                    size: core::mem::size_of::<$ty>(),
                }, )*
            ];
        }
    };
}
pub(crate) use device_struct;
