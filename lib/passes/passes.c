/* The table of passes, and running them. */
#include "passes/pass.h"

#include "base/buf.h"

#include <string.h>

#define OCT_PASS(record) extern const oct_pass record;
#include "passes/passes.inc"
#undef OCT_PASS

static const oct_pass *const all[] = {
#define OCT_PASS(record) &record,
#include "passes/passes.inc"
#undef OCT_PASS
    NULL,
};

const oct_pass *const *oct_pass_all(size_t *n)
{
    *n = OCT_COUNT(all) - 1;
    return all;
}

void oct_pass_note(const oct_pass_log *log, const oct_pass *p, const char *what, const char *node)
{
    if (log && log->change)
        log->change(log->arg, p->name, what, node);
}

static oct_status check_names(const char *const *names, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *nearest = NULL;
        int best = 1000;
        for (size_t k = 0; all[k] && best; k++) {
            int d = oct_edit_distance(names[i], all[k]->name);
            if (d < best) {
                best = d;
                nearest = all[k]->name;
            }
        }
        if (best) {
            oct_fail(err, OCT_EUSAGE, "there is no pass '%s'", names[i]);
            if (nearest)
                oct_hint(err, "did you mean '%s'? --list-passes shows all", nearest);
            return OCT_EUSAGE;
        }
    }
    return OCT_OK;
}

static bool listed(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Forwards to the caller's log, and counts. */
typedef struct counting {
    size_t changes;
    const oct_pass_log *to;
} counting;

static void count_change(void *arg, const char *pass, const char *what, const char *node)
{
    counting *c = arg;
    c->changes++;
    if (c->to && c->to->change)
        c->to->change(c->to->arg, pass, what, node);
}

static oct_status run_once(oct_graph *g, const char *const *disabled, size_t n_disabled, const oct_pass_log *log,
                           oct_err *err)
{
    for (size_t i = 0; all[i]; i++) {
        if (listed(all[i]->name, disabled, n_disabled))
            continue;
        OCT_TRY(all[i]->run(g, all[i], log, err));
        oct_graph_prune(g);
        OCT_TRY(oct_graph_sort(g, err));
#ifndef NDEBUG
        oct_status s = oct_graph_check(g, err);
        if (s != OCT_OK) {
            oct_within(err, "after pass %s", all[i]->name);
            return s;
        }
#endif
    }
    return OCT_OK;
}

oct_status oct_passes_run(oct_graph *g, const char *const *disabled, size_t n_disabled, const oct_pass_log *log,
                          oct_err *err)
{
    OCT_TRY(check_names(disabled, n_disabled, err));
    /* One fusion may open the way for another: Conv + Mul + BatchNormalization. Each change removes a node. */
    for (counting c = { 1, log }; c.changes;) {
        c.changes = 0;
        OCT_TRY(run_once(g, disabled, n_disabled, &(oct_pass_log){ count_change, &c }, err));
    }
    return OCT_OK;
}
