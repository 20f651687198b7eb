/* The table of passes, and the functions that run them. */
#include "passes/pass.h"

#include "base/buf.h"
#include "base/stop.h"

#include <string.h>

#define OCT_PASS(record) extern const oct_pass record;
#include "passes/fusions.inc"
#include "passes/passes.inc"
#undef OCT_PASS

static const oct_pass *const all[] = {
#define OCT_PASS(record) &record,
#include "passes/passes.inc"
#undef OCT_PASS
    NULL,
};

static const oct_pass *const fusions[] = {
#define OCT_PASS(record) &record,
#include "passes/fusions.inc"
#undef OCT_PASS
    NULL,
};

const oct_pass *const *oct_pass_all(size_t *n)
{
    *n = OCT_COUNT(all) - 1;
    return all;
}

static oct_status check_names(const char *const *names, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        oct_nearest near = { .word = names[i], .most = 1 + (int)strlen(names[i]) / 4 };
        for (size_t k = 0; all[k]; k++)
            oct_nearest_try(&near, all[k]->name);
        if (near.n && near.distance[0] == 0)
            continue;
        oct_fail(err, OCT_EUSAGE, "there is no pass '%s'", names[i]);
        oct_nearest_hint(&near, 1, "--list-passes shows all", err);
        return OCT_EUSAGE;
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

static oct_status run_here(oct_graph *g, const oct_pass *p, const oct_pass_log *log, oct_err *err)
{
    OCT_TRY(oct_stop_check(err));
    if (p->run)
        return p->run(g, p, log, err);
    const int count = (int)g->n_node;
    for (int id = 0; id < count; id++)
        if (!g->node[id].dead)
            OCT_TRY(p->at(g, id, p, log, err));
    return OCT_OK;
}

/* Runs one pass over g and its subgraphs. */
static oct_status run_pass(oct_graph *g, const oct_pass *p, const oct_pass_log *log, oct_err *err)
{
    OCT_TRY(run_here(g, p, log, err));
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        oct_graph *nested;
        if (oct_node_graph_at(&g->node[id], 0))
            OCT_TRY(oct_graph_pass_on(g, id, err));
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++) {
            oct_status s = run_pass(nested, p, log, err);
            if (s == OCT_OK)
                s = oct_graph_sort(nested, err);
            OCT_TRY(oct_within_node(g, id, s, err));
        }
    }
    return OCT_OK;
}

/* Which passes to run. */
typedef struct choice {
    const oct_pass *const *from;
    bool flattening;
    const char *const *disabled;
    size_t n_disabled;
} choice;

static oct_status run_once(oct_graph *g, const choice *c, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; c->from[i]; i++) {
        if (listed(c->from[i]->name, c->disabled, c->n_disabled) || (c->flattening && !c->from[i]->flattens))
            continue;
        OCT_TRY(run_pass(g, c->from[i], log, err));
        oct_graph_prune(g);
        OCT_TRY(oct_graph_sort(g, err));
#ifndef NDEBUG
        oct_status s = oct_graph_check(g, err);
        if (s != OCT_OK) {
            oct_within(err, "after pass %s", c->from[i]->name);
            return s;
        }
#endif
    }
    return OCT_OK;
}

/* One fusion may enable another, as in Conv + Mul + BatchNormalization, so passes are repeated until none changes
 * anything. */
static oct_status run_all(oct_graph *g, const choice *chosen, const oct_pass_log *log, oct_err *err)
{
    for (counting c = { 1, log }; c.changes;) {
        c.changes = 0;
        OCT_TRY(run_once(g, chosen, &(oct_pass_log){ count_change, &c }, err));
    }
    return OCT_OK;
}

oct_status oct_passes_run(oct_graph *g, const char *const *disabled, size_t n_disabled, const oct_pass_log *log,
                          oct_err *err)
{
    OCT_TRY(check_names(disabled, n_disabled, err));
    return run_all(g, &(choice){ all, false, disabled, n_disabled }, log, err);
}

oct_status oct_passes_flatten(oct_graph *g, oct_err *err)
{
    return run_all(g, &(choice){ .from = all, .flattening = true }, NULL, err);
}

oct_status oct_passes_fuse(oct_graph *g, const oct_pass_log *log, oct_err *err)
{
    return run_all(g, &(choice){ .from = fusions }, log, err);
}
