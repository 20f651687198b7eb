/* lib/base/flush.h -- flushing denormal numbers to zero, for the calling thread.
 *
 * Our results keep denormal numbers; this serves to measure what they cost. */
#ifndef OCT_BASE_FLUSH_H
#define OCT_BASE_FLUSH_H

#include <stdbool.h>

/* Whether the calling thread treats denormal numbers as zeros from now on. Returns false where the CPU cannot. */
bool oct_flush_denormals(bool on);

#endif
