/* lib/base/flush.h -- denormal numbers as zero, for the calling thread.
 *
 * Results of ours keep denormal numbers; this is for finding out what they cost. */
#ifndef OCT_BASE_FLUSH_H
#define OCT_BASE_FLUSH_H

#include <stdbool.h>

/* From now on the calling thread computes with denormal numbers as zeros (on), or as they are. False: not on this CPU. */
bool oct_flush_denormals(bool on);

#endif
