/* Which samples are chosen: places spread over all, and what sources give of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/choice.h"

#include <stdio.h>
#include <string.h>

/* One of each stratum; the strata's bounds are computed here from their definition. */
static void each_stratum_gives_one(void **state)
{
    static const int64_t totals[] = { 1, 2, 3, 7, 64, 100, 2317, 10007 };
    for (size_t k = 0; k < sizeof totals / sizeof totals[0]; k++)
        for (int64_t total = totals[k], n = 1; n <= total; n += 1 + n / 7) {
            const int64_t strata = n > total / 2 ? total - n : n;
            int64_t chosen = 0, at = 0;
            for (int64_t i = 0; i < total; i++)
                chosen += oct_spread_has(total, n, i);
            assert_int_equal(chosen, n);
            for (int64_t s = 0; s < strata; s++) {
                const int64_t end = at + total / strata + (s < total % strata);
                int64_t odd = 0;
                for (; at < end; at++)
                    odd += oct_spread_has(total, n, at) == (strata == n);
                assert_int_equal(odd, 1);
            }
        }
    assert_true(oct_spread_has(5, 0, 4) && oct_spread_has(5, 9, 4));
    assert_true(oct_spread_has(INT64_MAX, INT64_MAX - 1, 0) || oct_spread_has(INT64_MAX, INT64_MAX - 1, 1));
}

/* Data that repeats with the width of a stratum is met at all of its phases. */
static void periods_do_not_alias(void **state)
{
    enum { TOTAL = 8000, N = 800, PERIOD = TOTAL / N };
    int seen[PERIOD] = { 0 };
    for (int64_t i = 0; i < TOTAL; i++)
        if (oct_spread_has(TOTAL, N, i))
            seen[i % PERIOD]++;
    for (int i = 0; i < PERIOD; i++)
        assert_in_range(seen[i], N / PERIOD / 2, 2 * N / PERIOD);
}

static void a_fifth_stays_aside(void **state)
{
    assert_int_equal(oct_choice_count(100, 0, false), 100);
    assert_int_equal(oct_choice_count(100, 0, true), 80);
    assert_int_equal(oct_choice_count(100, 98, true), 80);
    assert_int_equal(oct_choice_count(100, 64, true), 64);
    assert_int_equal(oct_choice_count(4, 0, true), 4);
    assert_int_equal(oct_choice_count(4, 9, false), 4);
    assert_int_equal(oct_choice_count(0, 9, true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stratum_gives_one),
        cmocka_unit_test(periods_do_not_alias),
        cmocka_unit_test(a_fifth_stays_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
