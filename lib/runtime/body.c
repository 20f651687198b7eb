/* Runs graphs that are nested in a node. Each has its own plans, cached by shapes. */
#include "runtime/staged_int.h"

#include <string.h>

void rt_free_body(rt_body *b)
{
    rt_kept_free(&b->kept);
    oct_graph_destroy(b->g);
}

static oct_status fill_body(rt_body *b, const oct_plan *p, oct_err *err)
{
    const oct_graph *nested = oct_node_graph(&p->g->node[b->node], b->attr);
    if (!nested)
        return oct_fail(err, OCT_EMALFORMED, "there is no graph '%s'", b->attr);
    OCT_TRY(oct_graph_clone(nested, &b->g, err));
    size_t n = b->g->n_input;
    b->n_own = nested->n_input;
    b->captured = oct_arena_calloc(p->arena, n + 1, sizeof *b->captured);
    b->feed = oct_arena_calloc(p->arena, n + 1, sizeof *b->feed);
    b->was = oct_arena_calloc(p->arena, b->n_own + 1, sizeof *b->was);
    b->varies = oct_arena_calloc(p->arena, b->n_own + 1, sizeof *b->varies);
    if (!b->captured || !b->feed || !b->was || !b->varies)
        return oct_nomem(err);
    for (size_t i = b->n_own; i < n; i++)
        b->captured[i] = nested->value[b->g->input[i]].outer;
    return rt_kept_init(&b->kept, b->g, p->arena, err);
}

static oct_status find_body(oct_plan *p, int node, const char *attr, rt_body **found, oct_err *err)
{
    rt_staged *s = p->staged;
    for (size_t i = 0; i < s->n_body; i++)
        if (s->body[i]->node == node && strcmp(s->body[i]->attr, attr) == 0) {
            *found = s->body[i];
            return OCT_OK;
        }
    rt_body *b = oct_arena_alloc(p->arena, sizeof *b);
    if (!b || !OCT_GROW(p->arena, s->body, s->n_body, s->cap_body))
        return oct_nomem(err);
    *b = (rt_body){ .node = node, .attr = attr };
    oct_status st = fill_body(b, p, err);
    if (st != OCT_OK) {
        rt_free_body(b);
        return st;
    }
    s->body[s->n_body++] = *found = b;
    return OCT_OK;
}

/* The iteration number of a graph that a node runs for the k-th time (from 0). The first is that of the node itself, so
 * that a branch draws the same random numbers as outside. */
static uint64_t iteration_of(const oct_plan *p, uint64_t k)
{
    uint64_t x = p->iteration + (((uint64_t)p->depth << 40) + k) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return k ? x ^ x >> 31 : p->iteration;
}

/* A state that grows in each iteration would need a new plan each time, so from the second iteration on it has no shape
 * in the plan. Earlier calls do not matter, so that a result depends on its call only. */
static void find_varying(rt_body *b, bool first)
{
    for (size_t i = 0; i < b->n_own; i++) {
        oct_plan_input *in = &b->kept.want[i];
        const bool same = first || !in->tensor || rt_same_inputs(in, &b->was[i], 1);
        b->was[i] = *in;
        b->varies[i] = !same || (!first && b->varies[i]);
        in->varies = b->varies[i];
    }
}

oct_status rt_run_body(void *arg, const char *attr, oct_datum *const *in, size_t n_in, oct_datum **out, size_t n_out,
                       oct_err *err)
{
    rt_call *c = arg;
    oct_plan *p = c->p, *plan;
    rt_body *b = NULL;
    OCT_TRY(find_body(p, c->node, attr, &b, err));
    if (n_in != b->n_own || n_out != b->g->n_output)
        return oct_fail(err, OCT_EMALFORMED, "graph '%s' has %zu inputs and %zu outputs; %zu and %zu are given", attr,
                        b->n_own, b->g->n_output, n_in, n_out);
    for (size_t i = 0; i < b->g->n_input; i++) {
        b->feed[i] = i < b->n_own ? in[i] : p->staged->datum[b->captured[i]];
        if (!b->feed[i])
            return oct_fail(err, OCT_EINTERNAL, "graph '%s' runs before what it uses", attr);
        b->kept.want[i] = rt_input_of(b->feed[i]);
    }
    find_varying(b, c->calls == 0);
    OCT_TRY(rt_kept_plan(&b->kept, p, &plan, err));
    plan->n_shown = b->n_own;
    oct_plan_set_tap(plan, p->tap, p->tap_arg);
    plan->profile = p->profile;
    plan->iteration = iteration_of(p, c->calls++);
    OCT_TRY(oct_plan_run_data(plan, b->feed, err));
    for (size_t i = 0; i < n_out; i++)
        OCT_TRY(oct_plan_output_datum(plan, i, &out[i], err));
    return OCT_OK;
}
