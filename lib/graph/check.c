/* Topological order, and the check of the graph's invariants. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

bool oct_is_op(const oct_node *n, const char *op)
{
    return n->domain[0] == 0 && strcmp(n->op, op) == 0;
}

const char *oct_node_text(const oct_graph *g, int node, char *dst, size_t size)
{
    const oct_node *n = &g->node[node];
    if (n->name[0])
        oct_print_whole(dst, size, "node '%s' (%s)", n->name, n->op);
    else
        oct_print_whole(dst, size, "node #%d (%s, output '%s')", node, n->op,
                        n->n_out && n->out[0] >= 0 ? g->value[n->out[0]].name : "");
    return dst;
}

oct_status oct_within_node(const oct_graph *g, int node, oct_status s, oct_err *err)
{
    char text[300];
    if (s != OCT_OK)
        oct_within(err, "%s", oct_node_text(g, node, text, sizeof text));
    return s;
}

/* Kahn's algorithm. Ready nodes are taken in their old order: a heap of positions keeps it stable. */
typedef struct heap {
    int *v;
    size_t n;
} heap;

static void heap_push(heap *h, int x)
{
    size_t i = h->n++;
    for (; i && h->v[(i - 1) / 2] > x; i = (i - 1) / 2)
        h->v[i] = h->v[(i - 1) / 2];
    h->v[i] = x;
}

static int heap_pop(heap *h)
{
    int top = h->v[0], x = h->v[--h->n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < h->n; i = k) {
        if (k + 1 < h->n && h->v[k + 1] < h->v[k])
            k++;
        if (h->v[k] >= x)
            break;
        h->v[i] = h->v[k];
    }
    h->v[i] = x;
    return top;
}

static int producer_of(const oct_graph *g, int value)
{
    return value >= 0 ? g->value[value].producer : -1;
}

/* A node that waits for another that waits, or -1. */
static int waits_for(const oct_graph *g, const int *wait, int node)
{
    const oct_node *x = &g->node[node];
    for (int k = 0; k < x->n_in + x->n_captured; k++) {
        int p = producer_of(g, k < x->n_in ? x->in[k] : x->captured[k - x->n_in]);
        if (p >= 0 && wait[p] > 0)
            return p;
    }
    return -1;
}

/* The first node of a cycle: nodes after a cycle wait as well, but walking from producer to producer ends in it. */
static int in_cycle(const oct_graph *g, const int *wait)
{
    int id = 0, first;
    for (size_t i = 0; i < g->n_order; i++)
        if (wait[g->order[i]] > 0)
            id = g->order[i];
    for (size_t i = 0; i < g->n_order; i++) {
        int p = waits_for(g, wait, id);
        id = p >= 0 ? p : id;
    }
    first = id;
    for (int p = waits_for(g, wait, id); p >= 0 && p != id; p = waits_for(g, wait, p))
        first = p < first ? p : first;
    return first;
}

oct_status oct_graph_sort(oct_graph *g, oct_err *err)
{
    size_t n = g->n_order;
    int *pos = oct_calloc(g->n_node + 1, sizeof *pos), *wait = oct_calloc(g->n_node + 1, sizeof *wait);
    int *done = oct_calloc(n + 1, sizeof *done);
    heap ready = { oct_calloc(n + 1, sizeof(int)), 0 };
    oct_status s = OCT_OK;
    if (!pos || !wait || !done || !ready.v) {
        s = oct_nomem(err);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        const oct_node *x = &g->node[g->order[i]];
        int *w = &wait[g->order[i]];
        pos[g->order[i]] = (int)i;
        for (int k = 0; k < x->n_in; k++)
            *w += producer_of(g, x->in[k]) >= 0;
        for (int k = 0; k < x->n_captured; k++)
            *w += producer_of(g, x->captured[k]) >= 0;
        if (*w == 0)
            heap_push(&ready, (int)i);
    }
    size_t count = 0;
    while (ready.n) {
        int id = g->order[heap_pop(&ready)];
        done[count++] = id;
        for (int k = 0; k < g->node[id].n_out; k++) {
            if (g->node[id].out[k] < 0)
                continue;
            const oct_value *v = &g->value[g->node[id].out[k]];
            for (size_t u = 0; u < v->n_uses; u++)
                if (--wait[v->uses[u].node] == 0)
                    heap_push(&ready, pos[v->uses[u].node]);
        }
    }
    if (count == n) {
        if (n)
            memcpy(g->order, done, n * sizeof *done);
    } else {
        char text[300];
        s = oct_fail(err, OCT_EMALFORMED, "%s depends on its own result",
                     oct_node_text(g, in_cycle(g, wait), text, sizeof text));
    }
out:
    oct_free(pos);
    oct_free(wait);
    oct_free(done);
    oct_free(ready.v);
    return s;
}

/* What the values say of their uses, by node and place: inputs, then captured values. */
typedef struct recorded {
    size_t *at; /* [n_node + 1]: where a node's places begin */
    int *uses;
} recorded;

static void count_uses(const oct_graph *g, int value, const recorded *r)
{
    for (size_t i = 0; i < g->value[value].n_uses; i++) {
        const oct_use u = g->value[value].uses[i];
        const oct_node *n = u.node >= 0 && u.node < (int)g->n_node ? &g->node[u.node] : NULL;
        if (!n || u.slot >= n->n_in)
            continue; /* check_value says so */
        if (u.slot >= 0)
            r->uses[r->at[u.node] + (size_t)u.slot] += n->in[u.slot] == value;
        for (int k = 0; k < n->n_captured && u.slot < 0; k++)
            r->uses[r->at[u.node] + (size_t)(n->n_in + k)] += n->captured[k] == value;
    }
}

static oct_status record_uses(const oct_graph *g, recorded *r, oct_err *err)
{
    if (!(r->at = oct_calloc(g->n_node + 1, sizeof *r->at)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_node; i++)
        r->at[i + 1] = r->at[i] + (size_t)(g->node[i].n_in + g->node[i].n_captured);
    if (!(r->uses = oct_calloc(r->at[g->n_node] + 1, sizeof *r->uses)))
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        count_uses(g, (int)v, r);
    return OCT_OK;
}

static oct_status check_node(const oct_graph *g, int id, const recorded *r, const bool *ready, oct_err *err)
{
    const oct_node *n = &g->node[id];
    char text[300];
    oct_node_text(g, id, text, sizeof text);
    for (int k = 0; k < n->n_in + n->n_captured; k++) {
        int v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (v < -1 || v >= (int)g->n_value)
            return oct_fail(err, OCT_EINTERNAL, "%s: input %d is no value", text, k);
        if (v < 0)
            continue;
        if (g->value[v].dead)
            return oct_fail(err, OCT_EINTERNAL, "%s: input '%s' was removed", text, g->value[v].name);
        if (r->uses[r->at[id] + (size_t)k] != 1)
            return oct_fail(err, OCT_EINTERNAL, "%s: its use of '%s' is not recorded once", text, g->value[v].name);
        int p = g->value[v].producer;
        if (p >= 0 && !ready[p])
            return oct_fail(err, OCT_EINTERNAL, "%s: stands before the producer of '%s'", text, g->value[v].name);
    }
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && g->value[n->out[k]].producer != id)
            return oct_fail(err, OCT_EINTERNAL, "%s: output '%s' has another producer", text, g->value[n->out[k]].name);
    return OCT_OK;
}

/* The order lists every live node, and no other, once. */
static oct_status check_order(const oct_graph *g, const bool *listed, oct_err *err)
{
    char text[300];
    size_t live = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        if (g->node[i].dead == listed[i])
            return oct_fail(err, OCT_EINTERNAL, "%s is %s", oct_node_text(g, (int)i, text, sizeof text),
                            listed[i] ? "removed, but stands in the order" : "not in the order");
        live += !g->node[i].dead;
    }
    if (live != g->n_order)
        return oct_fail(err, OCT_EINTERNAL, "the order lists %zu nodes, %zu live", g->n_order, live);
    return OCT_OK;
}

bool oct_quant_same(const oct_quant *a, const oct_quant *b)
{
    const size_t n = a && b && a->n == b->n ? (size_t)a->n : 0;
    if (a == b)
        return true;
    return a && b && a->n == b->n && a->dtype == b->dtype && a->block == b->block && a->bytes == b->bytes &&
           (n <= 1 || a->axis == b->axis) &&
           (n == 0 ||
            (memcmp(a->scale, b->scale, n * sizeof *a->scale) == 0 && memcmp(a->zp, b->zp, n * sizeof *a->zp) == 0));
}

static bool is_quantized_type(oct_dtype t)
{
    static const oct_dtype types[] = { OCT_U8, OCT_S8, OCT_U16, OCT_S16, OCT_S32, OCT_U4, OCT_S4, OCT_U2, OCT_S2 };
    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (t == types[i])
            return true;
    return false;
}

/* Checks that there are as many scales as channels or blocks, if the shape is known. */
static bool scales_fit(const oct_quant *q, const oct_shape *s)
{
    int64_t d[OCT_MAX_RANK];
    if (q->n == 0)
        return !q->qvals && q->block == 0;
    if (!q->scale || !q->zp || q->n < 0 || q->block < 0)
        return false;
    if ((q->n == 1 && q->block == 0) || !oct_shape_known(s, d))
        return true;
    if (q->axis < 0 || q->axis >= s->rank)
        return false;
    if (q->block == 0)
        return d[q->axis] == q->n;
    d[q->axis] = d[q->axis] / q->block + (d[q->axis] % q->block != 0);
    int64_t count;
    return oct_count(d, s->rank, &count) && count == q->n;
}

static oct_status check_quant(const oct_value *v, oct_err *err)
{
    const oct_quant *q = v->quant;
    int64_t d[OCT_MAX_RANK];
    const bool real = v->dtype == OCT_F32 || v->dtype == OCT_F16 || v->dtype == OCT_BF16;
    if (!real || v->kind != OCT_VALUE_TENSOR || !is_quantized_type(q->dtype))
        return oct_fail(err, OCT_EINTERNAL, "value '%s': quantized values of %s stand for %s", v->name,
                        oct_dtype_name(q->dtype), oct_dtype_name(v->dtype));
    if (!scales_fit(q, &v->shape))
        return oct_fail(err, OCT_EINTERNAL, "value '%s': its %d scales do not fit its shape", v->name, q->n);
    if (!q->qvals)
        return OCT_OK;
    const bool columns = oct_value_by_columns(v);
    bool fits = q->qvals->dtype == (columns ? OCT_U8 : q->dtype) && v->producer < 0 && !v->is_input;
    if (oct_shape_known(&v->shape, d) && columns)
        fits &= q->qvals->dims[0] == d[1 - q->axis] && q->qvals->dims[1] * q->qvals->dims[0] == q->n &&
                q->qvals->dims[2] * 8 == q->block * oct_dtype_bits(q->dtype);
    else if (oct_shape_known(&v->shape, d))
        fits &= q->qvals->rank == v->shape.rank && memcmp(q->qvals->dims, d, (size_t)v->shape.rank * sizeof *d) == 0;
    return fits ? OCT_OK
                : oct_fail(err, OCT_EINTERNAL, "value '%s': its quantized values are another tensor's", v->name);
}

static oct_status check_value(const oct_graph *g, int id, oct_err *err)
{
    const oct_value *v = &g->value[id];
    for (size_t i = 0; i < v->n_uses; i++) {
        oct_use u = v->uses[i];
        const oct_node *n = u.node >= 0 && u.node < (int)g->n_node ? &g->node[u.node] : NULL;
        if (!n || n->dead || (u.slot >= 0 && (u.slot >= n->n_in || n->in[u.slot] != id)))
            return oct_fail(err, OCT_EINTERNAL, "value '%s': a recorded use does not exist", v->name);
    }
    if (v->producer >= 0 && (v->constant || v->is_input))
        return oct_fail(err, OCT_EINTERNAL, "value '%s' has a producer and is a constant or input", v->name);
    if (v->producer >= 0 && g->node[v->producer].dead)
        return oct_fail(err, OCT_EINTERNAL, "value '%s': its producer was removed", v->name);
    return v->quant ? check_quant(v, err) : OCT_OK;
}

/* What nested graphs take from this one is listed as captured. */
static oct_status check_captures(const oct_graph *g, int id, const oct_graph *nested, oct_err *err)
{
    const oct_node *n = &g->node[id];
    char text[300];
    for (size_t v = 0; v < nested->n_value; v++) {
        const oct_value *x = &nested->value[v];
        bool listed = x->dead || x->outer < 0;
        for (int i = 0; i < n->n_captured && !listed; i++)
            listed = n->captured[i] == x->outer;
        if (!listed || (!x->dead && x->outer >= 0 && (x->producer >= 0 || x->is_input)))
            return oct_fail(err, OCT_EINTERNAL, "%s: its nested graph's '%s' is no capture",
                            oct_node_text(g, id, text, sizeof text), x->name);
    }
    return OCT_OK;
}

static oct_status check_nested(const oct_graph *g, int id, oct_err *err)
{
    char text[300];
    const oct_graph *nested;
    for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++) {
        oct_status s = nested->outer == g ? check_captures(g, id, nested, err)
                                          : oct_fail(err, OCT_EINTERNAL, "a nested graph lies in another one");
        if (s == OCT_OK)
            s = oct_graph_check(nested, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", oct_node_text(g, id, text, sizeof text));
            return s;
        }
    }
    return OCT_OK;
}

oct_status oct_graph_check(const oct_graph *g, oct_err *err)
{
    bool *ready = oct_calloc(g->n_node + 1, sizeof *ready);
    recorded r = { NULL, NULL };
    oct_status s = ready ? record_uses(g, &r, err) : oct_nomem(err);
    for (size_t i = 0; i < g->n_order && s == OCT_OK; i++) {
        s = check_node(g, g->order[i], &r, ready, err);
        if (s == OCT_OK)
            s = check_nested(g, g->order[i], err);
        ready[g->order[i]] = true;
    }
    if (s == OCT_OK)
        s = check_order(g, ready, err);
    oct_free(ready);
    oct_free(r.at);
    oct_free(r.uses);
    for (size_t i = 0; i < g->n_value && s == OCT_OK; i++)
        if (!g->value[i].dead)
            s = check_value(g, (int)i, err);
    for (size_t i = 0; i < g->n_output && s == OCT_OK; i++)
        if (g->value[g->output[i]].dead || !g->value[g->output[i]].is_output)
            s = oct_fail(err, OCT_EINTERNAL, "graph output %zu is no live value", i);
    return s;
}
