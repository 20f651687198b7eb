/* lib/forms: what files spell is read as quantized values, once, and computes what the spelling computes. */
#include "unit.h"

#include "forms/forms.h"
#include "forms/qlinear.h"
#include "net.h"
#include "ops/core/quantized.h"

enum { CAP = 1 << 14 };
static float want[CAP], got[CAP];

/* ---- helpers ---- */

static int u8(oct_graph *g, const char *name, uint8_t v)
{
    return net_const(g, name, OCT_U8, "", &v);
}

static int s8(oct_graph *g, const char *name, int8_t v)
{
    return net_const(g, name, OCT_S8, "", &v);
}

static int find(const oct_graph *g, const char *name)
{
    int v = oct_graph_find(g, name);
    if (v < 0)
        fail_msg("there is no value '%s'", name);
    return v;
}

static const oct_quant *quant(const oct_graph *g, int value)
{
    assert_non_null(g->value[value].quant);
    return g->value[value].quant;
}

static size_t count(const oct_graph *g, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_order; i++)
        n += strcmp(g->node[g->order[i]].op, op) == 0;
    return n;
}

static const oct_node *only(const oct_graph *g, const char *op)
{
    assert_int_equal(count(g, op), 1);
    size_t i = 0;
    while (strcmp(g->node[g->order[i]].op, op) != 0)
        i++;
    return &g->node[g->order[i]];
}

static const int *read(oct_graph *g)
{
    const int *now;
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_forms_read(g, NULL, &now, err));
    oct_graph_prune(g);
    GOOD(oct_graph_check(g, err));
    return now;
}

/* The graph read, and read again: nothing is left to do. Both run as the graph does. Returns the copy. */
static oct_graph *same_when_read(const oct_graph *g)
{
    oct_graph *c;
    const size_t n = net_run(g, want, CAP);
    GOOD(oct_graph_clone(g, &c, err));
    read(c);
    assert_int_equal(net_run(c, got, CAP), n);
    assert_memory_equal(got, want, n * sizeof *got);
    const size_t nodes = c->n_node, values = c->n_value, order = c->n_order;
    const int *now = read(c);
    for (size_t v = 0; v < values; v++)
        assert_int_equal(now[v], v);
    assert_true(c->n_node == nodes && c->n_value == values && c->n_order == order);
    return c;
}

static size_t int8_steps(const oct_graph *g)
{
    oct_plan *p = net_plan(g, NULL, NULL);
    size_t n = 0;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        n += strcmp(oct_plan_step(p, i).scheme, "int8") == 0 && oct_plan_step(p, i).op[0] != 'R';
    oct_plan_destroy(p);
    return n;
}

/* x -> QuantizeLinear -> DequantizeLinear; zero_point < 0: none is given. */
static int fake(oct_graph *g, int x, const char *q, const char *d, float scale, int zero_point)
{
    int s = NET_F32(g, "s", "", scale), z = zero_point < 0 ? -1 : u8(g, "z", (uint8_t)zero_point);
    int qvals = z < 0 ? NET_NODE(g, "QuantizeLinear", "", q, x, s) : NET_NODE(g, "QuantizeLinear", "", q, x, s, z);
    return z < 0 ? NET_NODE(g, "DequantizeLinear", "", d, qvals, s)
                 : NET_NODE(g, "DequantizeLinear", "", d, qvals, s, z);
}

/* ---- QuantizeLinear and DequantizeLinear ---- */

static const int8_t kernel[2 * 2 * 3 * 3] = {
    1,  -2, 3,  -4, 5, -6, 7, -8, 9,  10, -11, 12,  13, 14, -15, 16, 17, 18,
    -9, 8,  -7, 6,  5, -4, 3, 2,  -1, 0,  20,  -30, 40, 50, -60, 70, 80, -90
};

/* A convolution per channel with a clamp behind it; the axis counts from the end. */
static oct_graph *conv_net(bool biased)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,2,6,6");
    const int32_t bias[2] = { 100, -200 }, none[2] = { 0, 0 };
    const int8_t zeros[2] = { 0, 0 };
    int w = NET_NODE(g, "DequantizeLinear", "", "w", net_const(g, "w_quantized", OCT_S8, "2,2,3,3", kernel),
                     NET_F32(g, "ws", "2", 0.01f, 0.02f), net_const(g, "wz", OCT_S8, "2", zeros));
    net_int(g, "axis", -4);
    int b = -1;
    if (biased) {
        b = NET_NODE(g, "DequantizeLinear", "", "b", net_const(g, "b_quantized", OCT_S32, "2", bias),
                     NET_F32(g, "bs", "2", 0.0625f * 0.01f, 0.0625f * 0.02f), net_const(g, "bz", OCT_S32, "2", none));
        net_int(g, "axis", 0);
    }
    int d = fake(g, x, "xq", "xd", 0.0625f, 3);
    int y = biased ? NET_NODE(g, "Conv", "conv", "c", d, w, b) : NET_NODE(g, "Conv", "conv", "c", d, w);
    int r = NET_NODE(g, "Relu", "relu", "r", y);
    net_output(g, fake(g, r, "y_quantized", "y", 0.125f, 7));
    return g;
}

TEST(convolution)
{
    for (int biased = 0; biased < 2; biased++) {
        oct_graph *g = conv_net(biased), *c = same_when_read(g);
        assert_int_equal(c->n_order, 3);
        assert_int_equal(count(c, "DequantizeLinear"), 0);
        const oct_node *border = only(c, "QuantizeLinear"), *conv = only(c, "Conv"), *relu = only(c, "Relu");
        assert_int_equal(border->n_in, 1);
        assert_int_equal(border->in[0], find(c, "x"));
        assert_null(c->value[border->in[0]].quant);
        const oct_quant *x = quant(c, conv->in[0]), *w = quant(c, conv->in[1]), *y = quant(c, find(c, "y"));
        assert_true(x->n == 1 && x->scale[0] == 0.0625f && x->zp[0] == 3 && x->dtype == OCT_U8 && !x->qvals);
        assert_true(w->n == 2 && w->axis == 0 && w->block == 0 && w->dtype == OCT_S8);
        assert_true(w->scale[0] == 0.01f && w->scale[1] == 0.02f && w->zp[0] == 0 && w->zp[1] == 0);
        assert_memory_equal(w->qvals->data, kernel, sizeof kernel);
        /* The clamp stays, and what it makes has the output's name. */
        assert_true(y->scale[0] == 0.125f && y->zp[0] == 7);
        assert_int_equal(relu->out[0], find(c, "y"));
        assert_null(c->value[conv->out[0]].quant);
        assert_int_equal(conv->n_in, 2 + biased);
        if (biased) {
            const oct_quant *b = quant(c, conv->in[2]);
            assert_true(b->n == 2 && b->dtype == OCT_S32 && b->scale[1] == 0.0625f * 0.02f &&
                        ((const int32_t *)b->qvals->data)[1] == -200);
        }
        assert_int_equal(int8_steps(c), 1);
        assert_int_equal(int8_steps(g), 1);
        oct_graph_destroy(c);
        oct_graph_destroy(g);
    }
}

/* A bias of bytes, whose scale is so many steps of the products: the layer runs on integers if that is a whole
 * number. */
TEST(bias_of_bytes)
{
    static const float steps[] = { 1, 8, 2.5f, 0.5f };
    static const int8_t bias[2] = { 100, -128 };
    for (size_t i = 0; i < OCT_COUNT(steps); i++) {
        oct_graph *g = net_graph(13);
        const int x = net_input(g, "x", OCT_F32, "1,2,6,6");
        const int w = NET_NODE(g, "DequantizeLinear", "", "w", net_const(g, "w_quantized", OCT_S8, "2,2,3,3", kernel),
                               NET_F32(g, "ws", "", 0.015625f));
        const int b = NET_NODE(g, "DequantizeLinear", "", "b", net_const(g, "b_quantized", OCT_S8, "2", bias),
                               NET_F32(g, "bs", "", 0.0625f * 0.015625f * steps[i]));
        net_output(g, fake(g, NET_NODE(g, "Conv", "conv", "c", fake(g, x, "xq", "xd", 0.0625f, 3), w, b), "y_quantized",
                           "y", 0.125f, 7));
        const bool whole = steps[i] >= 1 && steps[i] == (float)(int)steps[i];
        assert_int_equal(int8_steps(g), whole);
        const size_t n = net_run(g, got, CAP);
        oct_graph *real = net_graph(13); /* the same, with a bias of real numbers */
        const int xr = net_input(real, "x", OCT_F32, "1,2,6,6");
        const int wr =
            NET_NODE(real, "DequantizeLinear", "", "w", net_const(real, "w_quantized", OCT_S8, "2,2,3,3", kernel),
                     NET_F32(real, "ws", "", 0.015625f));
        const int br =
            NET_F32(real, "b", "2", 100 * 0.0625f * 0.015625f * steps[i], -128 * 0.0625f * 0.015625f * steps[i]);
        net_output(real, fake(real, NET_NODE(real, "Conv", "conv", "c", fake(real, xr, "xq", "xd", 0.0625f, 3), wr, br),
                              "y_quantized", "y", 0.125f, 7));
        assert_int_equal(net_run(real, want, CAP), n);
        for (size_t k = 0; k < n; k++)
            if (!(fabsf(got[k] - want[k]) <= (whole ? 0 : 0.125f)))
                fail_msg("%g steps: value %zu is %g, expected %g", (double)steps[i], k, (double)got[k],
                         (double)want[k]);
        oct_graph_destroy(real);
        oct_graph_destroy(g);
    }
}

/* What reads the values that a quantizer makes: two DequantizeLinear, one of them a graph output, and the graph's
 * end. */
TEST(readers_of_qvals)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "4,5"), s = NET_F32(g, "s", "", 0.25f);
    int q = NET_NODE(g, "QuantizeLinear", "", "q", NET_NODE(g, "Softplus", "", "p", x), s);
    int a = NET_NODE(g, "DequantizeLinear", "", "a", q, s), b = NET_NODE(g, "DequantizeLinear", "", "b", q, s);
    int e = NET_NODE(g, "DequantizeLinear", "", "e", q, NET_F32(g, "s2", "", 0.5f));
    net_output(g, NET_NODE(g, "Exp", "", "y", a));
    net_output(g, b);
    net_output(g, q);
    net_output(g, NET_NODE(g, "Neg", "", "n", e));
    oct_graph *c = same_when_read(g);
    /* One value carries the quantized values of all that read them with the same parameters; other parameters are
     * another value. */
    const int v = only(c, "Exp")->in[0], other = only(c, "Neg")->in[0];
    assert_true(quant(c, v)->scale[0] == 0.25f && quant(c, v)->zp[0] == 0 && quant(c, v)->dtype == OCT_U8);
    assert_true(quant(c, other)->scale[0] == 0.5f);
    assert_int_equal(only(c, "DequantizeLinear")->out[0], other);
    assert_int_equal(only(c, "DequantizeLinear")->in[0], q);
    assert_int_equal(v, b); /* which keeps its name */
    assert_int_equal(count(c, "QuantizeLinear"), 2);
    assert_int_equal(c->value[q].dtype, OCT_U8);
    assert_null(c->value[q].quant);
    assert_int_equal(c->node[c->value[q].producer].in[0], v);
    oct_graph_destroy(c);
    oct_graph_destroy(g);
}

TEST(integers_from_outside)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_U8, "4");
    net_output(g, NET_NODE(g, "Neg", "", "y",
                           NET_NODE(g, "DequantizeLinear", "", "d", x, NET_F32(g, "s", "", 0.5f), u8(g, "z", 10))));
    read(g);
    const oct_node *border = only(g, "DequantizeLinear");
    assert_true(border->n_in == 1 && border->in[0] == x && g->value[x].quant == NULL);
    assert_true(quant(g, border->out[0])->zp[0] == 10 && quant(g, border->out[0])->scale[0] == 0.5f);
    oct_plan *p = net_plan(g, NULL, NULL);
    const uint8_t qvals[4] = { 0, 10, 11, 255 };
    const float y[4] = { 5.0f, -0.0f, -0.5f, -122.5f };
    GOOD(oct_plan_run(p, (const void *[]){ qvals }, err));
    for (int i = 0; i < 4; i++)
        assert_true(((const float *)oct_plan_output(p, 0)->data)[i] == y[i]);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* Operators that compute on reals read what rounding left: 1.3 / 0.5 is 3 steps. */
TEST(reals_are_rounded)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "3,4"), f = fake(g, NET_NODE(g, "Softplus", "", "p", x), "q", "d", 0.5f, 0);
    net_output(g, NET_NODE(g, "Neg", "", "y", f));
    oct_graph *c = same_when_read(g);
    float v[12];
    net_fill(v, 12, 77);
    for (int i = 0; i < 12; i++)
        assert_true(got[i] == -0.5f * rintf(logf(1.0f + expf(v[i])) / 0.5f));
    assert_int_equal(int8_steps(c), 0);
    assert_int_equal(count(c, "QuantizeLinear"), 1); /* Softplus is no integer operator here: the border stays */
    oct_graph_destroy(c);
    oct_graph_destroy(g);
}

/* Scales that are computed, or no scales, are left as they are spelled. */
TEST(left_as_spelled)
{
    for (int form = 0; form < 3; form++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "4"), s = NET_F32(g, "s", "", form == 1 ? -0.5f : 0.5f);
        if (form == 2)
            s = NET_NODE(g, "ReduceMax", "", "top", NET_NODE(g, "Exp", "", "e", x));
        if (form == 2)
            net_int(g, "keepdims", 0);
        int q = NET_NODE(g, "QuantizeLinear", "", "q", x, s, u8(g, "z", 0));
        net_output(g, NET_NODE(g, "DequantizeLinear", "", "d", q, s, u8(g, "z1", 0)));
        oct_graph *c = same_when_read(g);
        assert_int_equal(count(c, "DequantizeLinear"), form > 0);
        oct_graph_destroy(c);
        oct_graph_destroy(g);
    }
}

/* A rounded value: spelled, or the value itself that is rounded. */
static int rounded(oct_graph *g, int v, bool spelled, float scale, int32_t zero)
{
    if (spelled)
        return fake(g, v, "q", "d", scale, (int)zero);
    oct_quant q = { .n = 1, .dtype = OCT_U8 };
    q.scale = oct_arena_memdup(g->arena, &scale, sizeof scale);
    q.zp = oct_arena_memdup(g->arena, &zero, sizeof zero);
    g->value[v].quant = oct_arena_memdup(g->arena, &q, sizeof q);
    assert_true(q.scale && q.zp && g->value[v].quant);
    return v;
}

/* Patterns of passes with a rounded value inside: coarse steps show whether they are put together all the same. */
static oct_graph *pattern(int form, bool spelled)
{
    oct_graph *g = net_graph(20);
    int x = net_input(g, "x", OCT_F32, "1,2,6,6"), y = x, v;
    int conv = form == 2 || form == 3 ? NET_NODE(g, "Conv", "", "c", x, net_random(g, "w", "3,2,3,3", 5)) : -1;
    switch (form) {
    case 0: /* Swish */
        y = NET_NODE(g, "Mul", "", "y", x, rounded(g, NET_NODE(g, "Sigmoid", "", "p", x), spelled, 0.25f, 0));
        break;
    case 1: /* HardSwish */
        v = rounded(g, NET_NODE(g, "Add", "", "sum", x, NET_F32(g, "three", "", 3.0f)), spelled, 0.75f, 0);
        v = NET_NODE(g, "Clip", "", "clip", v, NET_F32(g, "none", "", 0.0f), NET_F32(g, "six", "", 6.0f));
        y = NET_NODE(g, "Div", "", "y", NET_NODE(g, "Mul", "", "m", x, v), NET_F32(g, "sixth", "", 6.0f));
        break;
    case 2: y = NET_NODE(g, "Mul", "", "y", rounded(g, conv, spelled, 0.5f, 128), NET_F32(g, "f", "", 3.0f)); break;
    case 3: y = NET_NODE(g, "Relu", "", "y", rounded(g, conv, spelled, 0.5f, 100)); break;
    case 4:
        y = NET_NODE(g, "Add", "", "y", x,
                     NET_NODE(g, "Neg", "", "n", rounded(g, net_random(g, "k", "1,2,6,6", 3), spelled, 0.3f, 9)));
        break;
    default: y = NET_NODE(g, "Relu", "", "y", rounded(g, NET_NODE(g, "Identity", "", "i", x), spelled, 0.3f, 9));
    }
    net_output(g, NET_NODE(g, "Identity", "", "out", y));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_graph_check(g, err));
    return g;
}

TEST(passes_keep_rounding)
{
    for (int form = 0; form < 6; form++) {
        oct_graph *g = pattern(form, true), *c = pattern(form, false);
        const size_t n = net_run(g, want, CAP);
        assert_int_equal(net_run(c, got, CAP), n);
        if (memcmp(got, want, n * sizeof *got) != 0)
            fail_msg("pattern %d is another one", form);
        oct_graph_destroy(c);
        oct_graph_destroy(g);
    }
}

/* A constant may have its reals beside the quantized values, and quantized values may be missing: quantized values are
 * what is read. */
TEST(constants)
{
    static const float scale = 0.5f, real[4] = { 0.3f, -0.8f, 1.0f, 100.0f }, rounded[4] = { 0.5f, -1.0f, 1.0f, 63.5f };
    static const int32_t zero = 0;
    static const int8_t qval[4] = { 1, -2, 2, 127 };
    int64_t dims[1] = { 4 };
    const oct_tensor qvals = { OCT_S8, 1, dims, 4, 4, qval };
    for (int form = 0; form < 2; form++) {
        const oct_quant q = { .n = 1, .scale = &scale, .zp = &zero, .dtype = OCT_S8, .qvals = form ? &qvals : NULL };
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "4"), v = net_const(g, "v", OCT_F32, "4", real);
        g->value[v].quant = &q;
        net_output(g, NET_NODE(g, "Mul", "", "y", NET_NODE(g, "Neg", "", "n", v),
                               NET_NODE(g, "Sign", "", "one", NET_NODE(g, "Exp", "", "e", x))));
        GOOD(oct_graph_check(g, err));
        assert_int_equal(net_run(g, got, CAP), 4);
        for (int i = 0; i < 4; i++)
            assert_true(got[i] == -rounded[i]);
        oct_graph_destroy(g);
    }
}

/* ---- operator form ---- */

TEST(operators)
{
    oct_graph *g = net_graph(13);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    int x = net_input(g, "x", OCT_F32, "1,2,6,6");
    const int32_t bias[2] = { 100, -200 };
    int xs = NET_F32(g, "xs", "", 0.0625f), xz = u8(g, "xz", 3), ys = NET_F32(g, "ys", "", 0.125f), yz = u8(g, "yz", 7);
    int q = NET_NODE(g, "QuantizeLinear", "", "x_quantized", x, xs, xz);
    int y = NET_NODE(g, "QLinearConv", "conv", "c_quantized", q, xs, xz, net_const(g, "w", OCT_S8, "2,2,3,3", kernel),
                     NET_F32(g, "ws", "2", 0.01f, 0.02f), net_const(g, "wz", OCT_S8, "2", (const int8_t[2]){ 0, 0 }),
                     ys, yz, net_const(g, "b", OCT_S32, "2", bias));
    int m = NET_NODE(g, "MaxPool", "pool", "m_quantized", y);
    NET_INTS(g, "kernel_shape", 2, 2);
    int s = NET_NODE(g, "com.microsoft.QLinearSigmoid", "sigmoid", "s_quantized", m, ys, yz,
                     NET_F32(g, "ss", "", 1.0f / 256), u8(g, "sz", 0));
    net_output(g, NET_NODE(g, "DequantizeLinear", "", "out", s, NET_F32(g, "ss1", "", 1.0f / 256), u8(g, "sz1", 0)));
    oct_graph *c = same_when_read(g);
    const oct_node *conv = only(c, "Conv"), *pool = only(c, "MaxPool"), *sigmoid = only(c, "Sigmoid");
    assert_true(conv->domain[0] == 0 && sigmoid->domain[0] == 0 && sigmoid->n_in == 1 && conv->n_in == 3);
    assert_true(quant(c, conv->in[1])->n == 2 && quant(c, conv->in[1])->axis == 0);
    assert_true(quant(c, conv->in[2])->scale[1] == 0.0625f * 0.02f && quant(c, conv->in[2])->dtype == OCT_S32);
    /* What stands for X_quantized is X, and keeps its parameters where it is only moved. */
    assert_string_equal(c->value[conv->out[0]].name, "c");
    assert_string_equal(c->value[pool->out[0]].name, "m");
    assert_true(oct_quant_same(quant(c, conv->out[0]), quant(c, pool->out[0])));
    assert_true(quant(c, pool->out[0])->scale[0] == 0.125f && quant(c, pool->out[0])->zp[0] == 7);
    assert_true(quant(c, sigmoid->out[0])->scale[0] == 1.0f / 256);
    assert_int_equal(int8_steps(c), 3);
    assert_int_equal(int8_steps(g), 3);
    oct_graph_destroy(c);
    oct_graph_destroy(g);
}

/* Each line of the table: an integer operator has a form, and forms are told apart both ways. */
TEST(table)
{
    size_t n;
    const oct_qlinear *f = oct_qlinear_all(&n);
    for (size_t i = 0; i < n; i++) {
        const oct_node node = { .op = f[i].type, .domain = f[i].domain };
        const oct_op *op = oct_op_find("", f[i].op, f[i].opset);
        assert_ptr_equal(oct_qlinear_of(&node), &f[i]);
        assert_ptr_equal(oct_qlinear_for(f[i].op), &f[i]);
        assert_true(op && op->integer && oct_op_find(f[i].domain, f[i].type, f[i].domain[0] ? 1 : 13));
    }
    assert_null(oct_qlinear_for("Relu"));
}

/* ---- quantized when run ---- */

enum { M = 3, K = 32, N = 4 };

static int chain(oct_graph *g, int x, int i)
{
    char name[6][24];
    static const char *const base[6] = { "a", "acc", "scales", "real", "scaled", "sum" };
    for (int k = 0; k < 6; k++)
        snprintf(name[k], sizeof name[k], "%s%d", base[k], i);
    int8_t w[K * N];
    for (int k = 0; k < K * N; k++)
        w[k] = (int8_t)(k * 37 % 251 - 120);
    int id, s, z, a = NET_NODE(g, "DynamicQuantizeLinear", name[0], name[0], x);
    id = net_last;
    GOOD(oct_graph_new_value(g, "a_scale", OCT_UNDEFINED, &s, err));
    GOOD(oct_graph_new_value(g, "a_zero", OCT_UNDEFINED, &z, err));
    GOOD(oct_graph_set_output(g, id, 1, s, err));
    GOOD(oct_graph_set_output(g, id, 2, z, err));
    int ws = NET_F32(g, "ws", "4", 0.01f, 0.02f, 0.03f, 0.04f);
    int acc =
        NET_NODE(g, "MatMulInteger", name[1], name[1], a, net_const(g, "w", OCT_S8, "32,4", w), z, s8(g, "wz", 3));
    int scales = NET_NODE(g, "Mul", "", name[2], s, ws), real = NET_NODE(g, "Cast", "", name[3], acc);
    net_int(g, "to", OCT_F32);
    return NET_NODE(g, "Add", "", name[5], NET_NODE(g, "Mul", "", name[4], real, scales), net_random(g, "row", "4", 5));
}

TEST(dynamic)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "3,32");
    net_output(g, chain(g, x, 0));
    net_output(g, chain(g, x, 1));
    oct_graph *c = same_when_read(g);
    assert_int_equal(c->n_order, 5); /* one quantizer, two products, two sums */
    const int v = only(c, "DynamicQuantizeLinear")->out[0];
    assert_int_equal(c->node[c->value[v].producer].n_out, 1);
    assert_true(quant(c, v)->n == 0 && quant(c, v)->dtype == OCT_U8 && c->value[v].n_uses == 2);
    const oct_node *mm = &c->node[c->value[v].uses[0].node];
    assert_string_equal(mm->op, "MatMul");
    const oct_quant *w = quant(c, mm->in[1]);
    assert_true(w->n == 4 && w->axis == 1 && w->scale[2] == 0.03f && w->zp[0] == 3 && w->zp[3] == 3 && w->qvals);
    assert_int_equal(int8_steps(c), int8_steps(g));
    oct_graph_destroy(c);
    oct_graph_destroy(g);
}

/* A Gemm with transposed weights, which no file spells: the sums are those of the integers. form: what it adds. */
static void dynamic_gemm(int form)
{
    static const oct_quant found = { .dtype = OCT_U8 };
    static const float scale[N] = { 0.01f, 0.02f, 0.03f, 0.04f };
    static const int32_t zero[N];
    oct_graph *g = net_graph(13);
    int8_t w[N * K];
    int64_t dims[2] = { N, K };
    for (int i = 0; i < N * K; i++)
        w[i] = (int8_t)(i * 29 % 255 - 127);
    const oct_tensor qvals = { OCT_S8, 2, dims, N * K, sizeof w, w };
    const oct_quant q = { .n = N, .axis = 0, .scale = scale, .zp = zero, .dtype = OCT_S8, .qvals = &qvals };
    int x = net_input(g, "x", OCT_F32, "3,32"), d = NET_NODE(g, "DynamicQuantizeLinear", "", "d", x), b, bias[3];
    GOOD(oct_graph_add_value(g, "w", OCT_F32, &b, err));
    GOOD(oct_graph_set_dims(g, b, 2, dims, err));
    g->value[d].quant = &found;
    g->value[b].quant = &q;
    bias[0] = NET_F32(g, "c0", "4", 1, 2, 3, 4);
    bias[1] = NET_F32(g, "c1", "1,4", 1, 2, 3, 4);
    bias[2] = NET_F32(g, "c2", "3,4", 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4);
    int y = NET_NODE(g, "Gemm", "gemm", "y", d, b, bias[form]);
    net_int(g, "transB", 1);
    net_output(g, NET_NODE(g, "Relu", "relu", "out", y));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_graph_check(g, err));
    assert_int_equal(net_run(g, got, CAP), M * N);
    assert_int_equal(int8_steps(g), 1);
    oct_plan *p = net_plan(g, NULL, NULL);
    assert_int_equal(oct_plan_step(p, 0).macs, M * N * K);
    oct_plan_destroy(p);
    float v[M * K], lo = 0, hi = 0;
    net_fill(v, M * K, 77);
    for (int i = 0; i < M * K; i++) {
        lo = fminf(lo, v[i]);
        hi = fmaxf(hi, v[i]);
    }
    const float s = (hi - lo) / 255.0f;
    const int z = (int)rintf(0.0f - lo / s);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            int sum = 0;
            for (int k = 0; k < K; k++)
                sum += (int)fminf(255.0f, fmaxf(0.0f, rintf(v[m * K + k] / s) + (float)z)) * w[n * K + k] -
                       z * w[n * K + k];
            volatile float product = (float)sum * (s * scale[n]);
            assert_true(got[m * N + n] == fmaxf(0.0f, product + (float)(n + 1)));
        }
    oct_graph_destroy(g);
}

TEST(dynamic_gemms)
{
    for (int form = 0; form < 3; form++)
        dynamic_gemm(form);
}

/* ---- blocks ---- */

/* MatMulNBits, and the reals of its weights written out; a last block may be one in part. */
static void check_blocks(int k, bool zeros)
{
    const int count = k > 16 ? 2 : 1;
    oct_graph *g = net_graph(17);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    uint8_t qvals[N * K / 2], zero[N];
    float scale[N * 2], reals[K * N];
    char dims[3][16];
    for (int i = 0; i < N * K / 2; i++)
        qvals[i] = (uint8_t)(i * 53 + 11);
    for (int i = 0; i < N; i++)
        zero[i] = (uint8_t)(i * 31 + 5);
    for (int i = 0; i < 2 * N; i++)
        scale[i] = (i % 3 ? 0.05f : -0.03f) * (float)(i + 1);
    for (int n = 0; n < N; n++)
        for (int i = 0; i < k; i++) {
            const int qval = qvals[n * count * 8 + i / 2] >> (i % 2 * 4) & 15,
                      z = zeros ? zero[n] >> (i / 16 * 4) & 15 : 8;
            reals[i * N + n] = (float)(qval - z) * scale[n * count + i / 16];
        }
    snprintf(dims[0], sizeof dims[0], "3,%d", k);
    snprintf(dims[1], sizeof dims[1], "4,%d,8", count);
    snprintf(dims[2], sizeof dims[2], "%d", 4 * count);
    int x = net_input(g, "x", OCT_F32, dims[0]), q = net_const(g, "q", OCT_U8, dims[1], qvals),
        s = net_const(g, "s", OCT_F32, dims[2], scale);
    int z = zeros ? net_const(g, "z", OCT_U8, "4", zero) : -1;
    net_output(g, NET_NODE(g, "com.microsoft.MatMulNBits", "mm", "y", x, q, s, z));
    net_int(g, "K", k);
    net_int(g, "N", N);
    net_int(g, "block_size", 16);
    oct_graph *c = same_when_read(g);
    const oct_node *mm = only(c, "MatMul");
    const oct_value *w = &c->value[mm->in[1]];
    assert_true(oct_value_by_columns(w) && w->quant->axis == 0 && w->quant->block == 16 && w->quant->n == 4 * count);
    assert_int_equal(w->quant->dtype, zeros ? OCT_U4 : OCT_S4);
    assert_ptr_equal(w->quant->qvals->data, g->value[q].constant->data);
    assert_true(w->quant->zp[count] == (zeros ? zero[1] & 15 : 0));
    oct_plan *p = net_plan(c, NULL, NULL);
    assert_string_equal(oct_plan_step(p, 0).scheme, "weight-only");
    oct_plan_destroy(p);
    /* Who asks for the reals gets them. */
    net_output(c, mm->in[1]);
    assert_int_equal(net_run(c, got, CAP), M * N + k * N);
    assert_memory_equal(got, want, M * N * sizeof *got);
    assert_memory_equal(got + M * N, reals, (size_t)(k * N) * sizeof *reals);
    oct_graph_destroy(c);
    oct_graph_destroy(g);
}

TEST(blocks)
{
    static const int depth[] = { K, 20, 9 };
    for (size_t i = 0; i < OCT_COUNT(depth); i++)
        for (int zeros = 0; zeros < 2; zeros++)
            check_blocks(depth[i], zeros);
}

TEST(dequantized_blocks)
{
    oct_graph *g = net_graph(21);
    uint8_t qvals[K * N];
    float scale[2 * N];
    for (int i = 0; i < K * N; i++)
        qvals[i] = (uint8_t)(i * 71);
    net_fill(scale, 2 * N, 4);
    int x = net_input(g, "x", OCT_F32, "3,32");
    int w = NET_NODE(g, "DequantizeLinear", "", "w", net_const(g, "q", OCT_U8, "32,4", qvals),
                     net_const(g, "s", OCT_F32, "2,4", scale));
    net_int(g, "axis", -2);
    net_int(g, "block_size", 16);
    net_output(g, NET_NODE(g, "MatMul", "mm", "y", x, w));
    oct_graph *c = same_when_read(g);
    const oct_quant *q = quant(c, only(c, "MatMul")->in[1]);
    assert_true(q->n == 8 && q->axis == 0 && q->block == 16 && q->zp[7] == 0 &&
                !oct_value_by_columns(&c->value[only(c, "MatMul")->in[1]]));
    assert_memory_equal(q->scale, scale, sizeof scale);
    assert_string_equal(c->value[only(c, "MatMul")->in[1]].name, "q");
    oct_graph_destroy(c);
    oct_graph_destroy(g);
}

/* ---- LSTM ---- */

enum { H = 5, IN = 7, ROWS = 4 * H };

static int quantized_matrix(oct_graph *g, const char *name, const oct_quant *q, const int64_t *dims)
{
    int v;
    GOOD(oct_graph_add_value(g, name, OCT_F32, &v, err));
    GOOD(oct_graph_set_dims(g, v, 3, dims, err));
    g->value[v].quant = q;
    return v;
}

/* An LSTM with quantized weights is DynamicQuantizeLSTM, whose weights are transposed. */
TEST(lstm)
{
    static int8_t w[2 * ROWS * IN], r[2 * ROWS * H], wt[2 * ROWS * IN], rt[2 * ROWS * H];
    static float ws[2 * ROWS], rs[2 * ROWS];
    static int32_t none[2 * ROWS];
    static int8_t zeros[2 * ROWS];
    for (int i = 0; i < 2 * ROWS * IN; i++)
        w[i] = (int8_t)(i * 37 % 255 - 127);
    for (int i = 0; i < 2 * ROWS * H; i++)
        r[i] = (int8_t)(i * 91 % 255 - 127);
    for (int i = 0; i < 2 * ROWS; i++) {
        ws[i] = 0.001f + 0.0001f * (float)i;
        rs[i] = 0.002f + 0.0001f * (float)i;
        for (int k = 0; k < IN; k++)
            wt[(i / ROWS * IN + k) * ROWS + i % ROWS] = w[i * IN + k];
        for (int k = 0; k < H; k++)
            rt[(i / ROWS * H + k) * ROWS + i % ROWS] = r[i * H + k];
    }
    int64_t dw[3] = { 2, ROWS, IN }, dr[3] = { 2, ROWS, H };
    const oct_tensor cw = { OCT_S8, 3, dw, sizeof w, sizeof w, w }, cr = { OCT_S8, 3, dr, sizeof r, sizeof r, r };
    for (int per_row = 0; per_row < 2; per_row++) {
        const int n = per_row ? 2 * ROWS : 2;
        const oct_quant qw = { .n = n,
                               .axis = per_row ? 2 : 0,
                               .block = per_row ? IN : 0,
                               .scale = ws,
                               .zp = none,
                               .dtype = OCT_S8,
                               .qvals = &cw };
        const oct_quant qr = { .n = n,
                               .axis = per_row ? 2 : 0,
                               .block = per_row ? H : 0,
                               .scale = rs,
                               .zp = none,
                               .dtype = OCT_S8,
                               .qvals = &cr };
        oct_graph *g[2];
        for (int i = 0; i < 2; i++) {
            g[i] = net_graph(14);
            GOOD(oct_graph_set_opset(g[i], "com.microsoft", 1, err));
            int x = net_input(g[i], "x", OCT_F32, "9,2,7");
            const char *qparams = per_row ? "2,20" : "2";
            net_output(g[i], i ? NET_NODE(g[i], "LSTM", "lstm", "y", x, quantized_matrix(g[i], "w", &qw, dw),
                                          quantized_matrix(g[i], "r", &qr, dr))
                               : NET_NODE(g[i], "com.microsoft.DynamicQuantizeLSTM", "lstm", "y", x,
                                          net_const(g[i], "w", OCT_S8, "2,7,20", wt),
                                          net_const(g[i], "r", OCT_S8, "2,5,20", rt), -1, -1, -1, -1, -1,
                                          net_const(g[i], "ws", OCT_F32, qparams, ws),
                                          net_const(g[i], "wz", OCT_S8, qparams, zeros),
                                          net_const(g[i], "rs", OCT_F32, qparams, rs),
                                          net_const(g[i], "rz", OCT_S8, qparams, zeros)));
            net_int(g[i], "hidden_size", H);
            net_str(g[i], "direction", "bidirectional");
            if (i == 0) {
                oct_graph *c = same_when_read(g[i]);
                const oct_quant *rw = quant(c, only(c, "LSTM")->in[1]), *rr = quant(c, only(c, "LSTM")->in[2]);
                assert_true(oct_quant_same(rw, &qw) && oct_quant_same(rr, &qr) && rw->qvals->dims[1] == ROWS &&
                            rr->qvals->dims[2] == H);
                assert_memory_equal(rw->qvals->data, w, sizeof w);
                assert_memory_equal(rr->qvals->data, r, sizeof r);
                oct_graph_destroy(c);
            }
            assert_int_equal(net_run(g[i], i ? got : want, CAP), 9 * 2 * 2 * H);
            assert_int_equal(int8_steps(g[i]), 1);
        }
        assert_memory_equal(got, want, 9 * 2 * 2 * H * sizeof *got);
        oct_graph_destroy(g[0]);
        oct_graph_destroy(g[1]);
    }
}

/* ---- graphs in stages, taps ---- */

/* Rows that are known when running, before and behind quantized products. */
TEST(stages)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "6,2"), s = NET_F32(g, "s", "", 0.0625f), z = u8(g, "z", 128);
    int8_t qvals[2 * 2] = { 50, -60, 70, -80 };
    int w = NET_NODE(g, "DequantizeLinear", "", "w", net_const(g, "wq", OCT_S8, "2,2", qvals),
                     NET_F32(g, "ws", "", 0.01f), s8(g, "wz", 0));
    int d = NET_NODE(g, "DequantizeLinear", "", "d", NET_NODE(g, "QuantizeLinear", "", "q", x, s, z), s, z);
    int y = NET_NODE(g, "MatMul", "first", "y1", d, w);
    int e = NET_NODE(g, "DequantizeLinear", "", "e", NET_NODE(g, "QuantizeLinear", "", "q1", y, s, z), s, z);
    int top = NET_NODE(g, "ReduceMax", "", "top", e, -1);
    NET_INTS(g, "axes", 1);
    net_int(g, "keepdims", 0);
    int rows =
        NET_NODE(g, "Compress", "", "rows", e, NET_NODE(g, "Greater", "", "which", top, NET_F32(g, "zero", "", 0.0f)));
    net_int(g, "axis", 0);
    int f = NET_NODE(g, "DequantizeLinear", "", "f", NET_NODE(g, "QuantizeLinear", "", "q2", rows, s, z), s, z);
    net_output(g, NET_NODE(g, "MatMul", "second", "out", f, w));
    oct_graph *c;
    const size_t n = net_run(g, want, CAP);
    GOOD(oct_graph_clone(g, &c, err));
    read(c);
    assert_non_null(c->value[find(c, "y1")].quant);
    assert_int_equal(net_run(c, got, CAP), n);
    assert_true(n > 0 && n < 12 &&
                net_error(want, got, n) < 1e-6); /* as it is spelled, nodes behind Compress run one by one, on reals */
    oct_graph_destroy(c);
    oct_graph_destroy(g);
}

typedef struct seen {
    size_t n;
    float v[CAP];
} seen;

static oct_status look(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    seen *s = arg;
    assert_true(s->n + (size_t)t->count <= CAP);
    OCT_TRY(oct_operand_to_f32(t, s->v + s->n, err));
    s->n += (size_t)t->count;
    return OCT_OK;
}

/* Names of values that reading puts others in the place of: what is shown is what they hold. */
TEST(taps)
{
    static const char *const names[] = { "r", "y_quantized", "y", "xd" };
    static seen s;
    oct_graph *g = conv_net(true);
    const size_t n = net_run(g, want, CAP);
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        const oct_plan_opts o = { .taps = &names[i], .n_taps = 1 };
        oct_plan *p = net_plan(g, &o, NULL);
        float x[72];
        net_fill(x, 72, 77);
        s.n = 0;
        oct_plan_set_tap(p, look, &s);
        GOOD(oct_plan_run(p, (const void *[]){ x }, err));
        assert_int_equal(s.n, i < 3 ? n : 72);
        for (size_t k = 0; k < s.n; k++)
            assert_true(i < 3 ? s.v[k] == want[k]
                              : s.v[k] == 0.0625f * fminf(252.0f, fmaxf(-3.0f, rintf(x[k] / 0.0625f))));
        oct_plan_destroy(p);
    }
    oct_graph_destroy(g);
}

/* What is only looked at is made, and a result of DequantizeLinear is shown as reals. */
static oct_status look_at_reals(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    assert_true(t->dtype == OCT_F32 && !t->q);
    return look(arg, tap, t, err);
}

TEST(looked_at_only)
{
    static const char *const names[] = { "fd" };
    static seen s;
    const oct_plan_opts o = { .taps = names, .n_taps = 1, .no_passes = true };
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,3,4"), d = fake(g, x, "q", "d", 0.25f, 128);
    int f = NET_NODE(g, "Flatten", "", "f", d);
    fake(g, f, "fq", "fd", 0.25f, 128);
    net_output(g, NET_NODE(g, "Neg", "", "y", x));
    oct_plan *p = net_plan(g, &o, NULL);
    float v[24];
    net_fill(v, 24, 77);
    s.n = 0;
    oct_plan_set_tap(p, look_at_reals, &s);
    GOOD(oct_plan_run(p, (const void *[]){ v }, err));
    assert_int_equal(s.n, 24);
    for (int i = 0; i < 24; i++)
        assert_true(s.v[i] == 0.25f * rintf(v[i] / 0.25f));
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* Memory that is missing anywhere is told, and nothing is left behind. */
TEST(failing_allocations)
{
    for (int way = 0; way < 3; way++) {
        oct_graph *g = way == 0 ? conv_net(true) : way == 1 ? net_graph(13) : pattern(3, false);
        if (way == 1)
            net_output(g, chain(g, net_input(g, "x", OCT_F32, "3,32"), 0));
        oct_status s = OCT_ENOMEM;
        for (size_t n = 1; s != OCT_OK; n++) {
            oct_plan *p = NULL;
            oct_err e = OCT_ERR_INIT;
            oct_alloc_fail_at(n);
            s = oct_plan_create(g, NULL, NULL, &p, &e);
            if (s != OCT_OK && s != OCT_ENOMEM)
                fail_msg("allocation %zu: status %d: %s", n, (int)s, e.text);
            if (s == OCT_OK)
                assert_true(oct_alloc_fail_at(0) < n); /* none was left to fail */
            oct_plan_destroy(p);
            assert_true(n < 10000);
        }
        oct_alloc_fail_at(0);
        oct_graph_destroy(g);
    }
}
