/* passes/to_float32.h: graphs in other floats, bodies among them, against the same sums made here in float32. */
#include "unit.h"

#include <float.h>

#include "net.h"
#include "passes/to_float32.h"

/* Numbers that every type has: 1, -2, 0.5. */
static int numbers(oct_graph *g, const char *name, oct_dtype t)
{
    static const uint16_t f16[] = { 0x3c00, 0xc000, 0x3800 }, bf16[] = { 0x3f80, 0xc000, 0x3f00 };
    static const double f64[] = { 1, -2, 0.5 };
    return net_const(g, name, t, "3", t == OCT_F16 ? (const void *)f16 : t == OCT_BF16 ? (const void *)bf16 : f64);
}

/* z = Cast(c ? x + k : Cast(Cast(x, int64), t)), x and z of type t; the result of the branches is an output, too. */
static oct_graph *make(oct_dtype t)
{
    oct_graph *g = net_graph(17);
    const int c = net_input(g, "c", OCT_BOOL, ""), x = net_input(g, "x", t, "3"), k = numbers(g, "k", t);
    const int y = NET_NODE(g, "If", "if", "y", c), at = net_last;
    oct_graph *then = net_nested(g), *other = net_nested(g);
    net_output(then, NET_NODE(then, "Add", "add", "t", net_take(then, x), net_take(then, k)));
    const int whole = NET_NODE(other, "Cast", "down", "w", net_take(other, x));
    net_int(other, "to", OCT_S64);
    const int real = NET_NODE(other, "Cast", "up", "e", whole);
    net_int(other, "to", t);
    net_output(other, real);
    net_give(g, at, "then_branch", then);
    net_give(g, at, "else_branch", other);
    net_output(g, y);
    net_output(g, NET_NODE(g, "Neg", "neg", "z", y));
    GOOD(oct_infer_shapes(g, err));
    return g;
}

static void no_narrow_inside(const oct_graph *g)
{
    for (size_t i = 0; i < g->n_value; i++) {
        const oct_value *v = &g->value[i];
        const bool end = !g->outer && (v->is_input || v->is_output);
        assert_true(v->dead || end || (v->dtype != OCT_F16 && v->dtype != OCT_BF16 && v->dtype != OCT_F64));
    }
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; oct_node_graph_at(&g->node[g->order[i]], k); k++)
            no_narrow_inside(oct_node_graph_at(&g->node[g->order[i]], k));
}

static double element(const oct_operand *t, int i)
{
    return t->dtype == OCT_F64   ? ((const double *)t->data)[i]
           : t->dtype == OCT_F16 ? (double)oct_f16_to_f32(((const uint16_t *)t->data)[i])
                                 : (double)oct_bf16_to_f32(((const uint16_t *)t->data)[i]);
}

static void check_type(oct_dtype t)
{
    oct_graph *g = make(t);
    oct_widened w;
    GOOD(oct_widen_floats(g, false, &w, err));
    assert_int_equal(w.widest, t);
    assert_int_equal(w.constants, 1);
    assert_int_equal(w.elements, 3);
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_check_types(g, err));
    GOOD(oct_graph_check(g, err));
    no_narrow_inside(g);
    const float want[2][3] = { { 2.5f, -3, 0 }, { 1, -1, 0 } };
    const uint16_t x16[] = { 0x3e00, 0xbc00, 0xb800 }, xb[] = { 0x3fc0, 0xbf80, 0xbf00 }; /* 1.5, -1, -0.5 */
    const double xd[] = { 1.5, -1, -0.5 };
    oct_plan *p = net_plan(g, NULL, NULL);
    for (int branch = 0; branch < 2; branch++) {
        const uint8_t c = branch == 0;
        const void *x = t == OCT_F16 ? (const void *)x16 : t == OCT_BF16 ? (const void *)xb : xd;
        GOOD(oct_plan_run(p, (const void *const[]){ &c, x }, err));
        for (int k = 0; k < 2; k++) {
            const oct_operand *out = oct_plan_output(p, (size_t)k);
            assert_int_equal(out->dtype, t);
            for (int i = 0; i < 3; i++)
                assert_true(element(out, i) == (double)(k ? -want[branch][i] : want[branch][i]));
        }
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(types)
{
    check_type(OCT_F16);
    check_type(OCT_BF16);
    check_type(OCT_F64);
}

/* What is finite in float64 stays so. */
TEST(doubles)
{
    oct_graph *g = net_graph(17);
    const double big[] = { DBL_MAX, -1e300, INFINITY, 0.1 };
    const int x = net_input(g, "x", OCT_F64, "4"), k = net_const(g, "k", OCT_F64, "4", big);
    net_output(g, NET_NODE(g, "Mul", "mul", "y", x, k));
    GOOD(oct_infer_shapes(g, err));
    oct_widened w;
    GOOD(oct_widen_floats(g, false, &w, err));
    const float *v = g->value[oct_graph_find(g, "k")].constant->data;
    assert_true(v[0] == FLT_MAX && v[1] == -FLT_MAX && v[2] == INFINITY && v[3] == 0.1f);
    oct_graph_destroy(g);
}

/* A float32 graph is left alone. */
TEST(nothing)
{
    oct_graph *g = net_graph(17);
    net_output(g, NET_NODE(g, "Neg", "neg", "y", net_input(g, "x", OCT_F32, "4")));
    GOOD(oct_infer_shapes(g, err));
    oct_widened w;
    const size_t values = g->n_value;
    assert_false(oct_has_narrow_floats(g));
    GOOD(oct_widen_floats(g, false, &w, err));
    assert_int_equal(w.widest, OCT_UNDEFINED);
    assert_int_equal(g->n_value, values);
    oct_graph_destroy(g);
}
