/* tests/unit/library_case.h -- for tests of the library: a folder, and the demo model with samples. */
#ifndef OCT_TESTS_LIBRARY_CASE_H
#define OCT_TESTS_LIBRARY_CASE_H

#include "octet/octet.h"

#include "small_model.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct library_case {
    char model[4096], samples[4096], tools[4096], folder[64];
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
    snprintf(lib.samples, sizeof lib.samples, "%s/testdata/images/calib.csv", source);
    snprintf(lib.tools, sizeof lib.tools, "%s", getenv("OCT_TOOLS") ? getenv("OCT_TOOLS") : "");
    snprintf(lib.folder, sizeof lib.folder, "/tmp/octet-library-XXXXXX");
    return mkdtemp(lib.folder) && chdir(lib.folder) == 0 ? 0 : -1;
}

static int library_tear_down(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", lib.folder);
    return chdir(lib.before) == 0 && system(command) == 0 ? 0 : -1;
}

/* `count` of the demo model's samples; 0: all. */
static inline octet_samples demo_samples(int64_t count)
{
    static const char *const steps[] = { "mean=127.5:std=127.5" };
    static const char *data[1];
    data[0] = lib.samples;
    return (octet_samples){ .data = { data, 1 }, .preprocess = { steps, 1 }, .samples = count, .seed = -1 };
}

/* A conversion of the demo model by 16 of its samples. */
static inline octet_convert_options demo_conversion(const char *output)
{
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = lib.model;
    x.samples = demo_samples(16);
    x.output = output;
    return x;
}

/* Converts, without a look at the result. */
static inline octet_status convert_only(octet *o, const octet_convert_options *x)
{
    octet_result *r;
    const octet_status s = octet_convert_model(o, x, &r);
    octet_result_free(r);
    return s;
}

/* Runs a program of ours: its name and what follows on its command line. */
static inline int run_program(const char *format, ...)
{
    char words[4096], line[9000];
    va_list ap;
    va_start(ap, format);
    vsnprintf(words, sizeof words, format, ap);
    va_end(ap);
    snprintf(line, sizeof line, "%s/%.*s/%s >program.out 2>&1", lib.tools, (int)strcspn(words, " "), words, words);
    const int status = system(line);
    return status < 0 ? status : WEXITSTATUS(status);
}

static inline void write_file(const char *name, const void *v, size_t n)
{
    FILE *f = fopen(name, "wb");
    if (!f || fwrite(v, 1, n, f) != n || fclose(f) != 0)
        abort();
}

#endif
