/* lib/base/progress.h -- how a library reports progress; lib/cli draws it, tests count it. */
#ifndef OCT_BASE_PROGRESS_H
#define OCT_BASE_PROGRESS_H

#include <stdint.h>

/* Called from one thread at a time, as often as the library likes: the receiver limits the rate.
 *   what   the step, a few words ("calibrating"); borrowed for the call
 *   done   units finished so far, counted from 0
 *   total  units in all, or 0 when it is not known beforehand
 * A library that takes a callback accepts NULL for none. */
typedef void (*oct_progress_fn)(void *arg, const char *what, int64_t done, int64_t total);

/* The level of a line that is a warning; other lines have levels from 0, for everybody, upwards. */
enum { OCT_NOTE_WARNING = -1 };

#endif
