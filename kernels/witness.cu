// Layouts as device code sees them, for `layout-tests` to read back out of the shipped images. Nothing runs this.
#define SF_LAYOUT_WITNESS
#include "abi.cuh"
