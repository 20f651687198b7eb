/* Shape inference through operators: symbols, shapes computed in the graph, contradictions; and fused clamps. */
#include "ops/core/args.h"
#include "ops/core/infer.h"
#include "passes/pass.h"

#include <math.h>
#include <string.h>

#include "unit.h"

static oct_err err;

static oct_graph *graph(int64_t opset)
{
    oct_graph *g = oct_graph_create();
    assert_non_null(g);
    err = (oct_err)OCT_ERR_INIT;
    assert_int_equal(oct_graph_set_opset(g, "", opset, &err), OCT_OK);
    return g;
}

/* "N,3,4" */
static int input(oct_graph *g, const char *name, oct_dtype t, const char *shape)
{
    int v;
    char text[100], *save = NULL;
    oct_dim d[OCT_MAX_RANK];
    int rank = 0;
    assert_int_equal(oct_graph_add_value(g, name, t, &v, &err), OCT_OK);
    g->value[v].is_input = true;
    strcpy(text, shape);
    for (char *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        bool digit = *p >= '0' && *p <= '9';
        d[rank++] = digit ? oct_dim_of(*p - '0') : (oct_dim){ -1, *p == '?' ? NULL : oct_arena_strdup(g->arena, p) };
    }
    assert_int_equal(oct_graph_set_shape(g, v, rank, d, &err), OCT_OK);
    return v;
}

static int ints(oct_graph *g, int n, const int64_t *v)
{
    int64_t dims[1] = { n < 0 ? 0 : n };
    int c;
    assert_int_equal(oct_graph_new_const_s64(g, "k", n < 0 ? 0 : 1, dims, v, &c, &err), OCT_OK);
    return c;
}
#define VEC(g, ...) ints(g, (int)OCT_COUNT(((int64_t[]){ __VA_ARGS__ })), (int64_t[]){ __VA_ARGS__ })
#define NUM(g, x) ints(g, -1, (int64_t[]){ x })

static int node_of; /* the node that node() made last */

static int node(oct_graph *g, const char *op, int a, int b, int c)
{
    int in[3] = { a, b, c }, out;
    assert_int_equal(oct_graph_add_node(g, op, "", "", 0, 1, -1, &node_of, &err), OCT_OK);
    for (int i = 0; i < 3; i++)
        if (in[i] >= 0)
            assert_int_equal(oct_graph_set_input(g, node_of, i, in[i], &err), OCT_OK);
    assert_int_equal(oct_graph_new_value(g, "y", OCT_UNDEFINED, &out, &err), OCT_OK);
    assert_int_equal(oct_graph_set_output(g, node_of, 0, out, &err), OCT_OK);
    return out;
}

static void attr(oct_graph *g, const char *name, int64_t v)
{
    assert_int_equal(oct_node_set_int(g, node_of, name, v, &err), OCT_OK);
}

static void expect(oct_graph *g, int value, const char *shape)
{
    char text[200];
    oct_status s = oct_infer_shapes(g, &err);
    if (s != OCT_OK)
        fail_msg("%s", err.text);
    assert_string_equal(oct_shape_text(&g->value[value].shape, text, sizeof text), shape);
    oct_graph_destroy(g);
}

static void refuse(oct_graph *g, const char *part)
{
    assert_int_equal(oct_infer_shapes(g, &err), OCT_EMALFORMED);
    if (!strstr(err.text, part))
        fail_msg("'%s' lacks '%s'", err.text, part);
    oct_graph_destroy(g);
}

/* x.view(x.size(0), -1) as exporters write it. */
TEST(flatten_by_shape)
{
    oct_graph *g = graph(11);
    int x = input(g, "x", OCT_F32, "N,3,4,4");
    int n = node(g, "Gather", node(g, "Shape", x, -1, -1), NUM(g, 0), -1);
    int u = node(g, "Unsqueeze", n, -1, -1);
    assert_int_equal(oct_node_set_ints(g, node_of, "axes", (int64_t[]){ 0 }, 1, &err), OCT_OK);
    int c = node(g, "Concat", u, VEC(g, -1), -1);
    attr(g, "axis", 0);
    expect(g, node(g, "Reshape", x, c, -1), "[N,48]");
}

TEST(reshape_symbols)
{
    oct_graph *g = graph(13);
    int x = input(g, "x", OCT_F32, "N,8,H,W");
    expect(g, node(g, "Reshape", x, VEC(g, 0, 2, 4, -1), -1), "[N,2,4,?]");
    g = graph(13);
    x = input(g, "x", OCT_F32, "N,8,4");
    expect(g, node(g, "Reshape", x, VEC(g, -1, 4, 8), -1), "[N,4,8]");
    g = graph(13);
    x = input(g, "x", OCT_F32, "N,4");
    expect(g, node(g, "Reshape", x, VEC(g, 0, 0, 1), -1), "[N,4,1]");
}

TEST(shape_arithmetic)
{
    /* the last two dimensions doubled, put behind the first two */
    oct_graph *g = graph(13);
    int x = input(g, "x", OCT_F32, "N,3,5,6"), s = node(g, "Shape", x, -1, -1);
    int front = node(g, "Slice", s, VEC(g, 0), VEC(g, 2));
    int back = node(g, "Slice", s, VEC(g, 2), VEC(g, 4));
    int c = node(g, "Concat", front, node(g, "Mul", back, VEC(g, 2), -1), -1);
    attr(g, "axis", 0);
    expect(g, node(g, "ConstantOfShape", c, -1, -1), "[N,3,10,12]");
}

TEST(expand_by_where)
{
    oct_graph *g = graph(13);
    int x = input(g, "x", OCT_F32, "1,4"), y = input(g, "n", OCT_F32, "N,4");
    int to = node(g, "Shape", y, -1, -1);
    int ones = node(g, "ConstantOfShape", VEC(g, 2), -1, -1);
    oct_tensor *one;
    assert_int_equal(oct_tensor_new(g->arena, OCT_S64, 1, (int64_t[]){ 1 }, &one, &err), OCT_OK);
    memcpy((void *)(uintptr_t)one->data, &(int64_t){ 1 }, 8);
    assert_int_equal(oct_node_set_tensor(g, node_of, "value", one, &err), OCT_OK);
    int w = node(g, "Where", node(g, "Equal", to, VEC(g, -1, -1), -1), ones, to);
    expect(g, node(g, "Expand", x, w, -1), "[N,4]");
}

TEST(symbols_survive)
{
    oct_graph *g = graph(13);
    int x = input(g, "x", OCT_F32, "N,3,H,W"), y = input(g, "z", OCT_F32, "N,5,H,W");
    int c = node(g, "Concat", x, y, -1);
    attr(g, "axis", 1);
    int a = node(g, "Add", c, node(g, "Sigmoid", c, -1, -1), -1);
    int t = node(g, "Transpose", a, -1, -1);
    assert_int_equal(oct_node_set_ints(g, node_of, "perm", (int64_t[]){ 0, 2, 3, 1 }, 4, &err), OCT_OK);
    expect(g, node(g, "Slice", t, VEC(g, 0), VEC(g, INT64_MAX)), "[N,H,W,8]");
    g = graph(13);
    x = input(g, "x", OCT_F32, "N,3,H,W");
    int r = node(g, "ReduceMean", x, -1, -1);
    assert_int_equal(oct_node_set_ints(g, node_of, "axes", (int64_t[]){ -1, 2 }, 2, &err), OCT_OK);
    attr(g, "keepdims", 0);
    expect(g, r, "[N,3]");
}

TEST(contradictions)
{
    oct_graph *g = graph(13);
    node(g, "Reshape", input(g, "x", OCT_F32, "2,3"), VEC(g, 4, 2), -1);
    refuse(g, "cannot be reshaped");
    g = graph(13);
    node(g, "Reshape", input(g, "x", OCT_F32, "2,3"), VEC(g, 4, -1), -1);
    refuse(g, "6 elements are no multiple of the 4");
    g = graph(13);
    node(g, "Reshape", input(g, "x", OCT_F32, "2,3"), VEC(g, -1, -1), -1);
    refuse(g, "-1 twice");
    g = graph(13);
    node(g, "Concat", input(g, "x", OCT_F32, "2,3"), input(g, "z", OCT_F32, "2,4"), -1);
    attr(g, "axis", 0);
    refuse(g, "along axis 1");
    g = graph(13);
    node(g, "Add", input(g, "x", OCT_F32, "2,3"), input(g, "z", OCT_F32, "2,4"), -1);
    refuse(g, "do not broadcast");
    g = graph(13);
    node(g, "Unsqueeze", input(g, "x", OCT_F32, "2,3"), VEC(g, 0, -4), -1);
    refuse(g, "twice");
    g = graph(13);
    node(g, "Squeeze", input(g, "x", OCT_F32, "2,3"), VEC(g, 0), -1);
    refuse(g, "cannot be removed");
    g = graph(13);
    node(g, "Gather", node(g, "Shape", input(g, "x", OCT_F32, "2,3"), -1, -1), NUM(g, 2), -1);
    refuse(g, "outside");
    g = graph(13);
    node(g, "Split", input(g, "x", OCT_F32, "5,3"), VEC(g, 2), -1);
    refuse(g, "add up");
    g = graph(13);
    node(g, "Pad", input(g, "x", OCT_F32, "5,3"), VEC(g, 0, -2, 0, -2), -1);
    refuse(g, "cannot be padded");
    g = graph(13);
    node(g, "Transpose", input(g, "x", OCT_F32, "5,3"), -1, -1);
    assert_int_equal(oct_node_set_ints(g, node_of, "perm", (int64_t[]){ 0, 0 }, 2, &err), OCT_OK);
    refuse(g, "twice");
    g = graph(13);
    node(g, "Tile", input(g, "x", OCT_F32, "5,3"), VEC(g, 1), -1);
    refuse(g, "repeats");
}

/* Numbers on the way to an element may pass 64 bits where the element does not. */
TEST(far_range)
{
    const int64_t step = (int64_t)1 << 62, want[4] = { INT64_MIN, -step, 0, step };
    oct_graph *g = graph(13);
    int y = node(g, "Range", NUM(g, INT64_MIN), NUM(g, INT64_MAX), NUM(g, step));
    assert_int_equal(oct_infer_shapes(g, &err), OCT_OK);
    assert_int_equal(g->value[y].n_known, 4);
    for (int i = 0; i < 4; i++) {
        int64_t v;
        assert_true(oct_known_get(g->value[y].known[i], &v));
        assert_true(v == want[i]);
    }
    oct_graph_destroy(g);
}

/* Pads that take away far more than there is, and add it at the other end. */
TEST(far_pads)
{
    oct_node n = { .name = "", .op = "Pad", .domain = "", .n_in = 3, .n_out = 1 };
    int64_t pads[2] = { INT64_MIN, INT64_MAX }, scratch[4];
    float fx[5] = { 1, 2, 3, 4, 5 }, value[1] = { 7 }, fy[4] = { 0 };
    const float want[4] = { 7, 7, 7, 7 };
    oct_operand x = { .dtype = OCT_F32, .rank = 1, .dims = { 5 }, .count = 5, .data = fx, .value = -1 };
    oct_operand p = { .dtype = OCT_S64, .rank = 1, .dims = { 2 }, .count = 2, .data = pads, .value = -1 };
    oct_operand v = { .dtype = OCT_F32, .count = 1, .data = value, .value = -1 };
    oct_operand y = { .dtype = OCT_F32, .rank = 1, .dims = { 4 }, .count = 4, .data = fy, .value = -1 };
    oct_operand *in[3] = { &x, &p, &v }, *out[1] = { &y };
    oct_graph *g = graph(13);
    oct_step s = {
        .op = oct_op_find("", "Pad", 13), .node = &n, .opset = 13, .in = in, .out = out, .n_in = 3, .n_out = 1
    };
    oct_prep prep = { .arena = g->arena };
    oct_run r = { .scratch = scratch };
    assert_int_equal(s.op->prepare(&s, &prep, &err), OCT_OK);
    assert_int_equal(s.op->run(&s, &r, &err), OCT_OK);
    assert_memory_equal(fy, want, sizeof fy);
    node(g, "Pad", -1, -1, -1);
    assert_int_equal(oct_node_set_str(g, node_of, "mode", "edge", &err), OCT_OK);
    s.node = &g->node[node_of];
    assert_int_equal(s.op->run(&s, &r, &err), OCT_EMALFORMED);
    assert_non_null(strstr(err.text, "nothing to pad from"));
    oct_graph_destroy(g);
}

/* An Add with a fused clamp, in float and on integers. */
TEST(fused_clamp)
{
    oct_node n = { .name = "", .op = "Add", .domain = "", .n_in = 2, .n_out = 1 };
    float fa[4] = { -3, 1, 2, 5 }, fb[4] = { 1, 1, 2, 3 }, fy[4];
    const float want_f[4] = { 0, 2, 4, 6 };
    oct_operand a = { .dtype = OCT_F32, .rank = 1, .dims = { 4 }, .count = 4, .data = fa, .value = -1 }, b = a, y = a;
    b.data = fb;
    y.data = fy;
    oct_operand *in[2] = { &a, &b }, *out[1] = { &y };
    oct_step s = { .op = oct_op_find("", "Add", 13),
                   .node = &n,
                   .opset = 13,
                   .in = in,
                   .out = out,
                   .n_in = 2,
                   .n_out = 1,
                   .epilogue = { true, 0.0f, 6.0f } };
    oct_run r = { 0 };
    assert_int_equal(s.op->run(&s, &r, &err), OCT_OK);
    assert_memory_equal(fy, want_f, sizeof fy);
    uint8_t qa[4] = { 0, 10, 200, 255 }, qb[4] = { 5, 5, 100, 255 }, qy[4];
    const uint8_t want_q[4] = { 10, 10, 70, 70 }; /* 0 and 6 are codes 10 and 70 */
    float scale = 0.1f;
    int32_t zp = 10;
    oct_quant q = { 1, 0, &scale, &zp };
    a.q = b.q = y.q = &q;
    a.dtype = b.dtype = y.dtype = OCT_U8;
    a.data = qa;
    b.data = qb;
    y.data = qy;
    assert_true(s.op->integer(&s));
    assert_int_equal(s.op->run(&s, &r, &err), OCT_OK);
    assert_memory_equal(qy, want_q, sizeof qy);
}

/* ONNX Runtime's optimizer writes it into models of opsets that do not have it. */
TEST(layer_normalization_of_old_opsets)
{
    for (int64_t opset = 7; opset < 24; opset++)
        assert_ptr_equal(oct_op_find("", "LayerNormalization", opset), oct_op_find("", "LayerNormalization", 17));
    assert_string_equal(oct_op_find("", "LayerNormalization", 14)->type, "LayerNormalization");
}
