/* cmocka, after the headers that it needs, and tests that stand in no list: what defines one has it run.
 *   TEST(name) { ... }
 *   TEST_SETUP(name, set_up, tear_down) { ... }   set_up before this test, tear_down behind it
 *   TEST_GROUP(set_up, tear_down);                once around all tests of the file; either may be NULL
 * They run in the order of the file. A program has many files; unit.c has main, which runs the one that is named. */
#ifndef OCT_TESTS_UNIT_H
#define OCT_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct unit_test {
    struct CMUnitTest test;
    const char *file;
    int line;
    struct unit_test *next;
} unit_test;

void unit_add_test(unit_test *t);
typedef struct unit_group {
    CMFixtureFunction set_up, tear_down;
    const char *file;
    struct unit_group *next;
} unit_group;

void unit_add_group(unit_group *g);

#define TEST(name) TEST_SETUP(name, NULL, NULL)

#define TEST_SETUP(name, set_up, tear_down)                                                                     \
    static void name(void **state);                                                                             \
    __attribute__((constructor)) static void unit_add_##name(void)                                              \
    {                                                                                                           \
        static unit_test unit = { cmocka_unit_test_setup_teardown(name, set_up, tear_down), __FILE__, __LINE__, \
                                  NULL };                                                                       \
        unit_add_test(&unit);                                                                                   \
    }                                                                                                           \
    static void name(void **state)

#define TEST_GROUP(set_up, tear_down)                                    \
    __attribute__((constructor)) static void unit_add_its_group(void)    \
    {                                                                    \
        static unit_group group = { set_up, tear_down, __FILE__, NULL }; \
        unit_add_group(&group);                                          \
    }                                                                    \
    static void unit_add_its_group(void) /* takes the semicolon */

#endif
