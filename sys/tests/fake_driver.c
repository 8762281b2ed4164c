/* A libcuda.so.1 with nothing behind its entries: what `Api::open` meets on machines of several kinds.
 *
 * DRIVER        what cuDriverGetVersion gives
 * OLD           no cuGetProcAddress_v2, as before CUDA 12.0
 * STUB          every call gives 34, as the toolkit's link-time stub does
 * LACKS         a symbol that is not there
 * EMULATED      the private entries, exported by name only
 */
#include <stddef.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, STUB_LIBRARY = 34, NOT_FOUND = 500 };

int cuDriverGetVersion(int *version) {
#ifdef STUB
    (void)version;
    return STUB_LIBRARY;
#else
    *version = DRIVER;
    return SUCCESS;
#endif
}

#ifdef EMULATED
unsigned slabfenceEmuVersion(void) { return 1; }
int slabfenceEmuAnnounceRange(const void *note) { return note ? SUCCESS : INVALID_VALUE; }
#endif

#ifndef OLD
static int entry(void) { return SUCCESS; }

int cuGetProcAddress_v2(const char *symbol, void **function, int version, unsigned long long flags, int *status) {
#ifdef STUB
    return STUB_LIBRARY;
#endif
    /* Only the twins of the legacy default stream, and nothing newer than the driver. The pointer is left as rubbish. */
    if (flags != 1 || version > DRIVER) {
        *function = (void *)1;
        return INVALID_VALUE;
    }
    /* A miss may succeed, with a null pointer and the reason in the status. */
    *function = NULL;
    *status = 1;
    if (strncmp(symbol, "slabfence", 9) == 0) return NOT_FOUND;
#ifdef LACKS
    if (strcmp(symbol, LACKS) == 0) return SUCCESS;
#endif
    *status = 0;
    *function = strcmp(symbol, "cuDriverGetVersion") == 0 ? (void *)cuDriverGetVersion : (void *)entry;
    return SUCCESS;
}
#endif
