/* The tests that a program defines, and main. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static unit_test *first;
static size_t n_tests;
static CMFixtureFunction group_set_up, group_tear_down;

/* Compilers choose the order of constructors: the order is that of lines. */
void unit_add_test(unit_test *t)
{
    unit_test **at = &first;
    while (*at && (*at)->line < t->line)
        at = &(*at)->next;
    t->next = *at;
    *at = t;
    n_tests++;
}

void unit_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    group_set_up = set_up;
    group_tear_down = tear_down;
}

int main(void)
{
    struct CMUnitTest *tests = n_tests > 0 ? calloc(n_tests, sizeof *tests) : NULL;
    if (!tests) {
        fprintf(stderr, "no tests, or no memory for them\n");
        return 1;
    }
    size_t n = 0;
    for (const unit_test *t = first; t; t = t->next)
        tests[n++] = t->test;
    const int failed = _cmocka_run_group_tests("tests", tests, n, group_set_up, group_tear_down);
    free(tests);
    return failed;
}
