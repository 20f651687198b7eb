/* Recurrent operators: geometry, activations, shapes. */
#include "ops/recurrent/rnn_layer.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static oct_rnn_kind kind_of(const char *type)
{
    return strstr(type, "LSTM") ? OCT_RNN_LSTM : strcmp(type, "GRU") == 0 ? OCT_RNN_GRU : OCT_RNN_PLAIN;
}

static int64_t gates_of(oct_rnn_kind k)
{
    return k == OCT_RNN_LSTM ? 4 : k == OCT_RNN_GRU ? 3 : 1;
}

/* ------------------------------------------------------------------ activations */

typedef struct named {
    const char *name;
    bool a, b; /* takes alpha, beta */
    float alpha, beta;
} named;

static const named functions[] = {
    { "affine", true, true, 1.0f, 0.0f },   { "relu", false, false, 0, 0 },
    { "leakyrelu", true, false, 0.01f, 0 }, { "thresholdedrelu", true, false, 1.0f, 0 },
    { "tanh", false, false, 0, 0 },         { "scaledtanh", true, true, 1.0f, 1.0f },
    { "sigmoid", false, false, 0, 0 },      { "hardsigmoid", true, true, 0.2f, 0.5f },
    { "elu", true, false, 1.0f, 0 },        { "softsign", false, false, 0, 0 },
    { "softplus", false, false, 0, 0 },
};

static bool same_name(const char *s, const char *lower)
{
    for (; *s && *lower; s++, lower++)
        if (tolower((unsigned char)*s) != *lower)
            return false;
    return *s == *lower;
}

static oct_rnn_act act_of(size_t i, float a, float b)
{
    static const oct_unary_op plain[] = {
        OCT_UNARY_SCALE, OCT_UNARY_RELU,     OCT_UNARY_LEAKY_RELU, OCT_UNARY_THRESHOLDED_RELU,
        OCT_UNARY_TANH,  OCT_UNARY_TANH,     OCT_UNARY_SIGMOID,    OCT_UNARY_HARD_SIGMOID,
        OCT_UNARY_ELU,   OCT_UNARY_SOFTSIGN, OCT_UNARY_SOFTPLUS
    };
    if (strcmp(functions[i].name, "scaledtanh") == 0)
        return (oct_rnn_act){ 3, { { OCT_UNARY_SCALE, b, 0 }, { OCT_UNARY_TANH, 0, 0 }, { OCT_UNARY_SCALE, a, 0 } } };
    return (oct_rnn_act){ 1, { { plain[i], a, b } } };
}

/* alphas and betas are lists that each function which takes one reads on from. */
static oct_status read_acts(const oct_step *s, oct_rnn *g, oct_err *err)
{
    static const char *const usual[3][3] = { { "tanh" }, { "sigmoid", "tanh" }, { "sigmoid", "tanh", "tanh" } };
    static const int of_kind[3] = { 1, 2, 3 };
    const oct_attr *names = oct_node_attr(s->node, "activations");
    int n = of_kind[g->kind], n_a, n_b, at_a = 0, at_b = 0;
    const float *a = oct_node_floats(s->node, "activation_alpha", &n_a),
                *b = oct_node_floats(s->node, "activation_beta", &n_b);
    /* The default of RNN lists two functions whatever the directions are, and ONNX Runtime writes defaults out. */
    const bool both = names && g->kind == OCT_RNN_PLAIN && names->n == 2;
    if (names && (names->type != OCT_ATTR_STRINGS || (names->n && !both && names->n != n * (int)g->dirs)))
        return oct_fail(err, OCT_EMALFORMED, "'activations' lists %d functions, not %d", names->n, n * (int)g->dirs);
    for (int i = 0; i < n * (int)g->dirs; i++) {
        const char *name = names && names->n ? names->strings[i] : usual[g->kind][i % n];
        size_t f = 0;
        while (f < OCT_COUNT(functions) && !same_name(name, functions[f].name))
            f++;
        if (f == OCT_COUNT(functions))
            return oct_fail(err, OCT_EMALFORMED, "activation '%.40s' does not exist", name);
        float alpha = functions[f].a && at_a < n_a ? a[at_a++] : functions[f].alpha;
        float beta = functions[f].b && at_b < n_b ? b[at_b++] : functions[f].beta;
        g->act[i / n][i % n] = act_of(f, alpha, beta);
    }
    return OCT_OK;
}

/* ------------------------------------------------------------------ shapes */

static oct_status direction_of(const oct_node *n, int64_t *dirs, bool *backwards, oct_err *err)
{
    const char *d = oct_node_str(n, "direction", "forward");
    *dirs = strcmp(d, "bidirectional") == 0 ? 2 : 1;
    *backwards = strcmp(d, "reverse") == 0;
    if (*dirs == 1 && !*backwards && strcmp(d, "forward") != 0)
        return oct_fail(err, OCT_EMALFORMED, "direction '%.40s' does not exist", d);
    return OCT_OK;
}

oct_status oct_rnn_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    int64_t dirs, hidden = oct_node_int(n, "hidden_size", -1);
    bool backwards, first = oct_node_int(n, "layout", 0) != 0;
    OCT_TRY(direction_of(n, &dirs, &backwards, err));
    for (int i = 0; i < n->n_out; i++)
        oct_out_dtype(c, i, oct_in_dtype(c, 0));
    oct_shape x = oct_in_shape(c, 0), r = oct_in_shape(c, 2);
    if (x.rank >= 0 && x.rank != 3)
        return oct_fail(err, OCT_EMALFORMED, "X has %d dimensions, not 3", x.rank);
    bool quantized = strcmp(n->op, "DynamicQuantizeLSTM") == 0; /* R is [D, H, 4 H] there */
    oct_dim h = hidden > 0 ? oct_dim_of(hidden) : r.rank == 3 ? r.d[quantized ? 1 : 2] : (oct_dim){ -1, NULL };
    oct_dim none = { -1, NULL }, dir = oct_dim_of(dirs), steps = x.rank < 0 ? none : x.d[first],
            batch = x.rank < 0 ? none : x.d[!first];
    oct_dim y[4] = { steps, dir, batch, h }, state[3] = { dir, batch, h };
    if (first) {
        memcpy(y, (oct_dim[]){ batch, steps, dir, h }, sizeof y);
        memcpy(state, (oct_dim[]){ batch, dir, h }, sizeof state);
    }
    OCT_TRY(oct_out_shape(c, 0, 4, y, err));
    OCT_TRY(oct_out_shape(c, 1, 3, state, err));
    return n->n_out > 2 ? oct_out_shape(c, 2, 3, state, err) : OCT_OK;
}

static oct_status want(const oct_step *s, int slot, const char *name, oct_dtype t, int rank, const int64_t *dims,
                       oct_err *err)
{
    const oct_operand *o = slot < s->n_in ? s->in[slot] : NULL;
    if (!o)
        return OCT_OK;
    if (o->dtype != t)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s in %s cannot be run",
                        o->dtype == OCT_UNDEFINED ? "?" : oct_dtype_name(o->dtype), name, s->op->type);
    bool ok = o->rank == rank;
    for (int i = 0; ok && i < rank; i++)
        ok = o->dims[i] == dims[i];
    return ok ? OCT_OK
              : oct_fail(err, OCT_EMALFORMED, "%s of %s has a shape that does not fit X and hidden_size", name,
                         s->op->type);
}

static oct_status check_inputs(const oct_step *s, const oct_rnn *g, oct_err *err)
{
    const oct_dtype t = s->in[0]->dtype;
    int64_t d = g->dirs, h = g->hidden, b = g->batch;
    int64_t state[3] = { d, b, h };
    if (g->batch_first) {
        state[0] = b;
        state[1] = d;
    }
    OCT_TRY(want(s, 3, "B", t, 2, (int64_t[]){ d, 2 * g->gates * h }, err));
    OCT_TRY(want(s, 4, "sequence_lens", OCT_S32, 1, &b, err));
    OCT_TRY(want(s, 5, "initial_h", t, 3, state, err));
    if (g->kind != OCT_RNN_LSTM)
        return OCT_OK;
    OCT_TRY(want(s, 6, "initial_c", t, 3, state, err));
    return want(s, 7, "P", t, 2, (int64_t[]){ d, 3 * h }, err);
}

oct_status oct_rnn_read(const oct_step *s, oct_rnn *g, oct_err *err)
{
    const oct_operand *x = s->in[0], *r = s->in[2], *y = NULL;
    *g = (oct_rnn){ .kind = kind_of(s->op->type) };
    g->gates = gates_of(g->kind);
    OCT_TRY(direction_of(s->node, &g->dirs, &g->backwards, err));
    g->batch_first = oct_node_int(s->node, "layout", 0) != 0;
    g->input_forget = oct_node_int(s->node, "input_forget", 0) != 0;
    g->linear_before_reset = oct_node_int(s->node, "linear_before_reset", 0) != 0;
    g->clip = oct_node_float(s->node, "clip", 0.0f);
    g->clip = g->clip > 0.0f ? g->clip : INFINITY;
    for (int i = 0; i < s->n_out && !y; i++)
        y = s->out[i];
    const bool doubles = x && x->dtype == OCT_F64 && s->op->domain[0] == 0;
    if (!x || !r || !y || (x->dtype != OCT_F32 && !doubles) || y->dtype != x->dtype)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s cannot be run", s->op->type,
                        x ? oct_dtype_name(x->dtype) : "nothing");
    if (x->rank != 3 || r->rank != 3)
        return oct_fail(err, OCT_EMALFORMED, "X and R of %s must have 3 dimensions", s->op->type);
    g->steps = x->dims[g->batch_first];
    g->batch = x->dims[!g->batch_first];
    g->inputs = x->dims[2];
    g->hidden = y->dims[y->rank - 1];
    int64_t all;
    if (g->hidden < 1 || !oct_count((int64_t[]){ g->steps + 1, g->batch + 1, g->gates, g->hidden, 4 }, 5, &all))
        return oct_fail(err, OCT_EMALFORMED, "%s with hidden_size %lld", s->op->type, (long long)g->hidden);
    OCT_TRY(read_acts(s, g, err));
    return check_inputs(s, g, err);
}
