/* lib/runtime: plans of small graphs against loops written out, memory, taps, failing allocations, errors. */
#include "unit.h"

#include "net.h"
#include "net_cnn.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "runtime/plan_int.h"

enum { CAP = 1 << 16 };
static float got[CAP], want[CAP];

/* ------------------------------------------------------------------ references */

/* x[n][c][d][h][w] with w[oc][c][kd][kh][kw], stride 1, zero padding p on all sides of dimensions longer than 1. */
static void conv_5d(const float *x, const int64_t xd[5], const float *w, const int64_t wd[5], int64_t p, float *y)
{
    int64_t pad[3], od[3];
    for (int i = 0; i < 3; i++) {
        pad[i] = wd[2 + i] > 1 ? p : 0;
        od[i] = xd[2 + i] + 2 * pad[i] - wd[2 + i] + 1;
    }
    for (int64_t n = 0; n < xd[0]; n++)
        for (int64_t o = 0; o < wd[0]; o++)
            for (int64_t a = 0; a < od[0]; a++)
                for (int64_t b = 0; b < od[1]; b++)
                    for (int64_t e = 0; e < od[2]; e++) {
                        double sum = 0;
                        for (int64_t c = 0; c < xd[1]; c++)
                            for (int64_t i = 0; i < wd[2]; i++)
                                for (int64_t j = 0; j < wd[3]; j++)
                                    for (int64_t k = 0; k < wd[4]; k++) {
                                        int64_t z = a + i - pad[0], r = b + j - pad[1], s = e + k - pad[2];
                                        if (z < 0 || r < 0 || s < 0 || z >= xd[2] || r >= xd[3] || s >= xd[4])
                                            continue;
                                        sum += (double)x[(((n * xd[1] + c) * xd[2] + z) * xd[3] + r) * xd[4] + s] *
                                               (double)w[(((o * xd[1] + c) * wd[2] + i) * wd[3] + j) * wd[4] + k];
                                    }
                        *y++ = (float)sum;
                    }
}

static void same(const float *a, const float *b, size_t n)
{
    double e = net_error(a, b, n);
    if (!(e < 1e-6))
        fail_msg("%g of the range off", e);
}

/* ------------------------------------------------------------------ layouts */

/* QLinearConv whose weights are for fewer channels than it has: refused before they are packed. */
TEST(qlinear_channels)
{
    oct_graph *g = net_graph(13);
    oct_plan *p = NULL;
    oct_err e = OCT_ERR_INIT;
    const uint8_t zero = 0;
    const int8_t w[4 * 9] = { 1 }, wz = 0;
    int x = net_input(g, "x", OCT_U8, "1,4,5,5"), s = NET_F32(g, "s", "", 0.5f),
        z = net_const(g, "z", OCT_U8, "", &zero);
    int k = net_const(g, "w", OCT_S8, "4,1,3,3", w),
        kz = net_const(g, "wz", OCT_S8, "", &wz); /* as if there were four groups */
    net_output(g, NET_NODE(g, "QLinearConv", "conv", "y", x, s, z, k, s, kz, s, z));
    assert_int_equal(oct_plan_create(g, NULL, NULL, &p, &e), OCT_EMALFORMED);
    assert_non_null(strstr(e.text, "'conv'"));
    oct_graph_destroy(g);
}

/* What is set is read again: the values of the quantized types are multiples of their step. */
TEST(numbers_are_set)
{
    static const float v[6] = { 3, 0, 1, 120, 7, -2 };
    static const oct_dtype types[] = { OCT_F32, OCT_F16, OCT_BF16, OCT_U8, OCT_S8, OCT_U16, OCT_S16 };
    static const float scale = 1;
    static const int32_t zp = 4;
    const oct_quant qparams = { 1, 0, &scale, &zp };
    for (size_t t = 0; t < OCT_COUNT(types); t++)
        for (int last = 0; last < 2; last++) {
            uint64_t data[6] = { 0 };
            float number[6];
            const bool real = types[t] == OCT_F32 || types[t] == OCT_F16 || types[t] == OCT_BF16;
            oct_operand x = { .dtype = types[t],
                              .rank = 3,
                              .dims = { 1, 2, 3 },
                              .count = 6,
                              .data = data,
                              .layout = last ? OCT_LAYOUT_CHANNELS_LAST : OCT_LAYOUT_PLAIN,
                              .q = real ? NULL : &qparams };
            GOOD(oct_operand_from_f32(&x, v, err));
            if (types[t] == OCT_U8) /* the second and the fourth element trade places */
                assert_int_equal(((uint8_t *)data)[1], last ? 124 : 4);
            GOOD(oct_operand_to_f32(&x, number, err));
            assert_memory_equal(number, v, sizeof v);
        }
    int64_t one = 0;
    const oct_operand integer = { .dtype = OCT_S64, .count = 1, .data = &one };
    assert_int_equal(oct_operand_from_f32(&integer, v, NULL), OCT_EUNSUPPORTED);
}

/* Packed weights of one plan, of `size` bytes that all are `fill`. */
static const uint8_t *pack(oct_prep *p, size_t size, int fill)
{
    uint8_t *w = oct_packed_new(p, size);
    assert_non_null(w);
    assert_int_equal((uintptr_t)w % 64, 0);
    memset(w, fill, size);
    return oct_packed_done(p, w, size);
}

TEST(equal_packed_weights_are_kept_once)
{
    enum { PLANS = 3, SIZE = 100000 };
    oct_packed_refs refs[PLANS] = { { 0 } };
    const uint8_t *w[PLANS], *other;
    oct_arena *a = oct_arena_create();
    for (int i = 0; i < PLANS; i++) {
        oct_prep p = { .arena = a, .packed = &refs[i] };
        w[i] = pack(&p, SIZE, 7);
        other = pack(&p, SIZE, i);
        assert_ptr_equal(w[i], w[0]);
        assert_ptr_not_equal(other, w[0]);
        assert_int_equal(other[SIZE - 1], i);
        assert_int_equal(refs[i].bytes, 2 * SIZE);
    }
    for (int i = 0; i < PLANS; i++) {
        for (int k = 0; k < SIZE; k++)
            assert_int_equal(w[i][k], 7); /* as long as one plan holds it */
        oct_packed_release(&refs[i]);
    }
    oct_prep alone = { .arena = a };
    assert_ptr_not_equal(pack(&alone, SIZE, 7), pack(&alone, SIZE, 7));
    oct_arena_destroy(a);
}

TEST(conv_ranks)
{
    static const struct {
        const char *x, *w;
        int64_t xd[5], wd[5];
        int pads;
    } cases[] = {
        { "2,3,9", "4,3,3", { 2, 3, 1, 1, 9 }, { 4, 3, 1, 1, 3 }, 2 },
        { "2,3,7,5", "4,3,3,2", { 2, 3, 1, 7, 5 }, { 4, 3, 1, 3, 2 }, 4 },
        { "2,3,4,5,6", "4,3,2,3,3", { 2, 3, 4, 5, 6 }, { 4, 3, 2, 3, 3 }, 6 },
        { "1,1,6,6", "1,1,3,3", { 1, 1, 1, 6, 6 }, { 1, 1, 1, 3, 3 }, 4 },
        { "3,5,1,1", "7,5,1,1", { 3, 5, 1, 1, 1 }, { 7, 5, 1, 1, 1 }, 4 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = net_graph(13);
        int64_t ones[6] = { 1, 1, 1, 1, 1, 1 };
        int x = net_input(g, "x", OCT_F32, cases[i].x), w = net_random(g, "w", cases[i].w, 5);
        int y = NET_NODE(g, "Conv", "conv", "y", x, w);
        bool pad = cases[i].wd[4] > 1;
        if (pad)
            GOOD(oct_node_set_ints(g, net_last, "pads", ones, cases[i].pads, err));
        net_output(g, y);
        size_t n = net_run(g, got, CAP);
        float xs[800];
        net_fill(xs, 800, 77);
        conv_5d(xs, cases[i].xd, g->value[w].constant->data, cases[i].wd, pad, want);
        same(want, got, n);
        oct_graph_destroy(g);
    }
}

/* Two convolutions joined along each axis, and the joined value pooled or flattened behind. */
TEST(concat_axes)
{
    for (int axis = -4; axis < 4; axis++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,3,4,5");
        int a = NET_NODE(g, "Conv", "one", "a", x, net_random(g, "w", "6,3,1,1", 5));
        int b = NET_NODE(g, "Conv", "two", "b", x, net_random(g, "v", "6,3,3,3", 6));
        NET_INTS(g, "pads", 1, 1, 1, 1);
        int c = NET_NODE(g, "Concat", "cat", "c", a, b);
        net_int(g, "axis", axis);
        net_output(g, c);
        net_output(g, a);
        net_output(g, b);
        net_output(g, NET_NODE(g, "Flatten", "f", "f", c));
        size_t n = net_run(g, got, CAP);
        enum { ONE = 2 * 6 * 4 * 5 };
        assert_int_equal(n, 6 * ONE);
        int at = axis < 0 ? axis + 4 : axis;
        const int d[4] = { 2, 6, 4, 5 };
        int inner = 1;
        for (int i = at; i < 4; i++)
            inner *= d[i];
        for (int i = 0; i < 2 * ONE; i++) {
            int block = i / inner, from = block % 2, row = block / 2;
            want[i] = got[2 * ONE + from * ONE + row * inner + i % inner];
        }
        assert_memory_equal(got, want, 2 * ONE * sizeof(float));
        assert_memory_equal(got + 4 * ONE, want, 2 * ONE * sizeof(float));
        oct_graph_destroy(g);
    }
}

/* Transposes between NCHW and NHWC around convolutions cost no copies but the two at the borders. */
TEST(transposes)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4,5,3");
    int t = NET_NODE(g, "Transpose", "in", "t", x);
    NET_INTS(g, "perm", 0, 3, 1, 2);
    int c = NET_NODE(g, "Conv", "conv", "c", t, net_random(g, "w", "6,3,1,1", 5));
    int u = NET_NODE(g, "Transpose", "out", "y", c);
    NET_INTS(g, "perm", 0, 2, 3, 1);
    net_output(g, u);
    float xs[120];
    net_fill(xs, 120, 77);
    const float *w = g->value[oct_graph_find(g, "w")].constant->data;
    size_t n = net_run(g, got, CAP);
    assert_int_equal(n, 240);
    for (int i = 0; i < 40; i++)
        for (int o = 0; o < 6; o++)
            want[i * 6 + o] = xs[i * 3] * w[o * 3] + xs[i * 3 + 1] * w[o * 3 + 1] + xs[i * 3 + 2] * w[o * 3 + 2];
    same(want, got, n);
    oct_plan *p = net_plan(g, NULL, NULL);
    size_t copies = 0;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        copies += strcmp(oct_plan_step(p, i).op, "Reorder") == 0;
    assert_int_equal(copies, 0);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* All permutations of a channels-last value. */
TEST(permutations)
{
    for (int code = 0; code < 256; code++) {
        int64_t perm[4] = { code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3 };
        if ((1 << perm[0] | 1 << perm[1] | 1 << perm[2] | 1 << perm[3]) != 15)
            continue;
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,3,4,5");
        int c = NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "w", "6,3,1,1", 5));
        int t = NET_NODE(g, "Transpose", "t", "y", c);
        GOOD(oct_node_set_ints(g, net_last, "perm", perm, 4, err));
        net_output(g, NET_NODE(g, "Relu", "r", "z", t));
        net_output(g, c);
        size_t n = net_run(g, got, CAP) / 2;
        const int64_t d[4] = { 2, 6, 4, 5 }, stride[4] = { 120, 20, 5, 1 };
        size_t i = 0;
        for (int64_t a = 0; a < d[perm[0]]; a++)
            for (int64_t b = 0; b < d[perm[1]]; b++)
                for (int64_t e = 0; e < d[perm[2]]; e++)
                    for (int64_t f = 0; f < d[perm[3]]; f++) {
                        float v = got[n + (size_t)(a * stride[perm[0]] + b * stride[perm[1]] + e * stride[perm[2]] +
                                                   f * stride[perm[3]])];
                        want[i++] = v > 0 ? v : 0;
                    }
        assert_memory_equal(got, want, n * sizeof(float));
        oct_graph_destroy(g);
    }
}

/* ------------------------------------------------------------------ aliases */

TEST(aliases)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,6");
    int r = NET_NODE(g, "Reshape", "r", "r", x, NET_S64(g, "k", "3", 3, 2, 2));
    int s = NET_NODE(g, "Reshape", "s", "s", r, NET_S64(g, "k2", "1", -1));
    int k = NET_F32(g, "c", "2", 8, 9);
    net_output(g, r);
    net_output(g, x); /* an input */
    net_output(g, s);
    net_output(g, r);                               /* twice */
    net_output(g, k);                               /* a constant */
    net_output(g, NET_NODE(g, "Neg", "n", "n", x)); /* the input is still whole */
    net_output(g, NET_NODE(g, "Identity", "i", "i", k));
    assert_int_equal(net_run(g, got, CAP), 5 * 12 + 2 + 2);
    net_fill(want, 12, 77);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(got + 12 * i, want, 12 * sizeof(float));
    assert_true(got[48] == 8 && got[49] == 9 && got[62] == 8 && got[63] == 9);
    for (int i = 0; i < 12; i++)
        assert_true(got[50 + i] == -want[i]);
    oct_graph_destroy(g);
}

TEST(inputs_change)
{
    /* Other pointers in each run, results of the last stay until the next. */
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2");
    net_output(g, NET_NODE(g, "Reshape", "r", "r", x, NET_S64(g, "k", "2", 2, 1)));
    net_output(g, NET_NODE(g, "Add", "a", "a", x, x));
    oct_plan *p = net_plan(g, NULL, NULL);
    const float one[2] = { 1, 2 }, two[2] = { 5, 7 };
    GOOD(oct_plan_run(p, (const void *[]){ one }, err));
    assert_true(((float *)oct_plan_output(p, 0)->data)[1] == 2 && ((float *)oct_plan_output(p, 1)->data)[1] == 4);
    GOOD(oct_plan_run(p, (const void *[]){ two }, err));
    assert_true(((float *)oct_plan_output(p, 0)->data)[1] == 7 && ((float *)oct_plan_output(p, 1)->data)[1] == 14);
    assert_string_equal(oct_plan_output_name(p, 1), "a");
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(constant_dequantize)
{
    /* Shown as an output, read in float, and with a scale that is an input. */
    oct_graph *g = net_graph(13);
    int s = net_input(g, "s", OCT_F32, "");
    int q = net_const(g, "q", OCT_S8, "3", (const int8_t[]){ -4, 0, 6 });
    net_output(g, NET_NODE(g, "DequantizeLinear", "d1", "a", q, NET_F32(g, "half", "", 0.5f)));
    int d = NET_NODE(g, "DequantizeLinear", "d2", "b", q, NET_F32(g, "two", "", 2));
    net_output(g, NET_NODE(g, "Neg", "n", "n", d));
    net_output(g, NET_NODE(g, "DequantizeLinear", "d3", "c", q, s));
    oct_plan *p = net_plan(g, NULL, NULL);
    const float scale = 10;
    GOOD(oct_plan_run(p, (const void *[]){ &scale }, err));
    const float want_of[3][3] = { { -2, 0, 3 }, { 8, 0, -12 }, { -40, 0, 60 } };
    for (size_t o = 0; o < 3; o++)
        for (int i = 0; i < 3; i++)
            assert_true(((float *)oct_plan_output(p, o)->data)[i] == want_of[o][i]);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* ------------------------------------------------------------------ shapes */

TEST(dynamic_shapes)
{
    oct_graph *g = net_cnn_make("N,3,H,W", false);
    const char *one[] = { "1,3,16,12" }, *three[] = { "3,3,16,12" }, *other[] = { "2,3,9,21" };
    assert_int_equal(net_run_with(g, NULL, one, want, CAP), 20);
    assert_int_equal(net_run_with(g, NULL, three, got, CAP), 60);
    assert_memory_equal(got, want, 10 * sizeof(float));           /* the first sample: fc */
    assert_memory_equal(got + 30, want + 10, 10 * sizeof(float)); /* and y */
    assert_int_equal(net_run_with(g, NULL, other, got, CAP), 40);
    oct_graph_destroy(g);
}

TEST(shape_errors)
{
    oct_graph *g = net_cnn_make("N,3,16,16", false);
    oct_err e = OCT_ERR_INIT;
    oct_plan *p = NULL;
    oct_plan_input in = { .tensor = true, .rank = 4, .dims = { 1, 3, 16, 15 } };
    assert_int_equal(oct_plan_create(g, &in, NULL, &p, &e), OCT_EMALFORMED);
    assert_non_null(strstr(e.text, "[1,3,16,15]"));
    in = (oct_plan_input){ .tensor = true, .rank = 3, .dims = { 3, 16, 16 } };
    assert_int_equal(oct_plan_create(g, &in, NULL, &p, &e), OCT_EMALFORMED);
    assert_null(p);
    /* A shape that is left open is a matter of the run, which must be told. */
    GOOD(oct_plan_create(g, NULL, NULL, &p, &e));
    assert_int_equal(oct_plan_run(p, (const void *[]){ e.text }, &e), OCT_EUSAGE);
    assert_non_null(strstr(e.text, "'x'"));
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(errors_name_nodes)
{
    oct_err e = OCT_ERR_INIT;
    oct_plan *p = NULL;
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,3");
    net_output(g, NET_NODE(g, "NoSuchOperator", "odd", "y", x));
    assert_int_equal(oct_plan_create(g, NULL, NULL, &p, &e), OCT_EUNSUPPORTED);
    assert_non_null(strstr(e.text, "'odd'"));
    oct_graph_destroy(g);
    g = net_graph(13);
    x = net_input(g, "x", OCT_F32, "2,3");
    net_output(g, NET_NODE(g, "MatMul", "mm", "y", x, net_random(g, "w", "4,2", 1)));
    e = (oct_err)OCT_ERR_INIT;
    assert_int_equal(oct_plan_create(g, NULL, NULL, &p, &e), OCT_EMALFORMED);
    assert_non_null(strstr(e.text, "'mm'"));
    oct_graph_destroy(g);
    g = net_graph(13);
    x = net_input(g, "x", OCT_F32, "2,3"); /* C does not broadcast */
    net_output(g, NET_NODE(g, "Gemm", "gg", "y", x, net_random(g, "w", "3,4", 1), net_random(g, "b", "5,3", 2)));
    e = (oct_err)OCT_ERR_INIT;
    assert_int_equal(oct_plan_create(g, NULL, NULL, &p, &e), OCT_EMALFORMED);
    assert_non_null(strstr(e.text, "'gg'"));
    oct_graph_destroy(g);
    g = net_graph(13);
    x = net_input(g, "x", OCT_F16, "1,3,4,4");
    net_output(g, NET_NODE(g, "DynamicQuantizeLinear", "dq", "y", x));
    int v;
    GOOD(oct_graph_add_value(g, "ys", OCT_F32, &v, err));
    GOOD(oct_graph_set_output(g, net_last, 1, v, err));
    GOOD(oct_graph_add_value(g, "yz", OCT_U8, &v, err));
    GOOD(oct_graph_set_output(g, net_last, 2, v, err));
    e = (oct_err)OCT_ERR_INIT;
    assert_int_equal(oct_plan_create(g, NULL, NULL, &p, &e), OCT_EUNSUPPORTED);
    assert_non_null(strstr(e.text, "'dq'"));
    oct_graph_destroy(g);
}

/* ------------------------------------------------------------------ memory */

/* Lifetimes found afresh from the steps; no two tensors that live together may share bytes. */
static void check_places(const oct_plan *p)
{
    int *first = oct_calloc(p->n_buffer, sizeof *first), *last = oct_calloc(p->n_buffer, sizeof *last);
    assert_true(first && last);
    for (size_t i = 0; i < p->n_buffer; i++)
        first[i] = INT32_MAX, last[i] = -1;
    for (size_t i = 0; i < p->n_step; i++)
        for (int k = 0; k < p->step[i]->s.n_in + p->step[i]->s.n_out; k++) {
            const oct_step *s = &p->step[i]->s;
            const oct_operand *t = k < s->n_in ? s->in[k] : s->out[k - s->n_in];
            int b = t ? rt_root(p, ((const rt_operand *)t)->buffer) : -1;
            if (b < 0)
                continue;
            first[b] = (int)i < first[b] ? (int)i : first[b];
            last[b] = (int)i;
        }
    for (size_t i = 0; i < p->g->n_output; i++)
        last[rt_root(p, p->output[i]->buffer)] = INT32_MAX;
    for (size_t a = 0; a < p->n_buffer; a++) {
        const rt_buffer *x = &p->buffer[a];
        if (!x->placed)
            continue;
        assert_true(x->offset % 64 == 0 && x->offset + x->bytes <= p->memory_bytes);
        for (size_t b = a + 1; b < p->n_buffer; b++) {
            const rt_buffer *y = &p->buffer[b];
            if (y->placed && first[a] <= last[b] && first[b] <= last[a])
                assert_true(x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset);
        }
    }
    assert_true(p->live_bytes <= p->memory_bytes);
    oct_free(first);
    oct_free(last);
}

TEST(places)
{
    for (int qdq = 0; qdq < 2; qdq++) {
        oct_graph *g = net_cnn_make("2,3,17,13", qdq);
        oct_plan *p = net_plan(g, NULL, NULL);
        check_places(p);
        float x[2 * 3 * 17 * 13], out[2][20];
        net_fill(x, OCT_COUNT(x), 4);
        /* What memory held before does not matter: no byte is read that was not written. */
        for (int i = 0; i < 2; i++) {
            memset(p->memory, i ? 0xff : 0, p->memory_bytes);
            if (p->scratch)
                memset(p->scratch, i ? 0xff : 0, p->scratch_bytes);
            GOOD(oct_plan_run(p, (const void *[]){ x }, err));
            GOOD(oct_operand_to_f32(oct_plan_output(p, 1), out[i], err));
        }
        assert_memory_equal(out[0], out[1], sizeof out[0]);
        oct_plan_memory m = oct_plan_memory_of(p);
        assert_true(m.arena >= m.live && m.live > 0 && m.weights > 0);
        assert_true(m.arena <= m.live + m.live / 8); /* gaps that no other order of placing would leave */
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

TEST(runs_allocate_nothing)
{
    oct_pool *pool = oct_pool_create(2);
    for (int i = 0; i < 4; i++) {
        oct_graph *g = net_cnn_make("2,3,17,13", i & 1);
        oct_plan_opts opts = { .pool = i & 2 ? pool : NULL };
        oct_plan *p = net_plan(g, &opts, NULL);
        float x[2 * 3 * 17 * 13];
        net_fill(x, OCT_COUNT(x), 4);
        oct_alloc_fail_at(0);
        GOOD(oct_plan_run(p, (const void *[]){ x }, err));
        GOOD(oct_plan_run(p, (const void *[]){ x }, err));
        assert_int_equal(oct_alloc_fail_at(0), 0);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
    oct_pool_destroy(pool);
}

/* Where the output of a step lies. */
static const void *data_of(const oct_plan *p, const char *node)
{
    for (size_t i = 0; i < p->n_step; i++)
        if (p->step[i]->s.node && strcmp(p->step[i]->s.node->name, node) == 0)
            return p->step[i]->s.out[0]->data;
    fail_msg("no step '%s'", node);
    return NULL;
}

/* What goes element by element lies where its input did, unless that is still needed, of another size or type, or read
 * twice. */
TEST(overwrites)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,300");
    int a = NET_NODE(g, "Sigmoid", "a", "va", x), b = NET_NODE(g, "Exp", "b", "vb", a),
        c = NET_NODE(g, "Tanh", "c", "vc", b);
    int d = NET_NODE(g, "Mul", "d", "vd", c, b), e = NET_NODE(g, "Softmax", "e", "ve", d),
        f = NET_NODE(g, "Sub", "f", "vf", e, d);
    int m = NET_NODE(g, "ReduceMean", "m", "vm", f);
    NET_INTS(g, "axes", 1);
    int h = NET_NODE(g, "Div", "h", "vh", m, f), k = NET_NODE(g, "Mul", "k", "vk", h, h),
        i = NET_NODE(g, "IsNaN", "i", "vi", k);
    net_output(g, NET_NODE(g, "Where", "w", "y", i, x, NET_NODE(g, "Clip", "n", "vn", k, NET_F32(g, "lo", "", 0.5f))));
    oct_plan *p = net_plan(g, NULL, NULL);
    check_places(p);
    assert_ptr_not_equal(data_of(p, "a"), NULL);
    assert_ptr_equal(data_of(p, "b"), data_of(p, "a"));
    assert_ptr_not_equal(data_of(p, "c"), data_of(p, "b"));
    assert_true(data_of(p, "d") == data_of(p, "c") || data_of(p, "d") == data_of(p, "b"));
    assert_ptr_not_equal(data_of(p, "e"), data_of(p, "d"));
    assert_true(data_of(p, "f") == data_of(p, "e") || data_of(p, "f") == data_of(p, "d"));
    assert_ptr_equal(data_of(p, "h"), data_of(p, "f"));
    assert_ptr_not_equal(data_of(p, "k"), data_of(p, "h"));
    assert_ptr_equal(data_of(p, "n"), data_of(p, "k"));
    float xs[600];
    net_fill(xs, 600, 9);
    GOOD(oct_plan_run(p, (const void *[]){ xs }, err));
    for (int r = 0; r < 2; r++) {
        double row[300], top = 0, all = 0, mean = 0;
        for (int j = 0; j < 300; j++) {
            const double v = exp(1 / (1 + exp(-(double)xs[r * 300 + j])));
            row[j] = tanh(v) * v;
            all += exp(row[j]);
        }
        for (int j = 0; j < 300; j++)
            mean += (exp(row[j]) / all - row[j]) / 300;
        for (int j = 0; j < 300; j++) {
            const double v = mean / (exp(row[j]) / all - row[j]), want_v = fmax(v * v, 0.5);
            top = fmax(top, fabs(want_v - (double)((const float *)oct_plan_output(p, 0)->data)[r * 300 + j]));
        }
        assert_true(top < 1e-5);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* Elements 3, 0, 1, 120, 7, 2 of every type, in both layouts of [1,2,3], as numbers and through parameters per
 * channel. */
TEST(numbers_of_every_type)
{
    static const double v[6] = { 3, 0, 1, 120, 7, 2 };
    static const oct_dtype types[] = { OCT_F32, OCT_F64, OCT_U8,  OCT_S8,  OCT_BOOL, OCT_U16, OCT_S16,
                                       OCT_S32, OCT_U32, OCT_S64, OCT_U64, OCT_F16,  OCT_BF16 };
    static const float scale[2] = { 0.5f, 2 };
    static const int32_t zp[2] = { 1, -4 };
    const oct_quant qparams = { 2, 1, scale, zp };
    for (size_t t = 0; t < OCT_COUNT(types); t++)
        for (int last = 0; last < 2; last++)
            for (int quantized = 0; quantized < 2; quantized++) {
                uint64_t data[6] = { 0 };
                float number[6];
                const bool has_qparams =
                    types[t] == OCT_U8 || types[t] == OCT_S8 || types[t] == OCT_U16 || types[t] == OCT_S16;
                oct_operand x = { .dtype = types[t],
                                  .rank = 3,
                                  .dims = { 1, 2, 3 },
                                  .count = 6,
                                  .data = data,
                                  .layout = last ? OCT_LAYOUT_CHANNELS_LAST : OCT_LAYOUT_PLAIN,
                                  .q = quantized ? &qparams : NULL };
                if (quantized && !has_qparams)
                    continue;
                for (int i = 0; i < 6; i++) { /* element i of the plain order, channel i / 3 */
                    const int place = last ? i % 3 * 2 + i / 3 : i;
                    if (types[t] == OCT_F16 || types[t] == OCT_BF16)
                        ((uint16_t *)data)[place] =
                            types[t] == OCT_F16 ? oct_f32_to_f16((float)v[i]) : oct_f32_to_bf16((float)v[i]);
                    else
                        oct_elem_store(types[t], data, place, 1, 1, OCT_DOM_D, &v[i]);
                }
                GOOD(oct_operand_to_f32(&x, number, err));
                for (int i = 0; i < 6; i++)
                    if (number[i] != (float)(quantized              ? scale[i / 3] * (v[i] - zp[i / 3])
                                             : types[t] == OCT_BOOL ? v[i] != 0
                                                                    : v[i]))
                        fail_msg("%s, layout %d: element %d is %g", oct_dtype_name(types[t]), last, i,
                                 (double)number[i]);
            }
    oct_err e = OCT_ERR_INIT;
    oct_operand z = { .dtype = OCT_C64, .rank = 0, .count = 1 };
    assert_int_equal(oct_operand_to_f32(&z, NULL, &e), OCT_EUNSUPPORTED);
    assert_non_null(strstr(e.text, "complex64"));
}

TEST(failing_allocations)
{
    for (int qdq = 0; qdq < 2; qdq++) {
        oct_graph *g = net_cnn_make("2,3,17,13", qdq);
        const char *taps[] = { "c1", "pool", "fc" };
        oct_plan_opts opts = { .taps = taps, .n_taps = 3 };
        oct_status s = OCT_ENOMEM;
        size_t n = 0;
        while (s != OCT_OK) {
            oct_plan *p = NULL;
            oct_err e = OCT_ERR_INIT;
            oct_alloc_fail_at(++n);
            s = oct_plan_create(g, NULL, &opts, &p, &e);
            if (s != OCT_OK && s != OCT_ENOMEM)
                fail_msg("allocation %zu: status %d: %s", n, (int)s, e.text);
            if (s == OCT_OK)
                assert_true(oct_alloc_fail_at(0) < n); /* none was left to fail */
            else
                assert_null(p);
            oct_plan_destroy(p);
            GOOD(oct_graph_check(g, err)); /* the model is as it was */
            assert_true(n < 100000);
        }
        oct_alloc_fail_at(0);
        assert_true(n > 5);
        oct_graph_destroy(g);
    }
}

/* ------------------------------------------------------------------ taps */

typedef struct seen {
    const char *const *taps;
    size_t tap[64];
    float value[64][64]; /* the first of each */
    oct_dtype dtype[64];
    bool quantized[64];
    int64_t count[64];
    size_t n;
} seen;

static oct_status on_tap(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    seen *s = arg;
    static float all[CAP];
    assert_true(s->n < 64 && t->count <= CAP);
    OCT_TRY(oct_operand_to_f32(t, all, err));
    memcpy(s->value[s->n], all, sizeof s->value[0]);
    s->tap[s->n] = tap;
    s->dtype[s->n] = t->dtype;
    s->quantized[s->n] = t->q != NULL;
    s->count[s->n++] = t->count;
    return OCT_OK;
}

static int seen_at(const seen *s, const char *name)
{
    int at = -1;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->taps[s->tap[i]], name) == 0) {
            assert_int_equal(at, -1); /* once */
            at = (int)i;
        }
    return at;
}

TEST(float_taps)
{
    /* Every value of a net, tapped, is what it is as an output of a net without fusion. */
    oct_graph *g = net_cnn_make("1,3,17,13", false);
    const char *taps[64];
    size_t n = 0;
    for (size_t i = 0; i < g->n_value; i++)
        if (!g->value[i].constant)
            taps[n++] = g->value[i].name;
    static seen s;
    s.n = 0;
    oct_plan_opts opts = { .taps = taps, .n_taps = n };
    oct_plan *p = net_plan(g, &opts, NULL);
    s.taps = taps;
    oct_plan_set_tap(p, on_tap, &s);
    static float x[3 * 17 * 13];
    net_fill(x, OCT_COUNT(x), 77);
    GOOD(oct_plan_run(p, (const void *[]){ x }, err));
    assert_int_equal(s.n, n);
    for (size_t i = 0; i < n; i++) {
        oct_graph *one;
        GOOD(oct_graph_clone(g, &one, err));
        int v = oct_graph_find(one, taps[i]);
        for (size_t k = 0; k < one->n_output; k++)
            one->value[one->output[k]].is_output = false;
        one->n_output = 0;
        net_output(one, v);
        size_t count = net_run_with(one, &(oct_plan_opts){ .no_passes = true }, NULL, want, CAP);
        int at = seen_at(&s, taps[i]);
        assert_true(at >= 0);
        assert_int_equal(s.count[at], count);
        same(want, s.value[at], count < 64 ? count : 64);
        oct_graph_destroy(one);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(integer_taps)
{
    oct_graph *g = net_cnn_make("1,3,17,13", true);
    const char *taps[] = { "r1", "c1", "res_q", "pool_q", "y", "x" };
    static seen s, f;
    s.n = f.n = 0;
    oct_plan_opts opts = { .taps = taps, .n_taps = OCT_COUNT(taps) };
    oct_plan *p = net_plan(g, &opts, NULL);
    opts.no_integer = true;
    oct_plan *real = net_plan(g, &opts, NULL);
    s.taps = taps;
    oct_plan_set_tap(p, on_tap, &s);
    f.taps = taps;
    oct_plan_set_tap(real, on_tap, &f);
    static float x[3 * 17 * 13];
    net_fill(x, OCT_COUNT(x), 77);
    GOOD(oct_plan_run(p, (const void *[]){ x }, err));
    GOOD(oct_plan_run(real, (const void *[]){ x }, err));
    size_t integer = 0;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        integer += strcmp(oct_plan_step(p, i).scheme, "int8") == 0;
    assert_true(integer >= 10);
    /* Conv, Relu and QuantizeLinear are one step: the Relu's name is shown, with integers. */
    int r = seen_at(&s, "r1"), fr = seen_at(&f, "r1");
    assert_true(r >= 0 && fr >= 0);
    assert_true(s.quantized[r] && s.dtype[r] == OCT_U8);
    assert_true(!f.quantized[fr] && f.dtype[fr] == OCT_F32);
    for (int i = 0; i < 64; i++) {
        float v = f.value[fr][i] > 255 * 0.02f ? 255 * 0.02f : f.value[fr][i];
        assert_true(fabsf(s.value[r][i] - v) <= 0.0101f); /* half a step */
    }
    assert_true(seen_at(&s, "res_q") >= 0 && seen_at(&s, "y") >= 0 && seen_at(&s, "x") >= 0);
    oct_plan_destroy(p);
    oct_plan_destroy(real);
    oct_graph_destroy(g);
}

TEST(tapped_shapes)
{
    /* Sizes of Resize computed from the input's shape, as exporters write them: taps on them must not keep them from
     * folding. */
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "N,1,2,2");
    int shape = NET_NODE(g, "Shape", "shape", "s", x);
    int two = NET_NODE(g, "Slice", "slice", "s2", shape, NET_S64(g, "from", "1", 0), NET_S64(g, "to", "1", 2));
    int sizes = NET_NODE(g, "Concat", "concat", "sizes", two, NET_S64(g, "hw", "2", 4, 2));
    net_int(g, "axis", 0);
    int up = NET_NODE(g, "Resize", "resize", "up", x, -1, -1, sizes);
    net_output(g, NET_NODE(g, "Neg", "neg", "y", up));
    const char *taps[] = { "s", "s2", "sizes", "up" };
    oct_plan_opts opts = { .taps = taps, .n_taps = OCT_COUNT(taps) };
    oct_plan_input in = { .tensor = true, .rank = 4, .dims = { 1, 1, 2, 2 } };
    oct_plan *p;
    GOOD(oct_plan_create(g, &in, &opts, &p, err));
    static seen s;
    s.n = 0;
    s.taps = taps;
    oct_plan_set_tap(p, on_tap, &s);
    GOOD(oct_plan_run(p, (const void *[]){ (const float[]){ 1, 2, 3, 4 } }, err));
    int at = seen_at(&s, "up");
    assert_true(at >= 0);
    assert_int_equal(s.count[at], 8);
    same((const float[]){ 1, 2, 1, 2, 3, 4, 3, 4 }, s.value[at], 8);
    assert_true(seen_at(&s, "sizes") < 0);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(profile_starts_anew)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2");
    net_output(g, NET_NODE(g, "Add", "a", "a", x, x));
    oct_plan *p = net_plan(g, NULL, NULL);
    const float one[2] = { 1, 2 };
    static const uint64_t runs[] = { 3, 1 };
    for (size_t i = 0; i < OCT_COUNT(runs); i++) {
        oct_plan_profile(p, true);
        for (uint64_t k = 0; k < runs[i]; k++)
            GOOD(oct_plan_run(p, (const void *[]){ one }, err));
        oct_plan_profile(p, false);
        GOOD(oct_plan_run(p, (const void *[]){ one }, err));
        const oct_step_info s = oct_plan_step(p, 0);
        assert_string_equal(s.op, "Add");
        assert_true(s.calls == runs[i] && s.seconds > 0 && s.bytes == 3 * 8);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

static oct_status stop(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    return oct_fail(err, OCT_EGOAL, "stop at tap %zu", tap);
}

TEST(tap_stops)
{
    oct_graph *g = net_cnn_make("1,3,17,13", false);
    const char *taps[] = { "absent", "pool" };
    oct_plan_opts opts = { .taps = taps, .n_taps = 2 };
    oct_plan *p = net_plan(g, &opts, NULL);
    oct_plan_set_tap(p, stop, NULL);
    static float x[3 * 17 * 13];
    oct_err e = OCT_ERR_INIT;
    assert_int_equal(oct_plan_run(p, (const void *[]){ x }, &e), OCT_EGOAL);
    assert_string_equal(e.text, "stop at tap 1");
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* ------------------------------------------------------------------ integer steps */

TEST(integer_close_to_float)
{
    /* Whole network: integer steps against QuantizeLinear and DequantizeLinear around float ones, a few steps apart. */
    oct_graph *g = net_cnn_make("2,3,17,13", true);
    size_t n = net_run(g, got, CAP);
    const oct_plan_opts real = { .no_integer = true };
    assert_int_equal(net_run_with(g, &real, NULL, want, CAP), n);
    for (size_t i = 0; i < 20; i++)
        assert_true(fabsf(got[i] - want[i]) <= 0.1001f); /* fc: 2 steps of 0.05 */
    oct_graph_destroy(g);
}

TEST(dropout_mask)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "4"), v;
    net_output(g, NET_NODE(g, "Dropout", "drop", "y", x));
    GOOD(oct_graph_add_value(g, "mask", OCT_BOOL, &v, err));
    GOOD(oct_graph_set_output(g, net_last, 1, v, err));
    net_output(g, v);
    assert_int_equal(net_run(g, got, CAP), 8);
    net_fill(want, 4, 77);
    assert_memory_equal(got, want, 16);
    for (int i = 4; i < 8; i++)
        assert_true(got[i] == 1.0f);
    oct_graph_destroy(g);
    g = net_graph(13);
    x = net_input(g, "x", OCT_F32, "4");
    const uint8_t yes = 1;
    net_output(g, NET_NODE(g, "Dropout", "drop", "y", x, NET_F32(g, "ratio", "", 0.5f),
                           net_const(g, "t", OCT_BOOL, "", &yes)));
    oct_err e = OCT_ERR_INIT;
    oct_plan *p = NULL;
    assert_int_equal(oct_plan_create(g, NULL, NULL, &p, &e), OCT_EUNSUPPORTED); /* training */
    assert_non_null(strstr(e.text, "'drop'"));
    oct_graph_destroy(g);
}

/* A block of an image, channels last in x and first in y, with or without a table: element by element. */
TEST(channels_change_places)
{
    enum { H = 13, C = 21, ALL = 40 * C * H * 16 };
    static const size_t sizes[] = { 1, 2, 4, 8, 16 };
    static const int64_t widths[] = { 1, 3, 8, 40 };
    uint8_t *x = oct_alloc(ALL), *y = oct_alloc(ALL), *turned = oct_alloc(ALL), table[256];
    assert_true(x && y && turned);
    for (size_t i = 0; i < ALL; i++)
        x[i] = (uint8_t)(i * 31 + i / 251);
    for (size_t i = 0; i < sizeof table; i++)
        table[i] = (uint8_t)(77 * i + 5);
    for (size_t k = 0; k < 2 * OCT_COUNT(sizes) * OCT_COUNT(widths); k++) {
        const bool through = k % 2 && k / 2 % OCT_COUNT(sizes) == 0;
        const size_t size = sizes[k / 2 % OCT_COUNT(sizes)];
        const int64_t w = widths[k / 2 / OCT_COUNT(sizes)], first = k % 2,
                      n = C - 2 * first; /* all channels, or all but the outer ones */
        oct_nd d = { .rank = 3, .arrays = 2, .dims = { n, H, w }, .stride = { { H * w, w, 1 }, { 1, w * C, C } } };
        memset(y, 0xee, ALL);
        memset(turned, 0xee, ALL);
        for (int64_t c = 0; c < n; c++)
            for (int64_t at = 0; at < H * w * (int64_t)size; at++) {
                const uint8_t v = x[(at / (int64_t)size * C + c + first) * (int64_t)size + at % (int64_t)size];
                turned[c * H * w * (int64_t)size + at] = through ? table[v] : v;
            }
        oct_nd_copy(&d, NULL, y, x + first * (int64_t)size, size, through ? table : NULL);
        assert_memory_equal(y, turned, ALL);
    }
    oct_free(x);
    oct_free(y);
    oct_free(turned);
}
