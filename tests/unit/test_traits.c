/* What records say of weights and work, against loops that count every multiply-add one by one. */
#include "unit.h"

#include "net.h"
#include "ops/traits.h"

/* What a loop over the definition of an operator has found. */
typedef struct counted {
    int64_t macs;
    int64_t depth; /* the most that met in one output */
} counted;

/* The multiply-accumulates of all steps of a plan. */
static int64_t planned_macs(const oct_graph *g, const char *shape)
{
    oct_plan *p = net_plan(g, NULL, shape ? (const char *const[]){ shape, NULL } : NULL);
    int64_t macs = 0;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        macs += (int64_t)oct_plan_step(p, i).macs;
    oct_plan_destroy(p);
    return macs;
}

/* A graph of one node, its output y, as counted; shape: of x for the plan, or NULL as declared. Takes the graph. */
static void check(oct_graph *g, counted want, const char *shape)
{
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(oct_node_macs(g, net_last), want.macs);
    assert_int_equal(oct_node_depth(g, net_last), want.depth);
    assert_int_equal(planned_macs(g, shape), want.macs);
    oct_graph_destroy(g);
}

/* ---- convolutions ---- */

/* A convolution of two spatial dimensions: input channels and size, output channels, kernel, and the same for both
 * dimensions. */
typedef struct conv {
    int batch, ins, h, w, outs, kh, kw, group, stride, dilation, pad;
} conv;

static void set_attributes(oct_graph *g, const conv *c)
{
    net_int(g, "group", c->group);
    NET_INTS(g, "strides", c->stride, c->stride);
    NET_INTS(g, "dilations", c->dilation, c->dilation);
    NET_INTS(g, "pads", c->pad, c->pad, c->pad, c->pad);
}

static counted loop_conv(const conv *c)
{
    const int oh = (c->h + 2 * c->pad - c->dilation * (c->kh - 1) - 1) / c->stride + 1;
    const int ow = (c->w + 2 * c->pad - c->dilation * (c->kw - 1) - 1) / c->stride + 1;
    counted n = { 0 };
    for (int b = 0; b < c->batch; b++)
        for (int o = 0; o < c->outs; o++)
            for (int y = 0; y < oh * ow; y++) {
                int64_t met = 0;
                for (int i = 0; i < c->ins; i++)
                    for (int t = 0; t < c->kh * c->kw; t++)
                        met += i / (c->ins / c->group) == o / (c->outs / c->group);
                n.macs += met;
                n.depth = met > n.depth ? met : n.depth;
            }
    return n;
}

TEST(convolutions)
{
    const conv all[] = {
        { 1, 3, 9, 7, 8, 3, 3, 1, 1, 1, 1 },   { 2, 3, 9, 7, 8, 3, 2, 1, 2, 1, 0 },
        { 1, 6, 11, 11, 6, 3, 3, 6, 1, 2, 2 }, { 1, 6, 8, 8, 12, 5, 1, 6, 1, 1, 2 },
        { 3, 8, 6, 5, 4, 1, 1, 2, 1, 1, 0 },
    };
    for (size_t i = 0; i < OCT_COUNT(all); i++) {
        const conv *c = &all[i];
        char x[64], w[64];
        oct_graph *g = net_graph(13);
        snprintf(x, sizeof x, "%d,%d,%d,%d", c->batch, c->ins, c->h, c->w);
        snprintf(w, sizeof w, "%d,%d,%d,%d", c->outs, c->ins / c->group, c->kh, c->kw);
        net_output(g, NET_NODE(g, "Conv", "conv", "y", net_input(g, "x", OCT_F32, x), net_random(g, "w", w, 1)));
        set_attributes(g, c);
        check(g, loop_conv(c), NULL);
    }
}

enum { MOST_SIZE = 64 };

/* Every input is spread over the outputs under the kernel; pads cut the border off afterwards. */
static counted loop_transposed(const conv *c)
{
    static int64_t met[MOST_SIZE][MOST_SIZE];
    const int high = (c->h - 1) * c->stride + c->dilation * (c->kh - 1) + 1,
              wide = (c->w - 1) * c->stride + c->dilation * (c->kw - 1) + 1;
    counted n = { 0 };
    assert_true(high <= MOST_SIZE && wide <= MOST_SIZE);
    for (int b = 0; b < c->batch; b++)
        for (int o = 0; o < c->outs; o++) {
            memset(met, 0, sizeof met);
            for (int i = 0; i < c->ins; i++)
                for (int y = 0; y < c->h; y++)
                    for (int x = 0; x < c->w; x++)
                        for (int ky = 0; ky < c->kh; ky++)
                            for (int kx = 0; kx < c->kw; kx++)
                                if (i / (c->ins / c->group) == o / (c->outs / c->group)) {
                                    met[y * c->stride + ky * c->dilation][x * c->stride + kx * c->dilation]++;
                                    n.macs++;
                                }
            for (int y = c->pad; y < high - c->pad; y++)
                for (int x = c->pad; x < wide - c->pad; x++)
                    n.depth = met[y][x] > n.depth ? met[y][x] : n.depth;
        }
    return n;
}

TEST(transposed_convolutions)
{
    const conv all[] = {
        { 1, 3, 5, 4, 5, 3, 3, 1, 2, 1, 1 }, { 2, 4, 6, 6, 32, 2, 2, 1, 2, 1, 0 },
        { 1, 4, 7, 7, 6, 3, 4, 2, 1, 1, 1 }, { 1, 6, 9, 9, 6, 4, 4, 6, 2, 1, 1 },
        { 1, 2, 9, 9, 3, 4, 3, 1, 3, 2, 0 }, { 1, 2, 12, 12, 3, 3, 3, 1, 4, 2, 0 },
    };
    for (size_t i = 0; i < OCT_COUNT(all); i++) {
        const conv *c = &all[i];
        char x[64], w[64];
        oct_graph *g = net_graph(13);
        snprintf(x, sizeof x, "%d,%d,%d,%d", c->batch, c->ins, c->h, c->w);
        snprintf(w, sizeof w, "%d,%d,%d,%d", c->ins, c->outs / c->group, c->kh, c->kw);
        net_output(g,
                   NET_NODE(g, "ConvTranspose", "conv", "y", net_input(g, "x", OCT_F32, x), net_random(g, "w", w, 1)));
        set_attributes(g, c);
        check(g, loop_transposed(c), NULL);
    }
}

/* ---- matrices ---- */

static counted loop_matrices(int64_t batch, int64_t m, int64_t n, int64_t k)
{
    counted c = { 0 };
    for (int64_t i = 0; i < batch * m * n; i++) {
        int64_t met = 0;
        for (int64_t at = 0; at < k; at++)
            met++;
        c.macs += met;
        c.depth = met;
    }
    return c;
}

TEST(matrices)
{
    const struct {
        const char *a, *b;
        int64_t batch, m, n, k;
    } all[] = {
        { "5,7", "7,3", 1, 5, 3, 7 },   { "2,4,5,7", "7,3", 8, 5, 3, 7 }, { "2,1,5,7", "4,7,3", 8, 5, 3, 7 },
        { "5,7", "6,7,3", 6, 5, 3, 7 }, { "7", "7,3", 1, 1, 3, 7 },       { "2,5,7", "7", 2, 5, 1, 7 },
        { "7", "7", 1, 1, 1, 7 },
    };
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        for (int computed = 0; computed < 2; computed++) {
            oct_graph *g = net_graph(13);
            const int a = net_input(g, "a", OCT_F32, all[i].a);
            const int b = computed ? net_input(g, "b", OCT_F32, all[i].b) : net_random(g, "b", all[i].b, 1);
            net_output(g, NET_NODE(g, "MatMul", "mm", "y", a, b));
            check(g, loop_matrices(all[i].batch, all[i].m, all[i].n, all[i].k), NULL);
        }
}

TEST(gemms)
{
    for (int i = 0; i < 4; i++) {
        const bool a = i & 1, b = i & 2;
        oct_graph *g = net_graph(13);
        net_output(g, NET_NODE(g, "Gemm", "gemm", "y", net_input(g, "a", OCT_F32, a ? "7,5" : "5,7"),
                               net_random(g, "b", b ? "3,7" : "7,3", 1)));
        net_int(g, "transA", a);
        net_int(g, "transB", b);
        check(g, loop_matrices(1, 5, 3, 7), NULL);
    }
}

TEST(matrices_with_alpha)
{
    for (int i = 0; i < 4; i++) {
        const bool a = i & 1, b = i & 2;
        oct_graph *g = net_graph(13);
        GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
        net_output(g, NET_NODE(g, "com.microsoft.FusedMatMul", "mm", "y",
                               net_input(g, "a", OCT_F32, a ? "2,7,5" : "2,5,7"),
                               net_random(g, "b", b ? "2,3,7" : "2,7,3", 1)));
        net_int(g, "transA", a);
        net_int(g, "transB", b);
        check(g, loop_matrices(2, 5, 3, 7), NULL);
    }
}

/* Of packed weights the data say how deep they are. */
TEST(packed_blocks)
{
    uint8_t qvals[3 * 2 * 8] = { 0 };
    oct_graph *g = net_graph(13);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    net_output(g, NET_NODE(g, "com.microsoft.MatMulNBits", "mm", "y", net_input(g, "x", OCT_F32, "2,5,27"),
                           net_const(g, "codes", OCT_U8, "3,2,8", qvals), net_random(g, "scale", "6", 1)));
    net_int(g, "K", 27);
    net_int(g, "N", 3);
    net_int(g, "bits", 4);
    net_int(g, "block_size", 16);
    check(g, loop_matrices(2, 5, 3, 27), NULL);
}

/* ---- recurrent ---- */

TEST(recurrences)
{
    enum { STEPS = 7, BATCH = 3, INPUTS = 9, HIDDEN = 5, DIRS = 2, GATES = 4 };
    counted c = { .depth = INPUTS };
    for (int t = 0; t < STEPS * BATCH * DIRS; t++)
        for (int gate = 0; gate < GATES * HIDDEN; gate++) {
            for (int i = 0; i < INPUTS; i++)
                c.macs++;
            for (int h = 0; h < HIDDEN; h++)
                c.macs++;
        }
    for (int layout = 0; layout < 2; layout++) {
        oct_graph *g = net_graph(14);
        const int x = net_input(g, "x", OCT_F32, layout ? "3,7,9" : "7,3,9");
        net_output(g, NET_NODE(g, "LSTM", "lstm", "y", x, net_random(g, "w", "2,20,9", 1),
                               net_random(g, "r", "2,20,5", 2)));
        net_int(g, "hidden_size", HIDDEN);
        net_int(g, "layout", layout);
        net_str(g, "direction", "bidirectional");
        check(g, c, NULL);
    }
}

/* ---- what is not known ---- */

TEST(free_dimensions)
{
    oct_graph *g = net_graph(13); /* a free batch counts as one */
    net_output(g, NET_NODE(g, "Conv", "conv", "y", net_input(g, "x", OCT_F32, "N,2,5,5"),
                           net_random(g, "w", "4,2,3,3", 1)));
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(oct_node_macs(g, net_last), 3 * 3 * 4 * 2 * 9);
    assert_int_equal(planned_macs(g, "6,2,5,5"), 6 * 3 * 3 * 4 * 2 * 9);
    oct_graph_destroy(g);

    g = net_graph(13); /* a free width leaves the work open, but not the depth */
    net_output(g, NET_NODE(g, "Conv", "conv", "y", net_input(g, "x", OCT_F32, "1,2,5,W"),
                           net_random(g, "w", "4,2,3,3", 1)));
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(oct_node_macs(g, net_last), 0);
    assert_int_equal(oct_node_depth(g, net_last), 18);
    oct_graph_destroy(g);

    g = net_graph(
        14); /* the batch of a recurrent operator is its second dimension, or the first where layout says so */
    for (int layout = 0; layout < 2; layout++) {
        char name[2][8] = { { (char)('a' + layout), 0 }, { (char)('c' + layout), 0 } };
        NET_NODE(g, "GRU", "gru", name[1], net_input(g, name[0], OCT_F32, layout ? "N,7,9" : "7,N,9"),
                 net_random(g, "w", "1,15,9", 1), net_random(g, "r", "1,15,5", 2));
        net_int(g, "hidden_size", 5);
        net_int(g, "layout", layout);
        assert_int_equal(oct_node_macs(g, net_last), 7 * 15 * (9 + 5));
        net_int(g, "layout", !layout);
        assert_int_equal(oct_node_macs(g, net_last), 0); /* the length is free */
    }
    oct_graph_destroy(g);

    g = net_graph(13); /* elementwise operators have none */
    NET_NODE(g, "Add", "add", "y", net_input(g, "x", OCT_F32, "4,4"), net_random(g, "b", "4,4", 1));
    assert_int_equal(oct_node_macs(g, net_last), 0);
    assert_int_equal(oct_node_depth(g, net_last), 0);
    oct_graph_destroy(g);
}

/* More than 63 bits hold is said so, and does not wrap. */
TEST(huge_work)
{
    oct_graph *g = net_graph(13);
    NET_NODE(g, "MatMul", "mm", "y", net_input(g, "a", OCT_F32, "4294967296,4294967296"),
             net_input(g, "b", OCT_F32, "4294967296,4294967296"));
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(oct_node_macs(g, net_last), INT64_MAX);
    oct_graph_destroy(g);
}

/* ---- layouts ---- */

static oct_weight_layout layout_of(const char *op, const char *attr, int64_t value, int rank, const int64_t *dims)
{
    const oct_attr a = { .name = attr, .type = OCT_ATTR_INT, .i = value };
    const oct_node n = { .op = op, .domain = "", .attr = (oct_attr *)&a, .n_attr = 1 };
    oct_weight_layout l;
    assert_true(oct_weight_layout_of(oct_op_find("", op, 13), &n, 1, rank, dims, &l));
    return l;
}

/* Element (group, output channel, input channel, position) by the steps of a layout. */
static int64_t place(const oct_weight_layout *l, int64_t group, int64_t o, int64_t c, int64_t t)
{
    return group * l->group_step + o * l->out_step + c * l->in_step + t;
}

/* Against the indices of ONNX: W[out][in of the group][taps] of Conv, W[in][out of the group][taps] of
 * ConvTranspose. */
TEST(kernel_layouts)
{
    enum { GROUPS = 3, OUTS = 2, INS = 4, TAPS = 5 };
    const oct_weight_layout l = layout_of("Conv", "group", GROUPS, 3, (const int64_t[]){ GROUPS * OUTS, INS, TAPS });
    const oct_weight_layout m =
        layout_of("ConvTranspose", "group", GROUPS, 3, (const int64_t[]){ GROUPS * INS, OUTS, TAPS });
    assert_int_equal(l.outs, GROUPS * OUTS);
    assert_int_equal(l.ins, GROUPS * INS);
    assert_int_equal(l.out_axis, 0);
    assert_int_equal(m.outs, GROUPS * OUTS);
    assert_int_equal(m.ins, GROUPS * INS);
    assert_int_equal(m.out_axis, 1);
    for (int64_t g = 0; g < GROUPS; g++)
        for (int64_t o = 0; o < OUTS; o++)
            for (int64_t c = 0; c < INS; c++)
                for (int64_t t = 0; t < TAPS; t++) {
                    const int64_t at = ((g * OUTS + o) * INS + c) * TAPS + t,
                                  transposed = ((g * INS + c) * OUTS + o) * TAPS + t;
                    assert_int_equal(place(&l, g, o, c, t), at);
                    assert_int_equal(oct_output_channel(&l, at), g * OUTS + o);
                    assert_int_equal(oct_input_channel(&l, at), g * INS + c);
                    assert_int_equal(place(&m, g, o, c, t), transposed);
                    assert_int_equal(oct_output_channel(&m, transposed), g * OUTS + o);
                    assert_int_equal(oct_input_channel(&m, transposed), g * INS + c);
                }
}

TEST(matrix_layouts)
{
    enum { OUTS = 3, INS = 4 };
    const oct_weight_layout plain = layout_of("Gemm", "transB", 0, 2, (const int64_t[]){ INS, OUTS });
    const oct_weight_layout transposed = layout_of("Gemm", "transB", 1, 2, (const int64_t[]){ OUTS, INS });
    const oct_weight_layout many =
        layout_of("MatMul", "transB", 1, 3, (const int64_t[]){ 6, INS, OUTS }); /* no attribute of MatMul */
    const oct_weight_layout lstm = layout_of("LSTM", "group", 2, 3, (const int64_t[]){ 2, OUTS, INS });
    assert_int_equal(plain.out_axis, 1);
    assert_int_equal(transposed.out_axis, 0);
    assert_int_equal(many.out_axis, 2);
    assert_int_equal(many.matrices, 6);
    assert_int_equal(lstm.out_axis, 1);
    assert_int_equal(lstm.matrices, 2);
    for (int64_t o = 0; o < OUTS; o++)
        for (int64_t c = 0; c < INS; c++) {
            assert_int_equal(place(&plain, 0, o, c, 0), c * OUTS + o);
            assert_int_equal(place(&transposed, 0, o, c, 0), o * INS + c);
            assert_int_equal(place(&many, 0, o, c, 0), c * OUTS + o);
            assert_int_equal(place(&lstm, 0, o, c, 0), o * INS + c);
            assert_int_equal(oct_output_channel(&plain, c * OUTS + o), o);
            assert_int_equal(oct_input_channel(&plain, c * OUTS + o), c);
            assert_int_equal(oct_output_channel(&transposed, o * INS + c), o);
            assert_int_equal(oct_input_channel(&lstm, o * INS + c), c);
        }
    const oct_weight_layout vector = layout_of("MatMul", "group", 1, 1, (const int64_t[]){ INS });
    assert_int_equal(vector.out_axis, -1);
    assert_int_equal(vector.outs, 1);
    assert_int_equal(vector.ins, INS);
    assert_int_equal(oct_output_channel(&vector, 2), 0);
    assert_int_equal(oct_input_channel(&vector, 2), 2);
}

TEST(depthwise)
{
    const struct {
        const char *op;
        int64_t group, dims[4];
        bool yes;
    } all[] = {
        { "Conv", 6, { 6, 1, 3, 3 }, true },           { "Conv", 6, { 12, 1, 3, 3 }, true },
        { "Conv", 3, { 6, 2, 3, 3 }, false },          { "Conv", 1, { 6, 1, 3, 3 }, false },
        { "ConvTranspose", 6, { 6, 1, 3, 3 }, true },  { "ConvTranspose", 6, { 6, 2, 3, 3 }, true },
        { "ConvTranspose", 3, { 6, 1, 3, 3 }, false },
    };
    for (size_t i = 0; i < OCT_COUNT(all); i++) {
        const oct_weight_layout l = layout_of(all[i].op, "group", all[i].group, 4, all[i].dims);
        assert_int_equal(oct_is_depthwise(&l), all[i].yes);
    }
}

/* What would divide by nothing, or has no channels at all, has no layout. */
TEST(hostile_layouts)
{
    const oct_op *kernel = oct_op_find("", "Conv", 13), *add = oct_op_find("", "Add", 13);
    oct_attr none = { .name = "group", .type = OCT_ATTR_INT, .i = 0 };
    const oct_node n = { .op = "Conv", .domain = "", .attr = &none, .n_attr = 1 };
    oct_weight_layout l;
    assert_false(oct_weight_layout_of(kernel, &n, 1, 4, (const int64_t[]){ 4, 1, 3, 3 }, &l));
    none.i = 3;
    assert_false(oct_weight_layout_of(kernel, &n, 1, 4, (const int64_t[]){ 4, 1, 3, 3 }, &l));
    assert_false(
        oct_weight_layout_of(oct_op_find("", "ConvTranspose", 13), &n, 1, 4, (const int64_t[]){ 4, 1, 3, 3 }, &l));
    none.i = 4;
    assert_true(oct_weight_layout_of(kernel, &n, 1, 4, (const int64_t[]){ 4, 1, 3, 3 }, &l));
    assert_false(oct_weight_layout_of(kernel, &n, 1, 1, (const int64_t[]){ 4 }, &l));
    assert_false(oct_weight_layout_of(kernel, &n, 0, 4, (const int64_t[]){ 4, 1, 3, 3 }, &l));
    assert_false(oct_weight_layout_of(add, &n, 1, 4, (const int64_t[]){ 4, 1, 3, 3 }, &l));
    assert_false(oct_weight_layout_of(NULL, &n, 1, 4, (const int64_t[]){ 4, 1, 3, 3 }, &l));
}

/* A graph may have tensors of more dimensions than operators take. */
TEST(many_dimensions)
{
    oct_dim d[OCT_MAX_RANK + 1];
    int a;
    for (size_t i = 0; i < OCT_COUNT(d); i++)
        d[i] = (oct_dim){ 2, NULL };
    oct_graph *g = net_graph(13);
    GOOD(oct_graph_add_value(g, "a", OCT_F32, &a, err));
    GOOD(oct_graph_set_shape(g, a, OCT_MAX_RANK + 1, d, err));
    const int y = NET_NODE(g, "MatMul", "mm", "y", a, net_random(g, "b", "2,2", 1));
    GOOD(oct_graph_set_shape(g, y, OCT_MAX_RANK + 1, d, err));
    assert_int_equal(oct_node_macs(g, net_last), 0);
    assert_int_equal(oct_node_depth(g, net_last), 2);
    oct_graph_destroy(g);
}
