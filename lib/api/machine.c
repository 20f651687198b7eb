/* lib/api/machine.c -- what is used of this machine, for `--version -v`. */
#include "api/machine.h"

#include "kernels/cost.h"
#include "kernels/cpu.h"

#include <stdio.h>
#include <string.h>

void oct_machine_note(char *to, size_t size)
{
    const char *amx = oct_isa_no_amx(), *class = oct_cost_class();
    const oct_cost_origin *from = oct_cost_measured();
    const int n = snprintf(to, size, "amx: %s\nkernels chosen by costs of ", amx ? amx : "used");
    if (n < 0 || (size_t)n >= size)
        return;
    to += n, size -= (size_t)n;
    if (!from)
        snprintf(to, size, "no machine: class %s was not measured", class);
    else if (strcmp(from->class, class) == 0)
        snprintf(to, size, "class %s: %s, measured %s", class, from->machine, from->date);
    else
        snprintf(to, size, "class %s (%s, measured %s), the nearest: class %s of this CPU was not measured",
                 from->class, from->machine, from->date, class);
}
