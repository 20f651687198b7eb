/* Pass: shape inference and constant folding. */
#include "passes/pass.h"

#include <stdio.h>

/* Bounds, so that a small file cannot demand much memory or time. A constant of more than MAX_FOLDED bytes is not made
 * (an Expand of a scalar is kept), unless it is a large constant that was moved, such as a table of words that is
 * transposed for the last product: then the file is as large. Folding ends when the graph takes MAX_BYTES plus
 * MAX_TIMES the bytes of its constants, or after max_work multiplications in all, which take a few seconds. */
enum { MAX_FOLDED = 16 << 20, MAX_BYTES = 256 << 20, MAX_TIMES = 8 };
static const double max_work = 0x1p36;

static size_t largest_arena(const oct_graph *g)
{
    size_t bytes = 0, most;
    for (size_t v = 0; v < g->n_value; v++)
        if (g->value[v].constant && g->value[v].origin && !oct_add_size(bytes, g->value[v].constant->bytes, &bytes))
            return SIZE_MAX;
    return oct_mul_size(bytes, MAX_TIMES, &most) && oct_add_size(most, MAX_BYTES, &most) ? most : SIZE_MAX;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    int n;
    char text[64];
    if (g->outer)
        return OCT_OK; /* nested graphs are folded together with the outermost one */
    OCT_TRY(oct_fold_constants(g, &(oct_fold_bounds){ MAX_FOLDED, largest_arena(g), max_work, true }, &n, err));
    if (n) {
        snprintf(text, sizeof text, "%d node%s computed", n, n > 1 ? "s" : "");
        oct_pass_note(log, self, text, "");
    }
    return OCT_OK;
}

const oct_pass oct_pass_fold = { "fold", "compute nodes whose inputs are constants", run, true };
