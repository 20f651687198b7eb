/* lib/quant/job/annotate.c and lib/forms: which values carry what quantization, and which nodes files have for it,
 * against sums written out here. */
#include "unit.h"

#include "forms/write/forms_write.h"
#include "job_work.h"
#include "net.h"
#include "quant/quant.h"

enum { CAP = 4096 };
static float got[CAP], want[CAP];

/* ---- graphs of decisions ---- */

/* A job that has decided, with statistics of one run on x where it has data. */
static work decide(oct_graph *g, const char *rules, oct_qjob_opts o, const float *x)
{
    work w = { NULL };
    GOOD(oct_policy_create(NULL, &w.policy, err));
    GOOD(oct_policy_add(w.policy, rules, "test", err));
    o.policy = w.policy;
    GOOD(oct_target_open("onnxruntime-vnni", &w.target, err));
    o.target = w.target;
    o.have_data = x != NULL;
    GOOD(oct_qjob_create(g, &o, &w.job, err));
    w.calib = oct_calib_create();
    if (x) {
        take_statistics(&w, g, x);
    }
    GOOD(oct_qjob_decide(w.job, w.calib, err));
    return w;
}

static const oct_value *value(const oct_graph *g, const char *name)
{
    const int v = oct_graph_find(g, name);
    if (v < 0)
        fail_msg("there is no value '%s'", name);
    return &g->value[v];
}

static const oct_value *input(const oct_graph *g, const oct_node *n, int slot)
{
    assert_true(slot < n->n_in && n->in[slot] >= 0);
    return &g->value[n->in[slot]];
}

static float largest(const float *v, int n, int step)
{
    float top = 0;
    for (int i = 0; i < n; i++)
        top = fmaxf(top, fabsf(v[i * step]));
    return top;
}

/* x[1,3,6,6] -> Conv -> Relu -> Add c -> Conv -> y; c is added to x's mean, too. */
static oct_graph *convs(void)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,3,6,6"), c = net_random(g, "c", "4,1,1", 7);
    int a = NET_NODE(g, "Conv", "first", "a", x, net_random(g, "w1", "4,3,3,3", 3), net_random(g, "b1", "4", 4));
    int s = NET_NODE(g, "Add", "sum", "s", NET_NODE(g, "Relu", "relu", "r", a), c);
    net_output(g, NET_NODE(g, "Conv", "second", "y", s, net_random(g, "w2", "2,4,3,3", 5)));
    int m = NET_NODE(g, "ReduceMean", "mean", "m", x);
    net_output(g, NET_NODE(g, "Sub", "other", "z", m, c));
    return g;
}

TEST(values_carry_qparams)
{
    oct_graph *g = convs();
    float x[108], w1[108], b1[4], lo = 0, hi = 0;
    net_fill(x, 108, 1);
    memcpy(w1, value(g, "w1")->constant->data, sizeof w1);
    memcpy(b1, value(g, "b1")->constant->data, sizeof b1);
    work k = decide(g, "any - - - minmax\n", (oct_qjob_opts){ 0 }, x);
    GOOD(oct_qjob_annotate(k.job, err));
    GOOD(oct_graph_check(g, err));
    for (int i = 0; i < 108; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    /* x stays real, for the mean; a border makes what the convolution reads. */
    assert_null(value(g, "x")->quant);
    assert_int_equal(net_count(g, "QuantizeLinear"), 1);
    assert_int_equal(net_count(g, "DequantizeLinear") + net_count(g, "Relu"), 0);
    const oct_node *first = net_producer(g, "r"), *border = net_producer(g, "x_quantized");
    const oct_quant *q = input(g, first, 0)->quant;
    assert_string_equal(first->name, "first");
    assert_true(border->n_in == 1 && border->n_out == 1 && first->in[0] == border->out[0]);
    assert_int_equal(input(g, first, 0)->dtype, OCT_F32);
    assert_true(q->n == 1 && q->dtype == OCT_U8 && q->block == 0 && !q->qvals);
    assert_float_equal(q->scale[0], (hi - lo) / 255, 1e-7);
    assert_int_equal(q->zp[0], (int)rintf(-lo / q->scale[0]));
    /* Weights by output channel, the bias at s_x * s_w. */
    const oct_value *w = input(g, first, 1), *b = input(g, first, 2);
    assert_true(w->quant->n == 4 && w->quant->axis == 0 && w->quant->dtype == OCT_S8 && w->quant->qvals->rank == 4);
    assert_true(b->quant->n == 4 && b->quant->axis == 0 && b->quant->dtype == OCT_S32);
    for (int o = 0; o < 4; o++) {
        const float s = largest(w1 + o * 27, 27, 1) / 127;
        assert_float_equal(w->quant->scale[o], s, 0);
        assert_int_equal(w->quant->zp[o], 0);
        assert_float_equal(b->quant->scale[o], q->scale[0] * s, 0);
        assert_int_equal(((const int32_t *)b->quant->qvals->data)[o],
                         (int)rint((double)b1[o] / (double)(q->scale[0] * s)));
        for (int i = 0; i < 27; i++)
            assert_int_equal(((const int8_t *)w->quant->qvals->data)[o * 27 + i], (int)rintf(w1[o * 27 + i] / s));
    }
    /* What integer operators make carries its parameters itself, the clamp's where it begins; the constant is read as
     * quantized values here, as reals there. */
    assert_int_equal(value(g, "r")->quant->zp[0], 0);
    assert_non_null(value(g, "s")->quant);
    const oct_value *c = input(g, net_producer(g, "s"), 1);
    assert_string_equal(c->name, "c_quantized");
    for (int i = 0; i < 4; i++) {
        const float real = c->quant->scale[0] * (float)(((const uint8_t *)c->quant->qvals->data)[i] - c->quant->zp[0]);
        assert_float_equal(real, ((const float *)value(g, "c")->constant->data)[i], c->quant->scale[0] * 0.501f);
    }
    assert_string_equal(input(g, net_producer(g, "z"), 1)->name, "c");
    stop(&k, g);
}

/* x[7,1,9] -> LSTM of two directions -> y; two products of x. */
static oct_graph *dynamic_layers(void)
{
    oct_graph *g = net_graph(14);
    int x = net_input(g, "x", OCT_F32, "7,1,9");
    net_output(g,
               NET_NODE(g, "LSTM", "lstm", "y", x, net_random(g, "w", "2,20,9", 1), net_random(g, "r", "2,20,5", 2)));
    net_int(g, "hidden_size", 5);
    net_str(g, "direction", "bidirectional");
    int flat = NET_NODE(g, "Reshape", "flat", "f", x, NET_S64(g, "to", "2", 7, 9));
    net_output(g, NET_NODE(g, "MatMul", "first", "p", flat, net_random(g, "m", "9,6", 8)));
    net_output(g,
               NET_NODE(g, "Gemm", "second", "q", flat, net_random(g, "n", "4,9", 9), net_random(g, "bias", "4", 3)));
    net_int(g, "transB", 1);
    return g;
}

TEST(dynamic_layers_carry_qvals)
{
    oct_graph *g = dynamic_layers();
    const float *m = value(g, "m")->constant->data, *r = value(g, "r")->constant->data;
    work k = decide(g, "any - s8/channel/sym - -\n", (oct_qjob_opts){ .scheme = OCT_SCHEME_DYNAMIC }, NULL);
    GOOD(oct_qjob_annotate(k.job, err));
    GOOD(oct_graph_check(g, err));
    const oct_node *first = net_producer(g, "p"), *second = net_producer(g, "q"), *lstm = net_producer(g, "y");
    assert_true(oct_is_op(first, "MatMul") && oct_is_op(second, "Gemm") && oct_is_op(lstm, "LSTM"));
    assert_int_equal(first->in[0], second->in[0]);
    assert_int_equal(input(g, first, 0)->quant->n, 0);
    assert_true(oct_is_op(&g->node[input(g, first, 0)->producer], "DynamicQuantizeLinear"));
    assert_int_equal(net_count(g, "DynamicQuantizeLinear"), 1);
    const oct_quant *q = input(g, first, 1)->quant, *t = input(g, second, 1)->quant;
    assert_true(q->n == 6 && q->axis == 1 && t->n == 4 && t->axis == 0);
    assert_null(input(g, second, 2)->quant);
    for (int j = 0; j < 6; j++) {
        assert_float_equal(q->scale[j], largest(m + j, 9, 6) / 127, 0);
        for (int i = 0; i < 9; i++)
            assert_int_equal(((const int8_t *)q->qvals->data)[i * 6 + j], (int)rintf(m[i * 6 + j] / q->scale[j]));
    }
    /* A row of the LSTM's matrix is a block, in ONNX's order. */
    q = input(g, lstm, 2)->quant;
    assert_true(q->n == 40 && q->axis == 2 && q->block == 5 && q->qvals->rank == 3 && q->qvals->dims[1] == 20);
    for (int row = 0; row < 40; row++) {
        assert_float_equal(q->scale[row], largest(r + row * 5, 5, 1) / 127, 0);
        for (int i = 0; i < 5; i++)
            assert_int_equal(((const int8_t *)q->qvals->data)[row * 5 + i], (int)rintf(r[row * 5 + i] / q->scale[row]));
    }
    assert_null(input(g, lstm, 0)->quant);
    stop(&k, g);
}

/* A matrix is annotated once for two products; their activations stay real. */
TEST(blocks_are_shared)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "3,40"), m = net_random(g, "m", "40,48", 2);
    net_output(g, NET_NODE(g, "MatMul", "first", "p", x, m));
    net_output(g, NET_NODE(g, "MatMul", "second", "q", NET_NODE(g, "Neg", "neg", "n", x), m));
    work k = decide(g, "any - - - -\n", (oct_qjob_opts){ .scheme = OCT_SCHEME_WEIGHT_ONLY, .block = 16 }, NULL);
    const float *real = value(g, "m")->constant->data;
    GOOD(oct_qjob_annotate(k.job, err));
    const oct_node *first = net_producer(g, "p");
    const oct_quant *q = input(g, first, 1)->quant;
    assert_int_equal(first->in[1], net_producer(g, "q")->in[1]);
    assert_null(input(g, first, 0)->quant);
    assert_true(q->dtype == OCT_U4 && q->axis == 0 && q->block == 16 && q->n == 48 * 3);
    assert_true(q->qvals->rank == 3 && q->qvals->dims[0] == 48 && q->qvals->dims[1] == 3 && q->qvals->dims[2] == 8);
    for (int j = 0; j < 48; j++)
        for (int i = 0; i < 40; i++) {
            const int qval = ((const uint8_t *)q->qvals->data)[j * 24 + i / 2] >> i % 2 * 4 & 15, at = j * 3 + i / 16;
            assert_float_equal(q->scale[at] * (float)(qval - q->zp[at]), real[i * 48 + j], fabsf(q->scale[at]) * 1.5f);
        }
    stop(&k, g);
}

/* 16-bit floats stand beside quantized values: the first convolution is on integers, and what follows it computes in 16
 * bits. */
TEST(halves_belong_to_it)
{
    oct_graph *g = convs();
    float x[108];
    net_fill(x, 108, 1);
    work k = decide(g, "any - - - minmax\nname:second fp16\n", (oct_qjob_opts){ 0 }, x);
    GOOD(oct_qjob_annotate(k.job, err));
    const oct_node *second = &g->node[input(g, net_producer(g, "y"), 0)->producer];
    assert_string_equal(second->name, "second");
    assert_int_equal(input(g, second, 0)->dtype, OCT_F16);
    assert_int_equal(input(g, second, 1)->constant->dtype, OCT_F16);
    assert_null(input(g, second, 1)->quant);
    assert_int_equal(input(g, net_producer(g, "r"), 1)->quant->dtype, OCT_S8);
    assert_int_equal(value(g, "y")->dtype, OCT_F32);
    stop(&k, g);
}

/* ---- written by hand ---- */

static const float one_scale[] = { 0.125f };
static const int32_t one_zero[] = { 7 };
static const oct_quant QPARAMS = { .n = 1, .scale = one_scale, .zp = one_zero, .dtype = OCT_U8 };

static int annotate(oct_graph *g, int v, const oct_quant *q)
{
    g->value[v].dtype = OCT_F32;
    g->value[v].quant = q;
    return v;
}

static oct_tensor *qvals_of(oct_graph *g, oct_dtype t, int rank, const int64_t *dims, const void *data)
{
    oct_tensor *x;
    GOOD(oct_tensor_new(g->arena, t, rank, dims, &x, err));
    memcpy((void *)(uintptr_t)x->data, data, x->bytes);
    return x;
}

/* An annotated constant without real elements. */
static int quantized(oct_graph *g, const char *name, int rank, const int64_t *dims, oct_quant q,
                     const oct_tensor *qvals)
{
    int v;
    q.qvals = qvals;
    GOOD(oct_graph_add_value(g, name, OCT_F32, &v, err));
    GOOD(oct_graph_set_dims(g, v, rank, dims, err));
    g->value[v].quant = oct_arena_memdup(g->arena, &q, sizeof q);
    assert_non_null(g->value[v].quant);
    return v;
}

static void write_forms(oct_graph *g, bool blocks_qdq)
{
    GOOD(oct_forms_write(g, &(oct_forms_write_opts){ .blocks_qdq = blocks_qdq }, err));
    for (size_t v = 0; v < g->n_value; v++)
        assert_true(g->value[v].dead || !g->value[v].quant);
    GOOD(oct_infer_shapes(g, err));
}

static float fake_quantized(float x)
{
    const float c = rintf(x / one_scale[0]) + 7;
    return (fminf(fmaxf(c, 0), 255) - 7) * one_scale[0];
}

/* A border, a value that an operator makes with the same parameters and that is an output, and one that a nested graph
 * reads. */
TEST(activations)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,1,2,3");
    int a = annotate(g, NET_NODE(g, "QuantizeLinear", "border", "x_quantized", x), &QPARAMS);
    int y = annotate(g, NET_NODE(g, "Relu", "relu", "y", a), &QPARAMS);
    int n = annotate(g, NET_NODE(g, "Neg", "neg", "n", y), &QPARAMS);
    net_output(g, y);
    int z = NET_NODE(g, "If", "if", "z",
                     NET_NODE(g, "Greater", "more", "c", NET_F32(g, "one", "", 1), NET_F32(g, "zero", "", 0)));
    int node = net_last;
    oct_graph *then = net_nested(g), *other = net_nested(g);
    net_output(then, NET_NODE(then, "Abs", "abs", "t", net_take(then, n)));
    then->value[oct_graph_find(then, "n")].quant = &QPARAMS; /* as captured values take it over */
    net_output(other, NET_NODE(other, "Abs", "abs", "e", net_take(other, a)));
    net_give(g, node, "then_branch", then);
    net_give(g, node, "else_branch", other);
    net_output(g, z);
    GOOD(oct_graph_set_captures(g, node, err));
    write_forms(g, false);
    assert_int_equal(net_count(g, "QuantizeLinear"), 3);
    assert_int_equal(net_count(g, "DequantizeLinear"), 3);
    const oct_node *q = net_producer(g, "y_quantized"), *dq = net_producer(g, "y");
    assert_string_equal(input(g, q, 0)->name, "y_raw");
    assert_string_equal(net_producer(g, "y_raw")->name, "relu");
    assert_int_equal(dq->in[0], q->out[0]);
    assert_string_equal(input(g, net_producer(g, "n"), 0)->name, "n_quantized");
    /* The body reads the border's result under its name: that is real now. */
    assert_true(oct_is_op(net_producer(g, "x_quantized"), "DequantizeLinear"));
    for (const char *const *at = (const char *const[]){ "y", "n", "x_quantized", NULL }; *at; at++) {
        assert_string_equal(input(g, net_producer(g, *at), 1)->name, "x_scale");
        assert_string_equal(input(g, net_producer(g, *at), 2)->name, "x_zero_point");
    }
    assert_int_equal(*(const uint8_t *)value(g, "x_zero_point")->constant->data, 7);
    assert_int_equal(value(g, "x_scale")->constant->rank, 0);
    float in[6];
    net_fill(in, 6, 77);
    assert_int_equal(net_run(g, got, CAP), 12);
    for (int i = 0; i < 6; i++) {
        assert_float_equal(got[i], fake_quantized(fmaxf(fake_quantized(in[i]), 0)), 0);
        assert_float_equal(got[6 + i], fabsf(fake_quantized(-got[i])), 0);
    }
    oct_graph_destroy(g);
}

/* Integers that become quantized values, and quantized values as numbers: nodes that are there lack their parameters
 * only. */
TEST(integer_borders)
{
    oct_graph *g = net_graph(13);
    int u = net_const(g, "u", OCT_U8, "4", (const uint8_t[]){ 0, 7, 100, 255 });
    int a = annotate(g, NET_NODE(g, "DequantizeLinear", "in", "a", u), &QPARAMS);
    net_output(g, NET_NODE(g, "Neg", "neg", "y", a));
    int o = NET_NODE(g, "QuantizeLinear", "out", "o", a);
    g->value[o].dtype = OCT_U8;
    net_output(g, o);
    write_forms(g, false);
    assert_int_equal(net_count(g, NULL), 3);
    assert_int_equal(net_producer(g, "o")->n_in, 3);
    assert_int_equal(net_run(g, got, CAP), 8);
    for (int i = 0; i < 4; i++) {
        const float qval = (float[]){ 0, 7, 100, 255 }[i];
        assert_float_equal(got[i], -(qval - 7) * one_scale[0], 0);
        assert_float_equal(got[4 + i], qval, 0);
    }
    oct_graph_destroy(g);
}

/* Two values stand for w, with two sets of parameters: the integers are the same, and stored once under the first name;
 * other names are numbered in the order of the products. */
TEST(constants_keep_their_names)
{
    static const float scales[] = { 0.5f, 0.25f };
    static const int32_t zeros[] = { 0, 0 };
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,2"),
        a = annotate(g, NET_NODE(g, "QuantizeLinear", "border", "x_quantized", x), &QPARAMS);
    const int64_t dims[2] = { 2, 2 };
    const oct_tensor *qvals = qvals_of(g, OCT_S8, 2, dims, (const int8_t[]){ 1, 2, 3, 4 });
    const oct_quant columns = { .n = 2, .axis = 1, .scale = scales, .zp = zeros, .dtype = OCT_S8 },
                    whole = { .n = 1, .scale = scales, .zp = zeros, .dtype = OCT_S8 };
    net_output(g, NET_NODE(g, "MatMul", "first", "p", a, quantized(g, "w_quantized_1", 2, dims, columns, qvals)));
    net_output(g, NET_NODE(g, "MatMul", "second", "q", a, quantized(g, "w_quantized", 2, dims, whole, qvals)));
    write_forms(g, false);
    const oct_node *p = &g->node[input(g, net_producer(g, "p"), 1)->producer],
                   *q = &g->node[input(g, net_producer(g, "q"), 1)->producer];
    const char *const names[2][3] = { { "w_quantized_1", "w_scale", "w_zero_point" },
                                      { "w_quantized_1", "w_scale_1", "w_zero_point_1" } };
    for (int i = 0; i < 3; i++) {
        assert_string_equal(input(g, p, i)->name, names[0][i]);
        assert_string_equal(input(g, q, i)->name, names[1][i]);
    }
    assert_int_equal(oct_node_int(p, "axis", -7), 1);
    assert_null(oct_node_attr(q, "axis"));
    assert_string_equal(g->value[p->out[0]].name, "w_dequantized");
    float in[2];
    net_fill(in, 2, 77);
    net_run(g, got, CAP);
    for (int j = 0; j < 2; j++) {
        assert_float_equal(got[j],
                           fake_quantized(in[0]) * (float)(1 + j) * scales[j] +
                               fake_quantized(in[1]) * (float)(3 + j) * scales[j],
                           1e-6);
        assert_float_equal(got[2 + j],
                           (fake_quantized(in[0]) * (float)(1 + j) + fake_quantized(in[1]) * (float)(3 + j)) * 0.5f,
                           1e-6);
    }
    oct_graph_destroy(g);
}

/* The chain reads the quantized values as [k][n]; the graph's values give way to it, and the bias is added last. */
TEST(dynamic_chain)
{
    static const oct_quant dynamic = { .dtype = OCT_U8 };
    static const float scales[] = { 0.5f, 0.25f };
    static const int32_t zeros[] = { 128, 128 };
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,3"),
        a = annotate(g, NET_NODE(g, "DynamicQuantizeLinear", "d", "gemm_input_quantized", x), &dynamic);
    const int64_t dims[2] = { 2, 3 };
    const oct_quant q = { .n = 2, .axis = 0, .scale = scales, .zp = zeros, .dtype = OCT_U8 };
    int w = quantized(g, "w_quantized", 2, dims, q,
                      qvals_of(g, OCT_U8, 2, dims, (const uint8_t[]){ 129, 130, 131, 132, 133, 134 }));
    net_output(g, NET_NODE(g, "Gemm", "gemm", "y", a, w, NET_F32(g, "bias", "2", 10, 20)));
    net_int(g, "transB", 1);
    write_forms(g, false);
    static const char *const ops[] = { "DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul", "Add" };
    assert_int_equal(g->n_order, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(g->node[g->order[i]].op, ops[i]);
    const oct_node *product = net_producer(g, "gemm_integer"), *d = net_producer(g, "gemm_input_quantized");
    assert_true(d->n_out == 3 && product->in[0] == d->out[0] && product->in[2] == d->out[2]);
    assert_memory_equal(value(g, "w_quantized")->constant->data, ((const uint8_t[]){ 129, 132, 130, 133, 131, 134 }),
                        6);
    assert_int_equal(((const uint8_t *)value(g, "w_zero_point")->constant->data)[1], 128);
    float in[3], step;
    net_fill(in, 3, 77);
    step = (fmaxf(fmaxf(in[0], in[1]), fmaxf(in[2], 0)) - fminf(fminf(in[0], in[1]), fminf(in[2], 0))) / 255;
    net_run(g, got, CAP);
    for (int j = 0; j < 2; j++) {
        float sum = 10.0f * (float)(j + 1);
        for (int i = 0; i < 3; i++)
            sum += in[i] * (float)(1 + 3 * j + i) * scales[j];
        assert_float_equal(got[j], sum, step * 6);
    }
    oct_graph_destroy(g);
}

/* W[3][2] in blocks of 16 along k: rows, and columns, of quantized values are one matrix in both forms. */
TEST(blocks_in_both_orders)
{
    enum { K = 32, N = 3, BLOCKS = 2 };
    uint8_t rows[K * N / 2] = { 0 }, columns[N * K / 2] = { 0 };
    float real[K * N], by_rows[BLOCKS * N], by_columns[N * BLOCKS];
    int32_t zero_rows[BLOCKS * N], zero_columns[N * BLOCKS];
    for (int j = 0; j < N; j++)
        for (int i = 0; i < K; i++) {
            const int qval = (i * 5 + j * 3) % 16, b = i / 16, at = i * N + j;
            by_rows[b * N + j] = by_columns[j * BLOCKS + b] = 0.25f * (float)(1 + b + 2 * j);
            zero_rows[b * N + j] = zero_columns[j * BLOCKS + b] = 3 + b + j;
            rows[at / 2] |= (uint8_t)(qval << at % 2 * 4);
            columns[(j * K + i) / 2] |= (uint8_t)(qval << i % 2 * 4);
            real[at] = (float)(qval - 3 - b - j) * by_rows[b * N + j];
        }
    oct_graph *f = net_graph(21);
    net_output(f, NET_NODE(f, "MatMul", "product", "y", net_input(f, "x", OCT_F32, "2,32"),
                           net_const(f, "w", OCT_F32, "32,3", real)));
    const size_t n = net_run(f, want, CAP);
    for (int form = 0; form < 4; form++) {
        const bool transposed = form & 1, qdq = form & 2;
        oct_graph *g = net_graph(21);
        const oct_quant q = { .n = N * BLOCKS,
                              .axis = 0,
                              .scale = transposed ? by_columns : by_rows,
                              .zp = transposed ? zero_columns : zero_rows,
                              .dtype = OCT_U4,
                              .block = 16 };
        const oct_tensor *qvals = transposed ? qvals_of(g, OCT_U8, 3, (const int64_t[]){ N, BLOCKS, 8 }, columns)
                                             : qvals_of(g, OCT_U4, 2, (const int64_t[]){ K, N }, rows);
        int x = net_input(g, "x", OCT_F32, "2,32");
        net_output(g, NET_NODE(g, "MatMul", "product", "y", x,
                               quantized(g, "w_quantized", 2, (const int64_t[]){ K, N }, q, qvals)));
        write_forms(g, qdq);
        const bool one = transposed && !qdq;
        assert_int_equal(net_count(g, "MatMulNBits"), one);
        assert_int_equal(net_count(g, "DequantizeLinear"), !one);
        assert_string_equal(input(g, one ? net_producer(g, "y") : net_producer(g, "w_dequantized"), one ? 3 : 2)->name,
                            "w_zero_point");
        if (!one)
            assert_memory_equal(value(g, "w_quantized")->constant->data, rows, sizeof rows);
        assert_int_equal(net_run(g, got, CAP), n);
        assert_memory_equal(got, want, n * sizeof *got);
        oct_graph_destroy(g);
    }
    oct_graph_destroy(f);
}

/* DynamicQuantizeLSTM has its matrices the other way round, under the name and with the outputs of the LSTM. */
TEST(lstm_is_transposed)
{
    static const float scales[] = { 0.5f, 1, 2, 4, 0.25f, 1, 1, 1 };
    static const int32_t zeros[8] = { 0 };
    oct_graph *g = net_graph(14);
    const int64_t wide[3] = { 1, 8, 3 }, square[3] = { 1, 8, 2 };
    int8_t qvals[24];
    for (int i = 0; i < 24; i++)
        qvals[i] = (int8_t)(i - 10);
    const oct_quant rows = { .n = 8, .axis = 2, .block = 3, .scale = scales, .zp = zeros, .dtype = OCT_S8 },
                    whole = { .n = 1, .scale = scales, .zp = zeros, .dtype = OCT_S8 };
    int x = net_input(g, "x", OCT_F32, "4,1,3"),
        w = quantized(g, "w_quantized", 3, wide, rows, qvals_of(g, OCT_S8, 3, wide, qvals));
    int r = quantized(g, "r_quantized", 3, square, whole, qvals_of(g, OCT_S8, 3, square, qvals));
    net_output(g, NET_NODE(g, "LSTM", "lstm", "y", x, w, r));
    net_int(g, "hidden_size", 2);
    net_int(g, "layout", 0);
    write_forms(g, false);
    const oct_node *n = net_producer(g, "y");
    assert_string_equal(n->op, "DynamicQuantizeLSTM");
    assert_string_equal(n->domain, "com.microsoft");
    assert_string_equal(n->name, "lstm");
    assert_int_equal(oct_graph_opset(g, "com.microsoft"), 1);
    assert_true(n->n_in == 12 && !oct_node_attr(n, "layout") && oct_node_int(n, "hidden_size", 0) == 2);
    const oct_tensor *t = input(g, n, 1)->constant;
    assert_true(t->dims[1] == 3 && t->dims[2] == 8);
    for (int i = 0; i < 24; i++)
        assert_int_equal(((const int8_t *)t->data)[i], qvals[i % 8 * 3 + i / 8]);
    assert_int_equal(input(g, n, 8)->constant->rank, 2);
    assert_int_equal(input(g, n, 10)->constant->rank, 1);
    assert_string_equal(input(g, n, 11)->name, "r_zero_point");
    assert_memory_equal(input(g, n, 8)->constant->data, scales, sizeof scales);
    oct_graph_destroy(g);
}

/* Zero points have the type of the quantized values. */
TEST(wide_zero_point)
{
    static const int32_t zero[] = { 40000 };
    static const oct_quant wide = { .n = 1, .scale = one_scale, .zp = zero, .dtype = OCT_U16 };
    oct_graph *g = net_graph(21);
    int x = net_input(g, "x", OCT_F32, "4");
    net_output(g, NET_NODE(g, "Neg", "neg", "y",
                           annotate(g, NET_NODE(g, "QuantizeLinear", "border", "x_quantized", x), &wide)));
    write_forms(g, false);
    assert_int_equal(value(g, "x_zero_point")->constant->dtype, OCT_U16);
    assert_int_equal(*(const uint16_t *)value(g, "x_zero_point")->constant->data, 40000);
    float in[4];
    net_fill(in, 4, 77);
    assert_int_equal(net_run(g, got, CAP), 4);
    for (int i = 0; i < 4; i++)
        assert_float_equal(got[i], -rintf(in[i] / one_scale[0]) * one_scale[0], 0);
    oct_graph_destroy(g);
}

/* Quantized values of a constant that a body reads, too: the dequantized value has its name. */
TEST(captured_constant)
{
    oct_graph *g = net_graph(13);
    const int64_t dims[1] = { 2 };
    int c = quantized(g, "c_quantized", 1, dims, QPARAMS, qvals_of(g, OCT_U8, 1, dims, (const uint8_t[]){ 8, 9 }));
    net_output(g, NET_NODE(g, "Neg", "neg", "y", c));
    int z = NET_NODE(g, "Neg", "holder", "z", c);
    net_capture(g, net_last, c);
    GOOD(oct_graph_set_captures(g, net_last, err));
    net_output(g, z);
    GOOD(oct_forms_write(g, &(oct_forms_write_opts){ 0 }, err));
    const oct_node *n = net_producer(g, "c_quantized");
    assert_true(oct_is_op(n, "DequantizeLinear"));
    assert_int_equal(((const uint8_t *)input(g, n, 0)->constant->data)[1], 9);
    assert_null(value(g, "c_quantized")->quant);
    oct_graph_destroy(g);
}

/* Types by node: one Cast for both readers in the type, one back; the output keeps its type unless ends change. */
TEST(half_by_node)
{
    for (int ends = 0; ends < 2; ends++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,2");
        int a = NET_NODE(g, "Neg", "a", "a", x), b = NET_NODE(g, "Abs", "b", "b", x);
        int c = NET_NODE(g, "Sqrt", "c", "c", NET_NODE(g, "Add", "s", "s", a, b));
        net_output(g, c);
        GOOD(oct_infer_shapes(g, err));
        const oct_dtype type[] = { OCT_F16, OCT_F16, OCT_F16 }; /* Sqrt is behind the list */
        const oct_half_opts o = { type, OCT_COUNT(type), ends ? OCT_F16 : OCT_UNDEFINED };
        GOOD(oct_half_write(g, &o, err));
        GOOD(oct_graph_check(g, err));
        assert_int_equal(net_count(g, "Cast"), 2);
        assert_int_equal(value(g, "x")->dtype, ends ? OCT_F16 : OCT_F32);
        assert_int_equal(value(g, "c")->dtype, ends ? OCT_F16 : OCT_F32);
        assert_int_equal(value(g, "a")->dtype, OCT_F16);
        assert_int_equal(value(g, "s")->dtype, OCT_F16);
        assert_string_equal(input(g, net_producer(g, ends ? "c_float32" : "c"), 0)->name, "s_float32");
        oct_graph_destroy(g);
    }
}
