/* tests/unit/library_case.h -- for tests of the library: a folder, and the demo model with samples. */
#ifndef OCT_TESTS_LIBRARY_CASE_H
#define OCT_TESTS_LIBRARY_CASE_H

#include "octet/octet.h"

#include "small_model.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct library_case {
    char model[4096], samples[4096], folder[64];
    char before[4096]; /* the current folder */
} library_case;

static library_case lib;

/* Makes an empty folder the current one. */
static int library_set_up(void **state)
{
    const char *source = getenv("OCT_SOURCE");
    if (!source || !getcwd(lib.before, sizeof lib.before))
        return -1;
    snprintf(lib.model, sizeof lib.model, "%s/testdata/demo.onnx", source);
    snprintf(lib.samples, sizeof lib.samples, "--data=%s/testdata/images/calib.csv", source);
    snprintf(lib.folder, sizeof lib.folder, "/tmp/octet-library-XXXXXX");
    return mkdtemp(lib.folder) && chdir(lib.folder) == 0 ? 0 : -1;
}

static int library_tear_down(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", lib.folder);
    return chdir(lib.before) == 0 && system(command) == 0 ? 0 : -1;
}

static inline void write_file(const char *name, const void *v, size_t n)
{
    FILE *f = fopen(name, "wb");
    if (!f || fwrite(v, 1, n, f) != n || fclose(f) != 0)
        abort();
}

#endif
