/* lib/quant: weights in blocks -- parameters and quantized values against sums written out here, which layers get them,
 * both written forms. */

#include "unit.h"

#include "decision.h"
#include "kernels/cpu.h"
#include "net.h"
#include "quant/job/annotate.h"
#include "quant/weights/blocks.h"
#include "quant/weights/constants.h"
#include "targets.h"

enum { CAP = 4096, MOST = 1 << 16 };
static float got[CAP], want[CAP];

/* ------------------------------------------------------------------ parameters and quantized values */

typedef struct result {
    uint8_t qvals[MOST], zero[MOST];
    int32_t zp[MOST];
    float scale[MOST];
    double sqnr;
} result;

static result a, b;

static oct_status quantize(const float *w, const oct_nbits_form *f, oct_pool *pool, result *r, oct_err *err)
{
    const oct_block_matrix m = { w, (int64_t)f->n, 1, OCT_F32 };
    memset(r, 0xa5, sizeof *r); /* all is written */
    memset(r->zero, 0, sizeof r->zero);
    assert_true(f->n * oct_nbits_column_bytes(f) <= MOST);
    OCT_TRY(oct_quantize_blocks(&m, f, pool, r->qvals, r->scale, r->zp, &r->sqnr, err));
    for (size_t j = 0; j < f->n; j++) /* packed, as MatMulNBits has them */
        for (size_t at = 0; f->zero == OCT_NBITS_WHOLE && at < oct_nbits_blocks(f); at++)
            r->zero[j * oct_nbits_zero_bytes(f) + at * (size_t)f->bits / 8] |=
                (uint8_t)(r->zp[j * oct_nbits_blocks(f) + at] << at * (size_t)f->bits % 8);
    return OCT_OK;
}

static oct_nbits_weights weights_of(const result *r)
{
    return (oct_nbits_weights){ .qvals = r->qvals, .scale = r->scale, .zero = r->zero };
}

/* Bell-shaped. */
static void fill(float *w, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        float v = 0;
        for (int k = 0; k < 4; k++)
            v += (float)(net_next(&seed) % 2048u) / 1024.0f - 1.0f;
        w[i] = v * 0.05f;
    }
}

/* Weights that scales hold exactly come back as they are. */
TEST(qparams_are_found)
{
    static float w[100 * 20], back[100];
    for (int form = 0; form < 8; form++) {
        const oct_nbits_form f = { 20, 100, form & 1 ? 8 : 4, form & 2 ? 16 : 32,
                                   form & 4 ? OCT_NBITS_MIDDLE : OCT_NBITS_WHOLE };
        const int top = (1 << f.bits) - 1;
        uint32_t seed = 9;
        for (size_t i = 0; i < f.k; i++)
            for (size_t j = 0; j < f.n; j++) {
                const int zero = form & 4 ? (top + 1) / 2 : (int)((i / f.block * 5 + j * 3) % (size_t)(top + 1));
                /* both ends of the range are in every whole block */
                const int qval = i % f.block == 0   ? 0
                                 : i % f.block == 1 ? top
                                                    : (int)(net_next(&seed) % (unsigned)(top + 1));
                w[i * f.n + j] = (float)(qval - zero) * (j % 2 ? 0.125f : 0.25f);
            }
        GOOD(quantize(w, &f, NULL, &a, err));
        const oct_nbits_weights q = weights_of(&a);
        for (size_t j = 0; j < f.n; j++) {
            oct_nbits_dequantize(&f, &q, j, back);
            for (size_t i = 0; i < f.k / f.block * f.block; i++)
                assert_float_equal(back[i], w[i * f.n + j], 0);
        }
    }
}

/* Squared error of rounding between smallest and largest, the usual way. */
static double plain_error(const float *x, size_t n, int top, bool symmetric)
{
    float lo = 0, hi = 0, far = 0;
    for (size_t i = 0; i < n; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
        far = fabsf(x[i]) > fabsf(far) ? x[i] : far;
    }
    const int middle = (top + 1) / 2;
    const float scale = symmetric ? far / (float)-middle : (hi - lo) / (float)top;
    const int zero = symmetric ? middle : (int)rintf(-lo / scale);
    double error = 0;
    for (size_t i = 0; i < n; i++) {
        int q = (int)rintf(x[i] / scale) + zero;
        q = q < 0 ? 0 : q > top ? top : q;
        const double d = (double)x[i] - (double)((float)(q - zero) * scale);
        error += d * d;
    }
    return error;
}

/* No block is worse than rounded the usual way; the SQNR is that of all. */
TEST(no_worse_than_plain)
{
    static float w[150 * 17], column[150], back[150];
    fill(w, 150 * 17, 3);
    for (int form = 0; form < 8; form++) {
        const oct_nbits_form f = { 17, 150, form & 1 ? 8 : 4, form & 2 ? 16 : 64,
                                   form & 4 ? OCT_NBITS_MIDDLE : OCT_NBITS_WHOLE };
        double signal = 0, noise = 0, plain = 0;
        GOOD(quantize(w, &f, NULL, &a, err));
        const oct_nbits_weights q = weights_of(&a);
        for (size_t j = 0; j < f.n; j++) {
            oct_nbits_dequantize(&f, &q, j, back);
            for (size_t i = 0; i < f.k; i++)
                column[i] = w[i * f.n + j];
            for (size_t i = 0; i < f.k; i += f.block) {
                const size_t n = f.k - i < f.block ? f.k - i : f.block;
                double error = 0;
                for (size_t e = i; e < i + n; e++) {
                    error += ((double)column[e] - (double)back[e]) * ((double)column[e] - (double)back[e]);
                    signal += (double)column[e] * (double)column[e];
                }
                const double usual = plain_error(column + i, n, (1 << f.bits) - 1, form & 4);
                assert_true(error <= usual * 1.001); /* a reciprocal may round a tie the other way */
                noise += error;
                plain += usual;
            }
        }
        assert_true(fabs(a.sqnr - 10 * log10(signal / noise)) < 1e-3); /* sums of floats */
        assert_true(noise < plain * 0.98);
    }
}

TEST(beyond_the_end)
{
    static float w[40 * 3];
    const oct_nbits_form f = { 3, 40, 4, 32, OCT_NBITS_WHOLE };
    fill(w, 40 * 3, 8);
    GOOD(quantize(w, &f, NULL, &a, err));
    for (size_t j = 0; j < f.n; j++)
        for (size_t i = 40; i < 64; i++)
            assert_int_equal(a.qvals[j * 32 + i / 2] >> i % 2 * 4 & 15, a.zero[j] >> 4);
}

/* Zeros, one value, values too small for a scale, the largest there are. */
TEST(odd_blocks)
{
    static float w[32 * 5], back[32];
    const oct_nbits_form f = { 5, 32, 4, 32, OCT_NBITS_WHOLE };
    memset(w, 0, sizeof w);
    for (size_t i = 0; i < 32; i++) {
        w[i * 5 + 1] = 0.7f;
        w[i * 5 + 2] = 1e-40f;
        w[i * 5 + 3] = i % 2 ? 3e38f : -3e38f;
        w[i * 5 + 4] = i == 9 ? -2.0f : 0;
    }
    GOOD(quantize(w, &f, NULL, &a, err));
    const oct_nbits_weights q = weights_of(&a);
    for (size_t j = 0; j < 5; j++) {
        oct_nbits_dequantize(&f, &q, j, back);
        for (size_t i = 0; i < 32; i++) {
            const float v = w[i * 5 + j];
            assert_true(j == 2 ? back[i] == 0 : fabsf(back[i] - v) <= fabsf(v) * 1e-6f);
        }
    }
    w[7 * 5 + 2] = NAN;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(quantize(w, &f, NULL, &a, &err), OCT_ENUMERIC);
    assert_non_null(strstr(err.text, "row 7, column 2"));
}

TEST(same_everywhere)
{
    static float w[300 * 50];
    const char *isa;
    const oct_nbits_form f = { 50, 300, 4, 32, OCT_NBITS_WHOLE };
    oct_pool *pool = oct_pool_create(3);
    fill(w, 300 * 50, 5);
    GOOD(quantize(w, &f, NULL, &a, err));
    for (size_t i = 0; (isa = oct_isa_level(i / 2)); i++) {
        if (oct_isa_limit(isa, NULL) != OCT_OK)
            continue;
        GOOD(quantize(w, &f, i % 2 ? pool : NULL, &b, err));
        assert_memory_equal(&a, &b, sizeof a);
    }
    GOOD(oct_isa_limit("native", err));
    oct_pool_destroy(pool);
}

/* ------------------------------------------------------------------ jobs */

typedef struct work {
    oct_policy *policy;
    oct_qjob *job;
} work;

static work convert(oct_graph *g, oct_qjob_opts o, const char *rules)
{
    work w = { NULL };
    GOOD(oct_policy_create(NULL, &w.policy, err));
    if (rules)
        GOOD(oct_policy_add(w.policy, rules, "test", err));
    o.policy = w.policy;
    o.target = target_named("onnxruntime-x86");
    if (!o.scheme)
        o.scheme = OCT_SCHEME_WEIGHT_ONLY;
    GOOD(oct_qjob_create(g, &o, &w.job, err));
    GOOD(oct_qjob_decide(w.job, NULL, err));
    return w;
}

static void done(work *w, oct_graph *g)
{
    oct_graph_destroy(g);
    oct_qjob_destroy(w->job);
    oct_policy_destroy(w->policy);
}

static const oct_layer_decision *layer(const work *w, const char *name)
{
    return decision_of(w->job, name);
}

/* x[2,3,70] -> MatMul 40 -> Relu -> MatMul of the same matrix's transpose -> Reshape -> Gemm transB with bias -> y */
static oct_graph *products(void)
{
    oct_graph *g = net_graph(17);
    int x = net_input(g, "x", OCT_F32, "2,3,70"), w = net_random(g, "w", "70,40", 2);
    int m = NET_NODE(g, "MatMul", "first", "m", x, w);
    int r = NET_NODE(g, "Relu", "relu", "r", m);
    int s = NET_NODE(g, "MatMul", "second", "s", x, w);
    int t = NET_NODE(g, "Add", "sum", "t", r, s);
    int f = NET_NODE(g, "Reshape", "reshape", "f", t, NET_S64(g, "shape", "2", 6, 40));
    net_output(g, NET_NODE(g, "Gemm", "third", "y", f, net_random(g, "v", "9,40", 4), net_random(g, "bias", "1,9", 5)));
    net_int(g, "transB", 1);
    return g;
}

/* The float graph whose matrices are what the quantized values stand for. */
static void dequantize_into(oct_graph *g, const work *w, const char *node)
{
    const oct_layer_decision *d = layer(w, node);
    const qweights *q = w->job->constants[d->node].weights[0];
    const oct_tensor *matrix = g->value[q->matrix].constant;
    const bool transposed = q->quant.axis == 1;
    const oct_nbits_form form = { .n = (size_t)matrix->dims[!transposed],
                                  .k = (size_t)matrix->dims[transposed],
                                  .bits = oct_dtype_bits(q->quant.dtype),
                                  .block = (size_t)q->quant.block },
                         *f = &form;
    const bool symmetric = q->quant.dtype == OCT_S4 || q->quant.dtype == OCT_S8;
    const int per = 8 / f->bits, middle = symmetric ? 1 << (f->bits - 1) : 0;
    float *to = (float *)(uintptr_t)matrix->data;
    for (size_t j = 0; j < f->n; j++)
        for (size_t i = 0; i < f->k; i++) {
            const size_t block = j * oct_nbits_blocks(f) + i / f->block;
            const uint8_t *qvals = (const uint8_t *)q->quant.qvals->data + j * oct_nbits_column_bytes(f);
            const int qval = qvals[i / (size_t)per] >> i % (size_t)per * (size_t)f->bits & ((1 << f->bits) - 1);
            to[transposed ? j * f->k + i : i * f->n + j] =
                (float)(qval - middle - q->quant.zp[block]) * q->quant.scale[block];
        }
}

/* Both forms compute the float model with rounded weights, bit for bit. */
TEST(both_forms)
{
    for (int form = 0; form < 8; form++) {
        const oct_qjob_opts o = { .bits = form & 1 ? 8 : 4, .block = form & 2 ? 16 : 0, .symmetric = form & 4 };
        oct_graph *g = products(), *fl = products();
        work w = convert(g, o, NULL);
        assert_ptr_equal(w.job->constants[layer(&w, "first")->node].weights[0],
                         w.job->constants[layer(&w, "second")->node].weights[0]);
        dequantize_into(fl, &w, "first");
        dequantize_into(fl, &w, "third");
        const size_t n = net_run(fl, want, CAP);
        GOOD(oct_qjob_rewrite(w.job, err));
        assert_int_equal(net_count(g, "MatMulNBits"), 3);
        assert_int_equal(net_count(g, "MatMul") + net_count(g, "Gemm"), 0);
        assert_int_equal(net_producer(g, "m")->in[1], net_producer(g, "s")->in[1]);
        assert_int_equal(oct_graph_opset(g, ""), 17);
        assert_int_equal(net_run(g, got, CAP), n);
        assert_memory_equal(got, want, n * sizeof *got);
        done(&w, g);
        oct_qjob_opts q = o;
        q.blocks_qdq = true;
        g = products();
        w = convert(g, q, NULL);
        GOOD(oct_qjob_rewrite(w.job, err));
        assert_int_equal(net_count(g, "DequantizeLinear"), 2);
        assert_int_equal(oct_graph_opset(g, ""), 21);
        assert_int_equal(net_run(g, got, CAP), n);
        assert_memory_equal(got, want, n * sizeof *got);
        done(&w, g);
        oct_graph_destroy(fl);
    }
}

/* Products of one matrix in two forms share the value of theirs, in whatever order they come. */
TEST(forms_of_one_matrix)
{
    oct_graph *g = net_graph(17);
    int x = net_input(g, "x", OCT_F32, "2,3,64"), w = net_random(g, "w", "64,40", 2), y[4];
    static const char *const names[] = { "a", "b", "c", "d" };
    for (int i = 0; i < 4; i++) {
        y[i] = NET_NODE(g, "MatMul", names[i], names[i], x, w);
        net_output(g, y[i]);
    }
    work k = convert(g, (oct_qjob_opts){ 0 }, "name:b - s8/block64/sym - -\nname:d - s8/block64/sym - -\n");
    oct_qconstant c[4];
    for (int i = 0; i < 4; i++) {
        const int node = layer(&k, names[i])->node;
        assert_true(oct_constant_of(k.job, node, 1, &c[i]));
        assert_int_equal(c[i].use, OCT_CONSTANT_OPERAND);
        assert_false(oct_constant_of(k.job, node, 0, &(oct_qconstant){ 0 }));
        assert_false(oct_constant_of(k.job, node, 2, &(oct_qconstant){ 0 }));
    }
    assert_true(c[0].quant == c[2].quant && c[1].quant == c[3].quant && c[0].quant != c[1].quant);
    for (int copy = 0; copy < 2; copy++) { /* a copy leaves nothing behind */
        oct_graph *q = g;
        if (!copy)
            GOOD(oct_quantized_copy(k.job, &q, err));
        else
            GOOD(oct_qjob_annotate(k.job, err));
        int in[4];
        for (int i = 0; i < 4; i++) {
            in[i] = net_producer(q, names[i])->in[1];
            assert_ptr_equal(q->value[in[i]].quant, c[i].quant);
        }
        assert_true(in[0] == in[2] && in[1] == in[3]);
        if (!copy)
            oct_graph_destroy(q);
    }
    done(&k, g);
}

TEST(layers_are_told)
{
    oct_graph *g = products();
    work w = convert(g, (oct_qjob_opts){ 0 }, "name:second - s8/block64/sym - -\nname:third float\n");
    const oct_layer_decision *d = layer(&w, "first");
    assert_int_equal(d->scheme, OCT_SCHEME_WEIGHT_ONLY);
    assert_false(d->integer);
    assert_int_equal(d->weights, OCT_U4);
    assert_int_equal(d->block, 32);
    assert_true(d->sqnr_weights > 18 && d->sqnr_weights < 30);
    d = layer(&w, "second");
    assert_int_equal(d->weights, OCT_S8);
    assert_int_equal(d->block, 64);
    assert_true(d->sqnr_weights > 40);
    assert_int_equal(layer(&w, "third")->scheme, OCT_SCHEME_FLOAT);
    assert_int_equal(layer(&w, "relu")->scheme, OCT_SCHEME_FLOAT);
    done(&w, g);
}

/* What has no such form stays as it is, and says why. */
TEST(stays_float)
{
    oct_graph *g = net_graph(17);
    int x = net_input(g, "x", OCT_F32, "1,3,8,8");
    int c = NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "w", "4,3,3,3", 1));
    int f = NET_NODE(g, "Reshape", "reshape", "f", c, NET_S64(g, "shape", "2", -1, 4));
    int t = NET_NODE(g, "MatMul", "short", "t", f, net_random(g, "m", "4,50", 2));
    int u = NET_NODE(g, "Gemm", "odd", "u", t, net_random(g, "n", "50,60", 3), net_random(g, "bias", "1", 4));
    net_output(g, NET_NODE(g, "MatMul", "both", "y", u, NET_NODE(g, "Transpose", "turn", "v", u)));
    work w = convert(g, (oct_qjob_opts){ 0 }, NULL);
    static const struct {
        const char *name, *why;
    } each[] = { { "conv", "only products of matrices" },
                 { "short", "nothing would be saved" },
                 { "odd", "one value for each column" },
                 { "both", "not a constant matrix" } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        assert_int_equal(layer(&w, each[i].name)->scheme, OCT_SCHEME_FLOAT);
        assert_non_null(strstr(layer(&w, each[i].name)->why, each[i].why));
    }
    done(&w, g);
    g = products();
    w = convert(g, (oct_qjob_opts){ .scheme = OCT_SCHEME_DYNAMIC }, "name:first - u4/block32/asym - -\n");
    assert_int_equal(layer(&w, "first")->scheme, OCT_SCHEME_FLOAT);
    assert_int_equal(layer(&w, "second")->scheme, OCT_SCHEME_DYNAMIC);
    done(&w, g);
}

/* A matrix in front of data is turned where it is large, and says why not where it is small, or no matrix. */
TEST(first_factors_are_turned)
{
    static float real[4100], rounded[4100];
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        oct_graph *g = net_graph(17);
        int x = net_input(g, "x", OCT_F32, "2,96,7"), r = net_random(g, "r", "96,96", 1);
        net_output(g, NET_NODE(g, "MatMul", "large", "y", r, x));
        net_output(g, NET_NODE(g, "MatMul", "small", "z", net_random(g, "s", "95,96", 2), x));
        net_output(g, NET_NODE(g, "MatMul", "stack", "u", net_random(g, "t", "2,96,96", 3), x));
        const size_t n = net_run(g, real, OCT_COUNT(real));
        work w =
            convert(g, (oct_qjob_opts){ .scheme = dynamic ? OCT_SCHEME_DYNAMIC : OCT_SCHEME_WEIGHT_ONLY, .bits = 8 },
                    NULL);
        assert_int_equal(layer(&w, "large")->scheme, dynamic ? OCT_SCHEME_DYNAMIC : OCT_SCHEME_WEIGHT_ONLY);
        assert_string_equal(layer(&w, "small")->why,
                            "its constant is the first factor, and too small to gain from a transposition");
        assert_string_equal(
            layer(&w, "stack")->why,
            "its constant is the first factor, and not a single matrix, or the rank of its data is unknown");
        GOOD(oct_qjob_rewrite(w.job, err));
        assert_int_equal(net_count(g, "Transpose"), 2);
        assert_int_equal(net_run(g, rounded, OCT_COUNT(rounded)), n);
        assert_true(net_error(real, rounded, n) < 0.02);
        assert_true(net_error(real, rounded, n) > 0);
        done(&w, g);
    }
}

/* Sets an attribute of the last node. */
static void ints(oct_graph *g, const char *name, int n, int64_t v, int64_t v1, int64_t v2)
{
    GOOD(oct_node_set_ints(g, g->order[g->n_order - 1], name, (const int64_t[]){ v, v1, v2 }, n, err));
}

/* A pointwise convolution is a product of channels that are last, where its matrix is large; Transposes that do the
 * same already are passed by. Others say why not. */
TEST(pointwise_convolutions_are_products)
{
    static float real[12000], rounded[12000];
    oct_graph *g = net_graph(17);
    const int x = net_input(g, "x", OCT_F32, "2,3,128"), z = net_input(g, "z", OCT_F32, "1,128,3,4");
    const int first = NET_NODE(g, "Transpose", "first", "t", x);
    ints(g, "perm", 3, 0, 2, 1);
    const int line =
        NET_NODE(g, "Conv", "line", "c", first, net_random(g, "wl", "160,128,1", 1), net_random(g, "bl", "160", 2));
    const int last = NET_NODE(g, "Transpose", "last", "l", line);
    ints(g, "perm", 3, 0, 2, 1);
    net_output(g, NET_NODE(g, "Relu", "relu", "y", last));
    net_output(g, NET_NODE(g, "Conv", "plane", "p", z, net_random(g, "wp", "144,128,1,1", 3)));
    net_output(g, NET_NODE(g, "Conv", "again", "q", z, net_random(g, "wq", "150,128,1,1", 4),
                           net_random(g, "bq", "150", 5)));
    net_output(g, NET_NODE(g, "Conv", "small", "s", z, net_random(g, "ws", "40,128,1,1", 6)));
    net_output(g, NET_NODE(g, "Conv", "strided", "st", z, net_random(g, "wst", "144,128,1,1", 7)));
    ints(g, "strides", 2, 2, 1, 0);
    net_output(g, NET_NODE(g, "Conv", "grouped", "gr", z, net_random(g, "wg", "192,64,1,1", 8)));
    net_int(g, "group", 2);
    net_output(g, NET_NODE(g, "Conv", "wide", "wi", z, net_random(g, "ww", "100,128,1,3", 9)));
    const size_t n = net_run(g, real, OCT_COUNT(real));
    work w = convert(g, (oct_qjob_opts){ .scheme = OCT_SCHEME_WEIGHT_ONLY, .bits = 8 }, NULL);
    static const char *const products[] = { "line", "plane", "again" }, *const others[] = { "small", "strided",
                                                                                            "grouped", "wide" };
    for (size_t i = 0; i < OCT_COUNT(products); i++)
        assert_int_equal(layer(&w, products[i])->scheme, OCT_SCHEME_WEIGHT_ONLY);
    for (size_t i = 0; i < OCT_COUNT(others); i++) {
        assert_int_equal(layer(&w, others[i])->scheme, OCT_SCHEME_FLOAT);
        assert_non_null(strstr(layer(&w, others[i])->why, i ? "only products of matrices" : "by a small matrix"));
    }
    GOOD(oct_qjob_rewrite(w.job, err));
    assert_int_equal(net_count(g, "MatMulNBits"), 3);
    assert_int_equal(net_count(g, "Conv"), 4);
    assert_int_equal(net_count(g, "Transpose"), 3); /* z's, which two products share, and one for each result of z */
    assert_int_equal(net_run(g, rounded, OCT_COUNT(rounded)), n);
    assert_true(net_error(real, rounded, n) < 0.02);
    assert_true(net_error(real, rounded, n) > 0);
    done(&w, g);
    for (int scheme = 0; scheme < 2; scheme++) { /* dynamic takes it as a product, too, and static does not */
        g = net_graph(17);
        net_output(g, NET_NODE(g, "Conv", "line", "c", net_input(g, "x", OCT_F32, "2,128,5"),
                               net_random(g, "wl", "160,128,1", 1), net_random(g, "bl", "160", 2)));
        const size_t count = net_run(g, real, OCT_COUNT(real));
        w = convert(g, (oct_qjob_opts){ .scheme = scheme ? OCT_SCHEME_STATIC : OCT_SCHEME_DYNAMIC }, NULL);
        assert_string_equal(layer(&w, "line")->op, scheme ? "Conv" : "MatMul");
        assert_int_equal(layer(&w, "line")->scheme, scheme ? OCT_SCHEME_FLOAT : OCT_SCHEME_DYNAMIC);
        GOOD(oct_qjob_rewrite(w.job, err));
        assert_int_equal(net_count(g, "MatMulInteger"), !scheme);
        assert_int_equal(net_run(g, rounded, OCT_COUNT(rounded)), count);
        assert_true(net_error(real, rounded, count) < (scheme ? 1e-6 : 0.02));
        done(&w, g);
    }
}

/* A token model: a table, then products to logits (converted to 16 bits or not), and to keys that attention reads and
 * that are given out under a name. */
static oct_graph *tokens(bool half, bool keys_are_read, const char *name)
{
    oct_graph *g = net_graph(17);
    const int ids = net_input(g, "ids", OCT_S64, "5"),
              x = NET_NODE(g, "Gather", "table", "x", net_random(g, "rows", "300,64", 1), ids);
    const int k = NET_NODE(g, "MatMul", "key", "k", x, net_random(g, "wk", "64,64", 2));
    const int present = NET_NODE(g, "Transpose", "turn", keys_are_read ? "keys" : name, k);
    const int read = keys_are_read ? NET_NODE(g, "MatMul", "attend", "attend", x, present)
                                   : NET_NODE(g, "ReduceMean", "mean", "mean", present);
    const int h = NET_NODE(g, "Add", "sum", "h", x, NET_NODE(g, "ReduceMean", "reduce", "reduced", read));
    const int logits = NET_NODE(g, "MatMul", "head", "logits", h, net_random(g, "wh", "64,300", 3));
    net_output(g, present);
    net_output(g, half ? NET_NODE(g, "Cast", "cast", "logits16", logits) : logits);
    if (half)
        net_int(g, "to", 10);
    else
        NET_NODE(g, "ArgMax", "best", "token", logits);
    return g;
}

/* The product of the logits is a head and gets 8 bits, also if its output is converted or if the largest is picked from
 * it, and so does another output. Keys are none, if attention reads them beside the output or the output is named so.
 */
TEST(heads_are_told)
{
    for (int form = 0; form < 6; form++) {
        const bool half = form & 1, read = form & 2, named = form & 4;
        oct_graph *g = tokens(half, read, named ? "present" : "scores");
        work w = convert(g, (oct_qjob_opts){ 0 }, NULL);
        assert_int_equal(layer(&w, "head")->weights, OCT_U8);
        assert_int_equal(layer(&w, "key")->weights, read || named ? OCT_U4 : OCT_U8);
        done(&w, g);
    }
}
