/* Built-in targets for tests: opened once, released at the end of the program. Include after cmocka. */
#ifndef OCT_TESTS_TARGETS_H
#define OCT_TESTS_TARGETS_H

#include "targets/target.h"

#include <stdlib.h>
#include <string.h>

static oct_target *opened_targets[32];

static inline void close_targets(void)
{
    for (size_t i = 0; i < OCT_COUNT(opened_targets); i++)
        oct_target_close(opened_targets[i]);
}

static inline const oct_target *target_named(const char *name)
{
    oct_err err = OCT_ERR_INIT;
    size_t i = 0;
    for (; i < OCT_COUNT(opened_targets) && opened_targets[i]; i++)
        if (strcmp(oct_target_name(opened_targets[i]), name) == 0)
            return opened_targets[i];
    if (i == 0)
        atexit(close_targets);
    assert_true(i < OCT_COUNT(opened_targets));
    if (oct_target_open(name, &opened_targets[i], &err) != OCT_OK)
        fail_msg("%s", err.text);
    return opened_targets[i];
}

#endif
