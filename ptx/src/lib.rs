//! The committed kernel images of slabfence and their manifest.
//!
//! An image is one file of `kernels/`: its PTX, and the cubins that ptxas assembled from that PTX, embedded here as they
//! stand in `images/`. `MANIFEST.json` says from which sources and with which compilers they were built;
//! `cargo xtask kernels --check` builds them again and compares.

#![forbid(unsafe_code)]

use std::fmt;

#[rustfmt::skip]
mod images;

/// Version of the parameter and memory layouts that every image was compiled with.
pub const ABI: u32 = images::ABI;

/// Hexadecimal SHA-256 of all images: builds with the same one have the same kernels, on every device.
pub const DIGEST: &str = images::DIGEST;

/// One kernel file in all its forms.
#[derive(Clone, Copy)]
pub struct Image {
    /// Stem of the kernel file, such as `gather`.
    pub name: &'static str,
    /// PTX text: what the cubins were assembled from, and what the emulated driver runs. No NUL at its end.
    pub ptx: &'static str,
    /// Cubins, oldest architecture first.
    pub cubins: &'static [Cubin],
    /// Names of the kernels, in the order of the PTX.
    pub entries: &'static [&'static str],
}

/// Machine code for one compute capability and the later minors of its major.
#[derive(Clone, Copy)]
pub struct Cubin {
    /// Compute capability, major × 10 + minor.
    pub sm: u32,
    /// The ELF file.
    pub bytes: &'static [u8],
}

/// The image called `name`, if there is one.
pub fn image(name: &str) -> Option<&'static Image> {
    Image::all().iter().find(|image| image.name == name)
}

impl Image {
    /// Every image, sorted by name.
    pub fn all() -> &'static [Image] {
        images::IMAGES
    }

    /// The machine code for a device of compute capability `major.minor`.
    ///
    /// A cubin runs on devices of its own major whose minor is not below its own; of several, the closest is taken.
    pub fn cubin_for(&self, major: u32, minor: u32) -> Result<&'static [u8], Unsupported> {
        let fits = |cubin: &&Cubin| cubin.major() == major && cubin.minor() <= minor;
        match self.cubins.iter().filter(fits).max_by_key(|cubin| cubin.sm) {
            Some(cubin) => Ok(cubin.bytes),
            None => Err(Unsupported {
                image: self.name,
                major,
                minor,
                cubins: self.cubins,
            }),
        }
    }
}

impl Cubin {
    /// Major number of the compute capability.
    pub const fn major(&self) -> u32 {
        self.sm / 10
    }

    /// Minor number of the compute capability.
    pub const fn minor(&self) -> u32 {
        self.sm % 10
    }
}

/// No cubin of an image runs on the device. Its PTX still may, compiled by the driver.
#[derive(Debug, Clone, Copy)]
pub struct Unsupported {
    image: &'static str,
    major: u32,
    minor: u32,
    cubins: &'static [Cubin],
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "image `{}` has no cubin for a device of compute capability {}.{}; there are",
            self.image, self.major, self.minor
        )?;
        for (n, cubin) in self.cubins.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma} {}.{}", cubin.major(), cubin.minor())?;
        }
        f.write_str("; load its PTX instead, or build a cubin with `cargo xtask kernels`")
    }
}

impl std::error::Error for Unsupported {}

// The bytes would fill a screen, so Debug gives their number.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("name", &self.name)
            .field("ptx_bytes", &self.ptx.len())
            .field("cubins", &self.cubins)
            .field("entries", &self.entries)
            .finish()
    }
}

impl fmt::Debug for Cubin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cubin")
            .field("sm", &self.sm)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Image = Image {
        name: "sample",
        ptx: "",
        cubins: &[
            Cubin {
                sm: 90,
                bytes: b"90",
            },
            Cubin {
                sm: 100,
                bytes: b"100",
            },
            Cubin {
                sm: 103,
                bytes: b"103",
            },
            Cubin {
                sm: 120,
                bytes: b"120",
            },
        ],
        entries: &[],
    };

    fn found(major: u32, minor: u32) -> Option<&'static [u8]> {
        IMAGE.cubin_for(major, minor).ok()
    }

    #[test]
    fn a_cubin_runs_on_its_own_major_from_its_minor_upward() {
        assert_eq!(found(9, 0), Some(&b"90"[..]));
        assert_eq!(found(10, 0), Some(&b"100"[..]));
        assert_eq!(found(10, 2), Some(&b"100"[..]));
        assert_eq!(found(10, 3), Some(&b"103"[..]));
        assert_eq!(found(10, 9), Some(&b"103"[..]));
        assert_eq!(found(12, 1), Some(&b"120"[..]));
        assert_eq!(found(8, 9), None);
        assert_eq!(found(11, 0), None);
        assert_eq!(found(13, 0), None);
    }

    #[test]
    fn the_refusal_names_the_device_and_what_there_is() {
        let refusal = IMAGE.cubin_for(8, 9).map(<[u8]>::len).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "image `sample` has no cubin for a device of compute capability 8.9; there are 9.0, 10.0, 10.3, 12.0; \
             load its PTX instead, or build a cubin with `cargo xtask kernels`"
        );
    }

    #[test]
    fn images_are_found_by_their_names() {
        for image in Image::all() {
            assert!(std::ptr::eq(super::image(image.name).unwrap(), image));
        }
        assert!(image("no such image").is_none());
        assert!(Image::all().is_sorted_by_key(|image| image.name));
    }
}
