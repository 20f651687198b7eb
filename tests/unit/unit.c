/* The tests of the files of a program, and main: runs those of one file, named without test_ and .c. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unit_test *tests;
static unit_group *groups;

/* Compilers choose the order of constructors: the order is that of files, and of lines in each. */
void unit_add_test(unit_test *t)
{
    unit_test **at = &tests;
    while (*at && (strcmp((*at)->file, t->file) < 0 || ((*at)->file == t->file && (*at)->line < t->line)))
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

void unit_add_group(unit_group *g)
{
    g->next = groups;
    groups = g;
}

/* What names the file, without folder, test_ and .c, and its length. */
static const char *name_of(const char *file, int *n)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    if (strncmp(name, "test_", 5) == 0)
        name += 5;
    *n = (int)strcspn(name, ".");
    return name;
}

static bool is_named(const char *file, const char *name)
{
    int n;
    const char *own = name_of(file, &n);
    return strlen(name) == (size_t)n && strncmp(own, name, (size_t)n) == 0;
}

static int say_names(const char *program)
{
    fprintf(stderr, "usage: %s NAME, one of:", program);
    for (const unit_test *t = tests, *before = NULL; t; before = t, t = t->next) {
        int n;
        const char *name = name_of(t->file, &n);
        if (!before || strcmp(before->file, t->file) != 0)
            fprintf(stderr, " %.*s", n, name);
    }
    fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv)
{
    size_t n = 0;
    for (const unit_test *t = tests; t; t = t->next)
        n += argc == 2 && is_named(t->file, argv[1]);
    if (n == 0)
        return say_names(argv[0]);
    struct CMUnitTest *chosen = calloc(n, sizeof *chosen);
    if (!chosen) {
        fprintf(stderr, "no memory for the tests\n");
        return 1;
    }
    n = 0;
    for (const unit_test *t = tests; t; t = t->next)
        if (is_named(t->file, argv[1]))
            chosen[n++] = t->test;
    const unit_group *g = groups;
    while (g && !is_named(g->file, argv[1]))
        g = g->next;
    const int failed = _cmocka_run_group_tests("tests", chosen, n, g ? g->set_up : NULL, g ? g->tear_down : NULL);
    free(chosen);
    return failed;
}
