/* The products of a GRU or RNN on integers, and the body of a Scan that goes through its steps. */
#include "forms/recurrent_int.h"

#include "forms/edit.h"
#include "ops/op.h"
#include "passes/match.h"

#include <ctype.h>
#include <string.h>

/* ---- functions ---- */

typedef struct function {
    const char *name, *op;
} function;

static const function functions[] = { { "sigmoid", "Sigmoid" },
                                      { "tanh", "Tanh" },
                                      { "relu", "Relu" },
                                      { "softsign", "Softsign" },
                                      { "softplus", "Softplus" } };

static bool same_name(const char *s, const char *lower)
{
    while (*s && tolower((unsigned char)*s) == *lower)
        s++, lower++;
    return *s == *lower;
}

const char *oct_recurrent_function(const oct_node *n, int64_t d, int i)
{
    const bool gru = oct_is_op(n, "GRU");
    const oct_attr *names = oct_node_attr(n, "activations");
    if (!names || names->n == 0)
        return gru && i == 0 ? "Sigmoid" : "Tanh";
    const int64_t at = d * (gru ? 2 : 1) + i;
    for (size_t k = 0; names->type == OCT_ATTR_STRINGS && at < names->n && k < OCT_COUNT(functions); k++)
        if (same_name(names->strings[at], functions[k].name))
            return functions[k].op;
    return NULL;
}

/* ---- products ---- */

/* `count` rows of one direction's matrix, as the columns of a matrix for MatMul. */
static oct_status columns_of(oct_graph *g, const oct_quant *q, int64_t d, int64_t first, int64_t count,
                             const oct_quant **columns, oct_err *err)
{
    const int64_t rows = q->qvals->dims[1], k = q->qvals->dims[2], at = d * rows + first, dims[2] = { k, count };
    const int scale = q->block ? (int)at : q->n > 1 ? (int)d : 0;
    const uint8_t *from = q->qvals->data;
    oct_quant *made = oct_arena_memdup(g->arena, q, sizeof *q);
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, q->qvals->dtype, 2, dims, &t, err));
    if (!made)
        return oct_nomem(err);
    uint8_t *to = (uint8_t *)(uintptr_t)t->data;
    for (int64_t c = 0; c < k; c++)
        for (int64_t r = 0; r < count; r++)
            to[c * count + r] = from[(at + r) * k + c];
    *made = (oct_quant){ .n = q->block ? (int)count : 1,
                         .axis = 1,
                         .scale = q->scale + scale,
                         .zp = q->zp + scale,
                         .dtype = q->dtype,
                         .qvals = t };
    *columns = made;
    return OCT_OK;
}

int oct_recurrent_border(oct_builder *b, int x, const char *base)
{
    static const oct_quant dynamic = { .dtype = OCT_U8 };
    const int border = b->status == OCT_OK ? oct_reader_of(b->g, x, "DynamicQuantizeLinear", 1) : -1;
    if (border >= 0)
        return b->g->node[border].out[0];
    const int v = oct_build(b, "DynamicQuantizeLinear", base, "_input_quantized", OCT_F32, &x, 1, NULL);
    if (b->status == OCT_OK)
        b->g->value[v].quant = &dynamic;
    return v;
}

int oct_recurrent_product(oct_builder *b, int x, const oct_quant *q, int64_t d, int64_t first, int64_t count,
                          const char *name)
{
    const oct_quant *columns = NULL;
    int w, node;
    if (b->status != OCT_OK || !oct_build_good(b, columns_of(b->g, q, d, first, count, &columns, b->err)) ||
        !oct_build_good(b, oct_edit_value(b->g, name, "_weights_quantized", OCT_F32, -1, &w, b->err)) ||
        !oct_build_good(b, oct_graph_set_dims(b->g, w, 2, columns->qvals->dims, b->err)))
        return 0;
    b->g->value[w].quant = columns;
    const int y = oct_build_real(b, "MatMul", name, "_product", x, w);
    node = b->status == OCT_OK ? b->g->value[y].producer : 0;
    if (b->status == OCT_OK)
        b->g->node[node].name = name;
    return y;
}

int oct_recurrent_bias(oct_builder *b, int y, const float *bias, int64_t n, const char *name)
{
    return bias ? oct_build_real(b, "Add", name, "_sum", y, oct_build_const(b, name, "_bias", OCT_F32, 1, &n, bias))
                : y;
}

/* ---- the body ---- */

/* One step of one direction. */
typedef struct step {
    oct_builder b;
    const oct_recurrent *l;
    const oct_quant *r;
    int64_t d;
    const char *name, *again; /* the names of its products */
    float *bias;
    int h, x, mask;
} step;

static int activated(step *s, int v, int i, const char *suffix)
{
    const float top = oct_node_float(s->l->n, "clip", 0), bottom = -top;
    if (top > 0) {
        const int lo = oct_build_const(&s->b, s->name, "_least", OCT_F32, 0, NULL, &bottom),
                  hi = oct_build_const(&s->b, s->name, "_most", OCT_F32, 0, NULL, &top);
        v = oct_build(&s->b, "Clip", s->name, "_clipped", OCT_F32, (const int[]){ v, lo, hi }, 3, NULL);
    }
    const char *op = oct_recurrent_function(s->l->n, s->d, i);
    return op ? oct_build_real(&s->b, op, s->name, suffix, v, -1) : v;
}

static int plain_step(step *s)
{
    const int y =
        oct_recurrent_product(&s->b, oct_recurrent_border(&s->b, s->h, s->name), s->r, s->d, 0, s->l->hidden, s->name);
    return activated(s, oct_build_real(&s->b, "Add", s->name, "_all", y, s->x), 0, "_new");
}

static int gru_step(step *s)
{
    static const char *const of_x[2] = { "_x_gates", "_x_new" }, *const of_h[2] = { "_h_gates", "_h_new" },
                             *const gates[2] = { "_update", "_reset" };
    oct_builder *b = &s->b;
    const int64_t h = s->l->hidden, most = s->l->late ? 3 * h : 2 * h;
    int x[2] = { 0 }, p[2] = { 0 }, zr[2] = { 0 }, candidate;
    oct_build_split(b, s->name, s->x, (const int64_t[]){ 2 * h, h }, of_x, x);
    p[0] = oct_recurrent_bias(b,
                              oct_recurrent_product(b, oct_recurrent_border(b, s->h, s->name), s->r, s->d, 0, most,
                                                    s->name),
                              s->bias, most, s->name);
    if (s->l->late)
        oct_build_split(b, s->name, p[0], (const int64_t[]){ 2 * h, h }, of_h, p);
    oct_build_split(b, s->name, activated(s, oct_build_real(b, "Add", s->name, "_all", p[0], x[0]), 0, "_gates"),
                    (const int64_t[]){ h, h }, gates, zr);
    if (s->l->late) {
        candidate = oct_build_real(b, "Add", s->name, "_candidate", x[1],
                                   oct_build_real(b, "Mul", s->name, "_kept", zr[1], p[1]));
    } else {
        const int kept = oct_build_real(b, "Mul", s->name, "_kept", zr[1], s->h);
        candidate = oct_build_real(b, "Add", s->name, "_candidate",
                                   oct_recurrent_product(b, oct_recurrent_border(b, kept, s->again), s->r, s->d, 2 * h,
                                                         h, s->again),
                                   x[1]);
    }
    const int made = activated(s, candidate, 1, "_made");
    return oct_build_real(b, "Add", s->name, "_new", made,
                          oct_build_real(b, "Mul", s->name, "_part", zr[0],
                                         oct_build_real(b, "Sub", s->name, "_change", s->h, made)));
}

static int body_input(oct_builder *b, const char *base, const char *suffix, oct_dtype type)
{
    int v = 0;
    if (b->status != OCT_OK || !oct_build_good(b, oct_edit_value(b->g, base, suffix, type, -1, &v, b->err)))
        return 0;
    if (!OCT_GROW(b->g->arena, b->g->input, b->g->n_input, b->g->cap_input) && !oct_build_good(b, oct_nomem(b->err)))
        return 0;
    b->g->value[v].is_input = true;
    b->g->input[b->g->n_input++] = v;
    return v;
}

static void body_output(oct_builder *b, int v)
{
    if (b->status != OCT_OK || (!OCT_GROW(b->g->arena, b->g->output, b->g->n_output, b->g->cap_output) &&
                                !oct_build_good(b, oct_nomem(b->err))))
        return;
    b->g->value[v].is_output = true;
    b->g->output[b->g->n_output++] = v;
}

/* Adds the outputs of a step: the state for the next step, and the result of this one. After the end of a sequence
 * these are the old state and zeros. */
static void end_step(step *s, int new)
{
    static const float zero = 0;
    oct_builder *b = &s->b;
    if (s->mask < 0) {
        body_output(b, new);
        body_output(b, oct_build_real(b, "Identity", s->name, "_shown", new, -1));
        return;
    }
    body_output(b, oct_build(b, "Where", s->name, "_left", OCT_F32, (const int[]){ s->mask, new, s->h }, 3, NULL));
    body_output(b, oct_build(b, "Where", s->name, "_shown", OCT_F32,
                             (const int[]){ s->mask, new,
                                            oct_build_const(b, s->name, "_nothing", OCT_F32, 0, NULL, &zero) },
                             3, NULL));
}

void oct_recurrent_scan(oct_recurrent *l, int64_t d, const char *name, int h0, int xp, float *bias, int out[2])
{
    oct_builder *b = &l->b;
    step s = { .b = { NULL, -1, b->status, b->err },
               .l = l,
               .r = l->b.g->value[l->n->in[2]].quant,
               .d = d,
               .bias = bias,
               .mask = -1 };
    int node = 0;
    s.name = oct_arena_printf(b->g->arena, "%s_state", name);
    s.again = oct_arena_printf(b->g->arena, "%s_candidate", name);
    if (b->status == OCT_OK && oct_build_good(b, s.name && s.again ? OCT_OK : oct_nomem(b->err)))
        oct_build_good(b, oct_graph_new_nested(b->g, &s.b.g, b->err));
    if (b->status != OCT_OK)
        return;
    s.b.g->name = "step";
    s.h = body_input(&s.b, s.name, "", OCT_F32);
    s.x = body_input(&s.b, s.name, "_x", OCT_F32);
    s.mask = l->mask >= 0 ? body_input(&s.b, s.name, "_counts", OCT_BOOL) : -1;
    end_step(&s, l->gru ? gru_step(&s) : plain_step(&s));
    b->status = s.b.status;
    out[0] =
        oct_build(b, "Scan", name, "_last", OCT_F32, (const int[]){ h0, xp, l->mask }, l->mask >= 0 ? 3 : 2, &node);
    if (b->status != OCT_OK || !oct_build_good(b, oct_edit_value(b->g, name, "_all", OCT_F32, -1, &out[1], b->err)) ||
        !oct_build_good(b, oct_graph_set_output(b->g, node, 1, out[1], b->err)) ||
        !oct_build_good(b, oct_node_set_graph(b->g, node, "body", s.b.g, b->err)) ||
        !oct_build_good(b, oct_node_set_int(b->g, node, "num_scan_inputs", l->mask >= 0 ? 2 : 1, b->err)))
        return;
    if (d == 1 || strcmp(oct_node_str(l->n, "direction", "forward"), "reverse") == 0) {
        oct_build_ints(b, node, "scan_input_directions", (const int64_t[]){ 1, 1 }, l->mask >= 0 ? 2 : 1);
        oct_build_ints(b, node, "scan_output_directions", (const int64_t[]){ 1 }, 1);
    }
    oct_build_good(b, oct_graph_set_captures(b->g, node, b->err));
}
