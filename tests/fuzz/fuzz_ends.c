/* Fuzz target: any text as what a file says of its inputs and outputs (octet.ends). What is read is written and read
 * again as the same, and is undone around small models that have such an input x and such an output y. */
#include "forms/write/ends.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(oct_status s)
{
    if (s != OCT_OK)
        abort();
}

static void same_when_written(const oct_end *e, size_t n, oct_arena *a)
{
    oct_buf b = OCT_BUF_INIT;
    oct_err err = OCT_ERR_INIT;
    oct_end *again;
    size_t m;
    for (size_t i = 0; i < n; i++)
        oct_end_put(&b, &e[i]);
    if (b.failed)
        return;
    need(oct_ends_read(oct_buf_str(&b), a, &again, &m, &err));
    bool same = m == n;
    for (size_t i = 0; same && i < n; i++) {
        same = strcmp(e[i].name, again[i].name) == 0 && e[i].output == again[i].output && e[i].type == again[i].type &&
               e[i].nhwc == again[i].nhwc && e[i].reversed == again[i].reversed && e[i].axis == again[i].axis &&
               e[i].n == again[i].n;
        for (int c = 0; same && c < e[i].n; c++)
            same = e[i].scale[c] == again[i].scale[c] && e[i].zero[c] == again[i].zero[c];
    }
    if (!same)
        abort();
    oct_buf_free(&b);
}

static int new_value(oct_graph *g, const char *name, oct_dtype t, int rank, const oct_dim *d)
{
    oct_err err = OCT_ERR_INIT;
    int v;
    need(oct_graph_add_value(g, name, t, &v, &err));
    if (rank >= 0)
        need(oct_graph_set_shape(g, v, rank, d, &err));
    return v;
}

/* An input x and an output y of a type and rank (-1: not known), with some channels, and a Cast between them. */
static oct_graph *model(oct_dtype t, int rank, int64_t channels)
{
    oct_graph *g = oct_graph_create();
    oct_err err = OCT_ERR_INIT;
    const oct_dim d[4] = { { .n = 2 }, { .n = channels }, { .n = 2 }, { .n = channels } };
    int node;
    if (!g)
        abort();
    const int x = new_value(g, "x", t, rank, d), y = new_value(g, "y", t, rank, d);
    need(oct_graph_set_opset(g, "", 17, &err));
    need(oct_graph_add_node(g, "Cast", "", "cast", 1, 1, -1, &node, &err));
    need(oct_node_set_int(g, node, "to", t, &err));
    need(oct_graph_set_input(g, node, 0, x, &err));
    need(oct_graph_set_output(g, node, 0, y, &err));
    if (!OCT_GROW(g->arena, g->input, g->n_input, g->cap_input) ||
        !OCT_GROW(g->arena, g->output, g->n_output, g->cap_output))
        abort();
    g->value[x].is_input = g->value[y].is_output = true;
    g->input[g->n_input++] = x;
    g->output[g->n_output++] = y;
    return g;
}

static void undo(const oct_end *e, size_t n, oct_graph *g)
{
    oct_err err = OCT_ERR_INIT;
    oct_status s = OCT_OK;
    for (size_t i = 0; i < n && s == OCT_OK; i++)
        s = oct_end_reopen(g, &e[i], &err);
    if (s == OCT_OK)
        need(oct_graph_check(g, &err));
    else if (s != OCT_ENOMEM)
        abort();
    oct_graph_destroy(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const oct_dtype types[] = { OCT_U8, OCT_S8, OCT_F16, OCT_F32 };
    oct_arena *a = oct_arena_create();
    const char *text = a ? oct_arena_strndup(a, (const char *)data, size) : NULL;
    oct_err err = OCT_ERR_INIT;
    oct_end *e;
    size_t n;
    if (text && oct_ends_read(text, a, &e, &n, &err) == OCT_OK) {
        same_when_written(e, n, a);
        for (size_t t = 0; t < OCT_COUNT(types); t++)
            for (int rank = -1; rank <= 4; rank++)
                undo(e, n, model(types[t], rank, rank + 1));
    }
    oct_arena_destroy(a);
    return 0;
}
