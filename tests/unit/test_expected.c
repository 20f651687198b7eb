/* What layers are expected to take: bf16 on tiles beats float32, and integers beat bf16, so what is best depends on how
 * much stays float. */
#include "unit.h"

#include "net.h"
#include "quant/place/expected.h"

enum { LAYERS = 10, ROWS = 128, DEPTH = 768, COLUMNS = 768 };
#if defined(OCT_KERNELS_X86)
static const oct_isa all = ((oct_isa)1 << OCT_ISA_PLACE_AMX << 1) - 1;
#endif

/* Products of which the first `integer` are on integers; the graph is of one of them. */
static void make_layers(oct_graph *g, size_t integer, int64_t depth, int64_t macs, oct_layer *layers)
{
    for (size_t i = 0; i < LAYERS; i++) {
        layers[i] = (oct_layer){ .product = true, .weight_count = DEPTH * COLUMNS, .depth = depth, .macs = macs };
        layers[i].d.graph = g;
        layers[i].d.node = net_last;
        layers[i].d.integer = i < integer;
    }
}

static oct_graph *make_graph(void)
{
    oct_graph *g = net_graph(17);
    const int x = net_input(g, "x", OCT_F32, "128,768"), w = net_input(g, "w", OCT_F32, "768,768");
    net_output(g, NET_NODE(g, "MatMul", "m", "y", x, w));
    return g;
}

static oct_expected of(oct_graph *g, size_t integer, int64_t depth, int64_t macs, oct_isa have)
{
    oct_layer layers[LAYERS];
    make_layers(g, integer, depth, macs, layers);
    return oct_expected_times(layers, LAYERS, have);
}

static void test_tiles(void **state)
{
    oct_graph *g = make_graph();
#if defined(OCT_KERNELS_X86)
    const int64_t macs = (int64_t)ROWS * DEPTH * COLUMNS;
    const oct_expected integers = of(g, LAYERS, DEPTH, macs, all), floats = of(g, 0, DEPTH, macs, all),
                       half = of(g, LAYERS / 2, DEPTH, macs, all);
    assert_true(0 < integers.decided && integers.decided < integers.bf16);
    assert_true(floats.bf16 < floats.decided && half.bf16 < half.decided);
    /* Equal layers: what all take in bf16 does not depend on what was decided, and half of each is the mean. */
    assert_true(integers.bf16 == floats.bf16 && half.bf16 == floats.bf16);
    assert_true(fabs(half.decided - (integers.decided + floats.decided) / 2) < 1e-6 * half.decided);
    /* Twice the rows, nearly twice the time. */
    const oct_expected more = of(g, 0, DEPTH, 2 * macs, all);
    assert_true(more.bf16 > 1.8 * floats.bf16 && more.bf16 < 2.2 * floats.bf16);
#endif
    oct_graph_destroy(g);
}

/* What is not known is no time. */
static void test_unknown(void **state)
{
    oct_graph *g = make_graph();
    const oct_expected plain = of(g, 0, DEPTH, (int64_t)ROWS * DEPTH * COLUMNS, OCT_ISA_REF),
                       none = of(g, 0, 0, 0, oct_isa_detect());
    assert_true(plain.decided == 0 && plain.bf16 == 0);
    assert_true(none.decided == 0 && none.bf16 == 0);
    oct_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tiles), cmocka_unit_test(test_unknown) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
