/* What a conversion says of methods, shares and layers, on results that are made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "quant/convert.h"
#include "quant/layers.h"
#include "quant/methods.h"

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
static void methods(void **state)
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
    r = (oct_method_result){ .method = &method, .ran = true, .measure = "mean error of outputs", .unit = "steps", .before = 0.5, .after = 0.02 };
    check(&r, "mean error of outputs 0.02 steps (without: 0.5 steps)");
    r.after = 0.75;
    assert_true(oct_method_is_worse(&r));
    r = (oct_method_result){ .method = &method, .ran = true, .measure = "share of s8 weights", .unit = "", .before = 0, .after = 1 };
    check(&r, "share of s8 weights 1 (without: 0)");
}

static void shares(void **state)
{
    char text[OCT_MACS_TEXT];
    assert_string_equal(oct_macs_text(text, 0), "no multiply-accumulates");
    assert_string_equal(oct_macs_text(text, NAN), "no multiply-accumulates");
    assert_string_equal(oct_macs_text(text, 4e-4), "less than 0.1 % of the multiply-accumulates");
    assert_string_equal(oct_macs_text(text, 0.1234), "12.3 % of the multiply-accumulates");
    assert_string_equal(oct_macs_text(text, 0.999), "99.9 % of the multiply-accumulates");
    assert_string_equal(oct_macs_text(text, 1), "all multiply-accumulates");
}

/* Neither infinitely many decibels nor a share that is printed as 0.0 or 100.0 %. */
static void culprits_and_trials(void **state)
{
    char text[OCT_CULPRITS_TEXT], trial[OCT_TRIAL_TEXT];
    oct_culprits k = { .names = "a", .n = 1, .macs = 0.25, .gain = 7.25 };
    assert_string_equal(oct_culprits_text(text, &k), "with it in float the outputs gain 7.2 dB, for 25.0 % of the multiply-accumulates");
    k = (oct_culprits){ .names = "a, b", .n = 2, .macs = 1, .gain = INFINITY };
    assert_string_equal(oct_culprits_text(text, &k), "with them in float the outputs equal the float model's, for all multiply-accumulates");
    oct_goal_trial t = { .layers = 0 };
    assert_string_equal(oct_goal_trial_text(trial, &t), "no layer left float for the goal");
    t = (oct_goal_trial){ .layers = 1, .macs = 1e-6, .wide = 2 };
    assert_string_equal(oct_goal_trial_text(trial, &t), "1 layer left float for the goal, with less than 0.1 % of the multiply-accumulates, and 2 with activations of 16 bits");
    t = (oct_goal_trial){ .layers = 3, .macs = 0.5 };
    assert_string_equal(oct_goal_trial_text(trial, &t), "3 layers left float for the goal, with 50.0 % of the multiply-accumulates");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(methods), cmocka_unit_test(shares), cmocka_unit_test(culprits_and_trials) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
