/* lib/passes: functions and decided branches take the place of their nodes; what they compute is worked out by hand. */
#include "unit.h"

#include "net.h"

enum { CAP = 4096, MOST = 40 }; /* MOST: functions */
static float got[CAP];

/* ---- functions ---- */

typedef struct functions {
    oct_graph *g;
    oct_function f[MOST];
    size_t n;
} functions;

static oct_graph *add_function(functions *l, const char *name, int64_t opset)
{
    oct_graph *b = oct_arena_calloc(l->g->arena, 1, sizeof *b);
    assert_non_null(b);
    b->arena = l->g->arena;
    b->name = name;
    GOOD(oct_graph_set_opset(b, "", opset, err));
    l->f[l->n++] = (oct_function){ .domain = "local", .name = name, .overload = "", .body = b };
    return b;
}

static int parameter(oct_graph *b, const char *name)
{
    int v = net_input(b, name, OCT_UNDEFINED, "");
    b->value[v].shape = (oct_shape){ -1, NULL };
    return v;
}

static void set_functions(functions *l)
{
    GOOD(oct_graph_set_functions(l->g, l->f, l->n, err));
}

/* An attribute of the last node that refers to one of the call's. */
static void refer(oct_graph *b, const char *name, oct_attr_type t, const char *to)
{
    net_int(b, name, 0);
    oct_attr *a = (oct_attr *)(uintptr_t)oct_node_attr(&b->node[net_last], name);
    a->type = t;
    a->ref = to;
}

/* Runs all passes and the graph; x are net_run's numbers for the first input. */
static size_t flat(oct_graph *g)
{
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_run(g, NULL, 0, NULL, err));
    GOOD(oct_graph_check(g, err));
    for (size_t i = 0; i < g->n_order; i++)
        assert_string_equal(g->node[g->order[i]].domain, "");
    assert_int_equal(net_count(g, "If"), 0);
    return net_run_with(g, &(oct_plan_opts){ .no_passes = true }, NULL, got, CAP);
}

static void numbers(float *x, size_t n)
{
    net_fill(x, n, 77);
}

/* leaky(x, k) = LeakyRelu(x; slope) * k; twice(x) = leaky(leaky(x, 2; 0.5), 2) + x, where the second has the default
 * slope. */
TEST(calls_nest)
{
    functions l = { .g = net_graph(13) };
    oct_graph *leaky = add_function(&l, "Leaky", 13);
    static const oct_attr slope = { .name = "slope", .type = OCT_ATTR_FLOAT, .f = 0.25f };
    l.f[0].defaults = &slope;
    l.f[0].n_defaults = 1;
    int x = parameter(leaky, "x"), k = parameter(leaky, "k");
    int y = NET_NODE(leaky, "LeakyRelu", "act", "y", x);
    refer(leaky, "alpha", OCT_ATTR_FLOAT, "slope");
    net_output(leaky, NET_NODE(leaky, "Mul", "mul", "z", y, k));

    oct_graph *twice = add_function(&l, "Twice", 13);
    GOOD(oct_graph_set_opset(twice, "local", 1, err));
    x = parameter(twice, "x");
    k = NET_F32(twice, "k", "", 2);
    y = NET_NODE(twice, "local.Leaky", "first", "y", x, k);
    net_float(twice, "slope", 0.5f);
    y = NET_NODE(twice, "local.Leaky", "second", "y2", y, k);
    net_output(twice, NET_NODE(twice, "Add", "add", "z", y, x));

    set_functions(&l);
    oct_graph *g = l.g;
    GOOD(oct_graph_set_opset(g, "local", 1, err));
    x = net_input(g, "x", OCT_F32, "2,6");
    int a = NET_NODE(g, "local.Twice", "one", "a", x); /* called twice: names must differ */
    net_output(g, NET_NODE(g, "local.Twice", "two", "b", a));
    size_t n = flat(g);
    assert_int_equal(n, 12);
    assert_int_equal(g->n_function, 0);
    assert_int_equal(net_count(g, "LeakyRelu"), 4);
    assert_string_equal(net_producer(g, "b")->name, "two/add");
    float in[12];
    numbers(in, 12);
    for (size_t i = 0; i < n; i++) {
        float v = in[i];
        for (int r = 0; r < 2; r++) {
            float p = (v > 0 ? v : v * 0.5f) * 2.0f, q = (p > 0 ? p : p * 0.25f) * 2.0f;
            v = q + v;
        }
        assert_float_equal(got[i], v, 1e-6);
    }
    oct_graph_destroy(g);
}

/* Inputs left out, outputs that are inputs, constants, or the same twice. */
TEST(odd_ends)
{
    functions l = { .g = net_graph(13) };
    oct_graph *f = add_function(&l, "Ends", 13);
    int x = parameter(f, "x"), lo = parameter(f, "lo"), hi = parameter(f, "hi");
    int y = NET_NODE(f, "Clip", "clip", "y", x, lo, hi), k = NET_F32(f, "k", "1", 7);
    net_output(f, y);
    net_output(f, x);
    net_output(f, y);
    net_output(f, k);
    set_functions(&l);
    oct_graph *g = l.g;
    x = net_input(g, "x", OCT_F32, "6");
    static const char *const names[] = { "o0", "o1", "o2", "o3" };
    net_output(g, NET_NODE(g, "local.Ends", "call", "o0", x, -1, NET_F32(g, "top", "", 0.25f)));
    for (int i = 1, v; i < 4; i++) {
        GOOD(oct_graph_add_value(g, names[i], OCT_UNDEFINED, &v, err));
        GOOD(oct_graph_set_output(g, net_last, i, v, err));
        net_output(g, v);
    }
    assert_int_equal(flat(g), 19);
    float in[6];
    numbers(in, 6);
    for (int i = 0; i < 6; i++) {
        assert_true(got[i] == fminf(in[i], 0.25f));
        assert_true(got[6 + i] == in[i]);
        assert_true(got[12 + i] == got[i]);
    }
    assert_true(got[18] == 7);
    oct_graph_destroy(g);
}

/* pick(x) = If flag then x * 3 (captured) else -x, with a nested If inside the branch; flag is an attribute. */
TEST(branches_in_functions)
{
    for (int flag = 0; flag < 2; flag++) {
        functions l = { .g = net_graph(13) };
        oct_graph *f = add_function(&l, "Pick", 13);
        int x = parameter(f, "x"), three = NET_F32(f, "three", "", 3);
        NET_NODE(f, "Constant", "flag", "flag", -1);
        refer(f, "value_int", OCT_ATTR_INT, "flag");
        int c = NET_NODE(f, "Cast", "cast", "c", oct_graph_find(f, "flag"));
        net_int(f, "to", OCT_BOOL);
        int y = NET_NODE(f, "If", "if", "y", c), at = net_last;
        oct_graph *then = net_nested(f), *other = net_nested(f), *deep = net_nested(then);
        net_output(deep, NET_NODE(deep, "Mul", "mul", "p", net_take(deep, net_take(then, x)),
                                  net_take(deep, net_take(then, three))));
        int q = NET_NODE(then, "If", "inner", "q", net_take(then, c));
        int inner = net_last;
        net_output(then, q);
        oct_graph *deep_else = net_nested(then);
        net_output(deep_else, net_take(deep_else, net_take(then, x)));
        net_give(then, inner, "then_branch", deep);
        net_give(then, inner, "else_branch", deep_else);
        net_output(other, NET_NODE(other, "Neg", "neg", "p", net_take(other, x)));
        net_give(f, at, "then_branch", then);
        net_give(f, at, "else_branch", other);
        net_output(f, y);
        set_functions(&l);
        oct_graph *g = l.g;
        x = net_input(g, "x", OCT_F32, "5");
        net_output(g, NET_NODE(g, "local.Pick", "call", "y", x));
        net_int(g, "flag", flag);
        assert_int_equal(flat(g), 5);
        float in[5];
        numbers(in, 5);
        for (int i = 0; i < 5; i++)
            assert_true(got[i] == (flag ? in[i] * 3 : -in[i]));
        oct_graph_destroy(g);
    }
}

TEST(endless_calls)
{
    for (int way = 0; way < 2; way++) {
        functions l = { .g = net_graph(13) };
        char name[24];
        int levels = way ? 30 : 2; /* each calls the next twice: 2^30 nodes; or two that call each other */
        for (int i = 0; i < levels; i++) {
            snprintf(name, sizeof name, "F%02d", i);
            oct_graph *f = add_function(&l, oct_arena_strdup(l.g->arena, name), 13);
            int x = parameter(f, "x");
            snprintf(name, sizeof name, "local.F%02d", way ? i + 1 : 1 - i);
            bool last = i + 1 == levels && way;
            int y = NET_NODE(f, last ? "Relu" : name, "a", "y", x);
            net_output(f, NET_NODE(f, last ? "Relu" : name, "b", "z", y));
        }
        set_functions(&l);
        oct_graph *g = l.g;
        int x = net_input(g, "x", OCT_F32, "5");
        net_output(g, NET_NODE(g, "local.F00", "call", "y", x));
        oct_err e = OCT_ERR_INIT;
        assert_int_equal(oct_passes_flatten(g, &e), way ? OCT_EUNSUPPORTED : OCT_EMALFORMED);
        if (!strstr(e.text, way ? "more than 262144 nodes" : "calls itself"))
            fail_msg("%s", e.text);
        oct_graph_destroy(g);
    }
}

/* A body of an older opset is raised; one of a newer opset is taken where its operators are the same. */
TEST(other_opsets)
{
    for (int way = 0; way < 3; way++) {
        functions l = { .g = net_graph(13) };
        oct_graph *f = add_function(&l, "F", way == 0 ? 11 : 18);
        int x = parameter(f, "x");
        if (way == 0) { /* axes became an input in 13 */
            net_output(f, NET_NODE(f, "Unsqueeze", "u", "y", x));
            NET_INTS(f, "axes", 0);
        } else if (way == 1) {
            net_output(f, NET_NODE(f, "Neg", "n", "y", x));
        } else { /* an input only since 18 */
            net_output(f, NET_NODE(f, "ReduceMean", "m", "y", x, NET_S64(f, "axes", "1", 0)));
        }
        set_functions(&l);
        oct_graph *g = l.g;
        x = net_input(g, "x", OCT_F32, "5");
        net_output(g, NET_NODE(g, "local.F", "call", "y", x));
        if (way < 2) {
            assert_int_equal(flat(g), 5);
            assert_int_equal(net_producer(g, "y")->n_in, way == 0 ? 2 : 1);
            assert_int_equal(g->value[oct_graph_find(g, "y")].shape.rank, way == 0 ? 2 : 1);
        } else {
            GOOD(oct_passes_flatten(g, err));
            assert_int_equal(net_count(g, "F"), 1);
            assert_int_equal(g->n_function, 1);
        }
        oct_graph_destroy(g);
    }
}

/* ---- branches ---- */

/* The condition follows from the shape of x; names of the branch may be taken outside. */
TEST(branch_by_shape)
{
    for (int rows = 1; rows < 3; rows++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, rows == 1 ? "1,3" : "2,3"), s = NET_NODE(g, "Shape", "s", "s", x);
        int n = NET_NODE(g, "Gather", "n", "n", s, NET_S64(g, "zero", "", 0));
        int c = NET_NODE(g, "Equal", "c", "c", n, NET_S64(g, "one", "", 1)), y = NET_NODE(g, "If", "if", "y", c),
            at = net_last;
        oct_graph *then = net_nested(g), *other = net_nested(g);
        net_output(then, NET_NODE(then, "Squeeze", "sq", "t", net_take(then, x), NET_S64(then, "axes", "1", 0)));
        net_output(other, net_take(other, x));
        net_give(g, at, "then_branch", then);
        net_give(g, at, "else_branch", other);
        net_output(g, NET_NODE(g, "Relu", "relu", "t2", y));
        assert_int_equal(flat(g), 3 * rows);
        assert_int_equal(g->value[g->output[0]].shape.rank, rows);
        float in[6];
        numbers(in, 6);
        for (int i = 0; i < 3 * rows; i++)
            assert_true(got[i] == fmaxf(in[i], 0));
        oct_graph_destroy(g);
    }
}

/* ---- what a loop only hands on ---- */

static int left_behind(oct_graph *g, int node, int slot, const char *name)
{
    int v;
    GOOD(oct_graph_add_value(g, name, OCT_F32, &v, err));
    GOOD(oct_graph_set_output(g, node, slot, v, err));
    return v;
}

/* Three times sum' = (sum + x) w, for the states w, which goes through Identity, sum, and x, which the body hands on as
 * it is. What is left of x is shown under its name where `shown`. Outputs: sum w, what each iteration began with,
 * perhaps x. */
static oct_graph *handing_loop(bool shown)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "3"), id;
    GOOD(oct_graph_add_node(g, "Loop", "", "loop", 5, 4, -1, &id, err));
    const int in[] = { NET_S64(g, "three", "", 3), -1, NET_F32(g, "w", "3", 1, 2, -1), NET_F32(g, "zero", "3", 0, 0, 0),
                       x };
    for (int i = 0; i < 5; i++)
        GOOD(oct_graph_set_input(g, id, i, in[i], err));
    oct_graph *b = net_nested(g);
    net_input(b, "i", OCT_S64, "");
    int go = net_input(b, "go", OCT_BOOL, ""), w = net_input(b, "wb", OCT_F32, "3"),
        sum = net_input(b, "sum", OCT_F32, "3");
    int xb = net_input(b, "xb", OCT_F32, "3");
    net_output(b, go);
    net_output(b, NET_NODE(b, "Identity", "keep", "w_next", w));
    net_output(b, NET_NODE(b, "Mul", "mul", "sum_next", NET_NODE(b, "Add", "add", "more", sum, xb), w));
    net_output(b, xb);
    net_output(b, NET_NODE(b, "Identity", "show", "began", sum));
    net_give(g, id, "body", b);
    int w_left = left_behind(g, id, 0, "w_left"), sum_left = left_behind(g, id, 1, "sum_left"),
        x_left = left_behind(g, id, 2, "x_left");
    int all = left_behind(g, id, 3, "all");
    net_output(g, NET_NODE(g, "Mul", "end", "y", sum_left, w_left));
    net_output(g, all);
    if (shown)
        net_output(g, x_left);
    return g;
}

TEST(loop_hands_on)
{
    for (int shown = 0; shown < 2; shown++) {
        static const float w[3] = { 1, 2, -1 };
        oct_graph *g = handing_loop(shown);
        float in[3], want[15] = { 0 };
        numbers(in, 3);
        for (int k = 0; k < 3; k++) {
            float sum = 0;
            for (int i = 0; i < 3; i++) {
                want[3 + 3 * i + k] = sum;
                sum = (sum + in[k]) * w[k];
            }
            want[k] = sum * w[k];
            want[12 + k] = in[k];
        }
        assert_int_equal(flat(g), shown ? 15 : 12);
        assert_memory_equal(got, want, (shown ? 15u : 12u) * sizeof *want);
        const oct_node *loop = net_producer(g, "all");
        const oct_graph *b = oct_node_graph(loop, "body");
        assert_int_equal(loop->n_in, 3);
        assert_int_equal(b->n_input, 3);
        const int v = oct_graph_find(b, "w"); /* a constant in the body, too */
        assert_true(v >= 0 && b->value[v].constant && b->value[v].outer >= 0);
        oct_graph_destroy(g);
    }
}

/* A function F<i> that calls F<i + 1> twice, by nodes named `name`: with a value each or, if `quiet`, without
 * outputs. */
static void add_doubling(functions *l, int i, const char *name, bool quiet)
{
    char op[16];
    int call;
    snprintf(op, sizeof op, "F%02d", i);
    oct_graph *f = add_function(l, oct_arena_strdup(l->g->arena, op), 13);
    int x = parameter(f, "x"), y = x;
    snprintf(op, sizeof op, "F%02d", i + 1);
    for (int k = 0; k < 2; k++) {
        GOOD(oct_graph_add_node(f, op, "local", name, 1, 0, -1, &call, err));
        GOOD(oct_graph_set_input(f, call, 0, y, err));
        if (quiet)
            continue;
        GOOD(oct_graph_add_value(f, k ? "z" : "y", OCT_UNDEFINED, &y, err));
        GOOD(oct_graph_set_output(f, call, 0, y, err));
    }
    net_output(f, y);
}

/* Nodes of a branch: a chain of 2000 Relu in an If of the innermost function. */
static int add_long_branch(oct_graph *f, int x)
{
    char name[24];
    int v = NET_NODE(f, "If", "if", "z", NET_NODE(f, "Cast", "c", "cond", x));
    const int node = net_last;
    oct_graph *then;
    GOOD(oct_graph_new_nested(f, &then, err));
    int y;
    GOOD(oct_graph_capture(then, x, &y, err));
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "v%d", i);
        y = NET_NODE(then, "Relu", "", name, y);
    }
    net_output(then, y);
    oct_attr *a = oct_arena_calloc(f->arena, 1, sizeof *a);
    oct_graph **list = oct_arena_calloc(f->arena, 1, sizeof *list);
    list[0] = then;
    *a = (oct_attr){ .name = "then_branch", .type = OCT_ATTR_GRAPH, .graphs = list, .n = 1 };
    f->node[node].attr = a;
    f->node[node].n_attr = f->node[node].cap_attr = 1;
    GOOD(oct_graph_set_captures(f, node, err));
    return v;
}

/* What a few bytes of calls multiply: nodes, those of nested graphs, calls of nothing, names, constants. Each ends
 * soon, with a reason. */
TEST(bombs)
{
    enum { NODES, BRANCHES, NOTHING, NAMES, CONSTANTS, KINDS };
    static const char *const reason[] = { "more than 262144 nodes", "more than 262144 nodes", "more than 262144 nodes",
                                          "64 MB of names", "264 MB of constants" };
    char *name = oct_calloc(60001, 1);
    memset(name, 'n', 60000);
    for (int kind = 0; kind < KINDS; kind++) {
        enum { LEVELS = 40 };
        functions l = { .g = net_graph(13) };
        for (int i = 0; i < LEVELS - 1; i++)
            add_doubling(&l, i, kind == NAMES ? name : "", kind == NOTHING);
        oct_graph *f = add_function(&l, "F39", 13);
        int x = parameter(f, "x");
        if (kind == BRANCHES)
            net_output(f, add_long_branch(f, x));
        else if (kind == CONSTANTS)
            net_output(f, NET_NODE(f, "Add", "a", "z", x, net_random(f, "k", "262144", 1)));
        else
            net_output(f, kind == NOTHING ? x : NET_NODE(f, "Relu", "a", "z", x));
        set_functions(&l);
        x = net_input(l.g, "x", OCT_F32, "5");
        net_output(l.g, NET_NODE(l.g, "local.F00", "call", "y", x));
        oct_err e = OCT_ERR_INIT;
        assert_int_equal(oct_passes_flatten(l.g, &e), OCT_EUNSUPPORTED);
        if (!strstr(e.text, reason[kind]))
            fail_msg("%d: %s", kind, e.text);
        assert_true(oct_arena_bytes(l.g->arena) < (size_t)512 << 20);
        oct_graph_destroy(l.g);
    }
    oct_free(name);
}
