/* Plans of one graph, kept by the inputs that they are for. */
#include "runtime/plan_int.h"

#include <string.h>

oct_status rt_kept_init(rt_kept *k, const oct_graph *g, oct_arena *a, oct_err *err)
{
    *k = (rt_kept){ .g = g, .want = oct_arena_calloc(a, g->n_input + 1, sizeof *k->want) };
    bool made = k->want != NULL;
    for (int i = 0; i < RT_KEPT && made; i++)
        made = (k->of[i].in = oct_arena_calloc(a, g->n_input + 1, sizeof *k->want)) != NULL;
    return made ? OCT_OK : oct_nomem(err);
}

void rt_kept_free(rt_kept *k)
{
    for (int i = 0; i < RT_KEPT; i++)
        oct_plan_destroy(k->of[i].plan);
}

oct_plan_input rt_input_of(const oct_datum *x)
{
    oct_plan_input in = { .tensor = x->kind == OCT_DATUM_TENSOR };
    if (!in.tensor)
        return in;
    in.dtype = x->t.dtype;
    in.rank = x->t.rank;
    memcpy(in.dims, x->dims, (size_t)in.rank * sizeof *in.dims);
    return in;
}

bool rt_same_inputs(const oct_plan_input *a, const oct_plan_input *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].tensor != b[i].tensor || a[i].dtype != b[i].dtype || a[i].rank != b[i].rank ||
            a[i].varies != b[i].varies ||
            (!a[i].varies && memcmp(a[i].dims, b[i].dims, (size_t)a[i].rank * sizeof *a[i].dims) != 0))
            return false;
    return true;
}

oct_status rt_kept_plan(rt_kept *k, const oct_plan *like, oct_plan **plan, oct_err *err)
{
    size_t at = 0;
    bool found = false;
    for (size_t i = 0; i < RT_KEPT && !found; i++) {
        found = k->of[i].plan && rt_same_inputs(k->of[i].in, k->want, k->g->n_input);
        if (found || !k->of[i].plan || (k->of[at].plan && k->of[i].used < k->of[at].used))
            at = i;
    }
    if (!found) {
        oct_plan_destroy(k->of[at].plan);
        k->of[at].plan = NULL;
        OCT_TRY(rt_create(k->g, k->want, like, false, &k->of[at].plan, err));
        memcpy(k->of[at].in, k->want, k->g->n_input * sizeof *k->want);
    }
    k->of[at].used = ++k->clock;
    *plan = k->of[at].plan;
    return OCT_OK;
}
