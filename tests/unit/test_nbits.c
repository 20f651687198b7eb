/* Weights in blocks of few bits: MatMulNBits against DequantizeLinear and a float product, node by node, bit for bit;
 * the same on every instruction set, with any threads and rows; weights that are computed; what stays as it is. */

#include "unit.h"

#include "kernels/cpu.h"
#include "net.h"

enum { K = 75, N = 70, BLOCK = 32, BLOCKS = 3, CAP = 4096 };
static float got[CAP], want[CAP];

/* Quantized values of any size from a fixed sequence: unsigned, [rows][cols]. */
static unsigned qval(int row, int col, int bits)
{
    uint32_t seed = (uint32_t)(row * 1009 + col * 7 + 1);
    net_next(&seed);
    return net_next(&seed) & ((1u << bits) - 1);
}

static float scale_of(int column, int block)
{
    return (column + block) % 5 == 0 ? -0.013f : 0.01f + 0.003f * (float)((column * 3 + block) % 7);
}

/* A packed tensor of quantized values: element i of a row-major matrix whose rows are k when `axis` is 0, else
 * columns. */
static int packed(oct_graph *g, const char *name, oct_dtype t, int n, int k, int axis, bool zeros)
{
    const int bits = oct_dtype_bits(t), per = 8 / bits, sign = t == OCT_S8 || t == OCT_S4 ? 1 << (bits - 1) : 0;
    uint8_t *bytes = oct_arena_calloc(g->arena, (size_t)(n * k / per + 1), 1);
    char dims[40];
    for (int i = 0; i < n * k; i++) {
        const int column = axis ? i / k : i % n, row = axis ? i % k : i / n;
        const unsigned c = (qval(zeros ? 500 + row : row, column, bits) ^ (unsigned)sign) & ((1u << bits) - 1);
        bytes[i / per] |= (uint8_t)(c << i % per * bits);
    }
    snprintf(dims, sizeof dims, axis ? "%d,%d" : "%2$d,%1$d", n, k);
    return net_const(g, name, t, dims, bytes);
}

static int scales(oct_graph *g, int axis)
{
    float s[N * BLOCKS];
    for (int i = 0; i < N * BLOCKS; i++)
        s[i] = axis ? scale_of(i / BLOCKS, i % BLOCKS) : scale_of(i % N, i / N);
    return net_const(g, "scales", OCT_F32, axis ? "70,3" : "3,70", s);
}

/* x [rows][K] times DequantizeLinear of quantized values; axis 0: MatMul, 1: Gemm with transB and a bias. */
static oct_graph *dequantized(const char *rows, oct_dtype t, int axis, bool zeros)
{
    char dims[40];
    snprintf(dims, sizeof dims, "%s,75", rows);
    oct_graph *g = net_graph(21);
    int x = net_input(g, "x", OCT_F32, dims);
    int q = packed(g, "codes", t, N, K, axis, false), z = zeros ? packed(g, "zeros", t, N, BLOCKS, axis, true) : -1;
    int w = NET_NODE(g, "DequantizeLinear", "dequantize", "w", q, scales(g, axis), z);
    net_int(g, "axis", axis ? -1 : 0);
    net_int(g, "block_size", BLOCK);
    if (axis) {
        net_output(g, NET_NODE(g, "Gemm", "product", "y", x, w, net_random(g, "bias", "70", 3)));
        net_int(g, "transB", 1);
    } else {
        net_output(g, NET_NODE(g, "MatMul", "product", "y", x, w));
    }
    return g;
}

static bool stays_packed(const oct_graph *g, const oct_plan_opts *o)
{
    oct_plan *p = net_plan(g, o, NULL);
    bool found = false;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        found |= strcmp(oct_plan_step(p, i).scheme, "weight-only") == 0;
    oct_plan_destroy(p);
    return found;
}

static const oct_plan_opts nodes = { .no_integer = true, .no_passes = true };

TEST(stays_in_blocks)
{
    static const oct_dtype types[] = { OCT_U4, OCT_S4, OCT_U8, OCT_S8 };
    for (int i = 0; i < 32; i++) {
        oct_graph *g = dequantized(i & 16 ? "1" : "5", types[i & 3], i >> 2 & 1, i >> 3 & 1);
        const size_t n = net_run_with(g, &nodes, NULL, want, CAP);
        assert_int_equal(n, i & 16 ? N : 5 * N);
        assert_int_equal(net_run(g, got, CAP), n);
        assert_memory_equal(got, want, n * sizeof *got);
        assert_true(stays_packed(g, NULL));
        assert_false(stays_packed(g, &nodes));
        oct_graph_destroy(g);
    }
}

/* The dequantized weights are looked at, or blocks run the other way. */
TEST(stays_float)
{
    const char *const taps[] = { "w" };
    const oct_plan_opts tapped = { .taps = taps, .n_taps = 1 };
    oct_graph *g = dequantized("5", OCT_U4, 0, true);
    assert_false(stays_packed(g, &tapped));
    oct_graph_destroy(g);
    g = net_graph(21);
    int x = net_input(g, "x", OCT_F32, "4,70");
    int w =
        NET_NODE(g, "DequantizeLinear", "dequantize", "w", packed(g, "codes", OCT_U4, N, K, 1, false), scales(g, 1));
    net_int(g, "axis", 1);
    net_int(g, "block_size", BLOCK);
    net_output(g, NET_NODE(g, "MatMul", "product", "y", x, w));
    assert_false(stays_packed(g, NULL));
    const size_t n = net_run_with(g, &nodes, NULL, want, CAP);
    assert_int_equal(net_run(g, got, CAP), n);
    assert_memory_equal(got, want, n * sizeof *got);
    oct_graph_destroy(g);
}

/* The operator with the weights of dequantized(rows, OCT_U4, 1, true), without its bias; computed: scales that are no
 * constant. */
static oct_graph *operator_form(const char *rows, bool computed)
{
    static uint8_t q[N * BLOCKS * BLOCK / 2], z[N * 2];
    char dims[40];
    snprintf(dims, sizeof dims, "%s,75", rows);
    oct_graph *g = net_graph(17);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    memset(q, 0, sizeof q);
    memset(z, 0, sizeof z);
    for (int j = 0; j < N; j++) {
        for (int i = 0; i < K; i++)
            q[j * BLOCKS * BLOCK / 2 + i / 2] |= (uint8_t)(qval(i, j, 4) << i % 2 * 4);
        for (int i = 0; i < BLOCKS; i++)
            z[j * 2 + i / 2] |= (uint8_t)(qval(500 + i, j, 4) << i % 2 * 4);
    }
    int x = net_input(g, "x", OCT_F32, dims), s = scales(g, 1);
    if (computed)
        s = NET_NODE(g, "Mul", "", "computed", s,
                     NET_NODE(g, "ReduceMax", "", "one", NET_NODE(g, "Sign", "", "sign", x)));
    if (computed)
        net_int(g, "keepdims", 0);
    net_output(g, NET_NODE(g, "com.microsoft.MatMulNBits", "product", "y", x, net_const(g, "q", OCT_U8, "70,3,16", q),
                           s, net_const(g, "z", OCT_U8, "140", z)));
    net_int(g, "K", K);
    net_int(g, "N", N);
    net_int(g, "block_size", BLOCK);
    return g;
}

TEST(both_forms)
{
    for (int one = 0; one < 2; one++) {
        const char *rows = one ? "1" : "2,3";
        oct_graph *g = operator_form(rows, false), *d = dequantized(rows, OCT_U4, 0, true);
        const size_t n = net_run(g, got, CAP);
        assert_int_equal(net_run_with(d, &nodes, NULL, want, CAP), n);
        assert_memory_equal(got, want, n * sizeof *got);
        oct_graph_destroy(g);
        oct_graph_destroy(d);
    }
}

TEST(computed_weights)
{
    oct_graph *g = operator_form("5", false), *c = operator_form("5", true);
    const size_t n = net_run(g, want, CAP);
    oct_plan *p = net_plan(c, NULL, NULL);
    static float x[5 * K];
    net_fill(x, 5 * K, 77); /* as net_run has it; its largest sign is 1 */
    for (int again = 0; again < 2; again++) {
        GOOD(oct_plan_run(p, (const void *const[]){ x }, err));
        assert_memory_equal(oct_plan_output(p, 0)->data, want, n * sizeof *want);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
    oct_graph_destroy(c);
}

/* Every instruction set and number of threads; a row alone is what it is among others. */
TEST(every_way)
{
    const char *isa;
    static float alone[N], x[5 * K];
    oct_pool *pool = oct_pool_create(3);
    assert_non_null(pool);
    oct_graph *g = operator_form("5", false), *one = operator_form("1", false);
    net_run(g, want, CAP);
    net_fill(x, 5 * K, 77);
    for (size_t i = 0; (isa = oct_isa_level(i / 2)); i++) {
        if (oct_isa_limit(isa, NULL) != OCT_OK)
            continue;
        oct_plan_opts o = { .pool = i % 2 ? pool : NULL };
        assert_int_equal(net_run_with(g, &o, NULL, got, CAP), 5 * N);
        assert_memory_equal(got, want, 5 * N * sizeof *got);
        oct_plan *p = net_plan(one, &o, NULL);
        for (int r = 0; r < 5; r++) {
            GOOD(oct_plan_run(p, (const void *const[]){ x + r * K }, err));
            memcpy(alone, oct_plan_output(p, 0)->data, sizeof alone);
            assert_memory_equal(alone, want + r * N, sizeof alone);
        }
        oct_plan_destroy(p);
    }
    GOOD(oct_isa_limit("native", err));
    oct_pool_destroy(pool);
    oct_graph_destroy(g);
    oct_graph_destroy(one);
}
