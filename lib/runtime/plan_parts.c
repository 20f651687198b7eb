/* The parts that a plan is built of: buffers, operands, steps, and checks of what goes into them. */
#include "runtime/plan_int.h"

#include "base/array.h"

#include <string.h>

oct_status rt_new_buffer(oct_plan *p, size_t bytes, int *buffer, oct_err *err)
{
    if (!OCT_GROW(p->arena, p->buffer, p->n_buffer, p->cap_buffer))
        return oct_nomem(err);
    p->buffer[p->n_buffer] = (rt_buffer){ .bytes = bytes, .first = -1, .last = -1, .alias = -1, .input = -1 };
    *buffer = (int)p->n_buffer++;
    return OCT_OK;
}

rt_operand *rt_new_operand(oct_plan *p, const oct_operand *like, int buffer)
{
    rt_operand *o = oct_arena_alloc(p->arena, sizeof *o);
    if (!o)
        return NULL;
    *o = (rt_operand){ *like, buffer, p->operand };
    return p->operand = o;
}

rt_step *rt_new_step(oct_plan *p, const oct_op *op, const oct_node *n, int n_in, int n_out)
{
    rt_step *st = oct_arena_alloc(p->arena, sizeof *st);
    oct_operand **in = oct_arena_calloc(p->arena, (size_t)(n_in + n_out) + 1, sizeof *in);
    size_t *tap = oct_arena_alloc(p->arena, ((size_t)n_out + 1) * sizeof *tap);
    if (!st || !in || !tap)
        return NULL;
    *st =
        (rt_step){ .s = { .op = op, .node = n, .in = in, .out = in + n_in, .n_in = n_in, .n_out = n_out }, .tap = tap };
    for (int i = 0; i < n_out; i++)
        tap[i] = OCT_NO_TAP;
    if (op) {
        st->scheme = op->scheme;
        st->s.opset = oct_node_opset(p->g, n);
    }
    return st;
}

oct_status rt_add_step(oct_plan *p, rt_step *st, oct_err *err)
{
    if (!OCT_GROW(p->arena, p->step, p->n_step, p->cap_step))
        return oct_nomem(err);
    p->step[p->n_step++] = st;
    return OCT_OK;
}

size_t rt_tap_of(const oct_plan *p, const char *name)
{
    size_t i = p->opts.n_taps;
    while (i > 0 && strcmp(p->opts.taps[i - 1], name) != 0)
        i--;
    return i > 0 ? i - 1 : OCT_NO_TAP;
}

int rt_root(const oct_plan *p, int b)
{
    while (p->buffer[b].alias >= 0)
        b = p->buffer[b].alias;
    return b;
}

size_t rt_offset(const oct_plan *p, int b)
{
    size_t at = 0;
    for (; p->buffer[b].alias >= 0; b = p->buffer[b].alias)
        at += p->buffer[b].at;
    return at;
}

oct_status rt_check_known(const oct_graph *g, int node, oct_err *err)
{
    const oct_node *n = &g->node[node];
    if (oct_op_of(g, node))
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED, "operator %s%s%s of opset %lld is unknown", n->domain, n->domain[0] ? "." : "",
             n->op, (long long)oct_node_opset(g, n));
    oct_hint(err, "qeval --runner CMD has another runtime run models with it");
    return OCT_EUNSUPPORTED;
}

oct_status rt_check_value(const oct_value *v, oct_err *err)
{
    if (v->producer >= 0 || v->is_input || oct_value_has_data(v))
        return OCT_OK;
    return oct_fail(err, OCT_EUNSUPPORTED, "value '%s' has no numbers here (a sparse or foreign constant)", v->name);
}

oct_status rt_borrow_input(const oct_value *v, const void *data, oct_datum **x, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK];
    *x = NULL;
    if (v->dtype == OCT_UNDEFINED || !oct_shape_known(&v->shape, dims))
        return OCT_OK;
    return oct_datum_borrow(v->dtype, v->shape.rank, dims, data, x, err);
}

/* The value that a tap asks for; -1: none. */
static int tapped(const oct_plan *p, size_t tap)
{
    const int at = p->tap_at ? p->tap_at[tap] : -1;
    return at >= 0 ? at : oct_graph_find(p->g, p->opts.taps[tap]);
}

static void show(oct_value *v, bool on)
{
    v->is_output = on && v->dtype != OCT_S64 && v->dtype != OCT_S32;
}

static void show_outputs(oct_graph *g)
{
    for (size_t k = 0; k < g->n_output; k++)
        g->value[g->output[k]].is_output = true;
}

/* The same in the graphs that nodes hold, which find taps by name when they are planned. */
static void show_in_bodies(const oct_plan *p, const oct_graph *g, bool on)
{
    oct_graph *nested;
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++) {
            for (size_t t = 0; t < p->opts.n_taps; t++) {
                const int at = oct_graph_find(nested, p->opts.taps[t]);
                if (at >= 0 && nested->value[at].outer < 0)
                    show(&nested->value[at], on);
            }
            show_outputs(nested);
            show_in_bodies(p, nested, on);
        }
}

void rt_show_taps(const oct_plan *p, oct_graph *g, bool on)
{
    for (size_t i = 0; i < p->opts.n_taps; i++) {
        const int at = tapped(p, i);
        if (at >= 0)
            show(&g->value[at], on);
    }
    show_outputs(g);
    show_in_bodies(p, g, on);
}
