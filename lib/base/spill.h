/* lib/base/spill.h -- large blocks of arenas in a file without a name, so that results as large as a model need not stay in memory.
 *
 * Such a block is a shared mapping: its pages are written when there is time, leave memory when it gets short, and come back when
 * they are read. To whoever holds the block nothing is different. */
#ifndef OCT_BASE_SPILL_H
#define OCT_BASE_SPILL_H

#include "base/status.h"

/* From now on, blocks of OCT_SPILL_LEAST bytes and more that arenas ask for lie in a file in the folder where the output `beside` goes
 * (io.h), but the first `keep` bytes of them; where the file cannot be made, or has no room, in memory as before. One for each process; for tools. */
void oct_spill_open(const char *beside, size_t keep);
/* Ends the file, and with it all blocks in it: arenas that have some must be gone. */
void oct_spill_close(void);

enum { OCT_SPILL_LEAST = 1 << 16 };

#endif
