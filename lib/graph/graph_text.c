/* Graphs as text and for Graphviz. */
#include "graph/graph_text.h"

#include "base/utf8.h"

#include <string.h>

enum { MOST_NUMBERS = 8 }; /* of a list or constant that are written out */

static void put_name(oct_buf *b, const char *name)
{
    oct_text_clean(b, name, false);
}

static void put_dims(oct_buf *b, const oct_shape *s)
{
    if (s->rank < 0) {
        oct_buf_puts(b, " [?]");
        return;
    }
    oct_buf_puts(b, " [");
    for (int i = 0; i < s->rank; i++) {
        oct_buf_puts(b, i ? "," : "");
        if (s->d[i].n >= 0)
            oct_buf_printf(b, "%lld", (long long)s->d[i].n);
        else
            put_name(b, s->d[i].sym ? s->d[i].sym : "?");
    }
    oct_buf_puts(b, "]");
}

static void put_quant(oct_buf *b, const oct_quant *q)
{
    if (q->n == 0) {
        oct_buf_puts(b, " dynamic");
        return;
    }
    float least = q->scale[0], most = q->scale[0];
    for (int i = 1; i < q->n; i++) {
        least = q->scale[i] < least ? q->scale[i] : least;
        most = q->scale[i] > most ? q->scale[i] : most;
    }
    if (q->n == 1)
        oct_buf_printf(b, " scale %.9g zero point %d", (double)least, (int)q->zp[0]);
    else
        oct_buf_printf(b, " %d scales %.6g to %.6g along %d", q->n, (double)least, (double)most, q->axis);
    if (q->block)
        oct_buf_printf(b, " in blocks of %lld", (long long)q->block);
}

/* "float32 [N,3,32,32]", or "u8 [1,16] scale 0.0235 zero point 3". */
static void put_type(const oct_graph *g, int value, oct_buf *b)
{
    const oct_value *v = &g->value[value];
    static const char *const kind[] = { "", "sequence of ", "optional ", "optional sequence of " };
    oct_buf_puts(b, kind[v->kind]);
    const oct_dtype type = v->quant ? v->quant->dtype : v->kind == OCT_VALUE_TENSOR ? v->dtype : v->elem;
    oct_buf_puts(b, type == OCT_UNDEFINED ? "?" : oct_dtype_name(type));
    put_dims(b, &v->shape);
    if (v->quant)
        put_quant(b, v->quant);
}

static void put_value(const oct_graph *g, int value, oct_buf *b)
{
    if (value < 0) {
        oct_buf_puts(b, "-");
        return;
    }
    put_name(b, oct_value_name(g, value));
    oct_buf_puts(b, ": ");
    put_type(g, value, b);
}

static void put_attribute(const oct_attr *a, oct_buf *b)
{
    oct_buf_puts(b, " ");
    put_name(b, a->name);
    oct_buf_puts(b, "=");
    const int n = a->n < MOST_NUMBERS ? a->n : MOST_NUMBERS;
    switch (a->type) {
    case OCT_ATTR_FLOAT: oct_buf_printf(b, "%.9g", (double)a->f); return;
    case OCT_ATTR_INT: oct_buf_printf(b, "%lld", (long long)a->i); return;
    case OCT_ATTR_STRING:
        oct_buf_puts(b, "\"");
        put_name(b, a->s);
        oct_buf_puts(b, "\"");
        return;
    case OCT_ATTR_FLOATS:
    case OCT_ATTR_INTS:
        oct_buf_puts(b, "[");
        for (int i = 0; i < n; i++)
            if (a->type == OCT_ATTR_INTS)
                oct_buf_printf(b, "%s%lld", i ? "," : "", (long long)a->ints[i]);
            else
                oct_buf_printf(b, "%s%.9g", i ? "," : "", (double)a->floats[i]);
        oct_buf_puts(b, n < a->n ? ",...]" : "]");
        return;
    case OCT_ATTR_TENSOR: oct_buf_puts(b, "tensor"); return;
    case OCT_ATTR_STRINGS: oct_buf_printf(b, "%d strings", a->n); return;
    case OCT_ATTR_GRAPH:
    case OCT_ATTR_GRAPHS: oct_buf_puts(b, "below"); return;
    default: oct_buf_puts(b, "...");
    }
}

static void put_graph(const oct_graph *g, int depth, oct_buf *b);

static void put_node(const oct_graph *g, int node, int depth, oct_buf *b)
{
    const oct_node *n = &g->node[node];
    oct_buf_printf(b, "%*s", 4 * depth, "");
    put_name(b, n->domain);
    oct_buf_puts(b, *n->domain ? "." : "");
    put_name(b, n->op);
    oct_buf_puts(b, " '");
    put_name(b, n->name);
    oct_buf_puts(b, "' (");
    for (int i = 0; i < n->n_in; i++) {
        oct_buf_puts(b, i ? ", " : "");
        const oct_value *v = n->in[i] >= 0 ? &g->value[n->in[i]] : NULL;
        if (v && v->producer < 0 && !v->is_input) /* a constant, or taken from the graph around */
            put_value(g, n->in[i], b);
        else
            put_name(b, v ? oct_value_name(g, n->in[i]) : "-");
    }
    oct_buf_puts(b, ")");
    for (size_t i = 0; i < n->n_attr; i++)
        put_attribute(&n->attr[i], b);
    oct_buf_puts(b, "\n");
    for (int i = 0; i < n->n_out; i++) {
        oct_buf_printf(b, "%*s-> ", 4 * depth + 4, "");
        put_value(g, n->out[i], b);
        oct_buf_puts(b, "\n");
    }
    const oct_graph *nested;
    for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++) {
        oct_buf_printf(b, "%*sgraph %zu\n", 4 * depth + 4, "", k);
        put_graph(nested, depth + 2, b);
    }
}

static void put_ends(const oct_graph *g, const char *word, const int *v, size_t n, int depth, oct_buf *b)
{
    for (size_t i = 0; i < n; i++) {
        oct_buf_printf(b, "%*s%s ", 4 * depth, "", word);
        put_value(g, v[i], b);
        oct_buf_puts(b, "\n");
    }
}

static void put_graph(const oct_graph *g, int depth, oct_buf *b)
{
    put_ends(g, "input", g->input, g->n_input, depth, b);
    for (size_t i = 0; i < g->n_order; i++)
        put_node(g, g->order[i], depth, b);
    put_ends(g, "output", g->output, g->n_output, depth, b);
}

void oct_graph_put_text(const oct_graph *g, oct_buf *b)
{
    put_graph(g, 0, b);
}

/* ---- Graphviz ---- */

/* A text inside of quotation marks. */
static void put_quoted(oct_buf *b, const oct_buf *text)
{
    oct_buf_puts(b, "\"");
    for (const char *s = oct_buf_str(text); *s; s++)
        oct_buf_printf(b, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    oct_buf_puts(b, "\"");
}

static void put_edge(const oct_graph *g, int value, const char *to, int node, oct_buf *b)
{
    oct_buf label = OCT_BUF_INIT;
    const int from = g->value[value].producer;
    put_value(g, value, &label);
    if (from >= 0)
        oct_buf_printf(b, "  n%d -> %s%d [label=", from, to, node);
    else
        oct_buf_printf(b, "  v%d -> %s%d [label=", value, to, node);
    put_quoted(b, &label);
    oct_buf_puts(b, "];\n");
    b->failed |= label.failed;
    oct_buf_free(&label);
}

void oct_graph_put_dot(const oct_graph *g, oct_buf *b)
{
    oct_buf_puts(b, "digraph model {\n  node [shape=box];\n");
    for (size_t i = 0; i < g->n_input; i++) {
        oct_buf name = OCT_BUF_INIT;
        put_name(&name, oct_value_name(g, g->input[i]));
        oct_buf_printf(b, "  v%d [shape=ellipse, label=", g->input[i]);
        put_quoted(b, &name);
        oct_buf_puts(b, "];\n");
        oct_buf_free(&name);
    }
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        oct_buf label = OCT_BUF_INIT;
        put_name(&label, n->op);
        oct_buf_puts(&label, " ");
        put_name(&label, n->name);
        oct_buf_printf(b, "  n%d [label=", g->order[i]);
        put_quoted(b, &label);
        oct_buf_puts(b, "];\n");
        oct_buf_free(&label);
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] >= 0 && (g->value[n->in[k]].producer >= 0 || g->value[n->in[k]].is_input))
                put_edge(g, n->in[k], "n", g->order[i], b);
    }
    for (size_t i = 0; i < g->n_output; i++) {
        oct_buf name = OCT_BUF_INIT;
        put_name(&name, oct_value_name(g, g->output[i]));
        oct_buf_printf(b, "  o%zu [shape=ellipse, label=", i);
        put_quoted(b, &name);
        oct_buf_puts(b, "];\n");
        oct_buf_free(&name);
        put_edge(g, g->output[i], "o", (int)i, b);
    }
    oct_buf_puts(b, "}\n");
}
