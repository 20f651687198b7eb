/* cmocka, after the headers that it needs. */
#ifndef OCT_TESTS_UNIT_H
#define OCT_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
