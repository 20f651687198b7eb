/* Additions behind products: which become part of the product's step, that they give what loops give and the bits of
 * two steps on every instruction set and number of threads, and where the result lies. */
#include "unit.h"

#include "net.h"
#include "net_cnn.h"
#include "kernels/cpu.h"
#include "runtime/plan_int.h"

#include <math.h>

enum { CAP = 1 << 17 };
static float want[CAP], got[CAP];
static oct_pool *two; /* threads */

static int set_up(void **state)
{
    two = oct_pool_create(2);
    return 0;
}

static int tear_down(void **state)
{
    oct_pool_destroy(two);
    return 0;
}

TEST_GROUP(set_up, tear_down);

/* ------------------------------------------------------------------ graphs */

/* A convolution of x by random weights, with bias unless it is transposed. */
static int conv(oct_graph *g, const char *op, const char *name, int x, const char *w, const char *channels, int group,
                int stride, int pad)
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

/* Every way a convolution is computed: dense, with its depth in parts (wide), gathered, indirect, in groups, by lines,
 * transposed, 1-D. */
static const struct path {
    const char *op, *x, *w, *channels; /* channels: of the bias; NULL: none */
    int group, stride, pad;
} paths[] = {
    { "Conv", "2,24,9,7", "40,24,1,1", "40", 1, 1, 0 },          { "Conv", "1,700,5,3", "24,700,1,1", "24", 1, 1, 0 },
    { "Conv", "1,96,8,6", "19,96,3,3", "19", 1, 1, 1 },          { "Conv", "1,3,15,13", "16,3,3,3", "16", 1, 2, 1 },
    { "Conv", "1,24,9,7", "16,12,3,3", "16", 2, 1, 1 },          { "Conv", "2,32,9,7", "32,1,3,3", "32", 32, 1, 1 },
    { "Conv", "1,32,13,11", "32,1,5,5", "32", 32, 2, 2 },        { "Conv", "1,19,6,5", "19,1,3,3", "19", 19, 1, 1 },
    { "ConvTranspose", "1,16,5,4", "16,24,3,3", NULL, 1, 2, 1 }, { "Conv", "2,16,33", "24,16,3", "24", 1, 1, 1 },
    { "Conv", "1,64,1,1", "70,64,1,1", "70", 1, 1, 0 },
};

/* x and r are the inputs, and y = conv(x). */
static oct_graph *start_path(const struct path *c, int *y, int *r)
{
    int x;
    char text[80];
    oct_graph *g = start(c->x, &x);
    *y = conv(g, c->op, "conv", x, c->w, c->channels, c->group, c->stride, c->pad);
    GOOD(oct_infer_shapes(g, err));
    oct_shape_text(&g->value[*y].shape, text, sizeof text);
    text[strlen(text) - 1] = 0;
    *r = net_input(g, "r", OCT_F32, text + 1);
    return g;
}

/* A product of quantized values with a constant row behind it: one step unless the product is shown; the same bits. */
static oct_graph *row_behind(const char *a, const char *b, const char *row)
{
    oct_graph *g = net_graph(13);
    static const uint8_t zero[] = { 128, 120 };
    int q[2];
    for (int i = 0; i < 2; i++) {
        char name[3][8] = { "s0", "z0", "q0" };
        for (int k = 0; k < 3; k++)
            name[k][1] = (char)('0' + i);
        const int x = i ? net_random(g, "b", b, 8) : net_input(g, "x", OCT_F32, a);
        const int scale = NET_F32(g, name[0], "", 1.0f / 120), at = net_const(g, name[1], OCT_U8, "", &zero[i]);
        name[0][0] = 'r';
        q[i] = NET_NODE(g, "DequantizeLinear", name[0], name[0],
                        NET_NODE(g, "QuantizeLinear", name[2], name[2], x, scale, at), scale, at);
    }
    const int product = NET_NODE(g, "MatMul", "product", "p", q[0], q[1]);
    const int sum = NET_NODE(g, "Add", "add", "sum", net_random(g, "row", row, 9), product);
    net_output(g, NET_NODE(g, "Relu", "relu", "y", sum));
    return g;
}

TEST(rows_behind)
{
    static const struct {
        const char *a, *b, *row;
        size_t fewer; /* steps */
    } cases[] = {
        { "2,7,33", "33,20", "20", 1 }, { "2,7,33", "33,20", "1,20", 1 }, { "2,2,7,33", "2,2,33,20", "20", 1 },
        { "2,7,33", "33", "7", 0 },     { "2,7,33", "33,20", "7,1", 0 },  { "2,7,33", "33,20", "7,20", 0 },
    };
    static const char *const shown[] = { "p" };
    const oct_plan_opts each = { .taps = shown, .n_taps = 1 };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = row_behind(cases[i].a, cases[i].b, cases[i].row);
        oct_plan *one = net_plan(g, NULL, NULL), *two_steps = net_plan(g, &each, NULL);
        assert_int_equal(two_steps->n_step - one->n_step, cases[i].fewer);
        oct_plan_destroy(one);
        oct_plan_destroy(two_steps);
        const char *isa;
        const size_t n = net_run_with(g, &each, NULL, want, CAP);
        for (size_t k = 0; (isa = oct_isa_level(k)); k++) {
            if (oct_isa_limit(isa, NULL) != OCT_OK)
                continue;
            assert_int_equal(net_run(g, got, CAP), n);
            assert_memory_equal(got, want, n * sizeof *got);
        }
        GOOD(oct_isa_limit("native", err));
        oct_graph_destroy(g);
    }
}

TEST(every_path)
{
    for (size_t i = 0; i < 2 * OCT_COUNT(paths); i++) {
        int y, r;
        oct_graph *g = start_path(&paths[i / 2], &y, &r);
        /* i % 2: the summand lies where the result may lie, and comes first */
        r = i % 2 ? side(g, r) : r;
        const int sum = i % 2 ? add(g, r, y) : add(g, y, r);
        expect(g, i % 4 < 2 ? NET_NODE(g, "Relu", "relu", "y", sum) : sum, "Add", 1, 0);
    }
}

/* ------------------------------------------------------------------ what a sum is */

typedef struct extents {
    int n, c, h, w; /* of weights: outputs, inputs of a group and taps, transposed inputs and outputs */
} extents;

static extents extents_of(const oct_shape *s)
{
    const oct_dim *d = s->d;
    return (extents){ (int)d[0].n, (int)d[1].n, s->rank > 3 ? (int)d[2].n : 1, (int)d[s->rank - 1].n };
}

/* The tap at which input `in` and output `out` of an axis meet, of `taps`; none where it is outside of these. An axis
 * of one tap has no padding. */
static int tap_of(const struct path *c, bool transposed, int taps, int in, int out)
{
    const int pad = taps == 1 ? 0 : c->pad;
    return transposed ? out - in * c->stride + pad : in - out * c->stride + pad;
}

/* Adds what input (n, i, iy, ix) gives to all outputs of its sample and group. */
static void scatter(const struct path *c, extents xe, extents we, extents ye, float x, int i, int iy, int ix,
                    const float *w, float *y)
{
    const bool transposed = strcmp(c->op, "Conv") != 0;
    const int ic = xe.c / c->group, oc = ye.c / c->group, first = i / ic * oc;
    for (int o = first; o < first + oc; o++)
        for (int at = 0; at < ye.h * ye.w; at++) {
            const int ky = tap_of(c, transposed, we.h, iy, at / ye.w), kx = tap_of(c, transposed, we.w, ix, at % ye.w);
            const int row = transposed ? i * we.c + o : o * we.c + i % ic;
            if (ky >= 0 && ky < we.h && kx >= 0 && kx < we.w)
                y[o * ye.h * ye.w + at] += x * w[(row * we.h + ky) * we.w + kx];
        }
}

/* y += conv(x) without its bias, by loops. Numbers are multiples of 1/64 in [-1, 1), so that sums in any order are
 * exact. */
static void by_loops(const struct path *c, extents xe, extents we, extents ye, const float *x, const float *w, float *y)
{
    for (int at = 0; at < xe.n * xe.c * xe.h * xe.w; at++) {
        const int line = at / xe.w, plane = line / xe.h;
        scatter(c, xe, we, ye, x[at], plane % xe.c, line % xe.h, at % xe.w, w, y + plane / xe.c * ye.c * ye.h * ye.w);
    }
}

/* Every path against loops, clamped and not; the summand is an input, which stays as it is, or lies where the result
 * may lie. */
TEST(against_loops)
{
    static float x[CAP], r[CAP], w[CAP], b[128], as_given[CAP];
    for (size_t k = 0; k < 4 * OCT_COUNT(paths); k++) {
        const struct path *c = &paths[k / 4];
        int yv, rv;
        oct_graph *g = start_path(c, &yv, &rv);
        const extents xe = extents_of(&g->value[g->input[0]].shape), ye = extents_of(&g->value[yv].shape);
        const extents we = extents_of(&g->value[g->node[g->value[yv].producer].in[1]].shape);
        const int total = ye.n * ye.c * ye.h * ye.w, plane = ye.h * ye.w;
        const int sum = k % 2 ? add(g, NET_NODE(g, "Neg", "neg", "minus", rv), yv) : add(g, yv, rv);
        net_output(g, k % 4 < 2 ? sum
                                : NET_NODE(g, "Clip", "clip", "y", sum, NET_F32(g, "lo", "", -0.25f),
                                           NET_F32(g, "hi", "", 1.5f)));
        net_fill(x, (size_t)(xe.n * xe.c * xe.h * xe.w), 1);
        net_fill(r, (size_t)total, 2);
        net_fill(w, (size_t)(we.n * we.c * we.h * we.w), 5);
        net_fill(b, (size_t)ye.c, 6);
        memcpy(as_given, r, sizeof r);
        for (int i = 0; i < total; i++)
            want[i] = (k % 2 ? -r[i] : r[i]) + (c->channels ? b[i / plane % ye.c] : 0);
        by_loops(c, xe, we, ye, x, w, want);
        oct_plan *p = net_plan(g, &(oct_plan_opts){ .pool = two }, NULL);
        assert_int_equal(count(p, "Add") + count(p, "Clip"), 0);
        GOOD(oct_plan_run(p, (const void *const[]){ x, r }, err));
        GOOD(oct_operand_to_f32(oct_plan_output(p, 0), got, err));
        for (int i = 0; i < total; i++)
            if (got[i] != (k % 4 < 2 ? want[i] : fminf(fmaxf(want[i], -0.25f), 1.5f)))
                fail_msg("path %zu: element %d is %g of %g", k, i, got[i], want[i]);
        assert_memory_equal(r, as_given, sizeof r);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

TEST(which_product)
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

/* The result takes the place of a summand that ends there. */
TEST(one_place)
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

/* Sum bounds its results itself: as a Clip does that stands apart because the sum is shown. */
TEST(clamped_sums)
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

/* ------------------------------------------------------------------ left alone */

TEST(left_alone)
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

/* Quantized values are rounded between the product and the sum; and floats that a product of quantized values gives are
 * added behind it. */
TEST(qvals)
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

static oct_status note(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    *(bool *)arg = true;
    return OCT_OK;
}

/* A product that is looked at stays; its sum that is looked at does not keep it. */
TEST(taps)
{
    for (int i = 0; i < 2; i++) {
        int x;
        oct_graph *g = start("1,24,9,7", &x);
        net_output(g, NET_NODE(g, "Neg", "neg", "y", add(g, point(g, "conv", x), x)));
        const char *names[1] = { i ? "sum" : "conv" };
        bool seen = false;
        oct_plan *p = net_plan(g, &(oct_plan_opts){ .taps = names, .n_taps = 1 }, NULL);
        assert_int_equal(count(p, "Add"), !i);
        oct_plan_set_tap(p, note, &seen);
        net_fill(want, 24 * 63, 1);
        GOOD(oct_plan_run(p, (const void *const[]){ want }, err));
        assert_true(seen);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

/* 16-bit floats are rounded between the product and the sum. */
TEST(halves)
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

/* A summand that a view shows behind the sum keeps its bytes. */
TEST(viewed)
{
    enum { N = 64 };
    int x;
    oct_graph *g = start("1,64,1,1", &x);
    const int r = NET_NODE(g, "Neg", "neg", "minus", x);
    net_output(g, add(g, conv(g, "Conv", "conv", x, "64,64,1,1", "64", 1, 1, 0), r));
    net_output(g, NET_NODE(g, "Flatten", "flat", "flat", r));
    oct_plan *p = net_plan(g, NULL, NULL);
    assert_int_equal(count(p, "Add"), 0);
    oct_plan_destroy(p);
    assert_int_equal(net_run(g, got, CAP), 2 * N);
    net_fill(want, N, 77);
    for (int i = 0; i < N; i++)
        assert_true(got[N + i] == -want[i]);
    oct_graph_destroy(g);
}
