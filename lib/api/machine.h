/* lib/api/machine.h -- the instruction sets of this machine, which programs name and limit. */
#ifndef OCT_API_MACHINE_H
#define OCT_API_MACHINE_H

#include "base/status.h"

/* As in kernels/cpu.h, which says more. */
uint32_t oct_isa_detect(void);
const char *oct_isa_name(uint32_t isa);
const char *oct_isa_names(void);
const char *oct_isa_no_amx(void);
oct_status oct_isa_limit(const char *name, oct_err *err);

/* Two lines without an end: whether AMX is used, or why not, and on which machine the costs were measured by which
 * kernels are chosen here. 240 bytes suffice. */
void oct_machine_note(char *to, size_t size);

#endif
