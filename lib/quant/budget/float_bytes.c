/* Adds up the float constants of a written model, by the operators that read them. */
#include "quant/budget/float_bytes.h"

#include "ops/op.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 3 };

typedef struct constant {
    const char *op, *name;
    uint64_t bytes;
} constant;

typedef struct adding {
    oct_arena *arena;
    bool halves;
    uint64_t sum;
    constant *constant;
    size_t n_constant, room_constant;
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
        x->reader = reader >= 0 ? oct_node_label(g, reader) : NULL;
    }
    if (!OCT_GROW(a->arena, a->constant, a->n_constant, a->room_constant))
        return oct_nomem(err);
    a->constant[a->n_constant++] = (constant){ op, name, bytes };
    a->sum += bytes;
    return OCT_OK;
}

/* The first node that reads a value, and its graph: what a node takes into its graphs is read there. */
static const oct_graph *first_reader(const oct_graph *g, int v, int *node)
{
    *node = g->value[v].n_uses ? g->value[v].uses[0].node : -1;
    for (size_t k = 0; *node >= 0 && oct_node_graph_at(&g->node[*node], k); k++) {
        const oct_graph *in = oct_node_graph_at(&g->node[*node], k);
        for (size_t w = 0; w < in->n_value; w++)
            if (!in->value[w].dead && in->value[w].outer == v && in->value[w].n_uses)
                return first_reader(in, (int)w, node);
    }
    return g;
}

/* The same, where a constant that is stored in another type is read. */
static const oct_graph *first_real_reader(const oct_graph *g, int v, int *node)
{
    const oct_graph *at = first_reader(g, v, node);
    while (*node >= 0 && oct_op_of(at, *node) && oct_op_of(at, *node)->converts && at->node[*node].out[0] >= 0 &&
           at->value[at->node[*node].out[0]].n_uses)
        at = first_reader(at, at->node[*node].out[0], node);
    return at;
}

static bool is_counted(const adding *a, oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F64 || (a->halves && (t == OCT_F16 || t == OCT_BF16));
}

static oct_status add_graph(adding *a, const oct_graph *g, oct_err *err)
{
    for (size_t v = 0; v < g->n_value; v++) {
        const oct_value *x = &g->value[v];
        const oct_tensor *t = x->dead || x->outer >= 0 || (x->producer >= 0 && g->node[x->producer].n_in > 0)
                                  ? NULL
                                  : x->constant; /* once, where the file has it */
        if (!t || !is_counted(a, t->dtype))
            continue;
        int reader;
        const oct_graph *at = first_real_reader(g, (int)v, &reader);
        if (reader < 0 || reads_reals(at, reader))
            OCT_TRY(add(a, at, reader, x->name, (uint64_t)t->count * (uint64_t)oct_dtype_bits(t->dtype) / 8, err));
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

/* The names of an operator's constants that take much of all float bytes, and whether there are others. */
static oct_status name(const adding *a, oct_float_bytes *x, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    size_t named = 0;
    for (size_t i = 0; i < a->n_constant; i++)
        if (strcmp(a->constant[i].op, x->op) == 0 &&
            (double)a->constant[i].bytes >= OCT_FLOAT_BYTES_SHARE * (double)a->sum)
            oct_buf_printf(&b, "%s%s", named++ ? ", " : "", a->constant[i].name);
    if (!named)
        oct_buf_printf(&b, "%s", x->largest);
    if (x->n > (named ? named : 1))
        oct_buf_printf(&b, " and others");
    x->names = oct_buf_str(&b) ? oct_arena_printf(a->arena, "%s", oct_buf_str(&b)) : NULL;
    oct_buf_free(&b);
    return x->names ? OCT_OK : oct_nomem(err);
}

oct_status oct_float_bytes_find(const oct_graph *g, uint64_t file, bool halves, oct_arena *arena,
                                oct_float_bytes **list, size_t *n, oct_err *err)
{
    adding a = { .arena = arena, .halves = halves };
    OCT_TRY(add_graph(&a, g, err));
    if (a.n)
        qsort(a.list, a.n, sizeof *a.list, by_bytes);
    for (*n = 0; *n < a.n && file && (double)a.list[*n].bytes >= OCT_FLOAT_BYTES_SHARE * (double)file; ++*n) {
        a.list[*n].share = (double)a.list[*n].bytes / (double)file;
        OCT_TRY(name(&a, &a.list[*n], err));
    }
    *list = a.list;
    return OCT_OK;
}

void oct_float_bytes_text(const oct_float_bytes *list, size_t n, oct_buf *out)
{
    double share = 0;
    for (size_t i = 0; i < n; i++)
        share += list[i].share;
    if (n)
        oct_buf_printf(out, "%.0f %% of the file is float: ", 100 * share);
    for (size_t i = 0; i < n && i < MOST_NAMED; i++)
        oct_buf_printf(out, "%s%s (%s%s%s)", i ? ", " : "", *list[i].op ? list[i].op : "in nested graphs",
                       list[i].names, list[i].why ? ": " : "", list[i].why ? list[i].why : "");
    if (n > MOST_NAMED)
        oct_buf_printf(out, " and %zu more operators", n - MOST_NAMED);
}
