/* lib/api/machine.h -- the instruction sets of this machine, which programs name and limit. */
#ifndef OCT_API_MACHINE_H
#define OCT_API_MACHINE_H

#include "kernels/cpu.h"

#include <stddef.h>

/* Two lines without an end: whether AMX is used, or why not, and on which machine the costs were measured by which
 * kernels are chosen here. 240 bytes suffice. */
void oct_machine_note(char *to, size_t size);

#endif
