/* What outputs consist of, which real numbers stand behind them, and how answers and rows are compared. */
#include "eval/run/output_form.h"
#include "eval/run/output_match.h"

#include "unit.h"

#include "net.h"

static int weights(oct_graph *g, const char *name, const char *dims)
{
    return net_random(g, name, dims, 7);
}

static void node(oct_graph *g, const char *op, const char *out, const char *in)
{
    char name[40];
    int value[4], n = 0;
    char copy[100], *save = NULL;
    snprintf(name, sizeof name, "%s_%s", op, out);
    strcpy(copy, in);
    for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save))
        value[n++] = oct_graph_find(g, p);
    net_node(g, op, name, out, value[0], n > 1 ? value[1] : -1, n > 2 ? value[2] : -1, NET_END);
}

static oct_output_form form_of(oct_graph *g, const char *out)
{
    oct_output_form f[8];
    g->n_output = 0;
    net_output(g, oct_graph_find(g, out));
    GOOD(oct_graph_sort(g, err));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_output_forms(g, f, err));
    return f[0];
}

/* Checks the values behind an output; names: separated by spaces, in any order. */
static void check_reals(oct_graph *g, const char *out, const char *names, bool in_rows)
{
    int value[64];
    bool rows[64];
    size_t n, wanted = 0;
    (void)form_of(g, out);
    GOOD(oct_output_reals(g, value, rows, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (!strstr(names, g->value[value[i]].name) || rows[i] != in_rows)
            fail_msg("behind '%s' stands '%s'%s, wanted %s", out, g->value[value[i]].name, rows[i] ? " in rows" : "",
                     names);
    }
    for (const char *p = names; *p; p++)
        wanted += p == names || p[-1] == ' ';
    if (n != wanted)
        fail_msg("behind '%s' stand %zu values, wanted %s", out, n, names);
}

static void check(oct_graph *g, const char *out, oct_output_form want)
{
    const oct_output_form got = form_of(g, out);
    if (got != want)
        fail_msg("output '%s' holds %s, wanted %s", out, oct_output_form_name(got), oct_output_form_name(want));
}

/* scores [1,8,6] behind a layer, boxes [1,8,4] behind another. */
static oct_graph *detector(void)
{
    oct_graph *g = net_graph(13);
    net_input(g, "x", OCT_F32, "1,8,5");
    weights(g, "w", "5,6");
    weights(g, "v", "5,4");
    NET_F32(g, "half", "", 0.5f);
    node(g, "MatMul", "scores", "x w");
    node(g, "MatMul", "boxes", "x v");
    return g;
}

TEST(answers)
{
    oct_graph *g = detector();
    node(g, "Greater", "mask", "scores half");
    node(g, "Not", "inverse", "mask");
    node(g, "Where", "white", "inverse half half");
    node(g, "Where", "cut", "mask scores half");
    node(g, "ArgMax", "class", "scores");
    node(g, "Shape", "shape", "scores");
    node(g, "Round", "rounded", "scores");
    check(g, "scores", OCT_HOLDS_NUMBERS);
    check(g, "mask", OCT_HOLDS_CODES);
    check(g, "inverse", OCT_HOLDS_CODES);
    check(g, "white", OCT_HOLDS_CODES);
    check(g, "cut", OCT_HOLDS_NUMBERS); /* numbers where the mask has ones */
    check(g, "class", OCT_HOLDS_CODES);
    check(g, "shape", OCT_HOLDS_NUMBERS);
    check(g, "rounded", OCT_HOLDS_NUMBERS);
    check_reals(g, "inverse", "scores", false);
    check_reals(g, "class", "scores", false);
    check_reals(g, "scores", "scores", false);
    oct_graph_destroy(g);
}

TEST(rows)
{
    oct_graph *g = detector();
    node(g, "NonZero", "where", "scores");
    check(g, "where", OCT_HOLDS_ROWS);
    check_reals(g, "where", "scores", false);
    node(g, "Transpose", "turned", "where");
    node(g, "GatherND", "picked", "boxes turned");
    check(g, "picked", OCT_HOLDS_ROWS);
    check_reals(g, "picked", "scores boxes", false);
    node(g, "Shape", "length", "picked");
    check(g, "length", OCT_HOLDS_NUMBERS);
    oct_graph_destroy(g);
}

/* Rows that a layer reads after they were chosen: their real numbers are behind the choice. */
TEST(rows_before_a_layer)
{
    oct_graph *g = net_graph(13);
    net_input(g, "x", OCT_F32, "8,5");
    weights(g, "w", "5,5");
    weights(g, "v", "5,2");
    NET_F32(g, "half", "", 0.5f);
    NET_S64(g, "first", "", 0);
    NET_S64(g, "one", "1", 1);
    node(g, "MatMul", "states", "x w");
    node(g, "Transpose", "across", "states");
    node(g, "Gather", "key", "across first");
    node(g, "Greater", "above", "key half");
    node(g, "NonZero", "at", "above");
    node(g, "Squeeze", "index", "at");
    node(g, "Gather", "queries", "states index");
    node(g, "MatMul", "logits", "queries v");
    check(g, "queries", OCT_HOLDS_ROWS);
    check(g, "logits", OCT_HOLDS_ROWS);
    check_reals(g, "queries", "states key", false);
    check_reals(g, "logits", "logits", true);
    oct_graph_destroy(g);
}

/* A length that values say: what is repeated and how often stand behind it, and a list of classes it is not. */
TEST(lengths)
{
    oct_graph *g = net_graph(13);
    net_input(g, "x", OCT_F32, "1,5");
    weights(g, "w", "5,5");
    weights(g, "v", "5,1");
    weights(g, "u", "5,5");
    NET_S64(g, "one", "1", 1);
    node(g, "MatMul", "frame", "x w");
    node(g, "MatMul", "rate", "x v");
    node(g, "Reshape", "flat", "rate one");
    node(g, "Cast", "count", "flat");
    net_int(g, "to", OCT_S64);
    node(g, "Concat", "times", "count one");
    net_int(g, "axis", 0);
    node(g, "Tile", "wave", "frame times");
    node(g, "MatMul", "decoded", "wave u");
    check(g, "frame", OCT_HOLDS_NUMBERS);
    check(g, "wave", OCT_HOLDS_VARYING);
    check(g, "decoded", OCT_HOLDS_VARYING);
    check_reals(g, "wave", "frame times", false);
    check_reals(g, "decoded", "decoded", false);
    oct_graph_destroy(g);
}

/* Quantized values are integers beside their scale, and no lengths. */
TEST(quantized_values_are_numbers)
{
    oct_graph *g = net_graph(13);
    net_input(g, "x", OCT_F32, "N,5");
    weights(g, "w", "5,3");
    NET_F32(g, "scale", "", 0.1f);
    node(g, "QuantizeLinear", "xq", "x scale");
    node(g, "DequantizeLinear", "xd", "xq scale");
    node(g, "MatMul", "y", "xd w");
    node(g, "QuantizeLinear", "yq", "y scale");
    node(g, "DequantizeLinear", "yd", "yq scale");
    check(g, "y", OCT_HOLDS_NUMBERS);
    check(g, "yd", OCT_HOLDS_NUMBERS);
    oct_graph_destroy(g);
}

TEST(codes_are_equal_or_not)
{
    const float a[] = { 0, 1, 1, NAN }, b[] = { 0, 0, 1, NAN };
    oct_match_count m = oct_match_codes(a, 4, b, 4);
    assert_int_equal(m.found, 2);
    assert_int_equal(m.of, 4);
    m = oct_match_codes(a, 3, b, 1); /* what one lacks was not found */
    assert_int_equal(m.found, 1);
    assert_int_equal(m.of, 3);
    m = oct_match_codes(a, 0, b, 0);
    assert_int_equal(m.of, 0);
}

TEST(rows_are_found_in_any_place)
{
    uint8_t taken[8];
    float near[3];
    /* score, side, class: the second and the third row change places, and a side moves by less than a tenth of 100 */
    const float a[] = { 0.9f, 100, 1, 0.8f, 50.5f, 2, 0.79f, 20, 3 },
                b[] = { 0.88f, 95.5f, 1, 0.8f, 20, 3, 0.79f, 55, 2 };
    oct_match_count m = oct_match_rows(a, 3, b, 3, 3, taken, near);
    assert_int_equal(m.found, 3);
    /* another class is another row, and a row that is not there was not found */
    const float c[] = { 0.9f, 100.5f, 2, 0.8f, 50, 2 };
    m = oct_match_rows(a, 3, c, 2, 3, taken, near);
    assert_int_equal(m.found, 1);
    assert_int_equal(m.of, 3);
    /* one row stands for one */
    const float d[] = { 1, 1, 1 }, e[] = { 1 };
    m = oct_match_rows(d, 3, e, 1, 1, taken, near);
    assert_int_equal(m.found, 1);
    assert_int_equal(m.of, 3);
    m = oct_match_rows(d, 0, e, 1, 1, taken, near);
    assert_int_equal(m.found, 0);
    assert_int_equal(m.of, 1);
}

TEST(rows_are_sorted_by_the_nearest)
{
    uint8_t taken[3];
    const float a[] = { 1, 10, 2, 20, 3, 30 }, b[] = { 3.1f, 30, 1.1f, 11, 2, 19 },
                want[] = { 1.1f, 11, 2, 19, 3.1f, 30 };
    float to[6];
    oct_rows_by_nearest(a, b, 3, 2, to, taken);
    for (int i = 0; i < 6; i++)
        if (to[i] != want[i])
            fail_msg("element %d is %g, wanted %g", i, (double)to[i], (double)want[i]);
}
