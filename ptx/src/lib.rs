//! The committed kernel images of slabfence and their manifest.
