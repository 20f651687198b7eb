/* lib/base/spill.h -- large blocks of arenas in a file without a name, so that results as large as a model need not
 * stay in memory.
 *
 * Such a block is a shared mapping: the system writes its pages in the background, drops them when memory is short, and
 * reads them again on access. The owner of the block need not know. */
#ifndef OCT_BASE_SPILL_H
#define OCT_BASE_SPILL_H

#include "base/status.h"

/* From now on, blocks of OCT_SPILL_LEAST bytes and more that arenas ask for are put into a file in the folder where the
 * output `beside` goes (io.h), except for the first `keep` bytes of them. Where the file cannot be made or has no room,
 * they stay in memory as before. One per process; for tools. */
void oct_spill_open(const char *beside, size_t keep);
/* Bytes that are complete, or have been written, need not stay in memory: if they lie in the file, their pages leave
 * the process, and come back on access. Any other memory stays as it is. */
void oct_spill_forget(const void *p, size_t n);
/* Blocks that are freed from now on give no room back: the file ends soon, and the system would wait for pages that it
 * is writing just then. */
void oct_spill_end(void);
/* Releases the file and all blocks in it. Arenas that have such blocks must have been destroyed. */
void oct_spill_close(void);

enum { OCT_SPILL_LEAST = 1 << 16 };

#endif
