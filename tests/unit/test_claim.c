/* lib/targets: the parts of a graph that are worth computing in place of the runtime that holds it. That parts can run
 * is checked apart from how they are found: when each of them is one node, the graph must still have an order. */
#include "unit.h"

#include "net.h"
#include "targets/claim.h"

#include <math.h>
#include <time.h>

static oct_arena *arena;
static oct_graph *g;
static oct_claim *claim;
static int n_parts;

static void open_graph(void)
{
    arena = oct_arena_create();
    g = net_graph(13);
    GOOD(oct_graph_set_opset(g, "com.foo", 1, err));
}

static void close_graph(void)
{
    oct_graph_destroy(g);
    oct_arena_destroy(arena);
}

/* ---- what graphs are made of ---- */

static const char *numbered(const char *base)
{
    static int n;
    return oct_arena_printf(arena, "%s%d", base, n++);
}

static int rounded(int x)
{
    static const float scale = 0.05f;
    const int s = net_const(g, numbered("s"), OCT_F32, "", &scale);
    const int z = net_const(g, numbered("z"), OCT_U8, "", &(uint8_t){ 128 });
    const int q = net_node(g, "QuantizeLinear", "", numbered("q"), x, s, z, NET_END);
    return net_node(g, "DequantizeLinear", "", numbered("d"), q, s, z, NET_END);
}

static int weights(int size)
{
    static const float scale = 0.01f;
    int8_t *w = oct_arena_calloc(arena, (size_t)size * (size_t)size, 1);
    assert_non_null(w);
    for (int i = 0; i < size; i++)
        w[i * size + i] = 100;
    const char *dims = oct_arena_printf(arena, "%d,%d", size, size);
    const int s = net_const(g, numbered("s"), OCT_F32, "", &scale);
    const int z = net_const(g, numbered("z"), OCT_S8, "", &(int8_t){ 0 });
    return net_node(g, "DequantizeLinear", "", numbered("w"), net_const(g, numbered("k"), OCT_S8, dims, w), s, z,
                    NET_END);
}

/* A product of [rows,size] on integers, with a quantizer behind: its result is real, but rounded. */
static int layer(const char *name, int x, int size)
{
    return rounded(net_node(g, "MatMul", name, numbered("y"), rounded(x), weights(size), NET_END));
}

static int two_layers(const char *name, int x)
{
    return layer("", layer(name, x, 256), 256);
}

/* An operator that nobody knows, whose result has the type and shape of a value. */
static int unknown(const char *name, int x)
{
    const int y = net_node(g, "com.foo.Bar", name, numbered("u"), x, NET_END);
    g->value[y].dtype = g->value[x].dtype == OCT_UNDEFINED ? OCT_F32 : g->value[x].dtype;
    GOOD(oct_graph_set_dims(g, y, 2, (const int64_t[]){ 64, 256 }, err));
    return y;
}

static int relu(const char *name, int x)
{
    return net_node(g, "Relu", name, numbered("r"), x, NET_END);
}

static int input(void)
{
    return net_input(g, numbered("x"), OCT_F32, "64,256");
}

/* ---- what is checked of every answer ---- */

/* A part has this index, a node in no part n_parts + its own. */
static size_t group(size_t node)
{
    return claim[node].part >= 0 ? (size_t)claim[node].part : (size_t)n_parts + node;
}

/* Removes groups all of whose inputs are there, until none is left; otherwise two of them wait for each other. */
static void check_order(void)
{
    const size_t n = (size_t)n_parts + g->n_node;
    size_t *waits = oct_calloc(n + 1, sizeof *waits), *ready = oct_calloc(n + 1, sizeof *ready), n_ready = 0, done = 0;
    bool *live = oct_calloc(n + 1, sizeof *live);
    size_t *next = oct_calloc(g->n_node + 1, sizeof *next), *first = oct_calloc(n + 1, sizeof *first), n_live = 0;
    assert_true(waits && ready && live && next && first);
    for (size_t i = 0; i < g->n_order; i++) { /* lists of the nodes of each group, ending in 0 */
        const size_t id = (size_t)g->order[i];
        n_live += !live[group(id)];
        live[group(id)] = true;
        next[id] = first[group(id)];
        first[group(id)] = id + 1;
        for (int k = 0; k < g->node[id].n_out; k++)
            for (size_t u = 0; g->node[id].out[k] >= 0 && u < g->value[g->node[id].out[k]].n_uses; u++)
                waits[group((size_t)g->value[g->node[id].out[k]].uses[u].node)] +=
                    group((size_t)g->value[g->node[id].out[k]].uses[u].node) != group(id);
    }
    for (size_t k = 0; k < n; k++)
        if (live[k] && !waits[k])
            ready[n_ready++] = k;
    while (done < n_ready) {
        const size_t k = ready[done++];
        for (size_t at = first[k]; at; at = next[at - 1])
            for (int o = 0; o < g->node[at - 1].n_out; o++)
                for (size_t u = 0; g->node[at - 1].out[o] >= 0 && u < g->value[g->node[at - 1].out[o]].n_uses; u++) {
                    const size_t to = group((size_t)g->value[g->node[at - 1].out[o]].uses[u].node);
                    if (to != k && --waits[to] == 0)
                        ready[n_ready++] = to;
                }
    }
    assert_int_equal(done, n_live);
    oct_free(waits);
    oct_free(ready);
    oct_free(live);
    oct_free(next);
    oct_free(first);
}

static void ask(oct_claim_what what)
{
    GOOD(oct_graph_check(g, err));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_claim_nodes(g, what, arena, &claim, &n_parts, err));
    int most = -1;
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_claim *c = &claim[g->order[i]];
        assert_non_null(c->reason);
        assert_int_equal(c->part < 0, *c->reason != 0);
        assert_true(c->part >= -1 && c->part < n_parts);
        most = c->part > most ? c->part : most;
    }
    assert_int_equal(most + 1, n_parts);
    check_order();
}

static const oct_claim *of(const char *name)
{
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(g->node[g->order[i]].name, name) == 0)
            return &claim[g->order[i]];
    fail_msg("there is no node '%s'", name);
    return NULL;
}

static size_t claimed(void)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_order; i++)
        n += claim[g->order[i]].part >= 0;
    return n;
}

/* Whether the makers and readers of a node's spelling are where it is: dequantizers of its operands and the quantizer
 * of its result. */
static bool has_spelling(const char *name)
{
    const int part = of(name)->part;
    const oct_node *n = NULL;
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(g->node[g->order[i]].name, name) == 0)
            n = &g->node[g->order[i]];
    bool all = true;
    for (int k = 0; k < n->n_in; k++)
        all &= claim[g->value[n->in[k]].producer].part == part;
    return all && claim[g->value[n->out[0]].uses[0].node].part == part;
}

/* ---- cases ---- */

TEST(a_graph_without_faults_is_one_part)
{
    open_graph();
    net_output(g, relu("tail", layer("b", relu("middle", layer("a", relu("head", input()), 256)), 256)));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 1);
    assert_int_equal(claimed(), g->n_order);
    close_graph();
}

TEST(an_unknown_operator_divides)
{
    open_graph();
    net_output(g, layer("b", unknown("foo", layer("a", input(), 256)), 256));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 2);
    assert_int_equal(of("a")->part, 0);
    assert_int_equal(of("b")->part, 1);
    assert_true(has_spelling("a") && has_spelling("b"));
    assert_string_equal(of("foo")->reason, "operator com.foo.Bar is unknown");
    /* The first quantizer of b rounds what foo makes, and the last dequantizer of a is read by foo alone. */
    assert_int_equal(claimed(), g->n_order - 3);
    close_graph();
}

/* Operators that only reading the graph makes something that runs. */
TEST(operators_on_integers_are_layers)
{
    static const float scale = 0.05f;
    static int8_t w[256 * 256];
    open_graph();
    int x = net_input(g, "x", OCT_U8, "64,256");
    const int s = net_const(g, "s", OCT_F32, "", &scale), z = net_const(g, "z", OCT_U8, "", &(uint8_t){ 128 });
    const int zw = net_const(g, "zw", OCT_S8, "", &(int8_t){ 0 });
    for (int i = 0; i < 2; i++)
        x = net_node(g, "QLinearMatMul", i ? "b" : "a", numbered("y"), x, s, z,
                     net_const(g, numbered("w"), OCT_S8, "256,256", w), s, zw, s, z, NET_END);
    net_output(g, x);
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(of("a")->part, 0);
    assert_int_equal(of("b")->part, 0);
    close_graph();
}

TEST(an_operator_of_another_opset_is_named)
{
    open_graph();
    const int y = net_node(g, "Mish", "mish", "m", layer("a", input(), 256), NET_END);
    g->value[y].dtype = OCT_F32;
    net_output(g, y);
    ask(OCT_CLAIM_INTEGERS);
    assert_string_equal(of("mish")->reason, "operator Mish is unknown in opset 13");
    close_graph();
}

TEST(a_path_around_divides)
{
    open_graph();
    const int a = layer("a", input(), 256);
    const int b = unknown("foo", a), c = layer("c", a, 256);
    net_output(g, layer("d", net_node(g, "Add", "sum", "sum", b, c, NET_END), 256));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 2);
    assert_int_equal(of("a")->part, 0);
    assert_int_equal(of("c")->part, 0); /* as early as it may, in the same part as a */
    assert_int_equal(of("d")->part, 1);
    assert_int_not_equal(of("sum")->part, 0);
    close_graph();
}

TEST(parts_do_not_wait_for_each_other)
{
    /* Two chains, each with an unknown node: joined by hand, {a1 b2} and {b1 a2} would be convex, and wait. */
    open_graph();
    const int a1 = layer("a1", input(), 256), b1 = layer("b1", input(), 256);
    net_output(g, layer("a2", unknown("foo", a1), 256));
    net_output(g, layer("b2", unknown("bar", b1), 256));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(of("a1")->part, of("b1")->part);
    assert_int_equal(of("a2")->part, of("b2")->part);
    assert_int_equal(n_parts, 2);
    close_graph();
}

TEST(float_stays)
{
    open_graph();
    const int x = input(), w = net_random(g, "w", "256,256", 1);
    net_output(g, relu("relu", net_node(g, "MatMul", "product", "p", x, w, NET_END)));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 0);
    assert_string_equal(of("product")->reason, "no integer work: float stays where it is");
    ask(OCT_CLAIM_FLOAT);
    assert_int_equal(n_parts, 0); /* two nodes do not pay */
    close_graph();
    open_graph();
    int y = input();
    for (int i = 0; i < 30; i++)
        y = relu(i ? "" : "relu",
                 net_node(g, "MatMul", "", numbered("p"), y, net_random(g, numbered("w"), "256,256", 1), NET_END));
    net_output(g, y);
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 0);
    ask(OCT_CLAIM_FLOAT);
    assert_int_equal(n_parts, 1);
    assert_int_equal(claimed(), g->n_order);
    close_graph();
}

TEST(little_work_stays)
{
    open_graph();
    net_output(g, layer("a", net_input(g, "x", OCT_F32, "1,8"), 8));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 0);
    assert_string_equal(of("a")->reason, "too little integer work: it would gain less than the borders of a part cost");
    close_graph();
    open_graph(); /* nodes in float do not make up for it */
    int x = layer("a", net_input(g, "x", OCT_F32, "1,8"), 8);
    for (int i = 0; i < 200; i++)
        x = relu("", x);
    net_output(g, x);
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 0);
    close_graph();
    open_graph(); /* moving and rounding are no work */
    x = input();
    for (int i = 0; i < 20; i++)
        x = rounded(net_node(g, "Transpose", i ? "" : "t", numbered("t"), rounded(x), NET_END));
    net_output(g, x);
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 0);
    assert_string_equal(of("t")->reason, "no integer work: float stays where it is");
    close_graph();
}

/* A small layer behind an unknown operator is no part of its own; the large one before it is. */
TEST(only_parts_that_pay_are_made)
{
    open_graph();
    const int a = layer("a", input(), 256), u = unknown("foo", a);
    const int row = net_node(g, "ReduceMax", "max", "m", u, NET_END);
    net_int(g, "keepdims", 1);
    NET_INTS(g, "axes", 0, 1);
    net_output(g, layer("b", row, 1));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 1);
    assert_int_equal(of("a")->part, 0);
    assert_non_null(strstr(of("b")->reason, "too little integer work"));
    close_graph();
}

TEST(float_fringes_stay)
{
    open_graph();
    int x = unknown("foo", input());
    x = relu("start2", relu("start1", x));
    x = layer("a", x, 256);
    x = relu("between", x);
    x = layer("b", x, 256);
    x = relu("end2", relu("end1", x));
    net_output(g, unknown("bar", x));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 1);
    assert_int_equal(of("between")->part, 0);
    for (int i = 0; i < 4; i++) {
        const oct_claim *c = of((const char *[]){ "start1", "start2", "end1", "end2" }[i]);
        assert_string_equal(c->reason, "it computes in float at the border of a part");
    }
    assert_true(has_spelling("b"));
    close_graph();
    /* Where nobody else computes before or behind, they belong to the part. */
    open_graph();
    x = two_layers("a", relu("start", input()));
    net_output(g, relu("end", x));
    net_output(g, unknown("foo", input()));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(of("start")->part, 0);
    assert_int_equal(of("end")->part, 0);
    close_graph();
}

/* The nanoseconds of two layers, each a call (500), a layer (1500), 64 * 256 * 256 products at 1.5 ps and 64 * 256
 * results at 80 ps, without a part (5000) and its two borders (300 each, and 40 ps for each of 64 * 256 * 4 bytes). */
TEST(what_parts_gain)
{
    const double products = 64 * 256 * 256 * 0.0015, results = 64 * 256 * 0.08, copy = 64 * 256 * 4 * 0.04;
    double gain;
    open_graph();
    net_output(g, two_layers("a", input()));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_claim_gain(g, &gain, err));
    assert_true(fabs(gain - (2 * (500 + 1500 + products + results) - 5000 - 2 * (300 + copy))) < 1e-3);
    close_graph();
    open_graph(); /* two parts, with bytes at the borders between them */
    net_output(g, two_layers("b", unknown("foo", two_layers("a", input()))));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_claim_gain(g, &gain, err));
    assert_true(fabs(gain - 2 * (2 * (500 + 1500 + products + results) - 5000 - 2 * 300 - copy - copy / 4)) < 1e-3);
    close_graph();
    open_graph();
    net_output(g, relu("r", input()));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_claim_gain(g, &gain, err));
    assert_true(gain == 0);
    close_graph();
    open_graph(); /* too little to be claimed */
    net_output(g, layer("a", net_input(g, "x", OCT_F32, "1,8"), 8));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_claim_gain(g, &gain, err));
    assert_true(gain == 0);
    close_graph();
}

static int branch(oct_graph *nested, const char *op, int x)
{
    int v, node;
    const char *dot = strrchr(op, '.');
    GOOD(oct_graph_add_node(nested, dot ? dot + 1 : op, dot ? "com.foo" : "", "inside", 1, 1, -1, &node, err));
    GOOD(oct_graph_set_input(nested, node, 0, x, err));
    GOOD(oct_graph_add_value(nested, numbered("in"), OCT_F32, &v, err));
    GOOD(oct_graph_set_output(nested, node, 0, v, err));
    return v;
}

/* x -> a -> If(cond) { op } else { Relu } -> b */
static void open_with_body(const char *op)
{
    open_graph();
    const int cond = net_input(g, "cond", OCT_BOOL, ""), a = two_layers("a", input());
    const int y = net_node(g, "If", "if", "iffy", cond, NET_END), node = net_last;
    for (int i = 0; i < 2; i++) {
        oct_graph *nested = net_nested(g);
        net_output(nested, branch(nested, i ? "Relu" : op, net_take(nested, a)));
        net_give(g, node, i ? "else_branch" : "then_branch", nested);
    }
    g->value[y].dtype = OCT_F32;
    GOOD(oct_graph_set_dims(g, y, 2, (const int64_t[]){ 64, 256 }, err));
    net_output(g, two_layers("b", y));
    GOOD(oct_graph_set_captures(g, node, err));
}

TEST(a_body_is_claimed_with_its_node)
{
    open_with_body("Relu");
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 1);
    assert_int_equal(of("if")->part, 0);
    close_graph();
    open_with_body("com.foo.Bar");
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 2);
    assert_string_equal(of("if")->reason, "operator com.foo.Bar in its graph is unknown");
    assert_int_equal(of("a")->part, 0);
    assert_int_equal(of("b")->part, 1);
    close_graph();
}

TEST(strings_cross_no_border)
{
    open_graph();
    const int text = net_input(g, "text", OCT_STRING, "3");
    const int same = net_node(g, "Identity", "same", "same", text, NET_END);
    net_output(g, same);
    net_output(g, two_layers("a", input()));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(of("a")->part, 0);
    assert_string_equal(of("same")->reason, "its values cannot cross the border of a part");
    close_graph();
}

/* Octet holds maps as the table of their values, which is not what the file says. */
TEST(maps_cross_no_border)
{
    open_graph();
    GOOD(oct_graph_set_opset(g, "ai.onnx.ml", 3, err));
    const int map = net_node(g, "ai.onnx.ml.ZipMap", "zip", "map", two_layers("a", input()), NET_END);
    net_output(g, map);
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(of("a")->part, 0);
    assert_string_equal(of("zip")->reason, "operator ZipMap makes maps");
    close_graph();
}

TEST(unknown_types_stay)
{
    open_graph();
    const int x = layer("a", input(), 256), u = unknown("foo", x);
    g->value[u].dtype = OCT_UNDEFINED;
    g->value[u].name = "mystery";
    net_output(g, net_node(g, "Identity", "reader", "i", u, NET_END));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(of("a")->part, 0);
    assert_string_equal(of("reader")->reason, "the type of 'mystery' is unknown");
    close_graph();
}

TEST(open_dimensions_have_usual_sizes)
{
    open_graph();
    net_output(g, layer("a", layer("b", net_input(g, "x", OCT_F32, "N,T,256"), 256), 256)); /* [1,128,256] */
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(n_parts, 1);
    assert_int_equal(claimed(), g->n_order);
    close_graph();
}

/* Nodes without outputs, absent inputs, the same value twice, outputs that nobody reads, a constant output. */
TEST(odd_graphs_are_answered)
{
    int node;
    open_graph();
    GOOD(oct_graph_add_node(g, "Bar", "com.foo", "nothing", 0, 0, -1, &node, err));
    GOOD(oct_graph_add_node(g, "Bar", "com.foo", "absent", 3, 2, -1, &node, err));
    const int x = layer("a", input(), 256), y = net_node(g, "Add", "twice", "t", x, x, NET_END);
    GOOD(oct_graph_set_input(g, node, 1, y, err));
    GOOD(oct_graph_set_input(g, node, 2, y, err));
    GOOD(oct_graph_sort(g, err));
    relu("unread", y);
    net_output(g, y);
    net_output(g, y);
    net_output(g, NET_F32(g, "five", "1", 5));
    ask(OCT_CLAIM_INTEGERS);
    assert_int_equal(of("a")->part, of("twice")->part);
    assert_string_equal(of("nothing")->reason, "operator com.foo.Bar is unknown");
    close_graph();
    open_graph();
    ask(OCT_CLAIM_INTEGERS); /* no node at all */
    assert_int_equal(n_parts, 0);
    close_graph();
}

/* Any order of anything: that it can run is checked by ask. Layers on integers keep their operands. */
TEST(random_graphs_can_run)
{
    int layers = 0, divided = 0;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        uint32_t r = seed;
        int v[64], n = 0;
        open_graph();
        v[n++] = input();
        v[n++] = input();
        while (n < 40) {
            const int x = v[net_next(&r) % (unsigned)n], y = v[net_next(&r) % (unsigned)n];
            int s;
            switch (net_next(&r) % 7) {
            case 0: v[n++] = unknown("", x); break;
            case 1: v[n++] = net_node(g, "Add", "", numbered("a"), x, y, NET_END); break;
            case 2: v[n++] = rounded(x); break;
            case 3: /* a scale that is computed */
                s = net_node(g, "ReduceMax", "", numbered("m"), y, NET_END);
                net_int(g, "keepdims", 0);
                s = net_node(g, "QuantizeLinear", "", numbered("q"), x, s, NET_END);
                v[n++] = net_node(g, "Cast", "", numbered("c"), s, NET_END);
                net_int(g, "to", OCT_F32);
                break;
            case 4: v[n++] = relu("", x); break;
            default: v[n++] = layer("", x, 256);
            }
        }
        for (int k = 0; k < n; k++)
            if (g->value[v[k]].n_uses == 0 || net_next(&r) % 8 == 0)
                net_output(g, v[k]);
        ask(seed % 4 == 0);
        divided += n_parts > 1;
        for (size_t i = 0; i < g->n_order; i++) {
            const int id = g->order[i];
            const oct_node *m = &g->node[id];
            if (claim[id].part < 0 || strcmp(m->op, "MatMul") != 0)
                continue;
            layers++;
            for (int k = 0; k < 2; k++)
                assert_int_equal(claim[g->value[m->in[k]].producer].part, claim[id].part);
        }
        close_graph();
    }
    assert_true(layers > 1000);
    assert_true(divided > 50);
}

static double seconds(clock_t since)
{
    return (double)(clock() - since) / CLOCKS_PER_SEC;
}

/* 50,000 nodes: a chain, one value that all read, unknown nodes in turn with others, and a fringe of one value. The
 * time is that of a linear search many times over; a quadratic one takes minutes. */
TEST(large_graphs_take_little_time)
{
    for (int kind = 0; kind < 4; kind++) {
        open_graph();
        const int a = layer("a", input(), 256);
        int x = a;
        for (int i = 0; i < 25000; i++) {
            x = kind == 1   ? relu("", unknown("", a))
                : kind == 2 ? relu("", unknown("", x))
                : kind == 3 ? unknown("", relu("", a))
                            : relu("", relu("", x));
            if (kind % 2)
                net_output(g, x);
        }
        net_output(g, layer("b", kind % 2 ? a : x, 256));
        GOOD(oct_infer_shapes(g, err));
        const clock_t start = clock();
        GOOD(oct_claim_nodes(g, OCT_CLAIM_INTEGERS, arena, &claim, &n_parts, err));
        assert_true(seconds(start) < 20);
        assert_int_equal(of("a")->part, 0);
        assert_int_equal(of("b")->part, kind == 2);
        check_order();
        close_graph();
    }
}
