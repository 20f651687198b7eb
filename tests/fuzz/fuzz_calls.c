/* Fuzz target: sequences of calls of the library. Each byte names a call, the bytes after it say with what: which of a
 * few objects, words and arrays. Whatever their order, each call returns a status of octet.h, and leaves no output
 * behind when it fails. Sizes of memory are always right, and no object is used after its release: these a caller must
 * see to. Callbacks make calls of their own. */
#include "fuzz_folder.h"

#include "../unit/small_model.h"

#include <limits.h>

enum { CONTEXTS = 2, MODELS = 3, RESULTS = 2, ROOM = 8192, MOST_CALLS = 64 };

typedef struct input {
    const uint8_t *at, *end;
} input;

static struct {
    octet *o[CONTEXTS];
    octet_model *m[MODELS];
    const octet_array *out; /* of the run before, of model `of`; outputs live until its next run */
    size_t n_out;
    octet_model *of;
    octet_result *r[RESULTS];
    int depth, commands, call;
    input in;
} w;

/* What the models of each call borrow: models that share may need it until the end. */
static struct {
    proto p;
    uint8_t room[2][ROOM];
} kept[MOST_CALLS];

/* Samples are asked for by other threads, which read a copy of what is left of the input. */
static input for_samples;
static _Thread_local bool gives_samples;

static unsigned next(unsigned below)
{
    input *in = gives_samples ? &for_samples : &w.in;
    return in->at < in->end ? *in->at++ % below : 0;
}

static octet *some_octet(void)
{
    const unsigned k = next(CONTEXTS + 1);
    return k < CONTEXTS ? w.o[k] : NULL;
}

static octet_model *some_model(void)
{
    const unsigned k = next(MODELS + 1);
    return k < MODELS ? w.m[k] : NULL;
}

static void check(octet_status s, const octet *o)
{
    const bool known = (s >= OCTET_OK && s <= OCTET_STOPPED) || s == OCTET_INTERNAL;
    if (!known || s == OCTET_INTERNAL)
        abort();
    if (o && w.depth == 0 && (*octet_error(o) != 0) != (s != OCTET_OK))
        abort();
}

/* ---- models ---- */

static void forget_outputs(const octet_model *m)
{
    if (w.of == m)
        w.of = NULL;
}

static void load(void)
{
    static const char *const ops[] = { "Identity", "Flatten", "Relu", "Neg", "Softmax", "NoSuchOperator" };
    static const octet_type types[] = {
        OCTET_FLOAT32, OCTET_FLOAT64, OCTET_INT64, OCTET_INT8, OCTET_FLOAT16, OCTET_BOOL
    };
    const unsigned k = next(MODELS);
    octet *o = some_octet();
    const proto p = small_model(ops[next(6)], 1, types[next(6)], "n");
    const int threads = (int)next(4) - 1;
    const bool from_file = next(2);
    if (w.depth) /* its callers may be using it */
        return;
    octet_model_free(w.m[k]);
    forget_outputs(w.m[k]);
    octet_model *m = (octet_model *)1;
    octet_status s;
    if (from_file) {
        unlink("m.onnx");
        fuzz_write("m.onnx", p.v, p.n);
        s = octet_model_load(o, "m.onnx", threads, &m);
    } else {
        kept[w.call].p = p;
        s = octet_model_load_memory(o, kept[w.call].p.v, p.n, threads, &m);
    }
    check(s, o);
    if ((s == OCTET_OK) != (m != NULL))
        abort();
    w.m[k] = m;
}

static void share_model(void)
{
    const unsigned k = next(MODELS);
    octet *o = some_octet();
    octet_model *m = (octet_model *)1;
    const octet_model *from = some_model();
    if (w.depth)
        return;
    const octet_status s = octet_model_share(o, from, &m);
    check(s, o);
    if ((s == OCTET_OK) != (m != NULL) || (from && o && s != OCTET_OK))
        abort();
    forget_outputs(w.m[k]);
    octet_model_free(w.m[k]);
    w.m[k] = m;
}

static void free_model(void)
{
    const unsigned k = next(MODELS);
    if (w.depth)
        return;
    forget_outputs(w.m[k]);
    octet_model_free(w.m[k]);
    w.m[k] = NULL;
}

static size_t type_size(octet_type t)
{
    return (int)t == 15                                                                         ? 16
           : t == OCTET_FLOAT64 || t == OCTET_INT64 || t == OCTET_UINT64 || (int)t == 14        ? 8
           : t == OCTET_FLOAT32 || t == OCTET_INT32 || t == OCTET_UINT32                        ? 4
           : t == OCTET_FLOAT16 || t == OCTET_BFLOAT16 || t == OCTET_INT16 || t == OCTET_UINT16 ? 2
                                                                                                : 1;
}

/* An array in `room`, of bytes from the input. Dimensions are small, or such that no memory holds them, and then there
 * is none. */
static octet_array some_array(uint8_t *room)
{
    static const char *const names[] = { NULL, NULL, "a", "b", "" };
    octet_array a = { .name = names[next(5)], .type = (octet_type)((int)next(20) - 1), .rank = (int)next(6) - 1 };
    size_t n = type_size(a.type);
    bool huge = false;
    for (int d = 0; d < a.rank; d++) {
        const unsigned k = next(8);
        a.dims[d] = k == 7 ? INT64_MAX : k == 6 ? -1 : k;
        huge |= k >= 6;
        n *= k;
    }
    const unsigned shift = next(3);
    for (size_t i = 0; i < n + shift && i < ROOM; i++)
        room[i] = (uint8_t)next(256);
    a.data = huge || n + shift > ROOM || next(9) == 8 ? NULL : room + shift;
    return a;
}

/* The sum of two inputs, of which arrays make constants. */
static void load_graph(void)
{
    static const octet_type types[] = { OCTET_FLOAT32, OCTET_FLOAT64, OCTET_INT64, OCTET_INT8, OCTET_FLOAT16 };
    const unsigned k = next(MODELS);
    octet *o = some_octet();
    octet_array given[2];
    const proto p = small_model("Add", 2, types[next(5)], "n");
    const unsigned n = next(3);
    if (w.depth)
        return;
    kept[w.call].p = p;
    for (unsigned i = 0; i < n; i++)
        given[i] = some_array(kept[w.call].room[i]);
    forget_outputs(w.m[k]);
    octet_model_free(w.m[k]);
    octet_model *m = (octet_model *)1;
    const octet_status s = octet_model_load_graph(o, kept[w.call].p.v, p.n, n ? given : NULL, n, (int)next(4) - 1, &m);
    check(s, o);
    if ((s == OCTET_OK) != (m != NULL))
        abort();
    w.m[k] = m;
}

static unsigned sum_outputs(void)
{
    unsigned sum = 0;
    for (size_t i = 0; w.of && i < w.n_out; i++) {
        size_t n = type_size(w.out[i].type);
        for (int d = 0; d < w.out[i].rank; d++)
            n *= (size_t)w.out[i].dims[d];
        for (size_t k = 0; k < n; k++)
            sum += ((const uint8_t *)w.out[i].data)[k];
    }
    return sum;
}

/* The arrays are gone when the outputs are read. */
static void run_model(void)
{
    octet *o = some_octet();
    octet_model *m = some_model();
    const unsigned n = next(3);
    octet_array in[2];
    uint8_t *room[2] = { malloc(ROOM), malloc(ROOM) };
    for (unsigned i = 0; i < n && room[0] && room[1]; i++)
        in[i] = some_array(room[i]);
    const octet_array *out = in;
    size_t n_out = 7;
    if (m)
        forget_outputs(m);
    const octet_status s = room[0] && room[1] ? octet_model_run(o, m, n ? in : NULL, n, &out, &n_out) : OCTET_NOMEM;
    free(room[0]);
    free(room[1]);
    check(s, room[0] && room[1] ? o : NULL);
    if (s == OCTET_OK) {
        w.out = out;
        w.n_out = n_out;
        w.of = m;
    } else if (out && s != OCTET_NOMEM) {
        abort();
    }
    sum_outputs();
}

/* ---- conversions and the like ---- */

static void make_call(void);

static void on_progress(void *arg, const char *what, int64_t done, int64_t total)
{
    if (w.depth++ == 0 && *what)
        make_call();
    w.depth--;
}

static void on_message(void *arg, int is_warning, const char *text)
{
    if (strchr(text, '\n'))
        abort();
    if (w.depth++ == 0)
        make_call();
    w.depth--;
}

static const char *some_text(void)
{
    static const char *const texts[] = { "m.onnx", "x.csv",   "o.onnx",      "-",        "",     "dynamic", "bf16",
                                         "minmax", "t.calib", "/dev/stdout", "--output", "t=5%", "sqnr",    "e.html" };
    const unsigned k = next(sizeof texts / sizeof *texts + 4);
    return k < sizeof texts / sizeof *texts ? texts[k] : NULL;
}

static octet_texts some_texts(const char *room[3])
{
    const octet_texts t = { next(9) ? room : NULL, next(4) };
    for (size_t i = 0; i < 3; i++)
        room[i] = some_text();
    return t;
}

static int give(void *arg, int64_t i, octet_array *in, size_t n)
{
    static uint8_t room[ROOM];
    for (size_t k = 0; k < n; k++) {
        const char *name = in[k].name;
        in[k] = some_array(room);
        in[k].name = name;
    }
    return next(9) == 8;
}

static octet_samples some_samples(const char *room[3])
{
    octet_samples s = { .data = some_texts(room), .seed = -1 };
    if (next(3) == 2)
        s = (octet_samples){ .get = give, .count = (int64_t)next(5) - 1, .seed = -1 };
    s.samples = (int64_t)next(6) - 1;
    s.first = next(2);
    s.skip_bad = next(2);
    s.labels = next(5) == 4 ? some_text() : NULL;
    return s;
}

static void use_result(octet_status s, octet_result *r)
{
    const bool done = s == OCTET_OK || s == OCTET_GOAL;
    size_t n;
    if (done != (r != NULL) || (done && *octet_result_json(r) != '{'))
        abort();
    octet_result_model(r, &n);
    octet_result_text(r, some_text());
    octet_result_free(r);
}

static octet_status convert(octet *o, octet_result **r)
{
    const char *room[4][3];
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = some_text();
    x.output = some_text();
    x.samples = some_samples(room[0]);
    x.in_memory = next(2);
    x.dry_run = next(2);
    x.scheme = some_text();
    x.observer = next(4) == 3 ? some_text() : NULL;
    x.calib = next(4) == 3 ? some_text() : NULL;
    x.html = next(4) == 3 ? some_text() : NULL;
    x.rules = next(4) == 3 ? some_texts(room[1]) : x.rules;
    x.max_drop = next(4) == 3 ? some_texts(room[2]) : x.max_drop;
    x.threads = (int)next(4) - 1;
    x.size -= next(9) == 8 ? sizeof x : 0;
    return octet_convert_model(o, next(17) == 16 ? NULL : &x, r);
}

static octet_status calibrate(octet *o, octet_result **r)
{
    const char *room[3];
    octet_calibrate_options x;
    octet_calibrate_init(&x, sizeof x);
    x.model = some_text();
    x.output = some_text();
    x.samples = some_samples(room);
    x.shard = (int64_t)next(4) - 1;
    x.shards = next(3);
    x.resume = next(2);
    return octet_calibrate_model(o, next(17) == 16 ? NULL : &x, r);
}

static octet_status evaluate(octet *o, octet_result **r)
{
    const char *room[3][3];
    octet_evaluate_options x;
    octet_evaluate_init(&x, sizeof x);
    x.model = some_text();
    x.quantized = some_texts(room[0]);
    x.samples = some_samples(room[1]);
    x.metrics = next(4) == 3 ? some_texts(room[2]) : x.metrics;
    x.min_sqnr = next(4) == 3 ? some_text() : NULL;
    x.html = next(4) == 3 ? some_text() : NULL;
    x.latency = x.layers = 0;
    return octet_evaluate_model(o, next(17) == 16 ? NULL : &x, r);
}

static void run_command(void)
{
    static octet_status (*const calls[])(octet *o, octet_result **r) = { calibrate, convert, evaluate };
    octet *o = some_octet();
    octet_result *r = (octet_result *)1;
    const unsigned which = next(3);
    if (w.commands++ > 6) /* they take milliseconds */
        return;
    const octet_status s = calls[which](o, &r);
    check(s, o);
    if (w.depth && s != OCTET_USAGE) /* in a callback, none runs */
        abort();
    use_result(s, r);
}

/* ---- typed calls ---- */

static const char *const any_words[] = { NULL,      "m.onnx", "o.onnx", "x.csv",       "",          "t.calib",
                                         "dynamic", "x8",     "fp16",   "bf16",        "minmax",    "top1",
                                         "p.html",  "1%",     "-",      "pipe:exit 3", "qoperator", "a=b",
                                         "high",    "octet",  "--help", "equalize",    "a=u8",      "\xff" };

static const char *some_word(void)
{
    return any_words[next(sizeof any_words / sizeof *any_words)];
}

/* The usual value, seldom another one: what is wrong in one member hides the others. */
static int64_t usual(int64_t value, unsigned other)
{
    return next(6) == 5 ? (int64_t)other - 1 : value;
}

/* A list of up to three words, of which some may be NULL. */
static octet_texts some_words(const char *v[3])
{
    const unsigned n = next(8) < 6 ? 0 : 1 + next(3);
    for (unsigned i = 0; i < n; i++)
        v[i] = some_word();
    return (octet_texts){ n ? v : NULL, n };
}

static uint8_t given_room[2][ROOM];

/* Sets what it likes of the inputs' arrays. */
static int get_sample(void *arg, int64_t i, octet_array *inputs, size_t n)
{
    gives_samples = true;
    for (size_t k = 0; k < n && k < 2; k++) {
        const char *name = inputs[k].name;
        inputs[k] = next(4) == 3
                        ? some_array(given_room[k])
                        : (octet_array){ .type = OCTET_FLOAT32, .rank = 2, .dims = { 1, 4 }, .data = given_room[k] };
        inputs[k].name = next(4) ? name : inputs[k].name;
    }
    const bool failed = next(9) == 8;
    gives_samples = false;
    return failed;
}

/* What a caller may set in a structure that init has filled. */
typedef struct texts {
    const char *data[3], *preprocess[3], *states[3], *rules[3], *goals[3], *more[3];
    proto p;
} texts;

static void fill_samples(octet_samples *s, texts *t)
{
    s->data = some_words(t->data);
    s->preprocess = some_words(t->preprocess);
    s->states = some_words(t->states);
    s->get = next(2) ? get_sample : NULL;
    s->count = usual(3, next(5));
    s->samples = usual(0, next(4));
    s->seed = usual(-1, next(3));
    s->first = next(2);
    s->skip_bad = next(2);
    s->labels = next(6) == 5 ? some_word() : NULL;
    for_samples = w.in;
}

/* The model: a file, or bytes that may be cut. */
static void fill_model(const char **file, const void **data, size_t *size, texts *t)
{
    *file = next(6) < 5 ? "m.onnx" : some_word();
    if (next(2)) {
        const bool two = next(2);
        t->p = small_model(two ? "Add" : "Softmax", 1 + two, OCTET_FLOAT32, "n");
        *data = t->p.v;
        *size = next(4) ? t->p.n : next(200);
    }
}

static octet_status calibrate_typed(octet *o, octet_result **r, texts *t)
{
    octet_calibrate_options x;
    octet_calibrate_init(&x, sizeof x);
    fill_model(&x.model, &x.model_data, &x.model_size, t);
    fill_samples(&x.samples, t);
    x.shard = usual(0, next(4));
    x.shards = usual(0, next(4));
    x.output = next(6) < 5 ? "t.calib" : some_word();
    x.resume = next(2);
    x.threads = (int)usual(1, next(4));
    x.size -= next(9) == 8 ? next(64) : 0;
    return octet_calibrate_model(o, next(17) == 16 ? NULL : &x, r);
}

static octet_status convert_typed(octet *o, octet_result **r, texts *t)
{
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    fill_model(&x.model, &x.model_data, &x.model_size, t);
    fill_samples(&x.samples, t);
    x.output = next(6) < 5 ? "o.onnx" : some_word();
    x.in_memory = next(2);
    x.dry_run = next(4) == 3;
    x.rules = some_words(t->rules);
    x.max_drop = some_words(t->goals);
    x.methods = some_words(t->more);
    const char **const words[] = { &x.calib,    &x.policy, &x.target,      &x.scheme,        &x.format,
                                   &x.observer, &x.effort, &x.target_size, &x.min_agreement, &x.metric,
                                   &x.decode,   &x.truth,  &x.dump_policy, &x.html,          &x.sensitivity_file };
    for (unsigned n = next(4); n > 0; n--)
        *words[next(sizeof words / sizeof *words)] = some_word();
    x.bits = (int)usual(0, next(10));
    x.block_size = (int)usual(0, 16 * next(3));
    x.symmetric = next(2);
    x.strict = next(2);
    x.sensitivity = next(8) == 7;
    x.min_sqnr = next(4) == 3 ? (double)next(60) : x.min_sqnr;
    x.budget = next(4) == 3 ? -1e300 : x.budget;
    x.trials = next(3);
    x.threads = (int)usual(1, next(4));
    x.size -= next(9) == 8 ? next(64) : 0;
    return octet_convert_model(o, next(17) == 16 ? NULL : &x, r);
}

static octet_status evaluate_typed(octet *o, octet_result **r, texts *t)
{
    octet_evaluate_options x;
    octet_evaluate_init(&x, sizeof x);
    x.model = next(6) < 5 ? "m.onnx" : some_word();
    x.quantized = some_words(t->rules);
    fill_samples(&x.samples, t);
    x.metrics = some_words(t->more);
    x.max_drop = some_words(t->goals);
    const char **const words[] = { &x.decode,      &x.truth,       &x.min_agreement, &x.min_sqnr,
                                   &x.min_speedup, &x.max_latency, &x.max_size,      &x.max_memory,
                                   &x.gates,       &x.baseline,    &x.compute,       &x.html };
    for (unsigned n = next(4); n > 0; n--)
        *words[next(sizeof words / sizeof *words)] = some_word();
    x.batch = usual(0, next(4));
    x.runs = usual(1, next(4));
    x.layers = (int)next(3) - 1;
    x.latency = (int)next(3) - 1;
    x.per_class = next(2);
    x.sweep = next(8) == 7;
    x.profile = next(2);
    x.threads = (int)usual(1, next(4));
    x.size -= next(9) == 8 ? next(64) : 0;
    return octet_evaluate_model(o, next(17) == 16 ? NULL : &x, r);
}

static void run_typed(void)
{
    static octet_status (*const calls[])(octet *, octet_result **, texts *) = { calibrate_typed, convert_typed,
                                                                                evaluate_typed };
    octet *o = some_octet();
    const unsigned which = next(3), k = next(RESULTS);
    octet_result *r = (octet_result *)1;
    texts t = { { NULL } };
    if (w.commands++ > 6)
        return;
    const octet_status s = calls[which](o, &r, &t);
    check(s, o);
    if (w.depth && s != OCTET_USAGE)
        abort();
    if ((r != NULL) != (s == OCTET_OK || s == OCTET_GOAL))
        abort();
    octet_result_free(w.r[k]);
    w.r[k] = r;
}

/* Everything that a result says is there, whatever the path. */
static void read_result(void)
{
    static const char *const paths[] = { "size_bytes.after",
                                         "layers.0.name",
                                         "warnings.0",
                                         "text",
                                         "",
                                         ".",
                                         "layers",
                                         "layers.",
                                         "layers.99999999999999999999",
                                         "a..b",
                                         "schema",
                                         NULL };
    const octet_result *r = w.r[next(RESULTS)];
    const char *path = paths[next(sizeof paths / sizeof *paths)];
    size_t size = 7;
    const char *text = octet_result_text(r, path), *json = octet_result_json(r);
    const uint8_t *model = octet_result_model(r, &size);
    const double v = octet_result_number(r, path);
    unsigned sum = (unsigned)octet_result_count(r, path) + (v > 0) + (text ? (unsigned)strlen(text) : 0) +
                   (json ? (unsigned)strlen(json) : 0);
    for (size_t i = 0; model && i < size; i++)
        sum += model[i];
    if (!model && size != 0 && r)
        abort();
    if (sum == UINT_MAX)
        abort();
}

static void free_result(void)
{
    const unsigned k = next(RESULTS);
    octet_result_free(w.r[k]);
    w.r[k] = NULL;
}

/* ---- all calls ---- */

static void open_octet(void)
{
    const unsigned k = next(CONTEXTS);
    if (!w.o[k])
        w.o[k] = octet_open();
}

/* In a callback the object may be in use, and then stays. */
static void close_octet(void)
{
    const unsigned k = next(CONTEXTS);
    octet_close(w.o[k]);
    if (!w.depth)
        w.o[k] = NULL;
}

static void listen(void)
{
    octet *o = some_octet();
    octet_on_progress(o, next(2) ? on_progress : NULL, NULL);
    octet_on_message(o, next(2) ? on_message : NULL, NULL);
}

static void stop(void)
{
    octet_stop(some_octet());
}

static void read_texts(void)
{
    const octet *o = some_octet();
    const octet_model *m = some_model();
    const size_t i = next(3) == 2 ? SIZE_MAX : 0;
    const octet_port *p = octet_model_input(m, i), *q = octet_model_output(m, i);
    const char *value = octet_model_metadata(m, next(2) ? "key" : NULL);
    size_t n = strlen(octet_version()) + strlen(octet_error(o)) + strlen(octet_hint(o)) + (value ? strlen(value) : 0);
    n += (p ? strlen(p->name) : 0) + (q ? strlen(q->name) : 0) + sum_outputs();
    if (n == SIZE_MAX)
        abort();
}

static void make_call(void)
{
    static void (*const calls[])(void) = { open_octet, load,       run_model,   run_model,   run_command, stop,
                                           listen,     read_texts, free_model,  close_octet, load_graph,  share_model,
                                           run_typed,  run_typed,  read_result, free_result };
    calls[next(sizeof calls / sizeof *calls)]();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memset(&w, 0, sizeof w);
    w.in = (input){ data, data + size };
    fuzz_folder_open();
    fuzz_write("x.csv", "a\n1\n2\n", 6);
    for (; w.call < MOST_CALLS && w.in.at < w.in.end; w.call++)
        make_call();
    for (int k = 0; k < MODELS; k++)
        octet_model_free(w.m[k]);
    for (int k = 0; k < CONTEXTS; k++)
        octet_close(w.o[k]);
    for (int k = 0; k < RESULTS; k++)
        octet_result_free(w.r[k]);
    return 0;
}
