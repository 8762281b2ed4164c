//! Proofs, at compile time, that two bindings of one C API agree: modules `ours` and `theirs` of the caller's, with the
//! same names in both. Whoever uses the macros has `static_assertions` among the dependencies.

/// Proves that structs of one name have one layout: size, alignment and each field's offset. Every field of
/// ours must be named; `a = b` is one that is called `b` in theirs.
#[macro_export]
macro_rules! same_layout {
    ($ours:ident, $theirs:ident: $name:ident { $($field:ident $(= $their_field:ident)?),* $(,)? }) => {
        ::static_assertions::const_assert_eq!(
            ::core::mem::size_of::<$ours::$name>(),
            ::core::mem::size_of::<$theirs::$name>()
        );
        ::static_assertions::const_assert_eq!(
            ::core::mem::align_of::<$ours::$name>(),
            ::core::mem::align_of::<$theirs::$name>()
        );
        $( $crate::same_layout!(@offset $ours $theirs $name $field $($their_field)?); )*
        const _: fn($ours::$name) = |$ours::$name { $($field: _),* }| ();
    };
    (@offset $ours:ident $theirs:ident $name:ident $field:ident) => {
        $crate::same_layout!(@offset $ours $theirs $name $field $field);
    };
    (@offset $ours:ident $theirs:ident $name:ident $field:ident $their_field:ident) => {
        ::static_assertions::const_assert_eq!(
            ::core::mem::offset_of!($ours::$name, $field),
            ::core::mem::offset_of!($theirs::$name, $their_field)
        );
    };
}

/// Proves that values of one name in enums of one name are one number: in ours an open `enum` or `flags`, in theirs a
/// Rust enum. Every value of theirs must be named, under `other` what is something else there.
#[macro_export]
macro_rules! same_values {
    ($ours:ident, $theirs:ident: enum $name:ident { $($value:ident),* $(,)? } $(other { $($other:ident),* $(,)? })?) => {
        $( ::static_assertions::const_assert_eq!($ours::$name::$value.0 as u64, $theirs::$name::$value as u64); )*
        $crate::same_values!(@all $theirs $name $($value)* $($($other)*)?);
    };
    ($ours:ident, $theirs:ident: flags $name:ident { $($value:ident),* $(,)? } $(other { $($other:ident),* $(,)? })?) => {
        $( ::static_assertions::const_assert_eq!($ours::$name::$value.bits() as u64, $theirs::$name::$value as u64); )*
        $crate::same_values!(@all $theirs $name $($value)* $($($other)*)?);
    };
    (@all $theirs:ident $name:ident $($value:ident)*) => {
        const _: fn($theirs::$name) = |value| match value { $($theirs::$name::$value)|* => () };
    };
}

/// Proves that types of one name are of one size and alignment.
#[macro_export]
macro_rules! same_width {
    ($ours:ident, $theirs:ident: $($name:ident),* $(,)?) => { $(
        ::static_assertions::assert_eq_size!($ours::$name, $theirs::$name);
        ::static_assertions::assert_eq_align!($ours::$name, $theirs::$name);
    )* };
}

/// Proves that a struct begins with the fields of another, at the same offsets, and goes on with a new one where that ends.
#[macro_export]
macro_rules! extends {
    ($second:ident: $first:ident { $($field:ident),* $(,)? } then $new:ident) => {
        $( ::static_assertions::const_assert_eq!(
            ::core::mem::offset_of!($second, $field),
            ::core::mem::offset_of!($first, $field)
        ); )*
        ::static_assertions::const_assert_eq!(
            ::core::mem::offset_of!($second, $new),
            ::core::mem::size_of::<$first>()
        );
    };
}
