/* The library, used wrongly: each answer is a status, and names are nothing but names. */
#include "unit.h"

#include "library_case.h"

#include <fcntl.h>
#include <limits.h>

TEST_GROUP(library_set_up, library_tear_down);

static const float four[4] = { 1, 2, 3, 4 };
static const octet_array good = { .type = OCTET_FLOAT32, .rank = 2, .dims = { 1, 4 }, .data = four };

/* ---- the table ---- */

typedef struct subject {
    octet *o;
    octet_model *m; /* Relu of float32[N,4] */
    const octet_array *out;
    size_t n;
} subject;

static octet_model *nothing;

static octet_result *made;

static const octet_convert_options *conversion(octet_convert_options *x)
{
    octet_convert_init(x, sizeof *x);
    x->model = "m.onnx";
    x->scheme = "dynamic";
    x->in_memory = true;
    return x;
}

static const char *const one_name[] = { "x.npy" };

static const octet_calibrate_options *calibration(octet_calibrate_options *x)
{
    octet_calibrate_init(x, sizeof *x);
    x->model = "m.onnx";
    x->samples.data = (octet_texts){ one_name, 1 };
    x->output = "m.calib";
    return x;
}

static const octet_evaluate_options *evaluation(octet_evaluate_options *x)
{
    octet_evaluate_init(x, sizeof *x);
    x->model = "m.onnx";
    x->samples.data = (octet_texts){ one_name, 1 };
    return x;
}

#define CONVERT(change) (conversion(&x), change, octet_convert_model(s->o, &x, &made))
#define CALIBRATE(change) (calibration(&c), change, octet_calibrate_model(s->o, &c, &made))
#define EVALUATE(change) (evaluation(&e), change, octet_evaluate_model(s->o, &e, &made))
#define RUN(context, model, arrays, count) octet_model_run(context, model, arrays, count, &s->out, &s->n)
#define WITH(change) (change, RUN(s->o, s->m, &a, 1)) /* an array that is good but for one thing */

/* name of the misuse, the call, the status */
#define MISUSES(MISUSE)                                                                                                \
    MISUSE(calibrate_no_octet, octet_calibrate_model(NULL, calibration(&c), &made), OCTET_USAGE)                       \
    MISUSE(convert_no_octet, octet_convert_model(NULL, conversion(&x), &made), OCTET_USAGE)                            \
    MISUSE(evaluate_no_octet, octet_evaluate_model(NULL, evaluation(&e), &made), OCTET_USAGE)                          \
    MISUSE(calibrate_no_options, octet_calibrate_model(s->o, NULL, &made), OCTET_USAGE)                                \
    MISUSE(convert_no_options, octet_convert_model(s->o, NULL, &made), OCTET_USAGE)                                    \
    MISUSE(evaluate_no_options, octet_evaluate_model(s->o, NULL, &made), OCTET_USAGE)                                  \
    MISUSE(calibrate_no_place, octet_calibrate_model(s->o, calibration(&c), NULL), OCTET_USAGE)                        \
    MISUSE(convert_no_place, octet_convert_model(s->o, conversion(&x), NULL), OCTET_USAGE)                             \
    MISUSE(evaluate_no_place, octet_evaluate_model(s->o, evaluation(&e), NULL), OCTET_USAGE)                           \
    MISUSE(calibrate_no_model, CALIBRATE(c.model = NULL), OCTET_USAGE)                                                 \
    MISUSE(convert_no_model, CONVERT(x.model = NULL), OCTET_USAGE)                                                     \
    MISUSE(evaluate_no_model, EVALUATE(e.model = NULL), OCTET_USAGE)                                                   \
    MISUSE(convert_empty_model, CONVERT(x.model = ""), OCTET_USAGE)                                                    \
    MISUSE(convert_folder, CONVERT(x.model = "."), OCTET_IO)                                                           \
    MISUSE(convert_empty_output, CONVERT((x.in_memory = false, x.output = "")), OCTET_USAGE)                           \
    MISUSE(convert_threads, CONVERT(x.threads = 100000), OCTET_USAGE)                                                  \
    MISUSE(evaluate_threads, EVALUATE(e.threads = -1), OCTET_USAGE)                                                    \
    MISUSE(calibrate_threads, CALIBRATE(c.threads = 1025), OCTET_USAGE)                                                \
    MISUSE(convert_not_set, CONVERT(x.size = 0), OCTET_USAGE)                                                          \
    MISUSE(convert_no_list, CONVERT(x.rules.n = 3), OCTET_USAGE)                                                       \
    MISUSE(calibrate_no_list, CALIBRATE(c.samples.data.v = NULL), OCTET_USAGE)                                         \
    MISUSE(convert_labels_alone, CONVERT(x.samples.labels = "y.csv"), OCTET_USAGE)                                     \
    MISUSE(convert_steps_alone, CONVERT(x.samples.preprocess = ((octet_texts){ one_name, 1 })), OCTET_USAGE)           \
    MISUSE(calibrate_first_alone, CALIBRATE(c.samples.first = true), OCTET_USAGE)                                      \
    MISUSE(calibrate_seed_alone, CALIBRATE(c.samples.seed = 3), OCTET_USAGE)                                           \
    MISUSE(calibrate_first_seed, CALIBRATE((c.samples.seed = 3, c.samples.samples = 2, c.samples.first = true)),       \
           OCTET_USAGE)                                                                                                \
    MISUSE(convert_size_alone, CONVERT(x.model_size = 3), OCTET_USAGE)                                                 \
    MISUSE(evaluate_sensitivity_no_place, octet_measure_sensitivity(s->o, evaluation(&e), NULL, NULL), OCTET_USAGE)    \
    MISUSE(evaluate_sensitivity_stream, octet_measure_sensitivity(s->o, evaluation(&e), "-", &made), OCTET_USAGE)      \
    MISUSE(convert_lint_no_place, octet_lint_model(s->o, conversion(&x), NULL), OCTET_USAGE)                           \
    MISUSE(convert_lint_output, (conversion(&x), x.output = "y.onnx", octet_lint_model(s->o, &x, &made)), OCTET_USAGE) \
    MISUSE(convert_targets_none, octet_convert_targets(s->o, conversion(&x), (octet_texts){ NULL, 0 }, &made),         \
           OCTET_USAGE)                                                                                                \
    MISUSE(convert_targets_null, octet_convert_targets(s->o, conversion(&x), (octet_texts){ NULL, 2 }, &made),         \
           OCTET_USAGE)                                                                                                \
    MISUSE(convert_targets_beside,                                                                                     \
           (conversion(&x), x.target = "qnn", octet_convert_targets(s->o, &x, (octet_texts){ one_name, 1 }, &made)),   \
           OCTET_USAGE)                                                                                                \
    MISUSE(convert_explain_nothing, octet_explain_node(s->o, conversion(&x), NULL, &made), OCTET_USAGE)                \
    MISUSE(convert_explain_none, octet_explain_node(s->o, conversion(&x), "none", &made), OCTET_USAGE)                 \
    MISUSE(convert_verify_nothing, octet_verify_model(s->o, conversion(&x), NULL, &made), OCTET_USAGE)                 \
    MISUSE(convert_verify_stream, octet_verify_model(s->o, conversion(&x), "-", &made), OCTET_USAGE)                   \
    MISUSE(folder_nothing, (conversion(&x), x.model = NULL, octet_convert_folder(s->o, &x, NULL, &made)), OCTET_USAGE) \
    MISUSE(folder_no_output, (conversion(&x), octet_convert_folder(s->o, &x, NULL, &made)), OCTET_USAGE)               \
    MISUSE(folder_recipe, (conversion(&x), x.model = ".", octet_convert_folder(s->o, &x, "genaj", &made)),             \
           OCTET_USAGE)                                                                                                \
    MISUSE(folder_judged_alone, (octet_evaluate_init(&e, sizeof e), octet_evaluate_folder(s->o, &e, NULL, &made)),     \
           OCTET_USAGE)                                                                                                \
    MISUSE(load_no_octet, octet_model_load(NULL, "m.onnx", 1, &nothing), OCTET_USAGE)                                  \
    MISUSE(load_no_path, octet_model_load(s->o, NULL, 1, &nothing), OCTET_USAGE)                                       \
    MISUSE(load_no_place, octet_model_load(s->o, "m.onnx", 1, NULL), OCTET_USAGE)                                      \
    MISUSE(load_empty_path, octet_model_load(s->o, "", 1, &nothing), OCTET_IO)                                         \
    MISUSE(load_folder, octet_model_load(s->o, ".", 1, &nothing), OCTET_IO)                                            \
    MISUSE(load_stream, octet_model_load(s->o, "-", 1, &nothing), OCTET_USAGE)                                         \
    MISUSE(load_stdin, octet_model_load(s->o, "/dev/stdin", 1, &nothing), OCTET_USAGE)                                 \
    MISUSE(load_few_threads, octet_model_load(s->o, "m.onnx", -1, &nothing), OCTET_USAGE)                              \
    MISUSE(load_many_threads, octet_model_load(s->o, "m.onnx", 100000, &nothing), OCTET_USAGE)                         \
    MISUSE(load_most_threads, octet_model_load(s->o, "m.onnx", INT_MAX, &nothing), OCTET_USAGE)                        \
    MISUSE(memory_no_octet, octet_model_load_memory(NULL, "x", 1, 1, &nothing), OCTET_USAGE)                           \
    MISUSE(memory_no_bytes, octet_model_load_memory(s->o, NULL, 100, 1, &nothing), OCTET_USAGE)                        \
    MISUSE(memory_endless, octet_model_load_memory(s->o, NULL, SIZE_MAX, 1, &nothing), OCTET_USAGE)                    \
    MISUSE(memory_nothing, octet_model_load_memory(s->o, NULL, 0, 1, &nothing), OCTET_MALFORMED)                       \
    MISUSE(memory_empty, octet_model_load_memory(s->o, "x", 0, 1, &nothing), OCTET_MALFORMED)                          \
    MISUSE(memory_no_model, octet_model_load_memory(s->o, "no model", 8, 1, &nothing), OCTET_MALFORMED)                \
    MISUSE(memory_no_place, octet_model_load_memory(s->o, "x", 1, 1, NULL), OCTET_USAGE)                               \
    MISUSE(memory_threads, octet_model_load_memory(s->o, "x", 1, 1025, &nothing), OCTET_USAGE)                         \
    MISUSE(run_no_octet, RUN(NULL, s->m, &good, 1), OCTET_USAGE)                                                       \
    MISUSE(run_no_model, RUN(s->o, NULL, &good, 1), OCTET_USAGE)                                                       \
    MISUSE(run_no_arrays, RUN(s->o, s->m, NULL, 1), OCTET_USAGE)                                                       \
    MISUSE(run_nothing, RUN(s->o, s->m, NULL, 0), OCTET_MALFORMED)                                                     \
    MISUSE(run_no_place, octet_model_run(s->o, s->m, &good, 1, NULL, &s->n), OCTET_USAGE)                              \
    MISUSE(run_no_count, octet_model_run(s->o, s->m, &good, 1, &s->out, NULL), OCTET_USAGE)                            \
    MISUSE(run_two, RUN(s->o, s->m, ((const octet_array[]){ good, good }), 2), OCTET_MALFORMED)                        \
    MISUSE(run_no_data, WITH(a.data = NULL), OCTET_MALFORMED)                                                          \
    MISUSE(run_other_name, WITH(a.name = "none"), OCTET_MALFORMED)                                                     \
    MISUSE(run_empty_name, WITH(a.name = ""), OCTET_MALFORMED)                                                         \
    MISUSE(run_rank_below, WITH(a.rank = -1), OCTET_UNSUPPORTED)                                                       \
    MISUSE(run_rank_above, WITH(a.rank = OCTET_MAX_RANK + 1), OCTET_UNSUPPORTED)                                       \
    MISUSE(run_rank_huge, WITH(a.rank = INT_MAX), OCTET_UNSUPPORTED)                                                   \
    MISUSE(run_rank_other, WITH(a.rank = 1), OCTET_MALFORMED)                                                          \
    MISUSE(run_dim_below, WITH(a.dims[0] = -1), OCTET_MALFORMED)                                                       \
    MISUSE(run_dim_other, WITH(a.dims[1] = 1), OCTET_MALFORMED)                                                        \
    MISUSE(run_dim_overflow, WITH(a.dims[0] = INT64_MAX), OCTET_MALFORMED)                                             \
    MISUSE(run_type_0, WITH(a.type = (octet_type)0), OCTET_UNSUPPORTED)                                                \
    MISUSE(run_type_string, WITH(a.type = (octet_type)8), OCTET_UNSUPPORTED)                                           \
    MISUSE(run_type_complex, WITH(a.type = (octet_type)14), OCTET_UNSUPPORTED)                                         \
    MISUSE(run_type_below, WITH(a.type = (octet_type) - 1), OCTET_UNSUPPORTED)                                         \
    MISUSE(run_type_huge, WITH(a.type = (octet_type)INT_MAX), OCTET_UNSUPPORTED)                                       \
    MISUSE(run_too_large, WITH((a.type = OCTET_FLOAT64, a.data = (const double[]){ 0, 1e300, 0, 0 })), OCTET_NUMERIC)  \
    MISUSE(run_not_exact, WITH((a.type = OCTET_INT64, a.data = (const int64_t[]){ 0, 0, 16777217, 0 })), OCTET_NUMERIC)

#define FUNCTION(name, call, want)          \
    static octet_status name(subject *s)    \
    {                                       \
        octet_array a = good;               \
        octet_convert_options x;            \
        octet_calibrate_options c;          \
        octet_evaluate_options e;           \
        (void)a, (void)x, (void)c, (void)e; \
        return call;                        \
    }
MISUSES(FUNCTION)

#define ROW(name, call, want) { #name, name, want },
static const struct misuse {
    const char *name;
    octet_status (*call)(subject *s);
    octet_status want;
} misuses[] = { MISUSES(ROW) };

static octet_model *load_bytes(octet *o, const proto *p)
{
    octet_model *m;
    if (octet_model_load_memory(o, p->v, p->n, 1, &m) != OCTET_OK)
        fail_msg("%s", octet_error(o));
    return m;
}

/* After each misuse the objects still work, and the outputs of a call that failed are none. */
TEST(each_misuse_has_a_status)
{
    const proto relu = small_model("Relu", 1, OCTET_FLOAT32, "r");
    subject s = { .o = octet_open() };
    s.m = load_bytes(s.o, &relu);
    write_file("m.onnx", relu.v, relu.n);
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        const bool without = strstr(misuses[i].name, "_no_octet");
        nothing = (octet_model *)1;
        made = (octet_result *)1;
        s.out = &good;
        const octet_status got = misuses[i].call(&s);
        if (got != misuses[i].want)
            fail_msg("%s: status %d, wanted %d (%s)", misuses[i].name, got, misuses[i].want, octet_error(s.o));
        if (!without && !*octet_error(s.o))
            fail_msg("%s: no text", misuses[i].name);
        const bool call = !strncmp(misuses[i].name, "c", 1) || !strncmp(misuses[i].name, "evaluate", 8);
        if (call && !strstr(misuses[i].name, "_no_place"))
            assert_null(made);
        if ((!strncmp(misuses[i].name, "load", 4) || !strncmp(misuses[i].name, "memory", 6)) &&
            !strstr(misuses[i].name, "_no_place"))
            assert_null(nothing);
        if (!strncmp(misuses[i].name, "run", 3) && !strstr(misuses[i].name, "_no_place"))
            assert_null(s.out);
        assert_int_equal(octet_model_run(s.o, s.m, &good, 1, &s.out, &s.n), OCTET_OK);
        assert_string_equal(octet_error(s.o), "");
        assert_memory_equal(s.out->data, four, sizeof four);
    }
    octet_model_free(s.m);
    octet_close(s.o);
}

/* What has no status does nothing. */
TEST(nothing_is_asked_of_null)
{
    octet_close(NULL);
    octet_stop(NULL);
    octet_on_progress(NULL, NULL, NULL);
    octet_on_message(NULL, NULL, NULL);
    octet_model_free(NULL);
    assert_string_equal(octet_error(NULL), "");
    assert_string_equal(octet_hint(NULL), "");
    assert_null(octet_model_input(NULL, 0));
    assert_null(octet_model_output(NULL, 0));
    assert_null(octet_model_metadata(NULL, "key"));
    const proto relu = small_model("Relu", 1, OCTET_FLOAT32, "r");
    octet *o = octet_open();
    octet_model *m = load_bytes(o, &relu);
    assert_null(octet_model_input(m, SIZE_MAX));
    assert_null(octet_model_output(m, SIZE_MAX));
    assert_null(octet_model_metadata(m, NULL));
    octet_model_free(m);
    octet_close(o);
}

/* ---- names ---- */

/* Runs fn with standard output in a file; returns how many bytes went there. */
static long printed(octet_status (*fn)(octet *o), octet *o, octet_status want)
{
    fflush(stdout);
    const int before = dup(1), file = open("stdout", O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(before >= 0 && file >= 0);
    dup2(file, 1);
    const octet_status s = fn(o);
    fflush(stdout);
    dup2(before, 1);
    close(before);
    const long n = (long)lseek(file, 0, SEEK_END);
    close(file);
    if (s != want)
        fail_msg("status %d, wanted %d (%s)", s, want, octet_error(o));
    return n;
}

static octet_convert_options to_convert;
static octet_calibrate_options to_calibrate;
static octet_evaluate_options to_evaluate;

static octet_status call_convert(octet *o)
{
    return convert_only(o, &to_convert);
}

static octet_status call_calibrate(octet *o)
{
    octet_result *r;
    const octet_status s = octet_calibrate_model(o, &to_calibrate, &r);
    octet_result_free(r);
    return s;
}

static octet_status call_evaluate(octet *o)
{
    octet_result *r;
    const octet_status s = octet_evaluate_model(o, &to_evaluate, &r);
    octet_result_free(r);
    return s;
}

/* A call whose options name a stream, at the member that `where` points to. */
static void refuse_streams(octet *o, octet_status (*call)(octet *o), const char **where, const char *what)
{
    static const char *const names[] = { "linked",      "-",         "/dev/stdin", "/dev/stdout",
                                         "/dev/stderr", "/dev/fd/0", "/dev/fd/1",  "/proc/self/fd/1" };
    const char *before = *where;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *where = names[i];
        if (printed(call, o, OCTET_USAGE) != 0)
            fail_msg("%s %s: the library wrote to standard output", what, names[i]);
        if (!strstr(octet_error(o), "streams"))
            fail_msg("%s %s: %s", what, names[i], octet_error(o));
    }
    *where = before;
}

#define REFUSE(call, member) refuse_streams(o, call, &(member), #member)

TEST(the_streams_of_the_process_stay_untouched)
{
    const proto relu = small_model("Relu", 1, OCTET_FLOAT32, "r");
    const char *data[] = { "x.npy" }, *quantized[] = { "m.onnx" };
    octet *o = octet_open();
    write_file("m.onnx", relu.v, relu.n);
    assert_int_equal(symlink("/dev/stdout", "linked"), 0);
    conversion(&to_convert);
    to_convert.in_memory = false;
    REFUSE(call_convert, to_convert.model);
    REFUSE(call_convert, to_convert.output);
    REFUSE(call_convert, to_convert.calib);
    REFUSE(call_convert, to_convert.policy);
    REFUSE(call_convert, to_convert.html);
    REFUSE(call_convert, to_convert.dump_policy);
    REFUSE(call_convert, to_convert.sensitivity_file);
    REFUSE(call_convert, to_convert.truth);
    REFUSE(call_convert, to_convert.samples.labels);
    to_convert.samples.data = (octet_texts){ data, 1 };
    REFUSE(call_convert, data[0]);
    calibration(&to_calibrate);
    REFUSE(call_calibrate, to_calibrate.model);
    REFUSE(call_calibrate, to_calibrate.output);
    evaluation(&to_evaluate);
    to_evaluate.quantized = (octet_texts){ quantized, 1 };
    REFUSE(call_evaluate, to_evaluate.model);
    REFUSE(call_evaluate, quantized[0]);
    REFUSE(call_evaluate, to_evaluate.gates);
    REFUSE(call_evaluate, to_evaluate.baseline);
    REFUSE(call_evaluate, to_evaluate.html);
    REFUSE(call_evaluate, to_evaluate.markdown);
    REFUSE(call_evaluate, to_evaluate.junit);
    octet_close(o);
}

/* Names are names, also those that look like options or commands. */
TEST(names_are_names)
{
    static const char *const names[] = { "-x.onnx", "--json.onnx", "--runner=touch pwned;true" };
    const proto relu = small_model("Relu", 1, OCTET_FLOAT32, "r");
    octet *o = octet_open();
    octet_result *r;
    octet_convert_options x;
    conversion(&x);
    x.scheme = "bf16";
    x.in_memory = false;
    x.output = "y.onnx";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_file(names[i], relu.v, relu.n);
        x.model = names[i];
        if (octet_convert_model(o, &x, &r) != OCTET_OK)
            fail_msg("%s: %s", names[i], octet_error(o));
        assert_int_equal(*octet_result_json(r), '{');
        octet_result_free(r);
    }
    x.model = "--no-such-file";
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_IO);
    assert_non_null(strstr(octet_error(o), "--no-such-file"));
    assert_int_not_equal(access("pwned", F_OK), 0);
    octet_close(o);
}

/* ---- texts ---- */

/* Whether the text is UTF-8, by the ranges of Unicode's table 3-7. */
static bool is_utf8(const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const int n = *s < 0x80                 ? 0
                      : *s >= 0xc2 && *s < 0xe0 ? 1
                      : *s >= 0xe0 && *s < 0xf0 ? 2
                      : *s >= 0xf0 && *s < 0xf5 ? 3
                                                : -1;
        if (n < 0 || (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
            (*s == 0xf4 && s[1] > 0x8f))
            return false;
        for (int i = 1; i <= n; i++)
            if ((s[i] & 0xc0) != 0x80)
                return false;
        s += n + 1;
    }
    return true;
}

TEST(errors_are_utf8)
{
    octet *o = octet_open();
    octet_model *m;
    char name[1100] = "";
    assert_int_equal(octet_model_load(o, "no\xff.onnx", 1, &m), OCTET_IO);
    assert_true(is_utf8(octet_error(o)));
    assert_non_null(strstr(octet_error(o), "no\\xff.onnx"));
    while (strlen(name) < 960)
        strcat(name, "\xc3\xa4");
    for (int shift = 0; shift < 2; shift++) { /* one of them is cut inside a character */
        memmove(name + shift, name, strlen(name) + 1);
        name[0] = shift ? 'x' : name[0];
        const proto foo = small_model("Foo", 1, OCTET_FLOAT32, name);
        assert_int_equal(octet_model_load_memory(o, foo.v, foo.n, 1, &m),
                         OCTET_MALFORMED); /* there is no such operator */
        assert_true(is_utf8(octet_error(o)));
    }
    const char *data[] = { "\xfe.npy" };
    octet_convert_options x;
    conversion(&x);
    x.model = "no\xff.onnx";
    x.samples.data = (octet_texts){ data, 1 };
    assert_int_not_equal(convert_only(o, &x), OCTET_OK);
    assert_true(is_utf8(octet_error(o)));
    assert_true(is_utf8(octet_hint(o)));
    octet_close(o);
}

/* ---- arrays ---- */

/* Operators that move nothing leave their output in the caller's array. */
TEST(outputs_outlive_inputs)
{
    static const char *const ops[] = { "Identity", "Flatten", "Relu" };
    octet *o = octet_open();
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const proto p = small_model(ops[i], 1, OCTET_FLOAT32, "n");
        octet_model *m = load_bytes(o, &p);
        for (int64_t rows = 1; rows < 100; rows *= 3) {
            const octet_array *y;
            size_t n, count = (size_t)rows * 4;
            float *x = malloc(count * sizeof *x);
            for (size_t k = 0; k < count; k++)
                x[k] = (float)k;
            octet_array a = { .type = OCTET_FLOAT32, .rank = 2, .dims = { rows, 4 }, .data = x };
            assert_int_equal(octet_model_run(o, m, &a, 1, &y, &n), OCTET_OK);
            memset(x, 0xff, count * sizeof *x);
            free(x);
            for (size_t k = 0; k < count; k++)
                if (((const float *)y->data)[k] != (float)k)
                    fail_msg("%s: element %zu is %g", ops[i], k, (double)((const float *)y->data)[k]);
        }
        octet_model_free(m);
    }
    octet_close(o);
}

/* Element i of a type, as a number that all of them hold. */
static size_t put(octet_type type, unsigned char *at, size_t i)
{
    const int v = (int)(i % 5) + 1;
    switch (type) {
    case OCTET_FLOAT64: memcpy(at, &(double){ v }, 8); return 8;
    case OCTET_FLOAT32: memcpy(at, &(float){ (float)v }, 4); return 4;
    case OCTET_INT64: memcpy(at, &(int64_t){ v }, 8); return 8;
    case OCTET_INT32: memcpy(at, &(int32_t){ v }, 4); return 4;
    default:
        memcpy(at,
               &(uint16_t){ (uint16_t)(v == 1   ? 0x3c00
                                       : v == 2 ? 0x4000
                                       : v == 3 ? 0x4200
                                       : v == 4 ? 0x4400
                                                : 0x4500) },
               2);
        return 2; /* float16 */
    }
}

/* Arrays anywhere in memory give what aligned ones give. Under a sanitizer, reading in place would be an error. */
TEST(arrays_need_no_alignment)
{
    static const octet_type types[] = { OCTET_FLOAT32, OCTET_FLOAT64, OCTET_INT64, OCTET_INT32, OCTET_FLOAT16 };
    static const struct {
        const char *op;
        int n_in;
    } ops[] = { { "Identity", 1 }, { "Abs", 1 }, { "Neg", 1 },       { "Add", 2 },
                { "Mul", 2 },      { "Max", 2 }, { "ReduceSum", 1 }, { "Sign", 1 } };
    octet *o = octet_open();
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            const proto p = small_model(ops[k].op, ops[k].n_in, types[t], "n");
            octet_model *m;
            if (octet_model_load_memory(o, p.v, p.n, 1, &m) != OCTET_OK)
                fail_msg("%s of type %d: %s", ops[k].op, (int)types[t], octet_error(o));
            _Alignas(64) unsigned char x[16 * 8 + 1], first[16 * 8];
            size_t bytes = 0;
            for (int off = 0; off < 2; off++) {
                size_t size = 0, n;
                for (size_t i = 0; i < 16; i++)
                    size += put(types[t], x + off + size, i);
                octet_array a = { .type = types[t], .rank = 2, .dims = { 4, 4 }, .data = x + off }, in[2] = { a, a };
                const octet_array *y;
                if (octet_model_run(o, m, in, (size_t)ops[k].n_in, &y, &n) != OCTET_OK)
                    fail_msg("%s of type %d: %s", ops[k].op, (int)types[t], octet_error(o));
                if (off == 0) {
                    bytes = size / 16;
                    for (int d = 0; d < y->rank; d++)
                        bytes *= (size_t)y->dims[d];
                    memcpy(first, y->data, bytes);
                }
                assert_memory_equal(y->data, first, bytes);
            }
            octet_model_free(m);
        }
    octet_close(o);
}
