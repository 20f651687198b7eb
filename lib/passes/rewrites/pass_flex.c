/* Pass: replaces FlexAttention by the nodes of its definition: attention whose scores and probabilities pass through
 * graphs of the model. It is kept if types, the number of heads or their size are not known yet. */
#include "passes/pass.h"

#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <math.h>
#include <string.h>

/* The facts that the definition depends on. */
typedef struct flex {
    int node;
    oct_dtype type, precision; /* the type of the inputs, and that of the scores */
    int64_t heads, kv_heads;
    float scale;
} flex;

static int64_t dim_of(const oct_graph *g, int value, int axis)
{
    const oct_shape *s = &g->value[value].shape;
    return s->rank == 4 ? s->d[axis].n : -1;
}

static bool read_flex(const oct_graph *g, int node, flex *f)
{
    const oct_node *n = &g->node[node];
    if (strcmp(n->op, "FlexAttention") != 0 || strcmp(n->domain, "ai.onnx.preview") != 0 || n->n_in != 3 ||
        n->n_out != 1 || n->in[0] < 0 || n->in[1] < 0 || n->in[2] < 0 || n->out[0] < 0 || oct_graph_opset(g, "") < 13)
        return false;
    *f = (flex){ .node = node,
                 .type = g->value[n->in[0]].dtype,
                 .heads = dim_of(g, n->in[0], 1),
                 .kv_heads = dim_of(g, n->in[1], 1) };
    const int64_t depth = dim_of(g, n->in[0], 3);
    f->precision = (oct_dtype)oct_node_int(n, "softmax_precision", f->type == OCT_F64 ? OCT_F64 : OCT_F32);
    f->scale = oct_node_float(n, "scale", depth > 0 ? (float)(1.0 / sqrt((double)depth)) : 0.0f);
    const oct_dom dom = oct_dom_of(f->type), inner = oct_dom_of(f->precision);
    return (dom == OCT_DOM_F || dom == OCT_DOM_D) && (inner == OCT_DOM_F || inner == OCT_DOM_D) && f->heads > 0 &&
           f->kv_heads > 0 && (depth > 0 || oct_node_attr(n, "scale"));
}

/* ---- nodes before the one that is replaced ---- */

/* Adds a node with one or two inputs. *out: a new value of type t, or `last` if that is >= 0. */
static oct_status emit(oct_graph *g, const flex *f, const char *op, int a, int b, oct_dtype t, int last, int *out,
                       oct_err *err)
{
    int id;
    OCT_TRY(oct_graph_add_node(g, op, "", "", 1, 1, f->node, &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, a, err));
    if (b >= 0)
        OCT_TRY(oct_graph_set_input(g, id, 1, b, err));
    *out = last;
    if (last < 0)
        OCT_TRY(oct_graph_new_value(g, g->node[f->node].name[0] ? g->node[f->node].name : "flex", t, out, err));
    return oct_graph_set_output(g, id, 0, *out, err);
}

static int producer(const oct_graph *g, int value)
{
    return g->value[value].producer;
}

static oct_status cast(oct_graph *g, const flex *f, int x, oct_dtype to, int last, int *out, oct_err *err)
{
    *out = x;
    if (g->value[x].dtype == to && last < 0)
        return OCT_OK;
    OCT_TRY(emit(g, f, "Cast", x, -1, to, last, out, err));
    return oct_node_set_int(g, producer(g, *out), "to", to, err);
}

/* Repeats heads of keys or values as often as queries share them. */
static oct_status repeat_heads(oct_graph *g, const flex *f, int x, int *out, oct_err *err)
{
    int index;
    *out = x;
    if (f->heads == f->kv_heads)
        return OCT_OK;
    int64_t *v = oct_arena_calloc(g->arena, (size_t)f->heads, sizeof *v);
    if (!v)
        return oct_nomem(err);
    for (int64_t i = 0; i < f->heads; i++)
        v[i] = i / (f->heads / f->kv_heads);
    OCT_TRY(oct_graph_new_const_s64(g, "heads", 1, &f->heads, v, &index, err));
    OCT_TRY(emit(g, f, "Gather", x, index, f->type, -1, out, err));
    return oct_node_set_int(g, producer(g, *out), "axis", 1, err);
}

/* The square root of the scale; both queries and keys are multiplied by it. */
static oct_status root_of_scale(oct_graph *g, const flex *f, int *value, oct_err *err)
{
    const float root = sqrtf(f->scale);
    uint64_t bytes = 0;
    oct_elem_store(f->type, &bytes, 0, 1, 1, OCT_DOM_F, &root);
    return oct_graph_new_const(g, "scale", f->type, 0, NULL, &bytes, value, err);
}

/* Inserts a graph of the node, if it has one: *x becomes the graph's output. */
static oct_status modify(oct_graph *g, const flex *f, const char *attr, int *x, oct_err *err)
{
    const oct_graph *body = oct_node_graph(&g->node[f->node], attr);
    if (!body)
        return OCT_OK;
    const char *name = g->node[f->node].name,
               *prefix = oct_arena_printf(g->arena, "%s%s%s/", name, *name ? "/" : "", attr);
    int *map = oct_calloc(body->n_value + 1, sizeof *map);
    oct_status s = prefix && map ? OCT_OK : oct_nomem(err);
    for (size_t v = 0; s == OCT_OK && v < body->n_value; v++)
        map[v] = body->value[v].outer >= 0 ? body->value[v].outer : -2;
    if (s == OCT_OK) {
        map[body->input[0]] = *x;
        s = oct_graph_splice(g, f->node, body, prefix, map, NULL, NULL, err);
    }
    if (s == OCT_OK)
        *x = map[body->output[0]];
    oct_free(map);
    return s == OCT_OK && *x < 0 ? oct_fail(err, OCT_EMALFORMED, "nothing makes the output of '%s'", attr) : s;
}

static oct_status scores(oct_graph *g, const flex *f, int *out, oct_err *err)
{
    int q, k, keys = g->node[f->node].in[1], root;
    OCT_TRY(root_of_scale(g, f, &root, err));
    OCT_TRY(emit(g, f, "Mul", g->node[f->node].in[0], root, f->type, -1, &q, err));
    OCT_TRY(repeat_heads(g, f, keys, &keys, err));
    OCT_TRY(emit(g, f, "Mul", keys, root, f->type, -1, &keys, err));
    OCT_TRY(emit(g, f, "Transpose", keys, -1, f->type, -1, &k, err));
    OCT_TRY(oct_node_set_ints(g, producer(g, k), "perm", (const int64_t[]){ 0, 1, 3, 2 }, 4, err));
    OCT_TRY(emit(g, f, "MatMul", q, k, f->type, -1, out, err));
    return cast(g, f, *out, f->precision, -1, out, err);
}

static oct_status define(oct_graph *g, const flex *f, oct_err *err)
{
    const int y = g->node[f->node].out[0];
    int x, values = g->node[f->node].in[2];
    OCT_TRY(scores(g, f, &x, err));
    OCT_TRY(modify(g, f, "score_mod", &x, err));
    OCT_TRY(emit(g, f, "Softmax", x, -1, f->precision, -1, &x, err));
    OCT_TRY(oct_node_set_int(g, producer(g, x), "axis", -1, err));
    OCT_TRY(modify(g, f, "prob_mod", &x, err));
    OCT_TRY(repeat_heads(g, f, values, &values, err));
    OCT_TRY(cast(g, f, values, f->precision, -1, &values, err));
    if (f->precision == f->type) {
        OCT_TRY(emit(g, f, "MatMul", x, values, f->type, y, &x, err));
    } else {
        OCT_TRY(emit(g, f, "MatMul", x, values, f->precision, -1, &x, err));
        OCT_TRY(cast(g, f, x, f->type, y, &x, err));
    }
    oct_graph_remove_node(g, f->node);
    return OCT_OK;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    char text[300];
    for (size_t i = 0; i < g->n_order; i++) {
        flex f;
        if (!read_flex(g, g->order[i], &f))
            continue;
        const char *name = g->node[f.node].name;
        oct_node_text(g, f.node, text, sizeof text);
        const oct_status s = define(g, &f, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", text);
            return s;
        }
        oct_pass_note(log, self, "FlexAttention", name);
    }
    return OCT_OK;
}

const oct_pass oct_pass_flex = { "flex", "put the nodes of its definition in the place of FlexAttention", run, true };
