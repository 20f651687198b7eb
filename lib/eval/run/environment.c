/* Describes the machine with what Linux shows under /proc. On other systems less is known. */
#include "eval/run/environment.h"

#include "base/pool.h"
#include "kernels/cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The text after "model name : " of the first processor. Only x86 machines have such a line. */
static void read_name(char *dst, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    dst[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (!at)
            continue;
        at += 1 + strspn(at + 1, " \t");
        snprintf(dst, size, "%.*s", (int)strcspn(at, "\n"), at);
        break;
    }
    if (f)
        fclose(f);
}

static double read_load(void)
{
    double load = NAN;
    FILE *f = fopen("/proc/loadavg", "re");
    if (f && fscanf(f, "%lf", &load) != 1)
        load = NAN;
    if (f)
        fclose(f);
    return load;
}

void oct_environment_read(oct_environment *e)
{
    *e = (oct_environment){ .processors = oct_processors(), .load = read_load() };
    read_name(e->cpu, sizeof e->cpu);
    e->available = oct_isa_name(oct_isa_detect());
    e->used = oct_isa_name(oct_isa_active());
}
