//! CUDA driver API: bindings, the versioned function table and its loader.
