/* Estimates what a conversion takes that is not dry: from what this one has taken, and what judging and writing add. */
#include "api/convert/session_int.h"

#include "base/io.h"
#include "kernels/cpu.h"
#include "kernels/sgemm/sgemm.h"

#include <stdio.h>

enum { MOST_JUDGED = 64, RUNS = 2 }; /* the most samples that judge, and how many models run on each */

/* Seconds for a multiply-accumulate on one thread, in a product of usual size, by the kernels' table of costs; 0: not
 * known. */
static double seconds_of_mac(void)
{
    const oct_extent e = { .rows = 64, .n = 256, .depth = 256 };
    return oct_sgemm_choose(oct_isa_active(), &e).cost * 1e-12 / (64.0 * 256 * 256);
}

/* The most bytes that were in memory so far; 0: the system does not tell. */
static double most_memory(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lu", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (double)kib * 1024;
}

/* How many samples judge, as far as they are counted. */
static double judging(const oct_session *s)
{
    if (!s->src)
        return 0;
    const oct_source_choice x = oct_source_chosen(s->src);
    const int64_t n = x.aside > 0 ? x.aside : x.chosen;
    return (double)(n < 0 ? 0 : n > MOST_JUDGED ? MOST_JUDGED : n);
}

oct_estimate oct_session_estimate(const oct_session *s)
{
    const double macs = (double)oct_layers_count(s->c.layers, s->c.n_layers).macs;
    const double most = most_memory(),
                 model = s->src ? (double)s->c.size_after : 0; /* the plan that is judged packs the weights */
    return (oct_estimate){ .seconds = oct_now() - s->began + judging(s) * RUNS * macs * seconds_of_mac(),
                           .memory = most + model };
}
