/* Parts of a Concat that convolutions write where they lie in there: which do, and that every instruction set and
 * number of threads gives the bits of plain steps. */
#include "unit.h"

#include "net.h"
#include "net_cnn.h"
#include "kernels/cpu.h"
#include "runtime/plan_int.h"

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

static oct_graph *start(const char *dims, int *x)
{
    oct_graph *g = net_graph(13);
    *x = net_input(g, "x", OCT_F32, dims);
    return g;
}

static int point(oct_graph *g, const char *name, int x, const char *weights)
{
    char w[24];
    snprintf(w, sizeof w, "%s_w", name);
    return NET_NODE(g, "Conv", name, name, x, net_random(g, w, weights, (uint32_t)strlen(name)));
}

/* Of up to three; -1: absent. */
static int concat(oct_graph *g, const char *name, int a, int b, int c)
{
    const int y = c < 0 ? NET_NODE(g, "Concat", name, name, a, b) : NET_NODE(g, "Concat", name, name, a, b, c);
    net_int(g, "axis", 1);
    return y;
}

/* How many inputs of the Concats of a plan are parts already. */
static int parts_of(const oct_graph *g, const oct_plan_opts *opts)
{
    int n = 0;
    oct_plan *p = net_plan(g, opts, NULL);
    for (size_t i = 0; i < p->n_step; i++) {
        const oct_step *s = &p->step[i]->s;
        for (int k = 0; s->op && strcmp(s->op->type, "Concat") == 0 && k < s->n_in; k++)
            n += s->in[k]->pitch != 0;
    }
    oct_plan_destroy(p);
    return n;
}

static const oct_plan_opts apart = { .no_passes = true };

/* The definition: each tensor by itself, scalar. Then every instruction set, one thread and two. */
static void same_bits(const oct_graph *g)
{
    assert_int_equal(parts_of(g, &apart), 0);
    GOOD(oct_isa_limit("scalar", err));
    const size_t n = net_run_with(g, &apart, NULL, want, CAP);
    const char *isa;
    for (size_t i = 0; (isa = oct_isa_level(i)); i++) {
        if (oct_isa_limit(isa, NULL) != OCT_OK)
            continue;
        for (int t = 0; t < 2; t++) {
            const oct_plan_opts opts = { .pool = t ? two : NULL };
            memset(got, 0xa5, n * sizeof *got);
            assert_int_equal(net_run_with(g, &opts, NULL, got, CAP), n);
            if (memcmp(want, got, n * sizeof *got) != 0)
                fail_msg("%s with %d threads differs from scalar", isa, t + 1);
        }
    }
    GOOD(oct_isa_limit("native", err));
}

/* Expects that many parts; y: one more output, or -1. Frees the graph. */
static void expect(oct_graph *g, int y, int parts)
{
    if (y >= 0)
        net_output(g, y);
    same_bits(g);
    assert_int_equal(parts_of(g, NULL), parts);
    oct_graph_destroy(g);
}

/* ------------------------------------------------------------------ every way a convolution is computed */

typedef struct path {
    const char *op, *x, *w, *bias;
    int group, stride, pad;
} path;

/* Dense, deep, few and many channels, 3x3, strided, in groups, depthwise by lines and by columns, transposed, 1-D, one
 * position. */
static const path paths[] = {
    { "Conv", "2,24,9,7", "40,24,1,1", "40", 1, 1, 0 },          { "Conv", "1,700,5,3", "24,700,1,1", "24", 1, 1, 0 },
    { "Conv", "1,96,8,6", "19,96,3,3", "19", 1, 1, 1 },          { "Conv", "1,3,15,13", "16,3,3,3", "16", 1, 2, 1 },
    { "Conv", "1,64,14,14", "64,64,3,3", "64", 1, 1, 1 },        { "Conv", "1,24,9,7", "16,12,3,3", "16", 2, 1, 1 },
    { "Conv", "2,32,9,7", "32,1,3,3", "32", 32, 1, 1 },          { "Conv", "1,32,13,11", "32,1,5,5", "32", 32, 2, 2 },
    { "Conv", "1,19,6,5", "19,1,3,3", "19", 19, 1, 1 },          { "Conv", "1,5,6,5", "5,1,3,3", "5", 5, 1, 1 },
    { "ConvTranspose", "1,16,5,4", "16,24,3,3", "24", 1, 2, 1 }, { "Conv", "2,16,33", "24,16,3", "24", 1, 1, 1 },
    { "Conv", "1,64,1,1", "70,64,1,1", "70", 1, 1, 0 },          { "Conv", "1,8,6,6", "1,8,1,1", "1", 1, 1, 0 },
};

/* The same convolution twice with other weights, and in between what must be copied: its neighbours' bytes stay theirs,
 * whichever is made first. */
static oct_graph *three(const path *c, bool later_first)
{
    int x, y[2];
    oct_graph *g = start(c->x, &x);
    for (int i = 0; i < 2; i++) {
        const char *const names[] = { "one", "two" }, *const ws[] = { "w1", "w2" }, *const bs[] = { "b1", "b2" };
        y[i] = NET_NODE(g, c->op, names[i], names[i], x, net_random(g, ws[i], c->w, 5u + (uint32_t)i),
                        net_random(g, bs[i], c->bias, 8u + (uint32_t)i));
        net_int(g, "group", c->group);
        if (g->value[x].shape.rank == 3) {
            NET_INTS(g, "strides", c->stride);
            NET_INTS(g, "pads", c->pad, c->pad);
        } else {
            NET_INTS(g, "strides", c->stride, c->stride);
            NET_INTS(g, "pads", c->pad, c->pad, c->pad, c->pad);
        }
    }
    const int side = NET_NODE(g, "Sigmoid", "side", "side", NET_NODE(g, "Relu", "relu", "relu", y[0]));
    net_output(g, concat(g, "cat", y[later_first],
                         concat(g, "inner", NET_NODE(g, "Neg", "minus", "minus", side), y[!later_first], -1), -1));
    return g;
}

TEST(every_path)
{
    for (size_t i = 0; i < 2 * OCT_COUNT(paths); i++)
        expect(three(&paths[i / 2], i % 2), -1, 2); /* the inner Concat, and the convolution that is read once */
}

/* ------------------------------------------------------------------ by hand */

/* Parts have the numbers of the convolutions, channel by channel and sample by sample. */
TEST(by_hand)
{
    int x;
    oct_graph *g = start("2,2,1,3", &x);
    const int a = NET_NODE(g, "Conv", "a", "a", x, NET_F32(g, "wa", "1,2,1,1", 1, 2));
    const int b =
        NET_NODE(g, "Relu", "relu", "b", NET_NODE(g, "Conv", "b", "bc", x, NET_F32(g, "wb", "2,2,1,1", -1, 0, 0, 1)));
    net_output(g, concat(g, "cat", a, b, -1));
    assert_int_equal(parts_of(g, NULL), 2);
    const float in[12] = { 1, 2, 3, 4, -5, 6, -7, 8, 9, 10, 11, -12 };
    const float out[18] = { 9, -8, 15, 0, 0, 0, 4, 0, 6, 13, 30, -15, 7, 0, 0, 10, 11, 0 };
    oct_plan *p = net_plan(g, NULL, NULL);
    GOOD(oct_plan_run(p, (const void *const[]){ in }, err));
    GOOD(oct_operand_to_f32(oct_plan_output(p, 0), got, err));
    for (int i = 0; i < 18; i++)
        assert_true(got[i] == out[i]);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* What is not copied needs no memory of its own. */
TEST(memory)
{
    size_t arena[2];
    for (int shown = 0; shown < 2; shown++) {
        int x;
        oct_graph *g = start("1,8,40,40", &x);
        const int a = point(g, "a", x, "64,8,1,1"), b = point(g, "bb", x, "64,8,1,1");
        net_output(g, NET_NODE(g, "GlobalAveragePool", "gap", "y", concat(g, "cat", a, b, -1)));
        if (shown)
            net_output(g, NET_NODE(g, "GlobalAveragePool", "gap2", "y2", a));
        oct_plan *p = net_plan(g, NULL, NULL);
        arena[shown] = oct_plan_memory_of(p).arena;
        oct_plan_destroy(p);
        expect(g, -1, shown ? 1 : 2);
    }
    assert_true(arena[0] < arena[1]);
}

/* ------------------------------------------------------------------ which */

/* Three levels, each with parts of its own; and a sum behind a convolution goes where the convolution goes. */
TEST(nested)
{
    int x;
    oct_graph *g = start("2,24,9,7", &x);
    const int a = point(g, "a", x, "5,24,1,1"), b = point(g, "bb", x, "7,24,1,1"), c = point(g, "ccc", x, "24,24,1,1");
    const int low = concat(g, "low", a, b, -1), sum = NET_NODE(g, "Add", "add", "sum", c, x);
    const int mid = concat(g, "mid", sum, low, point(g, "dddd", x, "3,24,1,1"));
    expect(g, concat(g, "top", x, mid, point(g, "eeeee", x, "9,24,1,1")), 7);
}

TEST(left_alone)
{
    int x, a, b;
    oct_graph *g = start("1,24,9,7", &x); /* shown */
    a = point(g, "a", x, "8,24,1,1"), b = point(g, "bb", x, "8,24,1,1");
    net_output(g, a);
    expect(g, concat(g, "cat", a, b, -1), 1);
    g = start("1,24,9,7", &x); /* twice, in one and in two */
    a = point(g, "a", x, "8,24,1,1");
    expect(g, concat(g, "cat", a, a, -1), 0);
    g = start("1,24,9,7", &x);
    a = point(g, "a", x, "8,24,1,1"), b = point(g, "bb", x, "8,24,1,1");
    net_output(g, concat(g, "cat", a, b, -1));
    expect(g, concat(g, "cat2", a, x, -1), 1);
    g = start("1,24,9,7", &x); /* by another name as well */
    a = point(g, "a", x, "8,24,1,1");
    net_output(g, NET_NODE(g, "Flatten", "flat", "flat", a));
    expect(g, concat(g, "cat", a, x, -1), 0);
    g = start("1,24,9,7", &x); /* along other axes */
    for (int axis = 0; axis < 4; axis++) {
        char name[] = "cat0", one[] = "a0", other[] = "bb0";
        name[3] = one[1] = other[2] = (char)('0' + axis);
        const int y = concat(g, name, point(g, one, x, "8,24,1,1"), point(g, other, x, "8,24,1,1"), -1);
        GOOD(oct_node_set_int(g, net_last, "axis", axis, err));
        net_output(g, y);
    }
    expect(g, -1, 2);
    g = start("1,24,9,7", &x); /* of one */
    a = point(g, "a", x, "8,24,1,1");
    b = NET_NODE(g, "Concat", "cat", "cat", a);
    net_int(g, "axis", 1);
    expect(g, b, 0);
    g = start("1,24,9,7", &x); /* 16-bit floats */
    a = NET_NODE(g, "Cast", "to_half", "h", x);
    net_int(g, "to", 10);
    b = NET_NODE(g, "Cast", "w_half", "wh", net_random(g, "w", "8,24,1,1", 5));
    net_int(g, "to", 10);
    a = NET_NODE(g, "Cast", "back", "y", concat(g, "cat", NET_NODE(g, "Conv", "conv", "c", a, b), a, -1));
    net_int(g, "to", 1);
    expect(g, a, 0);
}

static oct_status note(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    *(int64_t *)arg += t->pitch + t->count;
    return OCT_OK;
}

/* What is looked at lies by itself. */
TEST(taps)
{
    int x;
    oct_graph *g = start("1,24,9,7", &x);
    net_output(g, concat(g, "cat", point(g, "a", x, "8,24,1,1"), point(g, "bb", x, "8,24,1,1"), -1));
    const char *const names[1] = { "a" };
    const oct_plan_opts opts = { .taps = (const char **)(uintptr_t)names, .n_taps = 1 };
    assert_int_equal(parts_of(g, &opts), 1);
    int64_t seen = 0;
    oct_plan *p = net_plan(g, &opts, NULL);
    oct_plan_set_tap(p, note, &seen);
    net_fill(want, 24 * 63, 1);
    GOOD(oct_plan_run(p, (const void *const[]){ want }, err));
    assert_int_equal(seen, 8 * 63);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* ------------------------------------------------------------------ quantized */

/* Codes of the result's own scale are parts; those of another are translated into it. */
TEST(qvals)
{
    const char *const shapes[] = { "1,24,9,7", "2,24,1,1", "1,24,14,14" };
    for (size_t i = 0; i < 2 * OCT_COUNT(shapes); i++) {
        int x;
        const bool same = i % 2;
        oct_graph *g = start(shapes[i / 2], &x);
        net_cnn n = { g, true, 0 };
        x = net_qdq(&n, x, 1.0f / 64, 128);
        const int a = net_conv(&n, x, "24,1,3,3", 24, 24, 1, 1, 1.0f / 64, 0.05f, false);
        const int b = net_conv(&n, x, "13,24,1,1", 13, 1, 1, 0, 1.0f / 64, 0.05f, false);
        const int c = net_conv(&n, x, "16,24,3,3", 16, 1, 1, 1, 1.0f / 64, same ? 0.05f : 0.04f, false);
        n.count++;
        expect(g, net_qdq(&n, concat(g, "cat", b, a, c), 0.05f, 128), same ? 3 : 2);
    }
}
