/* lib/targets: how nodes of a file stand in a target. What ONNX Runtime 1.32 and OpenVINO 2026.4 make of each case was
 * seen in their optimized graphs. */
#include "unit.h"

#include "net.h"
#include "passes/pass.h"
#include "targets.h"
#include "targets/stand.h"

static oct_arena *arena;
static oct_graph *g;

static void open_graph(void)
{
    arena = oct_arena_create();
    g = net_graph(13);
}

static void close_graph(void)
{
    oct_graph_destroy(g);
    oct_arena_destroy(arena);
}

/* How the node of that name stands; *why may be NULL. */
static oct_stand_kind kind_in(const oct_target *t, const char *name, const char **why)
{
    oct_stand *stand;
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_target_stands(t, g, arena, &stand, err));
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(oct_node_label(g, g->order[i]), name) == 0) {
            assert_non_null(stand[g->order[i]].why);
            if (why)
                *why = oct_arena_strdup(arena, stand[g->order[i]].why);
            return stand[g->order[i]].kind;
        }
    fail_msg("there is no node '%s'", name);
    return OCT_STANDS_APART;
}

static oct_stand_kind kind_of(const char *target, const char *name, const char **why)
{
    return kind_in(target_named(target), name, why);
}

/* ---- files in QDQ form ---- */

static int number(float v, bool list)
{
    static int n;
    char name[20];
    snprintf(name, sizeof name, "s%d", n++);
    return net_const(g, name, OCT_F32, list ? "1" : "", &v);
}

static int zero(oct_dtype t, int v)
{
    static int n;
    char name[20];
    const int32_t wide = v; /* little-endian: its first bytes are the value in any type */
    snprintf(name, sizeof name, "z%d", n++);
    return net_const(g, name, t, "", &wide);
}

/* Quantized and back again, under `name`. */
typedef struct grid {
    float scale;
    oct_dtype type;
    int zero;
    bool list;
} grid;
static int rounded(int value, const char *name, grid q)
{
    char codes[60];
    snprintf(codes, sizeof codes, "%s_codes", name);
    const int s = number(q.scale, q.list), z = zero(q.type, q.zero);
    const int c = net_node(g, "QuantizeLinear", codes, codes, value, s, z, NET_END);
    return net_node(g, "DequantizeLinear", name, name, c, s, z, NET_END);
}

static int weights(const char *name, const char *dims, const void *bytes)
{
    char codes[60];
    snprintf(codes, sizeof codes, "%s_codes", name);
    const int w = net_const(g, codes, OCT_S8, dims, bytes);
    return net_node(g, "DequantizeLinear", name, name, w, number(0.1f, false), zero(OCT_S8, 0), NET_END);
}

static const grid fine = { 0.02f, OCT_U8, 0, false };
static const int8_t ones[256] = { 1, 1, 1 };

/* x -> Conv [-> Relu ...] -> out, with and without a quantizer behind. */
static void conv(const grid *out, int relus)
{
    open_graph();
    const int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", fine);
    int y = net_node(g, "Conv", "conv", "c", x, weights("w", "4,4,1,1", ones), NET_END);
    for (int i = 0; i < relus; i++)
        y = net_node(g, "Relu", (const char *[]){ "relu", "relu2", "relu3" }[i], (const char *[]){ "r", "r2", "r3" }[i],
                     y, NET_END);
    net_output(g, out ? rounded(y, "y", *out) : y);
}

TEST(conv_needs_a_quantizer)
{
    static const struct {
        grid q;
        bool none;
        int relus;
        bool integer;
    } each[] = {
        { { 0.02f, OCT_U8, 0, false }, false, 0, true },    { .none = true },
        { { 0.02f, OCT_U8, 0, false }, false, 1, true },    { { 0.02f, OCT_U8, 3, false }, false, 1, false },
        { { 0.02f, OCT_S8, -128, false }, false, 1, true }, { { 0.02f, OCT_S8, 0, false }, false, 1, false },
        { { 0.02f, OCT_U8, 0, false }, false, 2, true },    { { 0.02f, OCT_U8, 3, false }, false, 2, false },
        { { 0.02f, OCT_U8, 0, false }, false, 3, false }, /* as ONNX Runtime leaves the third */
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        conv(each[i].none ? NULL : &each[i].q, each[i].relus);
        assert_int_equal(kind_of("onnxruntime-x86", "conv", NULL),
                         each[i].integer ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        assert_int_equal(kind_of("onnxruntime-x86", "xr", NULL), OCT_STANDS_APART);
        close_graph();
    }
}

/* Zero points of 16 bits count as those of 8 do: a range that begins below a Relu's does not replace it. */
TEST(wide_quantizers_replace_clamps)
{
    static const struct {
        int zero;
        bool integer;
    } each[] = { { 0, true }, { 3, false }, { 32768, false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        const grid wide = { 0.001f, OCT_U16, 0, false }, result = { 0.001f, OCT_U16, each[i].zero, false };
        const int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", wide);
        const int c = net_node(g, "Conv", "conv", "c", x, weights("w", "4,4,1,1", ones), NET_END);
        net_output(g, rounded(net_node(g, "Relu", "relu", "r", c, NET_END), "y", result));
        assert_int_equal(kind_of("qnn", "conv", NULL), each[i].integer ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

TEST(reasons_name_what_is_missing)
{
    const char *why;
    conv(NULL, 0);
    assert_int_equal(kind_of("onnxruntime-x86", "conv", &why), OCT_STANDS_FLOAT);
    assert_string_equal(why, "nothing quantizes the result");
    assert_int_equal(kind_of("octet", "conv", NULL), OCT_STANDS_INTEGER); /* ours makes reals of its sums */
    close_graph();
    conv(&(grid){ 0.02f, OCT_U8, 3, false }, 1);
    assert_int_equal(kind_of("onnxruntime-x86", "conv", &why), OCT_STANDS_FLOAT);
    assert_string_equal(why, "the range of its result goes beyond the limits of the Relu or Clip behind it");
    close_graph();
}

/* A product with a bias that is added behind it. */
static void product(const char *dims, const char *bias, bool quantized)
{
    static const float b[16] = { 1 };
    open_graph();
    const int x = rounded(net_input(g, "x", OCT_F32, dims), "xr", fine);
    const int m = net_node(g, "MatMul", "product", "m", x, weights("w", "16,8", ones), NET_END);
    const int y = net_node(g, "Add", "sum", "a", m, net_const(g, "b", OCT_F32, bias, b), NET_END);
    net_output(g, quantized ? rounded(y, "y", fine) : y);
}

TEST(sums_join_products)
{
    static const struct {
        const char *dims, *bias;
        bool quantized;
        oct_stand_kind product, sum;
    } each[] = {
        { "1,16", "8", false, OCT_STANDS_FLOAT, OCT_STANDS_FLOAT },
        { "1,16", "8", true, OCT_STANDS_INTEGER, OCT_STANDS_INTEGER },
        { "1,16", "1,8", true, OCT_STANDS_FLOAT, OCT_STANDS_FLOAT },
        { "2,3,16", "8", false, OCT_STANDS_FLOAT, OCT_STANDS_FLOAT },
        { "2,3,16", "8", true, OCT_STANDS_INTEGER, OCT_STANDS_INTEGER },
        { "2,3,16", "1,8", true, OCT_STANDS_INTEGER, OCT_STANDS_FLOAT },
        { "N,3,16", "8", false, OCT_STANDS_INTEGER, OCT_STANDS_FLOAT },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        product(each[i].dims, each[i].bias, each[i].quantized);
        assert_int_equal(kind_of("onnxruntime-x86", "product", NULL), each[i].product);
        assert_int_equal(kind_of("onnxruntime-x86", "sum", NULL), each[i].sum);
        close_graph();
    }
}

/* One operator between quantizers. */
static oct_stand_kind between(const char *op, int inputs, grid in, grid out)
{
    open_graph();
    const int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", in);
    const int z = rounded(net_input(g, "z", OCT_F32, "1,4,8,8"), "zr", in);
    const int y = inputs == 2 ? net_node(g, op, "node", "n", x, z, NET_END) : net_node(g, op, "node", "n", x, NET_END);
    if (strstr(op, "axPool") && strncmp(op, "Global", 6) != 0)
        NET_INTS(g, "kernel_shape", 2, 2);
    if (strcmp(op, "DepthToSpace") == 0)
        net_int(g, "blocksize", 2);
    net_output(g, rounded(y, "y", out));
    net_output(g, z);
    const oct_stand_kind kind = kind_of("onnxruntime-x86", "node", NULL);
    close_graph();
    return kind;
}

TEST(operators_between_quantizers)
{
    const grid other = { 0.03f, OCT_U8, 0, false }, list = { 0.02f, OCT_U8, 0, true }, s8 = { 0.02f, OCT_S8, 0, false };
    assert_int_equal(between("Add", 2, fine, other), OCT_STANDS_INTEGER);
    assert_int_equal(between("Add", 2, list, list), OCT_STANDS_FLOAT);
    assert_int_equal(between("Sigmoid", 1, list, list), OCT_STANDS_INTEGER);
    assert_int_equal(between("Softmax", 1, fine, other), OCT_STANDS_INTEGER); /* it keeps what others have placed */
    assert_int_equal(between("Tanh", 1, fine, other), OCT_STANDS_FLOAT);
    assert_int_equal(between("MaxPool", 1, fine, fine), OCT_STANDS_INTEGER);
    assert_int_equal(between("MaxPool", 1, fine, other), OCT_STANDS_FLOAT);
    assert_int_equal(between("MaxPool", 1, s8, s8), OCT_STANDS_INTEGER);
    assert_int_equal(between("DepthToSpace", 1, fine, fine), OCT_STANDS_INTEGER);
    assert_int_equal(between("GlobalMaxPool", 1, fine, fine), OCT_STANDS_FLOAT);
}

/* Quantizers are moved over what moves data: the pool between a convolution and its quantizer, also behind a Relu. */
TEST(quantizers_are_moved)
{
    open_graph();
    const int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", fine);
    const int c = net_node(g, "Conv", "conv", "c", x, weights("w", "4,4,1,1", ones), NET_END);
    const int p = net_node(g, "MaxPool", "pool", "p", net_node(g, "Relu", "relu", "r", c, NET_END), NET_END);
    NET_INTS(g, "kernel_shape", 2, 2);
    net_output(g, rounded(p, "y", fine));
    assert_int_equal(kind_of("onnxruntime-x86", "conv", NULL), OCT_STANDS_INTEGER);
    assert_int_equal(kind_of("onnxruntime-x86", "pool", NULL), OCT_STANDS_INTEGER);
    close_graph();
}

TEST(files_are_quantized_or_not)
{
    open_graph();
    net_output(g, net_node(g, "Relu", "relu", "y", net_input(g, "x", OCT_F32, "4"), NET_END));
    assert_false(oct_has_quantized(g));
    assert_int_equal(kind_of("onnxruntime-x86", "relu", NULL), OCT_STANDS_FLOAT);
    close_graph();
    conv(&fine, false);
    assert_true(oct_has_quantized(g));
    close_graph();
}

/* ---- OpenVINO: what dequantizes a value is carried on, and what is behind a node does not matter ---- */

/* OpenVINO averages in float where the last windows may hang over. */
TEST(openvino_averages_whole_windows)
{
    for (int ceil = 0; ceil <= 1; ceil++) {
        open_graph();
        const int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", fine),
                  y = net_node(g, "AveragePool", "pool", "p", x, NET_END);
        NET_INTS(g, "kernel_shape", 3, 3);
        net_int(g, "ceil_mode", ceil);
        net_output(g, y);
        assert_int_equal(kind_of("openvino", "pool", NULL), ceil ? OCT_STANDS_FLOAT : OCT_STANDS_INTEGER);
        close_graph();
    }
}

TEST(openvino_carries_dequantizers)
{
    static const struct {
        const char *op;
        grid in;
        int readers;
        oct_stand_kind conv;
    } each[] = {
        { "Dropout", { 0.02f, OCT_U8, 7, false }, 1, OCT_STANDS_INTEGER },
        { "MaxPool", { 0.02f, OCT_U8, 7, false }, 2, OCT_STANDS_INTEGER },
        { "Pad", { 0.02f, OCT_U8, 0, false }, 2, OCT_STANDS_INTEGER },
        { "Pad", { 0.02f, OCT_S8, 0, false }, 1, OCT_STANDS_INTEGER },
        { "Pad", { 0.02f, OCT_S8, 0, false }, 2, OCT_STANDS_FLOAT },
        { "Pad", { 0.02f, OCT_U8, 7, false }, 1, OCT_STANDS_FLOAT },
        { "Tanh", { 0.02f, OCT_U8, 0, false }, 1, OCT_STANDS_FLOAT },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", each[i].in);
        const bool pad = strcmp(each[i].op, "Pad") == 0;
        const int pads = pad ? NET_S64(g, "pads", "8", 0, 0, 1, 1, 0, 0, 1, 1) : NET_END;
        x = net_node(g, each[i].op, "node", "p", x, pads, NET_END);
        if (strcmp(each[i].op, "MaxPool") == 0)
            NET_INTS(g, "kernel_shape", 2, 2);
        net_output(g, net_node(g, "Conv", "conv", "c", x, weights("w", "4,4,1,1", ones), NET_END));
        if (each[i].readers == 2)
            net_output(g, net_node(g, "Conv", "conv2", "c2", x, weights("w2", "4,4,1,1", ones), NET_END));
        assert_int_equal(kind_of("openvino", "conv", NULL), each[i].conv);
        close_graph();
    }
}

/* Strides of a kernel of one element go before the dequantizer that nothing else reads. */
TEST(openvino_moves_strides)
{
    for (int readers = 1; readers <= 2; readers++) {
        open_graph();
        const int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", fine);
        const int y = net_node(g, "Conv", "conv", "c", x, weights("w", "4,4,1,1", ones), NET_END);
        NET_INTS(g, "strides", 2, 2);
        net_output(g, y);
        if (readers == 2)
            net_output(g, net_node(g, "Conv", "conv2", "c2", x, weights("w2", "4,4,3,3", ones), NET_END));
        assert_int_equal(kind_of("openvino", "conv", NULL), readers == 1 ? OCT_STANDS_FLOAT : OCT_STANDS_INTEGER);
        close_graph();
    }
}

TEST(openvino_multiplies_centred_activations)
{
    static const struct {
        grid a, b;
        bool integer;
    } each[] = {
        { { 0.1f, OCT_U8, 0, false }, { 0.1f, OCT_U8, 128, false }, true },
        { { 0.1f, OCT_U8, 0, false }, { 0.1f, OCT_U8, 127, false }, false },
        { { 0.1f, OCT_U8, 3, false }, { 0.1f, OCT_U8, 128, false }, false },
        { { 0.1f, OCT_S8, 0, false }, { 0.1f, OCT_S8, -128, false }, true },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        const int a = rounded(net_input(g, "a", OCT_F32, "4,4"), "ar", each[i].a),
                  b = rounded(net_input(g, "b", OCT_F32, "4,4"), "br", each[i].b);
        net_output(g, net_node(g, "MatMul", "product", "m", a, b, NET_END));
        assert_int_equal(kind_of("openvino", "product", NULL), each[i].integer ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* The sum of a constant joins a product of up to three dimensions. */
TEST(openvino_joins_sums_of_few_dimensions)
{
    static const char *const dims[] = { "3,16", "2,3,16", "2,2,3,16" };
    for (size_t i = 0; i < OCT_COUNT(dims); i++) {
        product(dims[i], "8", false);
        assert_int_equal(kind_of("openvino", "product", NULL), OCT_STANDS_INTEGER);
        assert_int_equal(kind_of("openvino", "sum", NULL), i < 2 ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* A sum reads bytes where one input is dequantized, or becomes part of a Conv whose result nothing else reads; a value
 * that is read later too stays what it is. */
/* With fixed dimensions the sum of a constant is generated as one pass with the quantizer of its input, and reads bytes
 * only where these are made before. With free ones the dequantizer is a node of its own where it subtracts a zero
 * point, or where u8 meet several numbers. */
TEST(openvino_sums_of_constants)
{
    static const struct {
        const char *dims, *constant;
        grid in;
        bool bytes, integer;
    } each[] = {
        { "2,3", "3", { 0.02f, OCT_U8, 0, false }, false, false },
        { "2,3", "3", { 0.02f, OCT_U8, 0, false }, true, true },
        { "?,3", "3", { 0.02f, OCT_U8, 0, false }, false, false },
        { "?,3", "", { 0.02f, OCT_U8, 0, false }, false, true },
        { "?,3", "", { 0.02f, OCT_U8, 7, false }, false, false },
        { "?,3", "3", { 0.02f, OCT_S8, 0, false }, false, true },
        { "?,3", "3", { 0.02f, OCT_S8, 5, false }, false, false },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        const float k[3] = { 1, 2, 3 };
        const int x = each[i].bytes ? net_node(g, "DequantizeLinear", "xs", "xs",
                                               net_input(g, "x", OCT_U8, each[i].dims), number(0.02f, false), NET_END)
                                    : rounded(net_input(g, "x", OCT_F32, each[i].dims), "xs", each[i].in);
        net_output(g, net_node(g, "Add", "sum", "y", x, net_const(g, "k", OCT_F32, each[i].constant, k), NET_END));
        assert_int_equal(kind_of("openvino", "sum", NULL), each[i].integer ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* With fixed dimensions a layer takes in a sum with real numbers only where a Conv on reals makes these. */
TEST(openvino_sums_of_fixed_dimensions)
{
    static const struct {
        const char *op, *dims;
        bool joined;
    } each[] = { { "Tanh", "?,4,8,8", true },
                 { "Tanh", "1,4,8,8", false },
                 { "Conv", "1,4,8,8", true },
                 { "Relu", "1,4,8,8", false },
                 { "Relu", "?,4,8,8", true } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        const int x = net_input(g, "x", OCT_F32, each[i].dims), w = net_random(g, "wr", "4,4,1,1", 3);
        const int real =
            net_node(g, each[i].op, "real", "t", x, strcmp(each[i].op, "Conv") == 0 ? w : NET_END, NET_END);
        const int c = net_node(g, "Conv", "conv", "c", rounded(x, "xr", fine), weights("w", "4,4,1,1", ones), NET_END);
        net_output(g, net_node(g, "Add", "sum", "j", c, real, NET_END));
        assert_int_equal(kind_of("openvino", "sum", NULL), each[i].joined ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* A constant of one number for each channel is the bias of the Conv before it; one of others joins it where a quantizer
 * is behind. */
TEST(openvino_sums_of_biases)
{
    static const struct {
        const char *dims, *constant;
        bool quantized, joined;
    } each[] = { { "1,4,8,8", "4,1,1", false, true }, { "1,4,8,8", "", false, true },
                 { "1,4,8,8", "8", false, false },    { "1,4,8,8", "8", true, true },
                 { "?,4,8,8", "8", false, false },    { "?,4,8,8", "1,4,1,1", false, true } };
    static const float k[8] = { 1, 2, 3 };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        const int x = rounded(net_input(g, "x", OCT_F32, each[i].dims), "xr", fine);
        const int c = net_node(g, "Conv", "conv", "c", x, weights("w", "4,4,1,1", ones), NET_END);
        int y = net_node(g, "Add", "sum", "a", c, net_const(g, "k", OCT_F32, each[i].constant, k), NET_END);
        y = net_node(g, "Relu", "relu", "r", y, NET_END);
        net_output(g, each[i].quantized ? rounded(y, "ys", fine) : y);
        assert_int_equal(kind_of("openvino", "sum", NULL), each[i].joined ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* Where dimensions are fixed, a sum reads bytes if the quantizer of one of its inputs is part of what is before it: of
 * a Conv that it alone reads, of a MatMul if several read the quantized values. */
TEST(openvino_sums_of_quantized)
{
    static const struct {
        const char *op;
        int readers; /* of the real numbers; of the quantized ones */
        int quantized;
        bool integer;
    } each[] = { { "Conv", 1, 1, true },   { "Conv", 2, 1, false },   { "Exp", 1, 1, false },
                 { "Exp", 1, 2, false },   { "MatMul", 1, 1, false }, { "MatMul", 1, 2, true },
                 { "Concat", 1, 1, true }, { "MaxPool", 1, 1, false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        const int x = net_input(g, "x", OCT_F32, "1,4,8,8"),
                  w = net_random(g, "wr", strcmp(each[i].op, "Conv") == 0 ? "4,4,1,1" : "8,8", 3);
        const bool two = strcmp(each[i].op, "Conv") == 0 || strcmp(each[i].op, "MatMul") == 0;
        const int real = net_node(g, each[i].op, "real", "t", x, two ? w : NET_END, NET_END);
        if (strcmp(each[i].op, "MaxPool") == 0)
            NET_INTS(g, "kernel_shape", 1, 1);
        if (strcmp(each[i].op, "Concat") == 0)
            net_int(g, "axis", 1);
        const int q = rounded(real, "q", fine);
        net_output(g, net_node(g, "Add", "sum", "j", rounded(net_input(g, "z", OCT_F32, "1,4,8,8"), "zr", fine), q,
                               NET_END));
        if (each[i].readers == 2)
            net_output(g, net_node(g, "Exp", "exp", "e", real, NET_END));
        if (each[i].quantized == 2)
            net_output(g, net_node(g, "Conv", "conv", "c", q, weights("w", "4,4,1,1", ones), NET_END));
        assert_int_equal(kind_of("openvino", "sum", NULL), each[i].integer ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* A bias of two layers is a pass of real numbers behind each of them where dimensions are free; a sum of what is
 * quantized there is part of that. */
TEST(openvino_shared_biases)
{
    static const char *const dims[] = { "?,4,8,8", "1,4,8,8" };
    static const float k[4] = { 1, 2, 3, 4 };
    for (int i = 0; i < 4; i++) {
        const bool shared = i & 1, fixed = i & 2;
        open_graph();
        const int x = rounded(net_input(g, "x", OCT_F32, dims[fixed]), "xr", fine), w = weights("w", "4,4,1,1", ones),
                  b = net_const(g, "b", OCT_F32, "4", k);
        const int c = net_node(g, "Conv", "conv", "c", x, w, b, NET_END);
        net_output(g, net_node(g, "Conv", "other", "o", x, w, shared ? b : NET_END, NET_END));
        net_output(g, net_node(g, "Add", "sum", "j", rounded(c, "cr", fine), x, NET_END));
        assert_int_equal(kind_of("openvino", "sum", NULL), shared && !fixed ? OCT_STANDS_FLOAT : OCT_STANDS_INTEGER);
        close_graph();
    }
}

/* What is computed element by element behind arithmetic on bytes is part of that. */
TEST(openvino_sums_behind_functions)
{
    for (int i = 0; i < 4; i++) {
        const bool bytes = i & 1, pools = i & 2;
        open_graph();
        const int a = net_input(g, "a", OCT_F32, "?,4,8,8"), b = net_input(g, "b", OCT_F32, "?,4,8,8");
        int y = net_node(g, "Mul", "product", "m", bytes ? rounded(a, "ar", fine) : a,
                         bytes ? rounded(b, "br", fine) : b, NET_END);
        y = net_node(g, pools ? "GlobalAveragePool" : "Tanh", "node", "t", y, NET_END);
        net_output(g, net_node(g, "Add", "sum", "s", y, number(1, false), NET_END));
        assert_int_equal(kind_of("openvino", "sum", NULL), bytes && !pools ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* ONNX Runtime compares the scale of a bias with those of input and weights for Conv alone. */
TEST(biases_of_other_scales)
{
    static const int32_t bias[4] = { 1, 2, 3, 4 };
    for (int i = 0; i < 4; i++) {
        const bool gemm = i & 1, fits = i & 2;
        open_graph();
        const int x = rounded(net_input(g, "x", OCT_F32, gemm ? "2,4" : "1,4,8,8"), "xr", fine),
                  w = weights("w", gemm ? "4,4" : "4,4,1,1", ones);
        const int b = net_node(g, "DequantizeLinear", "b", "b", net_const(g, "b_codes", OCT_S32, "4", bias),
                               number(fits ? 0.002f : 0.003f, false), zero(OCT_S32, 0), NET_END);
        net_output(g, rounded(net_node(g, gemm ? "Gemm" : "Conv", "node", "c", x, w, b, NET_END), "y", fine));
        assert_int_equal(kind_of("onnxruntime-x86", "node", NULL),
                         gemm || fits ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* ONNX Runtime rounds float weights of a MatMul with a sum between quantizers as those of a Gemm, but in three
 * dimensions not with a Relu before the quantizer, and never where the input has several scales. Kinds: those of the
 * graphs that ONNX Runtime 1.32 leaves of these. */
TEST(weights_of_sums_are_rounded)
{
    static const struct {
        const char *dims;
        bool relu, channels;
        oct_stand_kind kind;
    } each[] = { { "2,4", false, false, OCT_STANDS_INTEGER },
                 { "2,4", true, false, OCT_STANDS_INTEGER },
                 { "2,2,4", false, false, OCT_STANDS_INTEGER },
                 { "2,2,4", true, false, OCT_STANDS_FLOAT },
                 { "2,4", true, true, OCT_STANDS_FLOAT } };
    static const float row[4] = { 1, 2, 3, 4 }, scales[4] = { 0.02f, 0.02f, 0.02f, 0.02f };
    static const uint8_t zeros[4] = { 0 };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        int x = rounded(net_input(g, "x", OCT_F32, each[i].dims), "xr", fine);
        if (each[i].channels) {
            x = net_node(g, "DequantizeLinear", "d", "d", g->node[g->value[x].producer].in[0],
                         net_const(g, "s", OCT_F32, "4", scales), net_const(g, "z", OCT_U8, "4", zeros), NET_END);
            net_int(g, "axis", 1);
        }
        int y = net_node(g, "MatMul", "product", "p", x, net_random(g, "w", "4,4", 3), NET_END);
        y = net_node(g, "Add", "sum", "a", y, net_const(g, "b", OCT_F32, "4", row), NET_END);
        y = each[i].relu ? net_node(g, "Relu", "relu", "r", y, NET_END) : y;
        net_output(g, rounded(y, "y", fine));
        assert_int_equal(kind_of("onnxruntime-x86", "product", NULL), each[i].kind);
        assert_int_equal(kind_of("onnxruntime-x86", "sum", NULL), each[i].kind);
        close_graph();
    }
}

/* A clamp that belongs to its layer, as the target's file says: the grid behind it may go beyond it. */
TEST(clamps_belong_to_layers)
{
    static const grid half = { 0.0625f, OCT_S8, 0, false };
    const char *why;
    for (int quantized = 0; quantized < 2; quantized++) {
        open_graph();
        const int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", half),
                  y = net_node(g, "Add", "sum", "s", x, x, NET_END);
        const int r = net_node(g, "Relu", "relu", "r", y, NET_END);
        net_output(g, quantized ? rounded(r, "y", half) : r);
        assert_int_equal(kind_of("vitisai", "sum", NULL), quantized ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        assert_int_equal(kind_of("vitisai", "relu", &why), quantized ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        assert_string_equal(why, quantized ? "part of the layer before it" : "the target runs this operator in float");
        assert_int_equal(kind_of("onnxruntime-x86", "sum", NULL), OCT_STANDS_FLOAT);
        close_graph();
    }
}

/* A bias of bytes has a scale of its own where the target says so; one of int32 that fits is taken there, too. */
TEST(biases_of_bytes)
{
    static const int8_t bytes[4] = { 1, -2, 127, 4 };
    static const int32_t wide[4] = { 1, 2, 3, 4 };
    static const grid half = { 0.0625f, OCT_S8, 0, false };
    for (int i = 0; i < 2; i++) {
        open_graph();
        const int x = rounded(net_input(g, "x", OCT_F32, "1,4,8,8"), "xr", half), w = weights("w", "4,4,1,1", ones);
        const int b = net_node(g, "DequantizeLinear", "b", "b",
                               net_const(g, "b_codes", i ? OCT_S8 : OCT_S32, "4", i ? (const void *)bytes : wide),
                               number(i ? 0.5f : 0.00625f, false), zero(i ? OCT_S8 : OCT_S32, 0), NET_END);
        net_output(g, rounded(net_node(g, "Conv", "conv", "c", x, w, b, NET_END), "y", half));
        assert_int_equal(kind_of("vitisai", "conv", NULL), OCT_STANDS_INTEGER);
        assert_int_equal(kind_of("st-neuralart", "conv", NULL), i ? OCT_STANDS_FLOAT : OCT_STANDS_INTEGER);
        close_graph();
    }
}

/* It makes MatMulNBits of weights whose scales are one number, or one for each column along axis 1, which no negative
 * number stands for. */
TEST(block_scales_stand_along_columns)
{
    static const struct {
        const char *scales;
        int axis;
        bool blocks;
    } each[] = { { "", 1, true },  { "", -1, true },   { "1", 1, false },
                 { "6", 1, true }, { "6", -1, false }, { "4", 0, false } };
    static const float s[6] = { 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        const int x = net_input(g, "x", OCT_F32, "2,4");
        const int w = net_node(g, "DequantizeLinear", "w", "w", net_const(g, "codes", OCT_S8, "4,6", ones),
                               net_const(g, "s", OCT_F32, each[i].scales, s), NET_END);
        net_int(g, "axis", each[i].axis);
        net_output(g, net_node(g, "Gemm", "product", "y", x, w, NET_END));
        assert_int_equal(kind_of("onnxruntime-x86", "product", NULL),
                         each[i].blocks ? OCT_STANDS_BLOCKS : OCT_STANDS_FLOAT);
        close_graph();
    }
}

TEST(openvino_sums)
{
    open_graph();
    const int x = net_input(g, "x", OCT_F32, "?,4,8,8"), t = net_node(g, "Tanh", "tanh", "t", x, NET_END);
    const int c = net_node(g, "Conv", "conv", "c", rounded(x, "xr", fine), weights("w", "4,4,1,1", ones), NET_END);
    net_output(g, net_node(g, "Add", "joined", "j", c, t, NET_END));
    assert_int_equal(kind_of("openvino", "joined", NULL), OCT_STANDS_INTEGER);
    net_output(g, net_node(g, "Add", "bytes", "b", rounded(x, "xs", fine), t,
                           NET_END)); /* reads t later than the first sum */
    net_output(g, net_node(g, "Add", "reals", "r", x, t, NET_END));
    assert_int_equal(kind_of("openvino", "joined", NULL), OCT_STANDS_FLOAT);
    assert_int_equal(kind_of("openvino", "bytes", NULL), OCT_STANDS_INTEGER);
    assert_int_equal(kind_of("openvino", "reals", NULL), OCT_STANDS_FLOAT);
    close_graph();
}

/* Numbers of 16 bits are not carried. */
TEST(halves_stay_real)
{
    open_graph();
    const int x = net_input(g, "x", OCT_F16, "1,4,8,8");
    net_output(g, net_node(g, "Pad", "pad", "p", x, NET_S64(g, "pads", "8", 0, 0, 1, 1, 0, 0, 1, 1), NET_END));
    assert_int_equal(kind_of("openvino", "pad", NULL), OCT_STANDS_FLOAT);
    close_graph();
}

/* A target may load an operator on integers, and compute on reals. */
TEST(operators_may_run_in_float)
{
    open_graph();
    const int x = net_input(g, "x", OCT_U8, "1,4,8,8"), s = number(0.1f, false), z = zero(OCT_U8, 0);
    const int w = net_const(g, "w", OCT_S8, "4,4,1,1", ones);
    net_output(g, net_node(g, "QLinearConv", "conv", "c", x, s, z, w, s, zero(OCT_S8, 0), s, z, NET_END));
    assert_int_equal(kind_of("onnxruntime-x86", "conv", NULL), OCT_STANDS_INTEGER);
    assert_int_equal(kind_of("openvino", "conv", NULL), OCT_STANDS_FLOAT);
    close_graph();
}

/* OpenVINO multiplies weights of operators on integers as such where they are s8 around zero. */
TEST(weights_of_operators_are_centred)
{
    static const struct {
        oct_dtype type, zero_type;
        int zero;
        bool integer;
    } each[] = { { OCT_S8, OCT_S8, 0, true },
                 { OCT_S8, OCT_S8, 3, false },
                 { OCT_U8, OCT_U8, 0, false },
                 { OCT_U8, OCT_U8, 128, false },
                 { OCT_S8, OCT_S16, 0, false } };
    oct_target *strict; /* a line in its file says so, whatever else the target does */
    GOOD(oct_target_parse(
        "name strict\nsummary s\ninherits onnxruntime-vnni\ntypes u8*s8\nop QLinearMatMul fit-weights\n", "t", &strict,
        err));
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        open_graph();
        const int x = net_input(g, "x", OCT_U8, "2,4"), s = number(0.1f, false), z = zero(OCT_U8, 7);
        const int w = net_const(g, "w", each[i].type, "4,4", ones);
        net_output(g, net_node(g, "QLinearMatMul", "product", "c", x, s, z, w, s, zero(each[i].zero_type, each[i].zero),
                               s, z, NET_END));
        assert_int_equal(kind_of("openvino", "product", NULL), each[i].integer ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        assert_int_equal(kind_of("onnxruntime-x86", "product", NULL), OCT_STANDS_INTEGER);
        assert_int_equal(kind_in(strict, "product", NULL), each[i].integer ? OCT_STANDS_INTEGER : OCT_STANDS_FLOAT);
        close_graph();
    }
    oct_target_close(strict);
}
