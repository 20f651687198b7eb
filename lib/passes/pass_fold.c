/* Pass: shape inference and constant folding. */
#include "passes/pass.h"

#include <stdio.h>

/* Folding may not make a model larger than this per constant: an Expand of a scalar stays. */
enum { MAX_FOLDED = 16 << 20 };

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    int n;
    char text[64];
    if (g->outer)
        return OCT_OK; /* nested graphs are done with the outermost one */
    OCT_TRY(oct_fold_constants(g, MAX_FOLDED, &n, err));
    if (n) {
        snprintf(text, sizeof text, "%d node%s computed", n, n > 1 ? "s" : "");
        oct_pass_note(log, self, text, "");
    }
    return OCT_OK;
}

const oct_pass oct_pass_fold = { "fold", "compute nodes whose inputs are constants", run, true };
