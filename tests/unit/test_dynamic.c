/* Dynamic quantization: chains lowered to one step against the same chain run node by node, and against sums written
 * out. Recurrent operators: the same bits on every instruction set, for every number of threads and every batch. */

#include "unit.h"

#include "kernels/cpu.h"
#include "net.h"

enum { M = 7, K = 37, N = 19, CAP = 4096 };
static float got[CAP], want[CAP];
static int8_t qvals[K * N];

static void fill_qvals(void)
{
    uint32_t seed = 5;
    for (size_t i = 0; i < K * N; i++)
        qvals[i] = (int8_t)(int)(net_next(&seed) & 255u);
}

static int set_up(void **state)
{
    fill_qvals();
    return 0;
}

TEST_GROUP(set_up, NULL);

static char *unique(oct_graph *g, const char *base, int i)
{
    return oct_arena_printf(g->arena, "%s%d", base, i);
}

/* The second and third output of the last node. */
static int more(oct_graph *g, int slot, const char *name)
{
    int v;
    GOOD(oct_graph_add_value(g, name, OCT_UNDEFINED, &v, err));
    GOOD(oct_graph_set_output(g, net_last, slot, v, err));
    return v;
}

typedef struct quantizer {
    int x, scale, zero;
} quantizer;

static quantizer quantize(oct_graph *g, int x, int i)
{
    quantizer q = { NET_NODE(g, "DynamicQuantizeLinear", unique(g, "quantize", i), unique(g, "xq", i), x), -1, -1 };
    q.scale = more(g, 1, unique(g, "xs", i));
    q.zero = more(g, 2, unique(g, "xz", i));
    return q;
}

/* MatMulInteger, Cast, Mul, Add (bias >= 0; which side it stands on follows i). Returns the last value. */
static int chain(oct_graph *g, quantizer q, bool per_channel, bool bias, int i)
{
    float *scale = oct_arena_calloc(g->arena, N, sizeof *scale);
    for (int n = 0; n < N; n++)
        scale[n] = 0.003f + 0.0007f * (float)n;
    int8_t zero[N] = { 0 };
    const char *dims = per_channel ? "19" : "";
    int b = net_const(g, "weights", OCT_S8, "37,19", qvals), s = net_const(g, "scale", OCT_F32, dims, scale);
    int acc = NET_NODE(g, "MatMulInteger", unique(g, "product", i), unique(g, "acc", i), q.x, b, q.zero,
                       net_const(g, "zero", OCT_S8, dims, zero));
    int both = i % 2 ? NET_NODE(g, "Mul", "", unique(g, "scales", i), s, q.scale)
                     : NET_NODE(g, "Mul", "", unique(g, "scales", i), q.scale, s);
    int real = NET_NODE(g, "Cast", "", unique(g, "real", i), acc);
    net_int(g, "to", OCT_F32);
    int y = NET_NODE(g, "Mul", "", unique(g, "scaled", i), real, both);
    if (!bias)
        return y;
    int row = net_random(g, "bias", "19", 9u);
    return i % 2 ? NET_NODE(g, "Add", "", unique(g, "y", i), row, y)
                 : NET_NODE(g, "Add", "", unique(g, "y", i), y, row);
}

static size_t steps_of(const oct_graph *g, const oct_plan_opts *o)
{
    oct_plan *p = net_plan(g, o, NULL);
    size_t n = oct_plan_n_steps(p);
    oct_plan_destroy(p);
    return n;
}

/* Results of the plan are those of the nodes one by one; `steps`: of the plan. */
static void same_as_nodes(const oct_graph *g, size_t steps)
{
    oct_plan_opts nodes = { .no_integer = true, .no_passes = true };
    size_t n = net_run_with(g, &nodes, NULL, want, CAP);
    assert_int_equal(net_run(g, got, CAP), n);
    assert_memory_equal(got, want, n * sizeof *got);
    assert_int_equal(steps_of(g, NULL), steps);
    assert_true(steps_of(g, &nodes) > steps);
}

TEST(one_step)
{
    for (int form = 0; form < 8; form++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, form & 4 ? "1,7,37" : "7,37");
        int y = chain(g, quantize(g, x, 0), form & 1, form & 2, form / 4);
        net_output(g, y);
        same_as_nodes(g, 1);
        oct_graph_destroy(g);
    }
}

TEST(clamp_joins)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "7,37");
    net_output(g, NET_NODE(g, "Relu", "relu", "out", chain(g, quantize(g, x, 0), true, true, 0)));
    same_as_nodes(g, 1);
    oct_graph_destroy(g);
}

/* Quantized values that two products read are made once, whether the model quantizes once or for each. */
TEST(shared_qvals)
{
    for (int twice = 0; twice < 2; twice++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "7,37");
        quantizer q = quantize(g, x, 0), r = twice ? quantize(g, x, 1) : q;
        int a = chain(g, q, true, true, 2), b = chain(g, r, false, false, 3);
        net_output(g, a);
        net_output(g, b);
        same_as_nodes(g, 3);
        oct_graph_destroy(g);
    }
}

/* What somebody looks at is not fused away. */
TEST(seen_values_stay)
{
    const char *const taps[] = { "acc0" };
    oct_plan_opts o = { .taps = taps, .n_taps = 1 };
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "7,37");
    net_output(g, chain(g, quantize(g, x, 0), true, true, 0));
    assert_true(steps_of(g, &o) > 3);
    oct_graph_destroy(g);
    g = net_graph(13);
    x = net_input(g, "x", OCT_F32, "7,37");
    quantizer q = quantize(g, x, 0);
    net_output(g, chain(g, q, true, true, 0));
    net_output(g, q.scale);
    same_as_nodes(g, 2);
    oct_graph_destroy(g);
}

/* Scale and zero point by the definition of DynamicQuantizeLinear, sums in integers. */
TEST(written_out)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "7,37");
    net_output(g, chain(g, quantize(g, x, 0), true, true, 0));
    assert_int_equal(net_run(g, got, CAP), M * N);
    float v[M * K], row[N], lo = 0, hi = 0;
    net_fill(v, M * K, 77);
    net_fill(row, N, 9);
    for (int i = 0; i < M * K; i++) {
        lo = v[i] < lo ? v[i] : lo;
        hi = v[i] > hi ? v[i] : hi;
    }
    float scale = (hi - lo) / 255.0f;
    int zero = (int)rintf(0.0f - lo / scale);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            int sum = 0;
            for (int k = 0; k < K; k++) {
                int q = (int)rintf(v[m * K + k] / scale) + zero;
                sum += ((q < 0 ? 0 : q > 255 ? 255 : q) - zero) * qvals[k * N + n];
            }
            volatile float product = (float)sum * (scale * (0.003f + 0.0007f * (float)n));
            want[m * N + n] = product + row[n];
        }
    assert_memory_equal(got, want, M * N * sizeof *got);
    oct_graph_destroy(g);
}

/* QGemm without an output scale gives reals. */
TEST(qgemm_real)
{
    oct_graph *g = net_graph(13);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    int x = net_input(g, "x", OCT_F32, "7,37");
    const uint8_t zero = 128;
    const int8_t none = 0;
    int32_t bias[N];
    for (int n = 0; n < N; n++)
        bias[n] = 100 * n - 900;
    int xs = NET_F32(g, "xs", "", 1.0f / 128), xz = net_const(g, "xz", OCT_U8, "", &zero);
    int q = NET_NODE(g, "QuantizeLinear", "quantize", "xq", x, xs, xz);
    net_output(g, NET_NODE(g, "com.microsoft.QGemm", "gemm", "y", q, xs, xz, net_const(g, "w", OCT_S8, "37,19", qvals),
                           NET_F32(g, "ws", "", 0.01f), net_const(g, "wz", OCT_S8, "", &none),
                           net_const(g, "b", OCT_S32, "19", bias)));
    assert_int_equal(net_run(g, got, CAP), M * N);
    float v[M * K];
    net_fill(v, M * K, 77);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double sum = bias[n];
            for (int k = 0; k < K; k++)
                sum += 128.0 * (double)v[m * K + k] * qvals[k * N + n];
            assert_true(fabs((double)got[m * N + n] - sum * 0.01 / 128) <= 1e-4);
        }
    oct_graph_destroy(g);
}

/* An LSTM with peepholes both ways and a GRU over 9 steps. */
static oct_graph *recurrent(const char *batch)
{
    char dims[40];
    snprintf(dims, sizeof dims, "9,%s,13", batch);
    oct_graph *g = net_graph(14);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    int x = net_input(g, "x", OCT_F32, dims);
    int y = NET_NODE(g, "LSTM", "lstm", "ya", x, net_random(g, "w", "2,92,13", 1), net_random(g, "r", "2,92,23", 2),
                     net_random(g, "b", "2,184", 3), -1, -1, -1, net_random(g, "p", "2,69", 4));
    net_int(g, "hidden_size", 23);
    net_str(g, "direction", "bidirectional");
    net_output(g, y);
    net_output(g, NET_NODE(g, "GRU", "gru", "yb", x, net_random(g, "gw", "1,51,13", 5),
                           net_random(g, "gr", "1,51,17", 6)));
    net_int(g, "hidden_size", 17);
    return g;
}

static void every_way(const oct_graph *g, size_t count)
{
    const char *isa;
    oct_pool *pool = oct_pool_create(3);
    assert_non_null(pool);
    for (size_t i = 0; (isa = oct_isa_level(i)); i++)
        for (int threads = 0; threads < 2; threads++) {
            oct_plan_opts o = { .pool = threads ? pool : NULL };
            if (oct_isa_limit(isa, NULL) != OCT_OK)
                continue;
            assert_int_equal(net_run_with(g, &o, NULL, i + (size_t)threads ? got : want, CAP), count);
            if (i + (size_t)threads)
                assert_memory_equal(got, want, count * sizeof *got);
        }
    GOOD(oct_isa_limit("native", err));
    oct_pool_destroy(pool);
}

TEST(recurrent_bits)
{
    oct_graph *g = recurrent("3");
    every_way(g, 9 * 3 * (2 * 23 + 17));
    oct_graph_destroy(g);
    g = net_graph(14);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    const int8_t zero = 0;
    int s = NET_F32(g, "s", "1", 0.01f), z = net_const(g, "z", OCT_S8, "1", &zero);
    net_output(g,
               NET_NODE(g, "com.microsoft.DynamicQuantizeLSTM", "lstm", "y", net_input(g, "x", OCT_F32, "9,2,11"),
                        net_const(g, "w", OCT_S8, "1,11,20", qvals), net_const(g, "r", OCT_S8, "1,5,20", qvals + 220),
                        net_random(g, "b", "1,40", 3), -1, -1, -1, -1, s, z, s, z));
    net_int(g, "hidden_size", 5);
    every_way(g, 9 * 2 * 5);
    oct_graph_destroy(g);
}

/* The first sequence of three comes out as it does alone: inputs of [steps][batch][13] differ, so alone is computed on
 * row 0. */
TEST(recurrent_batches)
{
    static float x[9 * 3 * 13], one[9 * 13];
    net_fill(x, 9 * 3 * 13, 41);
    for (int t = 0; t < 9; t++)
        memcpy(one + t * 13, x + t * 3 * 13, 13 * sizeof *x);
    oct_graph *all = recurrent("3"), *alone = recurrent("1");
    oct_plan *p = net_plan(all, NULL, NULL), *q = net_plan(alone, NULL, NULL);
    GOOD(oct_plan_run(p, (const void *const[]){ x }, err));
    GOOD(oct_plan_run(q, (const void *const[]){ one }, err));
    for (size_t o = 0; o < 2; o++) {
        const oct_operand *a = oct_plan_output(p, o),
                          *b = oct_plan_output(q, o); /* [steps][directions][batch][hidden] */
        const size_t n = (size_t)a->dims[3], rows = (size_t)(a->dims[0] * a->dims[1]);
        for (size_t i = 0; i < rows; i++)
            assert_memory_equal((const float *)a->data + i * 3 * n, (const float *)b->data + i * n, n * sizeof(float));
    }
    oct_plan_destroy(p);
    oct_plan_destroy(q);
    oct_graph_destroy(all);
    oct_graph_destroy(alone);
}
