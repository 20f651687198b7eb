/* Adds up the float constants of a written model, by the operators that read them. */
#include "quant/budget/float_bytes.h"

#include "ops/op.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 3 };

typedef struct adding {
    oct_arena *arena;
    oct_float_bytes *list;
    size_t n, room;
} adding;

/* Whether a node reads its constants as numbers of their own, and not as scales of integers. */
static bool reads_reals(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    return !op || (!op->is_qdq && !op->scheme);
}

static oct_status add(adding *a, const oct_graph *g, int reader, const char *name, uint64_t bytes, oct_err *err)
{
    const char *op = reader >= 0 ? g->node[reader].op : "";
    size_t i = 0;
    while (i < a->n && strcmp(a->list[i].op, op) != 0)
        i++;
    if (i == a->n) {
        if (!OCT_GROW(a->arena, a->list, a->n, a->room))
            return oct_nomem(err);
        a->list[a->n++] = (oct_float_bytes){ .op = op };
    }
    oct_float_bytes *x = &a->list[i];
    x->bytes += bytes;
    x->n++;
    if (bytes > x->most) {
        x->most = bytes;
        x->largest = name;
    }
    return OCT_OK;
}

static oct_status add_graph(adding *a, const oct_graph *g, oct_err *err)
{
    for (size_t v = 0; v < g->n_value; v++) {
        const oct_value *x = &g->value[v];
        const oct_tensor *t = x->dead || x->outer >= 0 || (x->producer >= 0 && g->node[x->producer].n_in > 0)
                                  ? NULL
                                  : x->constant; /* once, where the file has it */
        if (!t || (t->dtype != OCT_F32 && t->dtype != OCT_F64))
            continue;
        const int reader = x->n_uses ? x->uses[0].node : -1;
        if (reader < 0 || reads_reals(g, reader))
            OCT_TRY(add(a, g, reader, x->name, (uint64_t)t->count * (uint64_t)oct_dtype_bits(t->dtype) / 8, err));
    }
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; !g->node[i].dead && oct_node_graph_at(&g->node[i], k); k++)
            OCT_TRY(add_graph(a, oct_node_graph_at(&g->node[i], k), err));
    return OCT_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const oct_float_bytes *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : strcmp(x->op, y->op);
}

oct_status oct_float_bytes_find(const oct_graph *g, uint64_t file, oct_arena *arena, oct_float_bytes **list, size_t *n,
                                oct_err *err)
{
    adding a = { .arena = arena };
    OCT_TRY(add_graph(&a, g, err));
    if (a.n)
        qsort(a.list, a.n, sizeof *a.list, by_bytes);
    for (*n = 0; *n < a.n && file && (double)a.list[*n].bytes >= OCT_FLOAT_BYTES_SHARE * (double)file; ++*n)
        a.list[*n].share = (double)a.list[*n].bytes / (double)file;
    *list = a.list;
    return OCT_OK;
}

void oct_float_bytes_text(const oct_float_bytes *list, size_t n, oct_buf *out)
{
    double share = 0;
    for (size_t i = 0; i < n; i++)
        share += list[i].share;
    if (n)
        oct_buf_printf(out, "%.0f %% of its bytes are float: ", 100 * share);
    for (size_t i = 0; i < n && i < MOST_NAMED; i++)
        oct_buf_printf(out, "%s%s (%s%s)", i ? ", " : "", *list[i].op ? list[i].op : "in nested graphs",
                       list[i].largest, list[i].n > 1 ? " and others" : "");
    if (n > MOST_NAMED)
        oct_buf_printf(out, " and %zu more operators", n - MOST_NAMED);
}
