/* What a conversion says of methods, shares and layers, on results that are made by hand. */
#include "unit.h"

#include "net.h"
#include "quant/convert/convert.h"
#include "quant/job/layers.h"
#include "quant/methods/methods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const oct_method method = { .name = "any", .summary = "does something" };

static void check(const oct_method_result *r, const char *want)
{
    oct_buf b = OCT_BUF_INIT;
    oct_method_text(r, &b);
    assert_string_equal(oct_buf_str(&b), want);
    oct_buf_free(&b);
}

/* A number that is worse than without the method stands beside the reason, whichever way is better. */
TEST(methods)
{
    oct_method_result r = { .method = &method, .ran = true };
    check(&r, "does something");
    snprintf(r.choice, sizeof r.choice, "minmax");
    check(&r, "minmax");
    r.measure = "output SQNR";
    r.unit = "dB";
    r.before = 30;
    r.after = 32.5;
    check(&r, "minmax, output SQNR 32.5 dB (without: 30.0 dB)");
    assert_false(oct_method_is_worse(&r));
    r.after = INFINITY;
    check(&r, "minmax, output SQNR exact (without: 30.0 dB)");
    r.after = 29;
    assert_true(oct_method_is_worse(&r));
    check(&r, "minmax, output SQNR 29.0 dB (without: 30.0 dB; kept, as other measures are better)");
    r.although = "wide ranges are safer";
    check(&r, "minmax, output SQNR 29.0 dB (without: 30.0 dB; kept, as wide ranges are safer)");
    r = (oct_method_result){ .method = &method,
                             .ran = true,
                             .measure = "mean error of outputs",
                             .unit = "steps",
                             .before = 0.5,
                             .after = 0.02 };
    check(&r, "mean error of outputs 0.02 steps (without: 0.5 steps)");
    r.after = 0.75;
    assert_true(oct_method_is_worse(&r));
    r = (oct_method_result){
        .method = &method, .ran = true, .measure = "share of s8 weights", .unit = "", .before = 0, .after = 1
    };
    check(&r, "share of s8 weights 1 (without: 0)");
}

TEST(shares)
{
    char text[OCT_MACS_TEXT];
    assert_string_equal(oct_macs_text(text, 0), "no multiply-accumulates");
    assert_string_equal(oct_macs_text(text, NAN), "an unknown part of the multiply-accumulates");
    assert_string_equal(oct_macs_text(text, 4e-4), "less than 0.1 % of the multiply-accumulates");
    assert_string_equal(oct_macs_text(text, 0.1234), "12.3 % of the multiply-accumulates");
    assert_string_equal(oct_macs_text(text, 0.999), "99.9 % of the multiply-accumulates");
    assert_string_equal(oct_macs_text(text, 1), "all multiply-accumulates");
}

/* Neither infinitely many decibels nor a share that is printed as 0.0 or 100.0 %. */
TEST(culprits_and_trials)
{
    char text[OCT_CULPRITS_TEXT], trial[OCT_TRIAL_TEXT];
    oct_culprits k = { .names = "a", .n = 1, .macs = 0.25, .gain = 7.25 };
    assert_string_equal(oct_culprits_text(text, &k),
                        "with it in float the outputs gain 7.2 dB, for 25.0 % of the multiply-accumulates");
    k = (oct_culprits){ .names = "a, b", .n = 2, .macs = 1, .gain = INFINITY };
    assert_string_equal(oct_culprits_text(text, &k),
                        "with them in float the outputs equal the float model's, for all multiply-accumulates");
    oct_goal_trial t = { .layers = 0 };
    assert_string_equal(oct_goal_trial_text(trial, &t), "no layer left float for the goal");
    t = (oct_goal_trial){ .layers = 1, .macs = 1e-6, .wide = 2 };
    assert_string_equal(
        oct_goal_trial_text(trial, &t),
        "1 layer left float for the goal, with less than 0.1 % of the multiply-accumulates, and 2 with activations of 16 bits");
    t = (oct_goal_trial){ .layers = 3, .macs = 0.5 };
    assert_string_equal(oct_goal_trial_text(trial, &t),
                        "3 layers left float for the goal, with 50.0 % of the multiply-accumulates");
}

/* Of a file of 10000 bytes: a table of 4000 and another of 1200 that Gather reads, a matrix of 600, a vector of 40, and
 * scales of 2000. */
TEST(bytes_that_stay_float)
{
    oct_graph *g = net_graph(13);
    oct_arena *a = oct_arena_create();
    oct_float_bytes *list;
    size_t n;
    oct_buf b = OCT_BUF_INIT;
    const int x = net_input(g, "x", OCT_F32, "1,15"), i = net_input(g, "i", OCT_S64, "2"),
              q = net_input(g, "q", OCT_S8, "500,1");
    net_output(g, NET_NODE(g, "Gather", "pick", "t", net_random(g, "table", "100,10", 1), i));
    net_output(g, NET_NODE(g, "Gather", "other", "u", net_random(g, "small", "30,10", 2), i));
    net_output(g, NET_NODE(g, "MatMul", "mul", "y", x, net_random(g, "w", "15,10", 3)));
    net_output(g, NET_NODE(g, "Neg", "neg", "v", net_random(g, "few", "10", 4)));
    net_output(g, NET_NODE(g, "DequantizeLinear", "dq", "r", q, net_random(g, "scales", "500", 5)));
    GOOD(oct_float_bytes_find(g, 10000, false, a, &list, &n, err));
    assert_int_equal(n, 2);
    assert_true(list[0].bytes == 5200 && list[0].n == 2 && list[1].bytes == 600 && list[1].n == 1);
    assert_true(fabs(list[0].share - 0.52) < 1e-12 && fabs(list[1].share - 0.06) < 1e-12);
    oct_float_bytes_text(list, n, &b);
    assert_string_equal(oct_buf_str(&b), "58 % of the file is float: Gather (table, small), MatMul (w)");
    oct_buf_free(&b);
    assert_string_equal(list[0].reader, "pick");
    list[0].why = "the table is small";
    oct_float_bytes_text(list, n, &b);
    assert_string_equal(oct_buf_str(&b),
                        "58 % of the file is float: Gather (table, small: the table is small), MatMul (w)");
    oct_buf_free(&b);
    GOOD(oct_float_bytes_find(g, 1000000, false, a, &list, &n, err));
    assert_int_equal(n, 0);
    oct_float_bytes_text(list, n, &b);
    assert_string_equal(oct_buf_str(&b), "");
    oct_buf_free(&b);
    const uint16_t none[1000] = {
        0
    }; /* of 16 bits, which count where they were not asked for, by what reads them cast */
    const int half = NET_NODE(g, "Cast", "widen", "wide", net_const(g, "half", OCT_F16, "100,10", none));
    net_output(g, NET_NODE(g, "Gather", "pick16", "p", half, i));
    net_output(g, NET_NODE(g, "MatMul", "mul16", "z", x, net_const(g, "w16", OCT_BF16, "15,10", none)));
    GOOD(oct_float_bytes_find(g, 10000, false, a, &list, &n, err));
    assert_true(n == 2 && list[0].bytes == 5200 && list[1].bytes == 600);
    GOOD(oct_float_bytes_find(g, 10000, true, a, &list, &n, err));
    assert_true(n == 2 && list[0].bytes == 7200 && list[1].bytes == 900);
    oct_float_bytes_text(list, n, &b); /* a twentieth of 8140 bytes: w, of 600, and not w16, of 300 */
    assert_string_equal(oct_buf_str(&b),
                        "81 % of the file is float: Gather (table, small, half), MatMul (w and others)");
    oct_buf_free(&b);
    oct_arena_destroy(a);
    oct_graph_destroy(g);
}
