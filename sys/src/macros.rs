//! How a C enum, a set of flags, a handle, an identity and a layout are written in Rust, once each.

/// Declares an *open* C enum: any value a newer driver returns is representable, the ones named
/// here have names.
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident: $repr:ty { $($(#[$value_meta:meta])* $constant:ident = $value:literal,)* }) => {
        $(#[$meta])*
        #[allow(non_camel_case_types, reason = "keeps the driver's spelling")]
        #[repr(transparent)]
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);

        impl $name {
            $(
                #[doc = concat!("`", stringify!($constant), "` = ", stringify!($value), ".")]
                $(#[$value_meta])*
                pub const $constant: Self = Self($value);
            )*

            /// The name the driver's header gives this value, where this crate knows it.
            #[allow(unreachable_patterns, reason = "the header has two names for some values: the first one counts")]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($constant)),)*
                    _ => None,
                }
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({})"), self.0),
                }
            }
        }
    };
}

/// Declares a C flag word. Bits that are not named here are kept, so a value from a newer caller or
/// driver survives.
macro_rules! flag_word {
    ($(#[$meta:meta])* $name:ident: $repr:ty { $($(#[$($value_meta:tt)*])* $constant:ident = $value:literal;)* }) => {
        ::bitflags::bitflags! {
            $(#[$meta])*
            #[allow(non_camel_case_types, reason = "keeps the driver's spelling")]
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct $name: $repr {
                $(
                    #[doc = concat!("`", stringify!($constant), "` = ", stringify!($value), ".")]
                    $(#[$($value_meta)*])*
                    const $constant = $value;
                )*
                const _ = !0;
            }
        }
    };
}

/// Declares an opaque driver handle: a pointer that only the driver may follow.
macro_rules! handle {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(*mut ::core::ffi::c_void);

        impl $name {
            /// The null handle.
            pub const fn null() -> Self {
                Self(::core::ptr::null_mut())
            }

            /// Takes a handle from its C representation. Safe, since only an (unsafe) driver call
            /// gives it a meaning.
            pub const fn from_ptr(ptr: *mut ::core::ffi::c_void) -> Self {
                Self(ptr)
            }

            /// The C representation.
            pub const fn as_ptr(self) -> *mut ::core::ffi::c_void {
                self.0
            }

            /// Whether this is the null handle.
            pub const fn is_null(self) -> bool {
                self.0.is_null()
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                write!(f, concat!(stringify!($name), "({:p})"), self.0)
            }
        }
    };
}

/// Declares an identity that is an integer. How it prints is not declared with it: some are addresses.
macro_rules! number {
    ($(#[$meta:meta])* $name:ident: $repr:ty) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);
    };
}

/// Pins size and field offsets of a struct that another compiler lays out too. A field added, removed, retyped or moved
/// does not compile.
macro_rules! layout {
    ($name:ty: size $size:literal, align $align:literal $(, $field:ident @ $offset:literal)* $(,)?) => {
        const _: () = {
            assert!(::core::mem::size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
            assert!(::core::mem::align_of::<$name>() == $align, concat!("alignment of ", stringify!($name)));
            $(
                assert!(
                    ::core::mem::offset_of!($name, $field) == $offset,
                    concat!("offset of ", stringify!($name), "::", stringify!($field))
                );
            )*
        };
    };
}
