/* lib/quant: what rounding a layer's inputs when it runs is expected to cost, against numbers that are drawn and
 * rounded here. */
#include "unit.h"

#include "net.h"
#include "quant/budget/size_choice_int.h"

enum { ROWS = 128, WIDE = 128, N = ROWS * WIDE };

/* About normal: twelve even numbers together have a variance of 1. */
static double draw(uint32_t *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += net_next(seed) % (1u << 20) / (double)(1u << 20);
    return sum;
}

/* The noise of the signal when x[] is rounded to 255 steps between its least and its largest value, and 0. */
static double rounded(const double *x)
{
    double lo = 0, hi = 0, noise = 0, signal = 0;
    for (int i = 0; i < N; i++) {
        lo = fmin(lo, x[i]);
        hi = fmax(hi, x[i]);
    }
    const double step = (hi - lo) / 255;
    for (int i = 0; i < N; i++) {
        const double d = x[i] - step * rint(x[i] / step);
        noise += d * d;
        signal += x[i] * x[i];
    }
    return noise / signal;
}

typedef struct nets {
    oct_graph *g;
    int x, y, gain;
    float factor[WIDE];
} nets;

static double expected(nets *n, int input)
{
    oct_qjob j = { .g = n->g, .n_nodes = 0 };
    oct_conversion c = { 0 };
    const oct_size_units u = { .c = &c, .j = &j };
    char node[20], value[20], weights[20];
    snprintf(node, sizeof node, "n%zu", n->g->n_value);
    snprintf(value, sizeof value, "v%zu", n->g->n_value);
    snprintf(weights, sizeof weights, "w%zu", n->g->n_value);
    const int v = NET_NODE(n->g, "MatMul", node, value, input, net_random(n->g, weights, "128,8", 1));
    return oct_size_input_noise(&u, n->g->value[v].producer, OCT_SCHEME_DYNAMIC);
}

static void near(double have, double want)
{
    if (!(have < want * 1.6 && have > want / 1.6))
        fail_msg("%.3g is expected, %.3g it is", have, want);
}

static void open_nets(nets *n)
{
    n->g = net_graph(17);
    n->x = net_input(n->g, "x", OCT_F32, "128,128");
    n->y = net_input(n->g, "y", OCT_F32, "128,128");
    for (int i = 0; i < WIDE; i++)
        n->factor[i] = i % 64 == 3 ? 20 : 0.5f + (float)(i % 8) / 8;
    n->gain = net_const(n->g, "gain", OCT_F32, "128", n->factor);
}

TEST(is_that_of_numbers_drawn)
{
    static double x[N], y[N];
    uint32_t seed = 7;
    nets n;
    open_nets(&n);
    for (int i = 0; i < N; i++)
        x[i] = draw(&seed);
    near(expected(&n, n.x), rounded(x));
    for (int i = 0; i < N; i++)
        y[i] = fmax(x[i], 0);
    near(expected(&n, NET_NODE(n.g, "Relu", "r", "vr", n.x)), rounded(y));
    for (int i = 0; i < N; i++)
        y[i] = x[i] * draw(&seed);
    near(expected(&n, NET_NODE(n.g, "Mul", "m", "vm", n.x, n.y)), rounded(y));
    for (int i = 0; i < N; i++)
        y[i] = x[i] * (double)n.factor[i % WIDE];
    near(expected(&n, NET_NODE(n.g, "Mul", "g", "vg", n.x, n.gain)), rounded(y));
    for (int i = 0; i < N; i++)
        y[i] = i / (double)N;
    near(expected(&n, NET_NODE(n.g, "Sigmoid", "s", "vs", n.x)), rounded(y));
    oct_graph_destroy(n.g);
}

/* Gates, moves and one factor a row change nothing. */
TEST(looks_through_what_keeps_the_spread)
{
    nets n;
    open_nets(&n);
    const double plain = expected(&n, n.x);
    const int row = net_input(n.g, "row", OCT_F32, "128,1");
    const int gate = NET_NODE(n.g, "Sigmoid", "gate", "vgate", n.x),
              gated = NET_NODE(n.g, "Mul", "gated", "vgated", n.x, gate);
    assert_true(expected(&n, gated) == plain);
    assert_true(expected(&n, NET_NODE(n.g, "Transpose", "t", "vt", n.x)) == plain);
    assert_true(expected(&n, NET_NODE(n.g, "Mul", "scaled", "vscaled", n.x, row)) == plain);
    assert_true(expected(&n, NET_NODE(n.g, "Mul", "up", "vup", gated, n.y)) > 3 * plain);
    oct_graph_destroy(n.g);
}
