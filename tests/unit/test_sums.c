/* Additions behind products: which become part of the product's step, that they give the bits of two steps on every instruction
 * set and number of threads, and where the result lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "net_cnn.h"
#include "kernels/cpu.h"
#include "runtime/plan_int.h"

#include <math.h>

enum { CAP = 1 << 17 };
static float want[CAP], got[CAP];
static oct_pool *two; /* threads */

/* ------------------------------------------------------------------ graphs */

/* A convolution of x by random weights, with bias unless it is transposed. */
static int conv(oct_graph *g, const char *op, const char *name, int x, const char *w, const char *channels, int group, int stride, int pad)
{
    char weights[24], bias[24];
    snprintf(weights, sizeof weights, "%s_w", name);
    snprintf(bias, sizeof bias, "%s_b", name);
    const int wv = net_random(g, weights, w, 5), bv = channels ? net_random(g, bias, channels, 6) : -1;
    const int rank = g->value[x].shape.rank;
    const int y = bv < 0 ? NET_NODE(g, op, name, name, x, wv) : NET_NODE(g, op, name, name, x, wv, bv);
    net_int(g, "group", group);
    if (rank == 3) {
        NET_INTS(g, "strides", stride);
        NET_INTS(g, "pads", pad, pad);
    } else {
        NET_INTS(g, "strides", stride, stride);
        NET_INTS(g, "pads", pad, pad, pad, pad);
    }
    return y;
}

static int point(oct_graph *g, const char *name, int x)
{
    return conv(g, "Conv", name, x, "24,24,1,1", "24", 1, 1, 0);
}

static int add(oct_graph *g, int a, int b)
{
    return NET_NODE(g, "Add", "add", "sum", a, b);
}

/* Something that is read once more and is neither an input nor a sum. */
static int side(oct_graph *g, int x)
{
    return NET_NODE(g, "Sigmoid", "side", "side", x);
}

static oct_graph *start(const char *dims, int *x)
{
    oct_graph *g = net_graph(13);
    *x = net_input(g, "x", OCT_F32, dims);
    return g;
}

/* ------------------------------------------------------------------ what the plan does */

static size_t count(const oct_plan *p, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        n += strcmp(oct_plan_step(p, i).op, op) == 0;
    return n;
}

static const oct_plan_opts apart = { .no_passes = true };

/* The definition: two steps, scalar. Then every instruction set, one thread and two. */
static void same_bits(const oct_graph *g)
{
    GOOD(oct_isa_limit("scalar", err));
    const size_t n = net_run_with(g, &apart, NULL, want, CAP);
    const char *isa;
    for (size_t i = 0; (isa = oct_isa_level(i)); i++) {
        if (oct_isa_limit(isa, NULL) != OCT_OK)
            continue;
        for (int t = 0; t < 2; t++) {
            const oct_plan_opts opts = { .pool = t ? two : NULL };
            assert_int_equal(net_run_with(g, &opts, NULL, got, CAP), n);
            if (memcmp(want, got, n * sizeof *got) != 0)
                fail_msg("%s with %d threads differs from scalar", isa, t + 1);
        }
    }
    GOOD(oct_isa_limit("native", err));
}

/* Expects that of `all` steps that add, `left` are still there when the graph is planned; frees the graph. */
static void expect(oct_graph *g, int out, const char *op, size_t all, size_t left)
{
    if (out >= 0)
        net_output(g, out);
    same_bits(g);
    oct_plan *p = net_plan(g, &apart, NULL);
    assert_int_equal(count(p, op), all);
    oct_plan_destroy(p);
    p = net_plan(g, NULL, NULL);
    assert_int_equal(count(p, op), left);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* ------------------------------------------------------------------ joined */

/* Every way a convolution is computed: dense, with its depth in parts (wide), gathered, indirect, in groups, by lines, transposed, 1-D. */
static void every_path(void **state)
{
    static const struct {
        const char *op, *x, *w, *channels;
        int group, stride, pad;
    } cases[] = {
        { "Conv", "2,24,9,7", "40,24,1,1", "40", 1, 1, 0 },          { "Conv", "1,700,5,3", "24,700,1,1", "24", 1, 1, 0 },
        { "Conv", "1,96,8,6", "19,96,3,3", "19", 1, 1, 1 },          { "Conv", "1,3,15,13", "16,3,3,3", "16", 1, 2, 1 },
        { "Conv", "1,24,9,7", "16,12,3,3", "16", 2, 1, 1 },          { "Conv", "2,32,9,7", "32,1,3,3", "32", 32, 1, 1 },
        { "Conv", "1,32,13,11", "32,1,5,5", "32", 32, 2, 2 },        { "Conv", "1,19,6,5", "19,1,3,3", "19", 19, 1, 1 },
        { "ConvTranspose", "1,16,5,4", "16,24,3,3", NULL, 1, 2, 1 }, { "Conv", "2,16,33", "24,16,3", "24", 1, 1, 1 },
        { "Conv", "1,64,1,1", "70,64,1,1", "70", 1, 1, 0 },
    };
    for (size_t i = 0; i < 2 * OCT_COUNT(cases); i++) {
        const size_t k = i / 2;
        int x;
        oct_graph *g = start(cases[k].x, &x);
        const int y = conv(g, cases[k].op, "conv", x, cases[k].w, cases[k].channels, cases[k].group, cases[k].stride, cases[k].pad);
        GOOD(oct_infer_shapes(g, err));
        /* i % 2: the summand lies where the result may lie, and comes first */
        int64_t dims[OCT_MAX_RANK];
        char text[80];
        assert_true(oct_shape_known(&g->value[y].shape, dims));
        oct_shape_text(&g->value[y].shape, text, sizeof text);
        text[strlen(text) - 1] = 0;
        int r = net_input(g, "r", OCT_F32, text + 1);
        r = i % 2 ? side(g, r) : r;
        const int sum = i % 2 ? add(g, r, y) : add(g, y, r);
        expect(g, i % 4 < 2 ? NET_NODE(g, "Relu", "relu", "y", sum) : sum, "Add", 1, 0);
    }
}

/* One convolution with loops written out: the chain from the bias, the sum, the clamp. */
static void against_loops(void **state)
{
    enum { C = 24, PX = 12 };
    int x;
    oct_graph *g = start("1,24,3,4", &x);
    const int r = net_input(g, "r", OCT_F32, "1,24,3,4"), sum = add(g, r, point(g, "conv", x));
    net_output(g, NET_NODE(g, "Clip", "clip", "y", sum, NET_F32(g, "lo", "", -0.25f), NET_F32(g, "hi", "", 1.5f)));
    float w[C * C], b[C], xs[C * PX], rs[C * PX];
    net_fill(w, C * C, 5);
    net_fill(b, C, 6);
    net_fill(xs, C * PX, 77);
    net_fill(rs, C * PX, 78);
    for (int o = 0; o < C; o++)
        for (int i = 0; i < PX; i++) {
            float v = b[o];
            for (int c = 0; c < C; c++)
                v = fmaf(xs[c * PX + i], w[o * C + c], v);
            want[o * PX + i] = fminf(fmaxf(v + rs[o * PX + i], -0.25f), 1.5f);
        }
    assert_int_equal(net_run(g, got, CAP), C * PX);
    assert_memory_equal(want, got, C * PX * sizeof *got);
    expect(g, -1, "Clip", 0, 0);
}

static void which_product(void **state)
{
    int x;
    oct_graph *g = start("1,24,9,7", &x); /* two convolutions: the later one takes the sum, under its name */
    const int a = point(g, "first", x), b = point(g, "second", x);
    net_output(g, add(g, a, b));
    oct_plan *p = net_plan(g, NULL, NULL);
    size_t at = 0;
    while (strcmp(oct_plan_step(p, at).name, "second") != 0)
        at++;
    assert_int_equal(p->step[at]->s.residual, 3);
    assert_string_equal(oct_plan_step(p, at).op, "Conv");
    assert_int_equal(oct_plan_step(p, at).macs, 24 * 24 * 63);
    oct_plan_destroy(p);
    expect(g, -1, "Add", 1, 0);

    g = start("1,24,9,7", &x); /* the later one is clamped: the earlier one takes it, behind the other */
    const int early = point(g, "first", x), late = NET_NODE(g, "Relu", "relu", "relu", point(g, "second", x));
    expect(g, add(g, early, late), "Add", 1, 0);

    g = start("1,24,9,7", &x); /* its own input */
    expect(g, add(g, point(g, "conv", x), x), "Add", 1, 0);
    g = start("1,24,9,7", &x); /* its own input, which ends there */
    const int own = side(g, x);
    expect(g, add(g, point(g, "conv", own), own), "Add", 1, 0);
    g = start("1,24,9,7", &x); /* a sum of sums: each convolution takes one */
    const int inner = add(g, point(g, "first", x), x);
    expect(g, NET_NODE(g, "Add", "outer", "y", point(g, "second", inner), inner), "Add", 2, 0);
    g = start("1,24,9,7", &x); /* two sums behind one convolution */
    const int once = add(g, point(g, "conv", x), x);
    expect(g, NET_NODE(g, "Add", "outer", "y", once, side(g, x)), "Add", 2, 1);
    g = start("1,24,9,7", &x);
    expect(g, NET_NODE(g, "Sum", "add", "y", point(g, "conv", x), side(g, x)), "Sum", 1, 0);
    g = start("1,24,9,7", &x); /* the clamp behind it comes along */
    net_output(g, NET_NODE(g, "Relu", "relu", "y", NET_NODE(g, "Sum", "add", "sum", x, point(g, "conv", x))));
    p = net_plan(g, NULL, NULL);
    assert_int_equal(count(p, "Relu"), 0);
    oct_plan_destroy(p);
    expect(g, -1, "Sum", 1, 0);
}

/* Sum bounds its results itself: as a Clip does that stands apart because the sum is shown. */
static void clamped_sums(void **state)
{
    enum { N = 24 * 63 };
    for (int shown = 1; shown >= 0; shown--) {
        int x;
        oct_graph *g = start("1,24,9,7", &x);
        const int sum = NET_NODE(g, "Sum", "add", "sum", NET_NODE(g, "Neg", "neg", "minus", x), side(g, x), x);
        if (shown)
            net_output(g, sum);
        net_output(g, NET_NODE(g, "Clip", "clip", "y", sum, NET_F32(g, "lo", "", 0.4f), NET_F32(g, "hi", "", 0.6f)));
        oct_plan *p = net_plan(g, NULL, NULL);
        assert_int_equal(count(p, "Clip"), shown);
        oct_plan_destroy(p);
        assert_int_equal(net_run(g, shown ? want : got, CAP), shown ? 2 * N : N);
        oct_graph_destroy(g);
    }
    assert_memory_equal(want + N, got, N * sizeof *got);
    int least = 0, most = 0;
    for (int i = 0; i < N; i++) {
        assert_true(got[i] == fminf(fmaxf(want[i], 0.4f), 0.6f));
        least += want[i] < 0.4f;
        most += want[i] > 0.6f;
    }
    assert_true(least > 0 && most > 0);
}

/* The result takes the place of a summand that ends there. */
static void one_place(void **state)
{
    int x;
    size_t arena[2];
    for (int shown = 0; shown < 2; shown++) {
        oct_graph *g = start("1,4,40,40", &x);
        const int wide = conv(g, "Conv", "wide", x, "24,4,1,1", "24", 1, 1, 0), r = side(g, wide);
        net_output(g, add(g, conv(g, "Conv", "conv", x, "24,4,1,1", "24", 1, 1, 0), r));
        if (shown) /* then it does not end there */
            net_output(g, r);
        oct_plan *p = net_plan(g, NULL, NULL);
        assert_int_equal(count(p, "Add"), 0);
        for (size_t i = 0; i < p->n_step; i++) {
            const oct_step *s = &p->step[i]->s;
            if (s->residual && shown)
                assert_ptr_not_equal(s->in[s->residual]->data, s->out[0]->data);
            else if (s->residual)
                assert_ptr_equal(s->in[s->residual]->data, s->out[0]->data);
        }
        arena[shown] = oct_plan_memory_of(p).arena;
        oct_plan_destroy(p);
        same_bits(g);
        oct_graph_destroy(g);
    }
    assert_true(arena[0] < arena[1]);
}

/* ------------------------------------------------------------------ left alone */

static void left_alone(void **state)
{
    int x, y;
    oct_graph *g = start("1,24,9,7", &x); /* the product is shown */
    y = point(g, "conv", x);
    net_output(g, y);
    expect(g, add(g, y, x), "Add", 1, 1);
    g = start("1,24,9,7", &x); /* something else reads it */
    y = point(g, "conv", x);
    net_output(g, NET_NODE(g, "Neg", "neg", "negated", y));
    expect(g, add(g, y, x), "Add", 1, 1);
    g = start("1,24,9,7", &x); /* both summands */
    y = point(g, "conv", x);
    expect(g, add(g, y, y), "Add", 1, 1);
    g = start("1,24,9,7", &x); /* a number a channel */
    y = NET_NODE(g, "GlobalAveragePool", "gap", "gap", x);
    expect(g, add(g, point(g, "conv", x), y), "Add", 1, 1);
    g = start("1,24,9,7", &x); /* the sum is wider than the product */
    y = point(g, "conv", NET_NODE(g, "GlobalAveragePool", "gap", "gap", x));
    expect(g, add(g, y, x), "Add", 1, 1);
    g = start("1,24,9,7", &x); /* one more dimension */
    y = net_input(g, "r", OCT_F32, "1,1,24,9,7");
    expect(g, add(g, point(g, "conv", x), y), "Add", 1, 1);
    g = start("1,24,3,2", &x); /* a constant */
    expect(g, add(g, point(g, "conv", x), net_random(g, "r", "1,24,3,2", 9)), "Add", 1, 1);
    g = start("1,24,9,7", &x); /* clamped in between */
    expect(g, add(g, NET_NODE(g, "Relu", "relu", "relu", point(g, "conv", x)), x), "Add", 1, 1);
    g = start("1,24,9,7", &x);
    expect(g, NET_NODE(g, "Sub", "sub", "y", point(g, "conv", x), x), "Sub", 1, 1);
    g = start("1,24,9,7", &x); /* three summands */
    expect(g, NET_NODE(g, "Sum", "add", "y", point(g, "conv", x), x, side(g, x)), "Sum", 1, 1);
}

/* Quantized values are rounded between the product and the sum; and floats that a product of quantized values gives are added behind it. */
static void qvals(void **state)
{
    for (int quantized = 0; quantized < 2; quantized++) {
        int x;
        oct_graph *g = start("1,24,9,7", &x);
        net_cnn n = { g, true, 0 };
        x = net_qdq(&n, x, 1.0f / 64, 128);
        n.count++;
        int y = NET_NODE(g, "Conv", "conv", "c", x, net_weights(&n, "24,24,1,1", 24), net_bias(&n, 24, 1.0f / 64));
        y = quantized ? net_qdq(&n, y, 0.05f, 128) : y;
        n.count++;
        y = add(g, x, y);
        net_output(g, quantized ? net_qdq(&n, y, 0.06f, 120) : y);
        oct_plan *p = net_plan(g, NULL, NULL);
        size_t at = 0;
        while (strcmp(oct_plan_step(p, at).name, "conv") != 0)
            at++;
        assert_string_equal(oct_plan_step(p, at).scheme, "int8");
        oct_plan_destroy(p);
        expect(g, -1, "Add", 1, 1);
    }
}

static oct_status note(void *arg, const char *name, const oct_operand *t, oct_err *err)
{
    *(const char **)arg = name;
    return OCT_OK;
}

/* A product that is looked at stays; its sum that is looked at does not keep it. */
static void taps(void **state)
{
    for (int i = 0; i < 2; i++) {
        int x;
        oct_graph *g = start("1,24,9,7", &x);
        net_output(g, NET_NODE(g, "Neg", "neg", "y", add(g, point(g, "conv", x), x)));
        const char *names[1] = { i ? "sum" : "conv" }, *seen = NULL;
        oct_plan *p = net_plan(g, &(oct_plan_opts){ .taps = names, .n_taps = 1 }, NULL);
        assert_int_equal(count(p, "Add"), !i);
        oct_plan_set_tap(p, note, &seen);
        net_fill(want, 24 * 63, 1);
        GOOD(oct_plan_run(p, (const void *const[]){ want }, err));
        assert_string_equal(seen, names[0]);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

/* 16-bit floats are rounded between the product and the sum. */
static void halves(void **state)
{
    int x;
    oct_graph *g = start("1,24,9,7", &x);
    const int h = NET_NODE(g, "Cast", "to_half", "h", x), w = net_random(g, "w", "24,24,1,1", 5);
    net_int(g, "to", 10);
    const int wh = NET_NODE(g, "Cast", "w_half", "wh", w);
    net_int(g, "to", 10);
    const int y = NET_NODE(g, "Cast", "back", "y", add(g, NET_NODE(g, "Conv", "conv", "c", h, wh), h));
    net_int(g, "to", 1);
    expect(g, y, "Add", 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path), cmocka_unit_test(against_loops), cmocka_unit_test(which_product),
        cmocka_unit_test(one_place),  cmocka_unit_test(clamped_sums),  cmocka_unit_test(left_alone),
        cmocka_unit_test(qvals),      cmocka_unit_test(taps),          cmocka_unit_test(halves),
    };
    two = oct_pool_create(2);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oct_pool_destroy(two);
    return failed;
}
