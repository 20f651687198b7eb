/* passes/unfold.h: which folded constants become computed again, by bytes counted here, and that numbers stay the
 * same. */
#include "unit.h"

#include "net.h"
#include "passes/pass.h"
#include "passes/unfold.h"

enum { SIDE = 16, ELEMENTS = SIDE * SIDE, BYTES = ELEMENTS * 4, CAP = 4 * ELEMENTS };

/* Every constant is written as it is, but for those whose names begin so: "q" in a quarter, "needed" in a form that
 * only a constant has. */
static oct_stored stored(const void *arg, const oct_graph *g, int v)
{
    const oct_value *x = &g->value[v];
    const bool quarter = x->name[0] == 'q';
    return (oct_stored){ x->constant->bytes / (quarter ? 4 : 1), !quarter, strncmp(x->name, "needed", 6) == 0 };
}

static oct_graph *net(int *x, int *t)
{
    oct_graph *g = net_graph(17);
    *x = net_input(g, "x", OCT_F32, "16,16");
    *t = net_random(g, "t", "16,16", 1);
    return g;
}

static int sum(oct_graph *g, int x, int y)
{
    return NET_NODE(g, "Add", "", oct_arena_printf(g->arena, "sum%zu", g->n_value), x, y);
}

/* Folds, unfolds, compares numbers; how many were unfolded. */
static size_t unfold(oct_graph *g, int y, size_t *saved)
{
    static float before[CAP], after[CAP];
    const oct_plan_opts raw = { .no_passes = true };
    size_t n;
    net_output(g, y);
    const size_t count = net_run_with(g, &raw, NULL, before, CAP);
    GOOD(oct_fold_constants(g, NULL, NULL, err));
    GOOD(oct_graph_check(g, err));
    GOOD(oct_unfold(g, &(oct_unfold_opts){ .stored = stored }, &n, saved, err));
    GOOD(oct_graph_check(g, err));
    assert_int_equal(net_run_with(g, &raw, NULL, after, CAP), count);
    assert_memory_equal(before, after, count * sizeof *before);
    return n;
}

/* Three functions of one table save two tables together, though each alone would save nothing; the table is there
 * once. */
TEST(together)
{
    int x, t;
    size_t saved;
    oct_graph *g = net(&x, &t);
    x = sum(g, x, NET_NODE(g, "Neg", "", "a", t));
    x = sum(g, x, NET_NODE(g, "Exp", "", "b", t));
    x = sum(g, x, NET_NODE(g, "Tanh", "", "c", t));
    assert_int_equal(unfold(g, x, &saved), 3);
    assert_true(saved <= 2 * BYTES && saved > BYTES);
    assert_int_equal(net_producer(g, "a")->in[0], net_producer(g, "b")->in[0]);
    oct_graph_destroy(g);
}

/* One function of a table saves nothing, of one that stays anyway it does; in a quarter it would cost less than the
 * table. */
TEST(alone)
{
    static const struct {
        const char *name;
        bool kept;
        size_t unfolded;
    } each[] = { { "a", false, 0 }, { "a", true, 1 }, { "q", true, 1 }, { "q", false, 0 }, { "needed", true, 0 } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        int x, t;
        size_t saved;
        oct_graph *g = net(&x, &t);
        x = sum(g, x, NET_NODE(g, "Neg", "", each[i].name, t));
        x = each[i].kept ? sum(g, x, t) : x;
        assert_int_equal(unfold(g, x, &saved), each[i].unfolded);
        oct_graph_destroy(g);
    }
}

/* A matrix four times beside itself, in a quarter and whole: the source counts once. */
TEST(repeated)
{
    for (int quarter = 0; quarter < 2; quarter++) {
        int x, t;
        size_t saved;
        oct_graph *g = net(&x, &t);
        const int wide = NET_NODE(g, "Concat", "", quarter ? "q" : "c", t, t, t, t);
        net_int(g, "axis", 1);
        assert_int_equal(unfold(g, NET_NODE(g, "MatMul", "", "y", x, wide), &saved), !quarter);
        oct_graph_destroy(g);
    }
}

/* A chain of nodes from small numbers, of which an inner value is read, too: both are computed by one chain. */
TEST(chain)
{
    const int64_t shape[2] = { SIDE, SIDE };
    int x, t;
    size_t saved;
    oct_graph *g = net(&x, &t);
    const int all =
        NET_NODE(g, "Expand", "", "all", NET_F32(g, "one", "", 1.5f), net_const(g, "shape", OCT_S64, "2", shape));
    const int inner = NET_NODE(g, "Sqrt", "", "inner", all), outer = NET_NODE(g, "Exp", "", "outer", inner);
    assert_int_equal(unfold(g, sum(g, sum(g, x, inner), outer), &saved), 2);
    assert_int_equal(net_count(g, "Expand"), 1);
    assert_int_equal(net_count(g, "Sqrt"), 1);
    oct_graph_destroy(g);
}

/* Only one part of a Split is read: the others have values of their own. */
TEST(parts)
{
    int x, t;
    size_t saved;
    oct_graph *g = net(&x, &t);
    const int twice = NET_NODE(g, "Concat", "", "twice", t, t);
    net_int(g, "axis", 0);
    const int first = NET_NODE(g, "Split", "", "first", twice);
    int second;
    net_int(g, "axis", 0);
    GOOD(oct_graph_add_value(g, "second", OCT_F32, &second, err));
    GOOD(oct_graph_set_output(g, net_last, 1, second, err));
    assert_int_equal(unfold(g, sum(g, sum(g, x, second), t), &saved), 1);
    (void)first;
    assert_int_equal(net_producer(g, "second")->n_out, 2);
    assert_int_equal(net_producer(g, "second")->out[1], oct_graph_find(g, "second"));
    oct_graph_destroy(g);
}

/* Both parts of a Split are read, and come from one node. */
TEST(both_parts)
{
    int x, t, second;
    size_t saved;
    oct_graph *g = net(&x, &t);
    const int twice = NET_NODE(g, "Concat", "", "twice", t, t);
    net_int(g, "axis", 0);
    const int first = NET_NODE(g, "Split", "split", "first", twice);
    net_int(g, "axis", 0);
    GOOD(oct_graph_add_value(g, "second", OCT_F32, &second, err));
    GOOD(oct_graph_set_output(g, net_last, 1, second, err));
    const int y =
        sum(g, NET_NODE(g, "Mul", "", "product", x, first), NET_NODE(g, "Exp", "", "power", sum(g, x, second)));
    assert_int_equal(unfold(g, sum(g, y, t), &saved), 2);
    assert_int_equal(net_count(g, "Split"), 1);
    assert_int_equal(net_count(g, "Concat"), 1);
    oct_graph_destroy(g);
}

/* The branches of an If compute from a table outside, which only they read. */
TEST(nested)
{
    static const char *const op[2] = { "Neg", "Exp" };
    int x, t;
    size_t saved;
    oct_graph *g = net(&x, &t);
    const int cond =
        NET_NODE(g, "Greater", "", "cond", NET_NODE(g, "ReduceSum", "", "total", x), NET_F32(g, "zero", "", 0.0f));
    const int squeezed = NET_NODE(g, "Squeeze", "", "condition", cond), y = NET_NODE(g, "If", "choose", "y", squeezed);
    const int id = net_last;
    for (int i = 0; i < 2; i++) {
        oct_graph *b = net_nested(g);
        const int table = net_take(b, t), in = net_take(b, x);
        net_output(b, NET_NODE(b, "Add", "", i ? "else_y" : "then_y", in,
                               NET_NODE(b, op[i], "", i ? "else_t" : "then_t", table)));
        net_give(g, id, i ? "else_branch" : "then_branch", b);
    }
    GOOD(oct_graph_set_captures(g, id, err));
    assert_int_equal(unfold(g, y, &saved), 2);
    assert_true(saved > 0 && saved < BYTES);
    oct_graph_destroy(g);
}
