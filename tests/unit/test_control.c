/* lib/runtime: control flow and shapes that depend on data, against loops written out. */
#include "unit.h"

#include "net.h"

#define RUN(p, ...) GOOD(oct_plan_run(p, (const void *const[]){ __VA_ARGS__ }, err))

static const float *floats(const oct_plan *p, size_t i, int64_t count)
{
    const oct_operand *t = oct_plan_output(p, i);
    assert_int_equal(t->dtype, OCT_F32);
    assert_int_equal(t->count, count);
    return t->data;
}

static int output_named(oct_graph *g, int node, int slot, const char *name)
{
    int v;
    GOOD(oct_graph_add_value(g, name, OCT_UNDEFINED, &v, err));
    GOOD(oct_graph_set_output(g, node, slot, v, err));
    return v;
}

static int scalar_input(oct_graph *g, const char *name, oct_dtype t)
{
    return net_input(g, name, t, "");
}

/* ---- If ---- */

/* y = Relu(c ? x + k : the first row of x); the shapes of the branches differ. */
static oct_graph *choose(void)
{
    oct_graph *g = net_graph(13);
    int c = scalar_input(g, "c", OCT_BOOL), x = net_input(g, "x", OCT_F32, "2,3"), k = NET_F32(g, "k", "3", 1, -2, 3);
    int d = NET_NODE(g, "Neg", "neg", "d", x);
    int y = NET_NODE(g, "If", "if", "y", c), at = net_last;
    oct_graph *then = net_nested(g), *other = net_nested(g);
    net_output(then, NET_NODE(then, "Add", "add", "t", net_take(then, d), net_take(then, k)));
    int zero = NET_S64(other, "zero", "", 0);
    net_output(other, NET_NODE(other, "Gather", "row", "e", net_take(other, d), zero));
    net_give(g, at, "then_branch", then);
    net_give(g, at, "else_branch", other);
    net_output(g, NET_NODE(g, "Relu", "relu", "z", y));
    return g;
}

TEST(branches)
{
    oct_graph *g = choose();
    oct_plan *p = net_plan(g, NULL, NULL);
    const float x[6] = { -1, 2, -3, 4, -5, 6 }, k[3] = { 1, -2, 3 };
    const uint8_t yes = 1, no = 0;
    for (int round = 0; round < 3; round++) {
        RUN(p, &yes, x);
        const float *z = floats(p, 0, 6);
        for (int i = 0; i < 6; i++)
            assert_true(z[i] == fmaxf(-x[i] + k[i % 3], 0));
        RUN(p, &no, x);
        z = floats(p, 0, 3);
        assert_int_equal(oct_plan_output(p, 0)->rank, 1);
        for (int i = 0; i < 3; i++)
            assert_true(z[i] == fmaxf(-x[i], 0));
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* ---- Loop ---- */

/* sum' = sum + i * x, done when sum[0] > limit; each iteration's sum is shown too. Inputs: trips, x. */
static oct_graph *sums(bool with_trips)
{
    oct_graph *g = net_graph(13);
    int m = scalar_input(g, "m", OCT_S64), x = net_input(g, "x", OCT_F32, "2"), start = NET_F32(g, "start", "2", 0, 0);
    int y = NET_NODE(g, "Loop", "loop", "y", with_trips ? m : -1, -1, start), at = net_last;
    oct_graph *b = net_nested(g);
    int i = net_input(b, "i", OCT_S64, ""), go = net_input(b, "go", OCT_BOOL, ""),
        sum = net_input(b, "sum", OCT_F32, "2");
    int f = NET_NODE(b, "Cast", "cast", "f", i);
    net_int(b, "to", OCT_F32);
    int next = NET_NODE(b, "Add", "add", "next", sum, NET_NODE(b, "Mul", "mul", "ix", f, net_take(b, x)));
    int first = NET_NODE(b, "Gather", "first", "n0", next, NET_S64(b, "zero", "", 0));
    int less = NET_NODE(b, "Less", "less", "go2", first, NET_F32(b, "limit", "", 20));
    (void)go;
    net_output(b, less);
    net_output(b, next);
    net_output(b, NET_NODE(b, "Identity", "id", "shown", sum)); /* what went in: overwritten by the next iteration */
    net_give(g, at, "body", b);
    net_output(g, y);
    net_output(g, output_named(g, at, 1, "all"));
    return g;
}

TEST(loops)
{
    oct_graph *g = sums(true);
    oct_plan *p = net_plan(g, NULL, NULL);
    const float x[2] = { 1.5f, -1 };
    for (int64_t m = 0; m < 9; m++) {
        RUN(p, &m, x);
        float sum[2] = { 0, 0 }, all[20];
        int n = 0;
        for (bool go = true; n < m && go; n++) {
            memcpy(all + 2 * n, sum, sizeof sum);
            for (int k = 0; k < 2; k++)
                sum[k] += (float)n * x[k];
            go = sum[0] < 20;
        }
        assert_memory_equal(floats(p, 0, 2), sum, sizeof sum);
        const oct_operand *t = oct_plan_output(p, 1);
        assert_true(t->rank == 2 && t->dims[0] == n && t->dims[1] == 2);
        if (n)
            assert_memory_equal(t->data, all, (size_t)n * sizeof sum);
    }
    assert_true(oct_plan_n_steps(p) < 12); /* the body was planned once */
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(loops_without_end)
{
    oct_graph *g = sums(false);
    oct_plan_opts o = { .max_trips = 100 };
    oct_plan *p = net_plan(g, &o, NULL);
    const float x[2] = { 1, 1 }, never[2] = { -1, 0 };
    const int64_t m = 0;
    oct_err e = OCT_ERR_INIT;
    RUN(p, &m, x); /* ends by its condition: 0 + 1 + ... + 6 = 21 */
    assert_true(floats(p, 0, 2)[0] == 21);
    assert_int_equal(oct_plan_run(p, (const void *const[]){ &m, never }, &e), OCT_EUNSUPPORTED);
    assert_int_equal(oct_plan_run(p, (const void *const[]){ &m, never }, NULL), OCT_EUNSUPPORTED);
    assert_non_null(strstr(e.text, "'loop'"));
    assert_non_null(strstr(e.text, "100 iterations"));
    RUN(p, &m, x); /* and is as good as before */
    assert_true(floats(p, 0, 2)[0] == 21);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* h' = h w, and all rows of h so far are kept in a state that grows; deep: its last row comes of a layer that reads all
 * of them, and what is left of it is a matrix. Inputs: trips, h. */
static oct_graph *growing(bool deep)
{
    oct_graph *g = net_graph(13);
    int m = scalar_input(g, "m", OCT_S64), h = net_input(g, "h", OCT_F32, "1,2"), none = NET_F32(g, "none", "0,2", 0);
    int y = NET_NODE(g, "Loop", "loop", "y", m, -1, h, none), at = net_last;
    oct_graph *b = net_nested(g);
    net_input(b, "i", OCT_S64, "");
    int go = net_input(b, "go", OCT_BOOL, ""), row = net_input(b, "row", OCT_F32, "1,2"),
        rows = net_input(b, "rows", OCT_F32, "?,2");
    int w = NET_F32(b, "w", "2,2", 1, 2, -1, 1);
    int next = NET_NODE(b, "MatMul", "mm", "next", row, w);
    int both = NET_NODE(b, "Concat", "cat", "both", rows, next);
    net_int(b, "axis", 0);
    net_output(b, go);
    net_output(b, next);
    net_output(b, deep ? NET_NODE(b, "MatMul", "deep", "all", both, w) : both);
    net_give(g, at, "body", b);
    net_output(g, y);
    net_output(g, output_named(g, at, 1, "all_rows"));
    return g;
}

static void times_w(float x[2])
{
    const float a = x[0] - x[1], b = 2 * x[0] + x[1];
    x[0] = a;
    x[1] = b;
}

static size_t steps_named(const oct_plan *p, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        n += strcmp(oct_plan_step(p, i).name, name) == 0;
    return n;
}

/* A state whose shape is another in each iteration does not ask for a plan each time. */
TEST(states_grow)
{
    for (int deep = 0; deep < 2; deep++) {
        oct_graph *g = growing(deep);
        oct_plan *p = net_plan(g, NULL, NULL);
        for (int64_t m = 9; m > 0; m -= 4) {
            float h[2] = { 0.5f, -1 }, rows[9][2];
            RUN(p, &m, h);
            for (int i = 0; i < m; i++) {
                times_w(h);
                memcpy(rows[i], h, sizeof h);
                for (int k = 0; k <= i && deep; k++)
                    times_w(rows[k]);
            }
            assert_memory_equal(floats(p, 0, 2), h, sizeof h);
            assert_memory_equal(floats(p, 1, 2 * m), rows, (size_t)m * sizeof h);
        }
        assert_int_equal(steps_named(p, "mm"),
                         2); /* of the first iteration, whose shapes are not known to change, and of the others */
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

/* Steps of a body count over all iterations of all runs since profiling began, and from zero when it begins anew. */
TEST(bodies_are_profiled)
{
    oct_graph *g = sums(true);
    oct_plan *p = net_plan(g, NULL, NULL);
    const float x[2] = { -1, 1 }; /* never ends by its condition */
    const int64_t m = 5;
    for (uint64_t runs = 3; runs > 1; runs--) {
        oct_plan_profile(p, true);
        for (uint64_t i = 0; i < runs; i++)
            RUN(p, &m, x);
        oct_plan_profile(p, false);
        uint64_t most = 0;
        for (size_t i = 0; i < oct_plan_n_steps(p); i++)
            if (oct_plan_step(p, i).calls > most)
                most = oct_plan_step(p, i).calls;
        assert_int_equal(most, 5 * runs);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* Fibonacci by two states that change places, and a state that grows: [1], [1,1], [1,1,2], ... */
TEST(states_that_move)
{
    oct_graph *g = net_graph(13);
    int m = scalar_input(g, "m", OCT_S64), one = NET_F32(g, "one", "1", 1);
    int y = NET_NODE(g, "Loop", "loop", "y", m, -1, one, one, one), at = net_last;
    oct_graph *b = net_nested(g);
    net_input(b, "i", OCT_S64, "");
    int go = net_input(b, "go", OCT_BOOL, "");
    int p1 = net_input(b, "p", OCT_F32, "1"), q = net_input(b, "q", OCT_F32, "1"),
        list = net_input(b, "list", OCT_F32, "?");
    int sum = NET_NODE(b, "Add", "add", "sum", p1, q);
    int longer = NET_NODE(b, "Concat", "cat", "longer", list, q);
    net_int(b, "axis", 0);
    net_output(b, go);
    net_output(b, q);
    net_output(b, sum);
    net_output(b, longer);
    net_give(g, at, "body", b);
    net_output(g, y);
    net_output(g, output_named(g, at, 1, "q_end"));
    net_output(g, output_named(g, at, 2, "list_end"));
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(g->value[g->output[1]].shape.d[0].n, 1); /* the same in all iterations */
    assert_true(g->value[g->output[2]].shape.rank == 1 && g->value[g->output[2]].shape.d[0].n == -1);
    oct_plan *p = net_plan(g, NULL, NULL);
    for (int64_t trips = 8; trips > 2; trips -= 3) {
        float want[10] = { 1 }, a = 1, c = 1;
        for (int64_t i = 1; i <= trips; i++) {
            want[i] = c;
            float next = a + c;
            a = c;
            c = next;
        }
        RUN(p, &trips);
        assert_true(floats(p, 0, 1)[0] == a && floats(p, 1, 1)[0] == c);
        assert_memory_equal(floats(p, 2, trips + 1), want, (size_t)(trips + 1) * sizeof *want);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* A loop in a loop, the inner body taking from both levels: y = sum over i < 3, j < i + 1 of x * i + j. */
TEST(loops_nest)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, ""), three = NET_S64(g, "three", "", 3), zero = NET_F32(g, "zero", "", 0);
    int y = NET_NODE(g, "Loop", "outer", "y", three, -1, zero), at = net_last;
    oct_graph *b = net_nested(g), *c = net_nested(b);
    int i = net_input(b, "i", OCT_S64, ""), go = net_input(b, "go", OCT_BOOL, ""),
        sum = net_input(b, "sum", OCT_F32, "");
    int trips = NET_NODE(b, "Add", "more", "trips", i, NET_S64(b, "one", "", 1));
    int fi = NET_NODE(b, "Cast", "cast", "fi", i);
    net_int(b, "to", OCT_F32);
    int s = NET_NODE(b, "Loop", "inner", "s", trips, go, sum), inner = net_last;
    int j = net_input(c, "j", OCT_S64, ""), go2 = net_input(c, "go2", OCT_BOOL, ""),
        sum2 = net_input(c, "sum2", OCT_F32, "");
    int fj = NET_NODE(c, "Cast", "cast2", "fj", j);
    net_int(c, "to", OCT_F32);
    int xi = NET_NODE(c, "Mul", "mul", "xi", net_take(c, net_take(b, x)), net_take(c, fi));
    net_output(c, go2);
    net_output(c, NET_NODE(c, "Add", "a2", "s3", NET_NODE(c, "Add", "a1", "s2", sum2, xi), fj));
    net_give(b, inner, "body", c);
    net_output(b, go);
    net_output(b, s);
    net_give(g, at, "body", b);
    net_output(g, y);
    oct_plan *p = net_plan(g, NULL, NULL);
    for (int r = 0; r < 2; r++) {
        const float v = r ? -2.5f : 1.25f;
        float want = 0;
        for (int a = 0; a < 3; a++)
            for (int k = 0; k < a + 1; k++)
                want = want + v * (float)a + (float)k;
        RUN(p, &v);
        assert_true(floats(p, 0, 1)[0] == want);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* ---- Scan ---- */

/* Over the columns of x[2][4], backwards: state' = state + column, the states stacked as rows or columns. */
TEST(scans)
{
    for (int axis = 0; axis < 2; axis++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,4"), start = NET_F32(g, "start", "2", 10, 20);
        int y = NET_NODE(g, "Scan", "scan", "y", start, x), at = net_last;
        oct_graph *b = net_nested(g);
        int s = net_input(b, "s", OCT_F32, "2"), c = net_input(b, "c", OCT_F32, "2");
        int next = NET_NODE(b, "Add", "add", "next", s, c);
        net_output(b, next);
        net_output(b, next);
        net_give(g, at, "body", b);
        net_last = at;
        net_int(g, "num_scan_inputs", 1);
        NET_INTS(g, "scan_input_axes", -1);
        NET_INTS(g, "scan_input_directions", 1);
        NET_INTS(g, "scan_output_axes", axis);
        NET_INTS(g, "scan_output_directions", axis); /* 1: the last state comes first */
        net_output(g, y);
        net_output(g, output_named(g, at, 1, "all"));
        GOOD(oct_infer_shapes(g, err));
        char text[40];
        assert_string_equal(oct_shape_text(&g->value[g->output[1]].shape, text, sizeof text), axis ? "[2,4]" : "[4,2]");
        oct_plan *p = net_plan(g, NULL, NULL);
        const float v[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
        float sum[2] = { 10, 20 }, all[8];
        for (int t = 0; t < 4; t++)
            for (int r = 0; r < 2; r++) {
                sum[r] += v[r * 4 + 3 - t];
                all[axis ? r * 4 + 3 - t : t * 2 + r] = sum[r];
            }
        RUN(p, v);
        assert_memory_equal(floats(p, 0, 2), sum, sizeof sum);
        assert_memory_equal(floats(p, 1, 8), all, sizeof all);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

/* ---- shapes that depend on data ---- */

/* y = Relu(Reshape(x, shape)) * 2 with a shape given when it runs; n = Range(0, rows) of it. */
TEST(shapes_from_values)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "6"), s = net_input(g, "s", OCT_S64, "2");
    int d = NET_NODE(g, "Add", "plus", "d", s, NET_S64(g, "zero", "", 0));
    int r = NET_NODE(g, "Reshape", "reshape", "r", x, d), a = NET_NODE(g, "Relu", "relu", "a", r);
    net_output(g, NET_NODE(g, "Mul", "mul", "y", a, NET_F32(g, "two", "", 2)));
    int shape = NET_NODE(g, "Shape", "shape", "sh", a);
    int rows = NET_NODE(g, "Gather", "rows", "rows", shape, NET_S64(g, "first", "", 0));
    net_output(g, NET_NODE(g, "Range", "range", "n", NET_S64(g, "from", "", 0), rows, NET_S64(g, "step", "", 1)));
    oct_plan *p = net_plan(g, NULL, NULL);
    const float v[6] = { -1, 2, -3, 4, -5, 6 };
    static const int64_t shapes[][2] = { { 2, 3 }, { 3, -1 }, { 1, 6 }, { 2, 3 }, { -1, 1 } };
    for (size_t k = 0; k < OCT_COUNT(shapes); k++) {
        RUN(p, v, shapes[k]);
        const oct_operand *y = oct_plan_output(p, 0), *n = oct_plan_output(p, 1);
        int64_t height = shapes[k][0] > 0 ? shapes[k][0] : 6 / shapes[k][1];
        assert_true(y->rank == 2 && y->dims[0] == height && y->count == 6);
        for (int i = 0; i < 6; i++)
            assert_true(((const float *)y->data)[i] == fmaxf(v[i], 0) * 2);
        assert_true(n->rank == 1 && n->dims[0] == height);
        for (int64_t i = 0; i < height; i++)
            assert_int_equal(((const int64_t *)n->data)[i], i);
    }
    oct_err e = OCT_ERR_INIT;
    assert_int_equal(oct_plan_run(p, (const void *const[]){ v, (const int64_t[]){ 4, 3 } }, &e), OCT_EMALFORMED);
    assert_non_null(strstr(e.text, "'reshape'"));
    RUN(p, v, shapes[0]);
    assert_int_equal(oct_plan_output(p, 0)->dims[0], 2);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* More shapes than stages are kept for, twice: those that were dropped are planned anew. y = (0, 1, .. k - 1) * 2 + v
 * in k rows of two, whole numbers that are quantized with step 1 (only a stage runs QLinear operators), and their sums.
 * Steps are timed, also those that run by themselves. */
TEST(shapes_without_end)
{
    oct_graph *g = net_graph(13);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    int k = scalar_input(g, "k", OCT_S64), v = net_input(g, "v", OCT_F32, "2");
    int n = NET_NODE(g, "Range", "range", "n", NET_S64(g, "from", "", 0), k, NET_S64(g, "step", "", 1));
    int f = NET_NODE(g, "Cast", "cast", "f", n);
    net_int(g, "to", OCT_F32);
    int column = NET_NODE(g, "Unsqueeze", "unsqueeze", "c", f, NET_S64(g, "axes", "1", 1));
    int added = NET_NODE(g, "Add", "plus", "p", NET_NODE(g, "Mul", "mul", "m", column, NET_F32(g, "two", "", 2)), v);
    int step = NET_F32(g, "scale", "", 1), zero = net_const(g, "zero", OCT_U8, "", (const uint8_t[]){ 0 });
    int qvals = NET_NODE(g, "com.microsoft.QLinearLeakyRelu", "leaky", "r",
                         NET_NODE(g, "QuantizeLinear", "quantize", "q", added, step, zero), step, zero, step, zero);
    int y = NET_NODE(g, "DequantizeLinear", "dequantize", "y", qvals, step, zero);
    net_output(g, y);
    net_output(g, NET_NODE(g, "ReduceSum", "sum", "s", y, NET_S64(g, "first", "1", 0)));
    oct_plan *p = net_plan(g, NULL, NULL);
    oct_plan_profile(p, true);
    for (int64_t round = 0; round < 2; round++)
        for (int64_t rows = 1; rows <= 40; rows++) {
            const float at[2] = { (float)rows, (float)round };
            RUN(p, &rows, at);
            const float *got = floats(p, 0, 2 * rows), *sum = floats(p, 1, 2);
            for (int64_t i = 0; i < 2 * rows; i++)
                assert_true(got[i] == (float)(i / 2) * 2 + at[i % 2]);
            for (int i = 0; i < 2; i++)
                assert_true(sum[i] == (float)(rows * (rows - 1)) + (float)rows * at[i]);
        }
    uint64_t calls = 0;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        if (strcmp(oct_plan_step(p, i).op, "Range") == 0)
            calls += oct_plan_step(p, i).calls;
    assert_int_equal(calls, 80);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* A Loop whose body holds a quantized product: it runs on integers inside. */
static oct_graph *quantized_body(void)
{
    oct_graph *g = net_graph(13);
    int m = scalar_input(g, "m", OCT_S64), x = net_input(g, "x", OCT_F32, "1,4");
    int y = NET_NODE(g, "Loop", "loop", "y", m, -1, x), at = net_last;
    oct_graph *b = net_nested(g);
    net_input(b, "i", OCT_S64, "");
    int go = net_input(b, "go", OCT_BOOL, ""), h = net_input(b, "h", OCT_F32, "1,4");
    int s = NET_F32(b, "s", "", 0.03125f), ws = NET_F32(b, "ws", "", 0.25f);
    int z = net_const(b, "z", OCT_U8, "", (const uint8_t[]){ 128 }),
        wz = net_const(b, "wz", OCT_S8, "", (const int8_t[]){ 0 });
    int w = net_const(b, "w", OCT_S8, "4,4", (const int8_t[]){ 1, 0, 2, 0, 0, 1, 0, 0, -1, 0, 1, 3, 0, 0, 0, 1 });
    int q = NET_NODE(b, "QuantizeLinear", "q", "hq", h, s, z),
        hd = NET_NODE(b, "DequantizeLinear", "dq", "hd", q, s, z);
    int wd = NET_NODE(b, "DequantizeLinear", "wdq", "wd", w, ws, wz);
    int mm = NET_NODE(b, "MatMul", "mm", "mm", hd, wd);
    int q2 = NET_NODE(b, "QuantizeLinear", "q2", "yq", mm, s, z);
    net_output(b, go);
    net_output(b, NET_NODE(b, "DequantizeLinear", "dq2", "yd", q2, s, z));
    net_give(g, at, "body", b);
    net_output(g, y);
    return g;
}

TEST(bodies_run_on_integers)
{
    oct_graph *g = quantized_body();
    oct_plan *p = net_plan(g, NULL, NULL);
    const int64_t m = 3;
    float x[4] = { 1, -0.5f, 2, 3.25f };
    static const int8_t w[16] = { 1, 0, 2, 0, 0, 1, 0, 0, -1, 0, 1, 3, 0, 0, 0, 1 };
    RUN(p, &m, x);
    for (int r = 0; r < 3; r++) {
        float next[4];
        for (int j = 0; j < 4; j++) {
            float sum = 0; /* all values are multiples of 1/128 and small: exact */
            for (int k = 0; k < 4; k++)
                sum += x[k] * 0.25f * (float)w[k * 4 + j];
            next[j] = 0.03125f * fminf(fmaxf(rintf(sum / 0.03125f), -128), 127);
        }
        memcpy(x, next, sizeof x);
    }
    for (int j = 0; j < 4; j++)
        assert_true(floats(p, 0, 4)[j] == x[j]);
    bool integer = false;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info s = oct_plan_step(p, i);
        integer |= strcmp(s.op, "MatMul") == 0 && strcmp(s.scheme, "int8") == 0;
    }
    assert_true(integer);
    assert_true(oct_plan_memory_of(p).weights > 0);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* ---- what else plans promise ---- */

/* A length and a scale that are known when the model runs: a form that is taken apart. */
TEST(scales_that_are_made)
{
    oct_graph *g = net_graph(17);
    oct_plan *p = NULL;
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    int x = net_input(g, "x", OCT_U8, "4"), s = net_input(g, "s", OCT_F32, ""), z = net_input(g, "z", OCT_U8, "");
    int kept = NET_NODE(g, "Compress", "kept", "k", x, NET_NODE(g, "Cast", "mask", "m", x));
    GOOD(oct_node_set_int(g, g->value[oct_graph_find(g, "m")].producer, "to", OCT_BOOL, err));
    net_output(g, NET_NODE(g, "com.microsoft.QLinearSigmoid", "sigmoid", "y", kept, s, z, s, z));
    GOOD(oct_plan_create(g, NULL, NULL, &p, err));
    const uint8_t in[4] = { 1, 0, 2, 3 }, zero = 0;
    const float scale = 0.5f;
    RUN(p, in, &scale, &zero);
    assert_int_equal(oct_plan_output(p, 0)->dims[0], 3);
    const uint8_t *y = oct_plan_output(p, 0)->data;
    for (int i = 0; i < 3; i++)
        assert_int_equal(y[i], (int)lrint(1 / (1 + exp(-0.5 * (i + 1))) / 0.5));
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* RandomNormal of four numbers. */
static int noise(oct_graph *g, const char *name, const char *out)
{
    int y;
    GOOD(oct_graph_add_node(g, "RandomNormal", "", name, 0, 1, -1, &net_last, err));
    GOOD(oct_graph_add_value(g, out, OCT_UNDEFINED, &y, err));
    GOOD(oct_graph_set_output(g, net_last, 0, y, err));
    NET_INTS(g, "shape", 4);
    return y;
}

/* A Loop whose body is empty but for what `fill` puts there: its results are piled up. Returns these. */
static int pile(oct_graph *g, int64_t trips, const char *name, const char *out, int (*fill)(oct_graph *body))
{
    char text[2][20];
    snprintf(text[0], sizeof text[0], "%s_i", name);
    snprintf(text[1], sizeof text[1], "%s_go", name);
    int y = NET_NODE(g, "Loop", name, out, NET_S64(g, name, "", trips)), at = net_last;
    oct_graph *b = net_nested(g);
    net_input(b, text[0], OCT_S64, "");
    int go = net_input(b, text[1], OCT_BOOL, "");
    net_output(b, go);
    net_output(b, fill(b));
    net_give(g, at, "body", b);
    return y;
}

static int fill_noise(oct_graph *b)
{
    return noise(b, "noise", "drawn");
}

static int fill_inner(oct_graph *b)
{
    return pile(b, 2, "inner", "rows", fill_noise);
}

/* Every iteration draws numbers of its own, in loops inside of loops too; the first those that are drawn outside of
 * any; and each run the same. */
TEST(iterations_draw)
{
    oct_graph *g = net_graph(13), *plain = net_graph(13);
    float first[24];
    net_output(g, pile(g, 3, "outer", "all", fill_inner));
    net_output(plain, noise(plain, "noise", "drawn"));
    oct_plan *p = net_plan(g, NULL, NULL), *q = net_plan(plain, NULL, NULL);
    RUN(p, NULL);
    memcpy(first, floats(p, 0, 24), sizeof first);
    for (int a = 0; a < 24; a++)
        for (int b = 0; b < a; b++)
            assert_true(first[a] != first[b]);
    RUN(p, NULL);
    assert_memory_equal(floats(p, 0, 24), first, sizeof first);
    RUN(q, NULL);
    assert_memory_equal(floats(q, 0, 4), first, 4 * sizeof *first);
    oct_plan_destroy(p);
    oct_plan_destroy(q);
    oct_graph_destroy(g);
    oct_graph_destroy(plain);
}

/* A branch draws what its node would draw outside of it. */
TEST(branches_draw)
{
    oct_graph *g = net_graph(13), *plain = net_graph(13);
    int c = scalar_input(g, "c", OCT_BOOL), y = NET_NODE(g, "If", "if", "y", c), at = net_last;
    const char *const attr[2] = { "else_branch", "then_branch" };
    for (int i = 0; i < 2; i++) {
        oct_graph *b = net_nested(g);
        net_output(b, noise(b, "noise", "drawn"));
        net_give(g, at, attr[i], b);
    }
    net_output(g, y);
    net_output(plain, noise(plain, "noise", "drawn"));
    oct_plan *p = net_plan(g, NULL, NULL), *q = net_plan(plain, NULL, NULL);
    RUN(q, NULL);
    for (uint8_t yes = 0; yes < 2; yes++) {
        RUN(p, &yes);
        assert_memory_equal(floats(p, 0, 4), floats(q, 0, 4), 4 * sizeof(float));
    }
    oct_plan_destroy(p);
    oct_plan_destroy(q);
    oct_graph_destroy(g);
    oct_graph_destroy(plain);
}

/* Nodes without a name are told apart by their results, whether the graph is planned as a whole or in stages. */
TEST(nameless_draw)
{
    float want[8];
    for (int staged = 0; staged < 2; staged++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "4"), a = noise(g, "", "a"), b = noise(g, "", "b");
        net_output(g, a);
        net_output(g, b);
        if (staged) /* rows that depend on data, and another draw behind them */
            net_output(g, NET_NODE(g, "RandomNormalLike", "", "c",
                                   NET_NODE(g, "Compress", "", "kept", x, NET_NODE(g, "Cast", "", "mask", x))));
        if (staged)
            GOOD(oct_node_set_int(g, g->value[oct_graph_find(g, "mask")].producer, "to", OCT_BOOL, err));
        oct_plan *p = net_plan(g, NULL, NULL);
        const float in[4] = { 0, 1, 0, 1 };
        RUN(p, in);
        if (!staged) {
            memcpy(want, floats(p, 0, 4), 4 * sizeof *want);
            memcpy(want + 4, floats(p, 1, 4), 4 * sizeof *want);
            assert_memory_not_equal(want, want + 4, 4 * sizeof *want);
        } else {
            assert_memory_equal(floats(p, 0, 4), want, 4 * sizeof *want);
            assert_memory_equal(floats(p, 1, 4), want + 4, 4 * sizeof *want);
            assert_memory_not_equal(floats(p, 2, 2), want, 2 * sizeof *want);
        }
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

/* What only plans run, and no plan can: an error that names it. */
TEST(lowered_alone)
{
    oct_graph *g = net_graph(17);
    oct_plan *p = NULL;
    oct_err e = OCT_ERR_INIT;
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    int x = net_input(g, "x", OCT_U8, "2,2"), m = net_input(g, "m", OCT_BOOL, "2"), s = net_input(g, "s", OCT_F32, "");
    int z = net_input(g, "z", OCT_U8, ""), b = net_input(g, "b", OCT_S32, "2");
    int kept = NET_NODE(g, "Compress", "kept", "k", x, m); /* the scale is computed, the length too */
    GOOD(oct_node_set_int(g, g->value[kept].producer, "axis", 0, err));
    int y = NET_NODE(g, "com.microsoft.QGemm", "gemm", "y", kept, s, z, x, s, z, b, s,
                     z); /* alpha: the bias has another scale */
    GOOD(oct_node_set_float(g, g->value[y].producer, "alpha", 2.0f, err));
    net_output(g, y);
    oct_status st = oct_plan_create(g, NULL, NULL, &p, &e);
    const uint8_t in[4] = { 1, 0, 2, 3 }, zero = 0;
    const int32_t bias[2] = { 0 };
    const float scale = 0.5f;
    if (st == OCT_OK)
        st = oct_plan_run(p, (const void *const[]){ in, (const bool[]){ true, true }, &scale, &zero, bias }, &e);
    assert_int_equal(st, OCT_EUNSUPPORTED);
    assert_non_null(strstr(e.text, "'gemm'"));
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* Values outside and inside of bodies are shown: those inside once an iteration, captured ones not again. */
static const char *const tap_names[] = { "x", "d", "t", "next" };
typedef struct seen {
    int n[6]; /* by tap */
} seen;
enum { TAP_X, TAP_D, TAP_T, TAP_NEXT };

static oct_status on_tap(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    seen *s = arg;
    assert_true(tap < OCT_COUNT(s->n));
    s->n[tap]++;
    return OCT_OK;
}

TEST(taps)
{
    oct_plan_opts o = { .taps = tap_names, .n_taps = OCT_COUNT(tap_names) };
    oct_graph *g = choose();
    seen s = { 0 };
    oct_plan *p = net_plan(g, &o, NULL);
    oct_plan_set_tap(p, on_tap, &s);
    const float x[6] = { 1, 2, 3, 4, 5, 6 };
    RUN(p, &(uint8_t){ 1 }, x);
    assert_true(s.n[TAP_X] == 1 && s.n[TAP_D] == 1 && s.n[TAP_T] == 1);
    RUN(p, &(uint8_t){ 0 }, x);
    assert_true(s.n[TAP_X] == 2 && s.n[TAP_D] == 2 && s.n[TAP_T] == 1);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
    g = sums(true);
    p = net_plan(g, &o, NULL);
    s = (seen){ 0 };
    oct_plan_set_tap(p, on_tap, &s);
    RUN(p, &(int64_t){ 4 }, x);
    assert_true(s.n[TAP_X] == 1 && s.n[TAP_NEXT] == 4);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* Values of one name in two branches are shown as one tap, and a name that is asked for twice at its last place: inputs
 * and values outside and inside of bodies alike. */
TEST(names_of_several)
{
    static const char *const names[] = { "x", "v", "d", "x", "d", "v" };
    const oct_plan_opts o = { .taps = names, .n_taps = OCT_COUNT(names) };
    oct_graph *g = net_graph(13), *branch[2];
    int c = scalar_input(g, "c", OCT_BOOL), x = net_input(g, "x", OCT_F32, "2,3"),
        d = NET_NODE(g, "Neg", "neg", "d", x);
    int y = NET_NODE(g, "If", "if", "y", c), at = net_last;
    for (int i = 0; i < 2; i++) {
        branch[i] = net_nested(g);
        int v = NET_NODE(branch[i], i ? "Abs" : "Relu", i ? "abs" : "relu", "v", net_take(branch[i], d));
        net_output(branch[i], NET_NODE(branch[i], "Neg", "out", i ? "e" : "t", v));
        net_give(g, at, i ? "else_branch" : "then_branch", branch[i]);
    }
    net_output(g, y);
    oct_plan *p = net_plan(g, &o, NULL);
    seen s = { 0 };
    oct_plan_set_tap(p, on_tap, &s);
    const float in[6] = { 1, 2, 3, 4, 5, 6 };
    for (int i = 0; i < 2; i++)
        RUN(p, &(uint8_t){ (uint8_t)i }, in);
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        assert_int_equal(s.n[i], i < 3 ? 0 : 2);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* What nothing reads is shown, too: a value that the first stage computes, and one behind what runs by itself. */
TEST(unread_taps)
{
    oct_plan_opts o = { .taps = tap_names, .n_taps = OCT_COUNT(tap_names) };
    oct_graph *g = choose();
    seen s = { 0 };
    NET_NODE(g, "Abs", "abs", "next", NET_NODE(g, "Neg", "again", "hidden", oct_graph_find(g, "x")));
    NET_NODE(g, "Abs", "behind", "t", oct_graph_find(g, "y"));
    oct_plan *p = net_plan(g, &o, NULL);
    oct_plan_set_tap(p, on_tap, &s);
    const float x[6] = { 1, 2, 3, 4, 5, 6 };
    RUN(p, &(uint8_t){ 0 }, x);
    assert_true(s.n[TAP_NEXT] == 1 && s.n[TAP_T] == 1);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(malformed)
{
    for (int way = 0; way < 3; way++) {
        oct_graph *g = net_graph(13);
        oct_err e = OCT_ERR_INIT;
        oct_plan *p = NULL;
        int c = scalar_input(g, "c", way == 2 ? OCT_F32 : OCT_BOOL), x = net_input(g, "x", OCT_F32, "2");
        net_output(g, NET_NODE(g, "If", "odd", "y", c));
        int at = net_last;
        oct_graph *then = net_nested(g), *other = net_nested(g);
        net_output(then, net_take(then, x));
        if (way != 1)
            net_output(other, net_take(other, x));
        net_give(g, at, "then_branch", then);
        if (way != 0)
            net_give(g, at, "else_branch", other);
        oct_status s = oct_plan_create(g, NULL, NULL, &p, &e);
        if (s == OCT_OK)
            s = oct_plan_run(p, (const void *const[]){ &(float){ 1 }, &(float[]){ 1, 2 } }, &e);
        assert_int_equal(s, OCT_EMALFORMED);
        if (!strstr(e.text, "'odd'"))
            fail_msg("%s", e.text);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

TEST(failing_allocations)
{
    for (int way = 0; way < 3; way++) {
        oct_graph *g = way == 0 ? choose() : way == 1 ? sums(true) : quantized_body();
        const float x[6] = { 1, 2, 3, 4, 5, 6 };
        const int64_t m = 2;
        const uint8_t yes = 1;
        oct_status s = OCT_ENOMEM;
        for (size_t n = 1; s != OCT_OK; n++) {
            oct_plan *p = NULL;
            oct_err e = OCT_ERR_INIT;
            oct_alloc_fail_at(n);
            s = oct_plan_create(g, NULL, NULL, &p, &e);
            if (s == OCT_OK)
                s = oct_plan_run(p, (const void *const[]){ way ? (const void *)&m : &yes, x }, &e);
            if (s != OCT_OK && s != OCT_ENOMEM)
                fail_msg("allocation %zu: status %d: %s", n, (int)s, e.text);
            if (s == OCT_ENOMEM && p) { /* what failed once works again */
                oct_alloc_fail_at(0);
                RUN(p, way ? (const void *)&m : &yes, x);
            }
            if (s == OCT_OK)
                assert_true(oct_alloc_fail_at(0) < n); /* none was left to fail */
            oct_plan_destroy(p);
            assert_true(n < 100000);
        }
        oct_alloc_fail_at(0);
        oct_graph_destroy(g);
    }
}
