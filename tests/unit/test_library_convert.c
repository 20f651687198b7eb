/* The library's conversions, calibrations and evaluations by typed options: they write what the commands write, from
 * files as from memory, and wrong options have a status. */
#include "unit.h"

#include "library_case.h"

#include <math.h>

enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE, COUNT = 20 };

static void *read_whole(const char *name, size_t *n)
{
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*n + 1);
    assert_int_equal(fread(data, 1, *n, f), *n);
    fclose(f);
    return data;
}

static octet_convert_options options(void)
{
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = lib.model;
    return x;
}

/* Every option that changes what is written, against the command with the same words. */
TEST_SETUP(writes_what_the_command_writes, library_set_up, library_tear_down)
{
    static const char *const steps[] = { "mean=127.5:std=127.5" }, *const rules[] = { "op:Gemm=dynamic" },
                             *const off[] = { "mixed-precision" }, *const drop[] = { "sqnr=40%" };
    const char *data[] = { lib.samples };
    octet *o = octet_open();
    octet_result *r;
    octet_convert_options x = options();
    x.samples.data = (octet_texts){ data, 1 };
    x.samples.preprocess = (octet_texts){ steps, 1 };
    x.samples.samples = 24;
    x.samples.seed = 3;
    x.no_methods = (octet_texts){ off, 1 };
    x.rules = (octet_texts){ rules, 1 };
    x.budget = 2.5;
    x.max_drop = (octet_texts){ drop, 1 };
    x.trials = 1;
    x.target = "octet";
    x.output = "b.onnx";
    x.html = "b.html";
    assert_int_equal(run_program("qconvert %s --data=%s --preprocess=mean=127.5:std=127.5 -n 24 --seed=3 "
                                 "--no-method mixed-precision --set=op:Gemm=dynamic --budget=2.5 --max-drop=sqnr=40%% "
                                 "--trials=1 --target=octet --output=a.onnx",
                                 lib.model, lib.samples),
                     0);
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_OK);
    size_t n, m;
    char *a = read_whole("a.onnx", &n), *b = read_whole("b.onnx", &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    assert_true(octet_result_number(r, "size_bytes.after") == (double)n);
    assert_string_equal(octet_result_text(r, "output"), "b.onnx");
    char *page = read_whole("b.html", &m);
    page[m] = '\0';
    assert_non_null(strstr(page, "--budget 2.5")); /* the command that does the same */
    free(page);
    assert_string_equal(octet_result_text(r, "layers.0.name"), "conv1");
    assert_true(octet_result_number(r, "goals.0.met") == 1 && octet_result_number(r, "goal_unsure") <= 1);
    assert_true(octet_result_count(r, "layers") > 20 && octet_result_count(r, "none") == 0);
    assert_true(isnan(octet_result_number(r, "none")) && !octet_result_text(r, "none"));
    assert_null(octet_result_model(r, &n));
    assert_int_equal(n, 0);
    octet_result_free(r);
    free(a);
    free(b);
    octet_close(o);
}

typedef struct giver {
    float x[COUNT][PIXELS];
    int asked, fails_at;
    bool batch; /* with the dimension of the batch */
} giver;

static int give(void *arg, int64_t i, octet_array *in, size_t n)
{
    giver *g = arg;
    g->asked++;
    if (n != 1 || strcmp(in[0].name, "image") != 0 || i < 0 || i >= COUNT ||
        (g->fails_at > 0 && g->asked >= g->fails_at))
        return 7;
    const int64_t dims[] = { 1, 3, SIDE, SIDE };
    in[0].type = OCTET_FLOAT32;
    in[0].rank = 3 + g->batch;
    memcpy(in[0].dims, dims + !g->batch, sizeof dims - !g->batch * sizeof *dims);
    in[0].data = g->x[i];
    return 0;
}

static giver *noise(void)
{
    static giver g;
    uint32_t seed = 1;
    g.fails_at = -1;
    g.asked = 0;
    g.batch = false;
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < PIXELS; k++) {
            seed = seed * 1664525u + 1013904223u;
            g.x[i][k] = (float)(seed >> 8) / (float)(1 << 23) - 1;
        }
    return &g;
}

/* An .npy of the same samples. */
static void write_npy(const giver *g)
{
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(head + 10, sizeof head - 10,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3, %d, %d), }", COUNT, SIDE, SIDE);
    head[10 + n] = ' ';
    head[127] = '\n';
    FILE *f = fopen("samples.npy", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, 1, sizeof head, f), sizeof head);
    assert_int_equal(fwrite(g->x, 1, sizeof g->x, f), sizeof g->x);
    assert_int_equal(fclose(f), 0);
}

/* From memory to memory: the record holds, and the model is made again from files, to its last byte. */
TEST_SETUP(memory_is_as_files, library_set_up, library_tear_down)
{
    octet *o = octet_open();
    giver *g = noise();
    size_t size, n, again;
    void *model = read_whole(lib.model, &size);
    octet_result *r, *s;
    octet_convert_options x = options();
    x.model = "demo.onnx";
    x.model_data = model;
    x.model_size = size;
    x.samples.get = give;
    x.samples.get_arg = g;
    x.samples.count = COUNT;
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_OK);
    const void *made = octet_result_model(r, &n);
    assert_non_null(made);
    assert_true(n < size && g->asked > COUNT);
    assert_true(octet_result_number(r, "size_bytes.after") == (double)n);
    g->batch = true;
    assert_int_equal(octet_convert_model(o, &x, &s), OCTET_OK);
    assert_memory_equal(octet_result_model(s, &again), made, n);
    assert_int_equal(again, n);
    write_file("made.onnx", made, n);
    write_npy(g);
    assert_int_equal(run_program("qconvert verify made.onnx --source %s --data samples.npy", lib.model), 0);
    g->x[3][5] += 0.25f; /* other samples are other samples */
    write_npy(g);
    assert_int_equal(run_program("qconvert verify made.onnx --source %s --data samples.npy", lib.model), OCTET_USAGE);
    octet_close(o); /* results may outlive it */
    assert_int_equal(*octet_result_json(r), '{');
    octet_result_free(r);
    octet_result_free(s);
    free(model);
}

/* A table of the caller's samples is that of the same samples in a file, but for their name; parts are parts. */
TEST_SETUP(tables_are_those_of_the_command, library_set_up, library_tear_down)
{
    octet *o = octet_open();
    giver *g = noise();
    octet_result *r;
    octet_calibrate_options x;
    size_t n, m;
    write_npy(g);
    const char *data[] = { "samples.npy" };
    octet_calibrate_init(&x, sizeof x);
    x.model = lib.model;
    x.output = "b.calib";
    x.samples.data = (octet_texts){ data, 1 };
    assert_int_equal(run_program("qcalib %s --data samples.npy -o a.calib", lib.model), 0);
    assert_int_equal(octet_calibrate_model(o, &x, &r), OCTET_OK);
    char *a = read_whole("a.calib", &n), *b = read_whole("b.calib", &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
    assert_true(octet_result_number(r, "samples") == COUNT && octet_result_count(r, "tensors") > 10);
    const double most = octet_result_number(r, "tensors.0.max");
    octet_result_free(r);
    x.samples.data.n = 0;
    x.samples.get = give;
    x.samples.get_arg = g;
    x.samples.count = COUNT;
    assert_int_equal(octet_calibrate_model(o, &x, &r), OCTET_OK);
    assert_string_equal(octet_result_text(r, "shards.0.set"), "samples");
    assert_true(octet_result_number(r, "tensors.0.max") == most);
    octet_result_free(r);
    x.samples.get = NULL;
    x.samples.data.n = 1;
    x.shard = 1;
    x.shards = 3;
    assert_int_equal(run_program("qcalib %s --data samples.npy --shard=1/3 -o c.calib", lib.model), 0);
    assert_int_equal(octet_calibrate_model(o, &x, &r), OCTET_OK);
    a = read_whole("c.calib", &n), b = read_whole("b.calib", &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
    octet_result_free(r);
    x.shard = 3;
    assert_int_equal(octet_calibrate_model(o, &x, &r), OCTET_USAGE);
    assert_non_null(strstr(octet_error(o), "part 3 of 3"));
    assert_null(r);
    x.shard = 0;
    x.output = NULL;
    assert_int_equal(octet_calibrate_model(o, &x, &r), OCTET_USAGE);
    x.output = "/dev/stdout";
    assert_int_equal(octet_calibrate_model(o, &x, &r), OCTET_USAGE);
    octet_close(o);
}

/* The lines that are no names of samples. */
static void assert_same_tables(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_whole(a, &n), *y = read_whole(b, &m);
    x[n] = y[m] = '\0';
    const char *p = strchr(x, '|'), *q = strchr(y, '|');
    assert_non_null(p);
    assert_non_null(q);
    const size_t line = strcspn(p, "\n");
    assert_true(line > 10 && strcspn(q, "\n") == line && memcmp(p, q, line) == 0);
    free(x);
    free(y);
}

/* The whole report is that of the command, but for what it says of the call and of the machine. */
TEST_SETUP(evaluations_are_those_of_the_command, library_set_up, library_tear_down)
{
    static const char *const names[] = { "output_sqnr_db", "agreement", "size_bytes", "peak_bytes" };
    octet *o = octet_open();
    octet_result *r;
    octet_convert_options c = options();
    octet_evaluate_options x;
    c.output = "q.onnx";
    c.scheme = "dynamic";
    assert_int_equal(octet_convert_model(o, &c, &r), OCTET_OK);
    octet_result_free(r);
    write_npy(noise());
    const char *quantized[] = { "q.onnx" };
    assert_int_equal(run_program("qeval %s q.onnx --data samples.npy --no-latency --no-layers --json e.json "
                                 "--markdown program.md --junit program.xml",
                                 lib.model),
                     0);
    size_t length;
    char *of_program = read_whole("e.json", &length);
    of_program[length] = '\0';
    octet_evaluate_init(&x, sizeof x);
    x.model = lib.model;
    x.quantized = (octet_texts){ quantized, 1 };
    x.samples.get = give;
    x.samples.get_arg = noise();
    x.samples.count = COUNT;
    x.layers = x.latency = 0;
    x.html = "e.html";
    x.markdown = "e.md";
    x.junit = "e.xml";
    assert_int_equal(octet_evaluate_model(o, &x, &r), OCTET_OK);
    assert_same_tables("e.md", "program.md");
    assert_int_equal(access("e.xml", F_OK), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64], key[64];
        snprintf(path, sizeof path, "models.1.%s", names[i]);
        snprintf(key, sizeof key, "\"%s\":", names[i]);
        const char *at = strstr(of_program, key), *next;
        assert_non_null(at);
        while ((next = strstr(at + 1, key))) /* the float model may have one, too */
            at = next;
        assert_true(octet_result_number(r, path) == strtod(at + strlen(key), NULL));
    }
    free(of_program);
    octet_result_free(r);
    assert_int_equal(access("e.html", F_OK), 0);
    x.min_sqnr = "200";
    assert_int_equal(octet_evaluate_model(o, &x, &r), OCTET_GOAL);
    assert_int_equal(*octet_result_json(r), '{');
    octet_result_free(r);
    x.quantized.n = 0;
    assert_int_equal(octet_evaluate_model(o, &x, &r), OCTET_USAGE);
    assert_null(r);
    x.min_sqnr = NULL;
    x.compute = "bf17";
    assert_int_equal(octet_evaluate_model(o, &x, &r), OCTET_USAGE);
    x.compute = NULL;
    x.html = lib.model; /* no output is an input */
    assert_int_equal(octet_evaluate_model(o, &x, &r), OCTET_USAGE);
    x.html = x.markdown; /* nor another output */
    assert_int_equal(octet_evaluate_model(o, &x, &r), OCTET_USAGE);
    octet_close(o);
}

/* Measured are the numbers of the command. */
TEST_SETUP(sensitivity_is_that_of_the_command, library_set_up, library_tear_down)
{
    octet *o = octet_open();
    octet_result *r, *again;
    octet_convert_options c = options();
    octet_evaluate_options x;
    size_t length;
    write_npy(noise());
    c.output = "s.onnx";
    c.samples.get = give;
    c.samples.get_arg = noise();
    c.samples.count = COUNT;
    assert_int_equal(octet_convert_model(o, &c, &r), OCTET_OK);
    octet_result_free(r);
    assert_int_equal(run_program("qeval %s s.onnx --data samples.npy --sensitivity --json s.json", lib.model), 0);
    char *of_program = read_whole("s.json", &length);
    of_program[length] = '\0';
    const char *quantized[] = { "s.onnx" }, *measured = strstr(of_program, "\"sensitivity\":");
    octet_evaluate_init(&x, sizeof x);
    x.model = lib.model;
    x.quantized = (octet_texts){ quantized, 1 };
    x.samples.get = give;
    x.samples.get_arg = noise();
    x.samples.count = COUNT;
    assert_int_equal(octet_measure_sensitivity(o, &x, "kept", &r), OCTET_OK);
    assert_non_null(measured);
    assert_string_equal(strstr(octet_result_json(r), "\"sensitivity\":"), measured);
    assert_int_equal(octet_measure_sensitivity(o, &x, "kept", &again), OCTET_OK);
    assert_string_equal(octet_result_json(again), octet_result_json(r));
    octet_result_free(again);
    /* The noise of each alone is a part of the sum. */
    assert_true(octet_result_number(r, "sensitivity.sum_db") < octet_result_number(r, "sensitivity.causes.0.sqnr_db"));
    octet_result_free(r);
    x.min_sqnr = "3";
    assert_int_equal(octet_measure_sensitivity(o, &x, NULL, &r), OCTET_USAGE);
    x.min_sqnr = NULL;
    x.samples.labels = "y.csv";
    assert_int_equal(octet_measure_sensitivity(o, &x, NULL, &r), OCTET_USAGE);
    x.samples.labels = NULL;
    assert_int_equal(octet_measure_sensitivity(o, &x, lib.model, &r), OCTET_MALFORMED); /* and stays what it is */
    free(of_program);
    octet_close(o);
}

TEST_SETUP(goals_that_are_missed_have_results, library_set_up, library_tear_down)
{
    octet *o = octet_open();
    octet_result *r;
    octet_convert_options x = options();
    x.samples.get = give;
    x.samples.get_arg = noise();
    x.samples.count = COUNT;
    x.in_memory = true;
    x.min_sqnr = 200;
    x.trials = 0;
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_GOAL);
    assert_true(octet_result_number(r, "goal_met") == 0 && octet_result_number(r, "goals.0.met") == 0);
    assert_non_null(strstr(octet_error(o), "200"));
    assert_non_null(octet_result_model(r, NULL));
    octet_result_free(r);
    x = options(); /* no choice is that small: nothing is made */
    x.in_memory = true;
    x.target_size = "1000";
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_GOAL);
    assert_true(octet_result_number(r, "size.missed") == 1);
    assert_null(octet_result_model(r, NULL));
    octet_result_free(r);
    octet_close(o);
}

static void expect(octet *o, const octet_convert_options *x, octet_status want, const char *word)
{
    octet_result *r = (octet_result *)o;
    assert_int_equal(octet_convert_model(o, x, &r), want);
    assert_null(r);
    if (!strstr(octet_error(o), word))
        fail_msg("the error is '%s', without '%s'", octet_error(o), word);
}

TEST_SETUP(wrong_options_have_a_status, library_set_up, library_tear_down)
{
    static const char *const bad[] = { NULL }, *const stream[] = { "-" };
    octet *o = octet_open();
    giver *g = noise();
    octet_result *r;
    octet_convert_options x = options();
    assert_int_equal(octet_convert_model(NULL, &x, &r), OCTET_USAGE);
    assert_int_equal(octet_convert_model(o, &x, NULL), OCTET_USAGE);
    expect(o, NULL, OCTET_USAGE, "octet_convert_init");
#define WRONG(set, word) \
    x = options();       \
    x.in_memory = true;  \
    set;                 \
    expect(o, &x, OCTET_USAGE, word)
    WRONG(x.size = 0, "octet_convert_init");
    WRONG(x.size -= 3, "octet_convert_init"); /* the end of no member */
    WRONG(x.model = NULL, "model");
    WRONG(x.model = "-", "streams");
    WRONG(x.samples.data = ((octet_texts){ stream, 1 }), "streams");
    WRONG(x.rules = ((octet_texts){ bad, 1 }), "NULL");
    WRONG(x.rules = ((octet_texts){ NULL, 1 }), "NULL");
    WRONG(x.scheme = "int9", "int9");
    WRONG(x.target = "nowhere", "nowhere");
    WRONG(x.format = "qxq", "qxq");
    WRONG(x.effort = "low", "low");
    WRONG(x.input_layout = "hwc", "hwc");
    WRONG((x.scheme = "weight-only", x.bits = 3), "3 bits");
    WRONG((x.scheme = "weight-only", x.block_size = 48), "blocks of 48");
    WRONG(x.bits = 4, "--bits");
    WRONG((x.scheme = "weight-only", x.accuracy_level = 2), "accuracy-level");
    WRONG(x.threads = 5000, "threads");
    WRONG(x.budget = 101, "range");
    WRONG(x.target_bits = NAN, "range");
    WRONG(x.min_sqnr = 30, "no samples");
    WRONG((x.samples.get = give, x.samples.count = -1), "below 0");
    WRONG((x.samples.get = give, x.calib = "t.calib"), "table");
    WRONG((x.target_size = "12%", x.scheme = "dynamic"), "--target-size");
#undef WRONG
    x = options();
    x.in_memory = true;
    x.samples.get = give;
    x.samples.get_arg = g;
    x.samples.count = COUNT;
    g->fails_at = 3;
    expect(o, &x, OCTET_IO, "returned 7");
    x = options();
    x.model = "none.onnx";
    expect(o, &x, OCTET_IO, "none.onnx");
    x.model_data = "no model";
    x.model_size = 8;
    expect(o, &x, OCTET_MALFORMED, "none.onnx");
    assert_int_equal(access("none.int8.onnx", F_OK), -1);
    octet_result_free(NULL);
    assert_string_equal(octet_result_json(NULL), "");
    assert_null(octet_result_model(NULL, NULL));
    assert_true(isnan(octet_result_number(NULL, "text")) && !octet_result_text(NULL, "text"));
    octet_close(o);
}

/* A caller that was compiled for an older header, and one for a newer one. */
TEST_SETUP(sizes_tell_versions, library_set_up, library_tear_down)
{
    octet *o = octet_open();
    octet_result *r;
    struct {
        octet_convert_options x;
        int newer[8];
    } y;
    octet_convert_init(&y.x, sizeof y);
    assert_int_equal(y.newer[7], 0);
    y.x.model = lib.model;
    y.x.in_memory = true;
    assert_int_equal(octet_convert_model(o, &y.x, &r), OCTET_OK);
    octet_result_free(r);
    y.newer[7] = 1;
    assert_int_equal(octet_convert_model(o, &y.x, &r), OCTET_USAGE);
    octet_convert_options x;
    memset(&x, 0x5a, sizeof x);
    octet_convert_init(&x, offsetof(octet_convert_options, min_sqnr)); /* what is behind it is not touched */
    assert_int_equal(((unsigned char *)&x)[sizeof x - 1], 0x5a);
    x.model = lib.model;
    x.in_memory = true;
    assert_int_equal(octet_convert_model(o, &x, &r), OCTET_OK);
    octet_result_free(r);
    octet_close(o);
}
