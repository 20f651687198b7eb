/* lib/api/machine.h -- the instruction sets of this machine, which programs name and limit. */
#ifndef OCT_API_MACHINE_H
#define OCT_API_MACHINE_H

#include "kernels/cpu.h"

#endif
