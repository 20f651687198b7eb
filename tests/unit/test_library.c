/* The library's interface: commands as functions, faults, listeners, models on arrays. */
#include "unit.h"

#include "octet/octet.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char model[4096], samples[4096], folder[64];

static const char *in_folder(char dst[128], const char *name)
{
    snprintf(dst, 128, "%s/%s", folder, name);
    return dst;
}

static int set_up(void **state)
{
    const char *source = getenv("OCT_SOURCE");
    snprintf(model, sizeof model, "%s/testdata/demo.onnx", source);
    snprintf(samples, sizeof samples, "%s/testdata/images/calib.csv", source);
    snprintf(folder, sizeof folder, "/tmp/octet-library-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const made[] = { "a.onnx", "b.onnx", "t.calib" };
    char path[128];
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(in_folder(path, made[i]));
    return rmdir(folder);
}

TEST_GROUP(set_up, tear_down);

typedef struct heard {
    int reports, warnings, notes;
} heard;

static void on_progress(void *arg, const char *what, int64_t done, int64_t total)
{
    heard *h = arg;
    assert_non_null(what);
    assert_true(total == 0 || done <= total);
    h->reports++;
}

static void on_message(void *arg, int is_warning, const char *text)
{
    heard *h = arg;
    assert_null(strchr(text, '\n'));
    if (is_warning)
        h->warnings++;
    else
        h->notes++;
}

static octet_samples sixteen(void)
{
    static const char *const steps[] = { "mean=127.5:std=127.5" };
    static const char *data[] = { samples };
    return (octet_samples){ .data = { data, 1 }, .preprocess = { steps, 1 }, .samples = 16, .seed = -1 };
}

static octet_status convert(octet *o, const char *name)
{
    char out[128];
    octet_result *r;
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = model;
    x.samples = sixteen();
    x.output = in_folder(out, name);
    const octet_status s = octet_convert_model(o, &x, &r);
    octet_result_free(r);
    return s;
}

/* The same twice in a process, where the second run reads what the first one wrote. */
TEST(runs_follow_each_other)
{
    char table[128], out[128];
    heard h = { 0 };
    octet *o = octet_open();
    octet_result *r;
    octet_calibrate_options c;
    octet_convert_options x;
    octet_on_progress(o, on_progress, &h);
    octet_on_message(o, on_message, &h);
    octet_calibrate_init(&c, sizeof c);
    c.model = model;
    c.samples = sixteen();
    c.output = in_folder(table, "t.calib");
    assert_int_equal(octet_calibrate_model(o, &c, &r), OCTET_OK);
    assert_true(h.reports > 0);
    octet_result_free(r);
    octet_convert_init(&x, sizeof x);
    x.model = model;
    x.calib = table;
    x.output = in_folder(out, "a.onnx");
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_OK);
    assert_non_null(strstr(octet_result_json(r), "\"layers\""));
    assert_non_null(strstr(octet_result_text(r, "text"), "int8"));
    assert_string_equal(octet_error(o), "");
    octet_result_free(r);
    x.model = table; /* a table is no model */
    x.calib = NULL;
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_MALFORMED);
    assert_non_null(strstr(octet_error(o), "t.calib"));
    octet_close(o);
}

TEST(faults_have_text_and_hint)
{
    octet *o = octet_open();
    octet_result *r;
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = "none.onnx";
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_IO);
    assert_non_null(strstr(octet_error(o), "none.onnx"));
    assert_null(r);
    x.model = model;
    x.output = model;
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_USAGE);
    assert_non_null(strstr(octet_hint(o), "another name"));
    octet_close(o);
    octet_close(NULL);
}

static void *convert_beside(void *name)
{
    octet *o = octet_open();
    const octet_status s = convert(o, name);
    octet_close(o);
    return (void *)(intptr_t)s;
}

static size_t read_all(const char *name, char **bytes)
{
    char path[128];
    FILE *f = fopen(in_folder(path, name), "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const size_t n = (size_t)ftell(f);
    rewind(f);
    *bytes = malloc(n + 1);
    assert_int_equal(fread(*bytes, 1, n, f), n);
    fclose(f);
    return n;
}

/* Threads take turns, and none sees another's words. */
TEST(threads_take_turns)
{
    static const char *const names[] = { "a.onnx", "b.onnx" };
    pthread_t thread[2];
    char *bytes[2];
    size_t n[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, convert_beside, (void *)names[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *s;
        pthread_join(thread[i], &s);
        assert_int_equal((intptr_t)s, OCTET_OK);
    }
    for (int i = 0; i < 2; i++)
        n[i] = read_all(names[i], &bytes[i]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static octet_model *load(octet *o)
{
    octet_model *m;
    assert_int_equal(octet_model_load(o, model, 1, &m), OCTET_OK);
    return m;
}

TEST(models_run_on_arrays)
{
    static float x[3 * 32 * 32];
    octet *o = octet_open();
    octet_model *m = load(o);
    const octet_port *p = octet_model_input(m, 0), *q = octet_model_output(m, 0);
    assert_int_equal(p->type, OCTET_FLOAT32);
    assert_int_equal(p->rank, 4);
    assert_int_equal(p->dims[1], 3);
    assert_null(octet_model_input(m, 1));
    assert_null(octet_model_output(m, 1));
    assert_null(octet_model_metadata(m, "none"));
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(i % 17) / 17 - 0.5f;
    octet_array a = { .name = p->name, .type = OCTET_FLOAT32, .rank = 4, .dims = { 1, 3, 32, 32 }, .data = x };
    const octet_array *y;
    size_t n;
    float first[64];
    assert_int_equal(octet_model_run(o, m, &a, 1, &y, &n), OCTET_OK);
    assert_int_equal(n, 1);
    assert_string_equal(y->name, q->name);
    assert_int_equal(y->type, OCTET_FLOAT32);
    const size_t bytes = (size_t)y->dims[1] * sizeof(float);
    assert_true(bytes <= sizeof first);
    memcpy(first, y->data, bytes);
    a.name = NULL; /* by its place */
    assert_int_equal(octet_model_run(o, m, &a, 1, &y, &n), OCTET_OK);
    assert_memory_equal(y->data, first, bytes);
    octet_model_free(m);
    octet_close(o);
}

TEST(wrong_arrays_are_told)
{
    static const float x[3 * 32 * 32];
    octet *o = octet_open();
    octet_model *m = load(o);
    const octet_array good = { .type = OCTET_FLOAT32, .rank = 4, .dims = { 1, 3, 32, 32 }, .data = x };
    octet_array a[2] = { good, good };
    const octet_array *y;
    size_t n = 7;
    assert_int_equal(octet_model_run(o, m, NULL, 0, &y, &n), OCTET_MALFORMED);
    assert_null(y);
    assert_int_equal(n, 0);
    assert_int_equal(octet_model_run(o, m, a, 2, &y, &n), OCTET_MALFORMED);
    a[1].name = octet_model_input(m, 0)->name;
    assert_int_equal(octet_model_run(o, m, a, 2, &y, &n), OCTET_MALFORMED);
    assert_non_null(strstr(octet_error(o), "twice"));
    a[0].name = "none";
    assert_int_equal(octet_model_run(o, m, a, 1, &y, &n), OCTET_MALFORMED);
    assert_non_null(strstr(octet_error(o), "none"));
    a[0] = good;
    a[0].dims[1] = 4;
    assert_int_equal(octet_model_run(o, m, a, 1, &y, &n), OCTET_MALFORMED);
    a[0] = good;
    a[0].dims[0] = INT64_MAX;
    assert_int_equal(octet_model_run(o, m, a, 1, &y, &n), OCTET_MALFORMED);
    a[0] = good;
    a[0].rank = 9;
    assert_int_equal(octet_model_run(o, m, a, 1, &y, &n), OCTET_UNSUPPORTED);
    a[0] = good;
    a[0].type = (octet_type)8; /* strings */
    assert_int_equal(octet_model_run(o, m, a, 1, &y, &n), OCTET_UNSUPPORTED);
    a[0] = good;
    a[0].data = NULL;
    assert_int_equal(octet_model_run(o, m, a, 1, &y, &n), OCTET_MALFORMED);
    assert_int_equal(octet_model_run(o, m, &good, 1, &y, &n), OCTET_OK); /* it still runs */
    octet_model_free(m);
    octet_model *bad;
    assert_int_equal(octet_model_load_memory(o, "no model", 8, 1, &bad), OCTET_MALFORMED);
    assert_null(bad);
    assert_int_equal(octet_model_load_memory(o, NULL, 0, 1, &bad), OCTET_MALFORMED);
    octet_close(o);
}
