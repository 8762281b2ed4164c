//! PTX front end of the emulated driver: text to a checked module.
