/* Fuzz target: sequences of calls of the library. Each byte names a call, the bytes after it say with what: which of a
 * few objects, words and arrays. Whatever their order, each call returns a status of octet.h, and leaves no output
 * behind when it fails. Sizes of memory are always right, and no object is used after its release: these a caller must
 * see to. Callbacks make calls of their own. */
#include "fuzz_folder.h"

#include "../unit/small_model.h"

enum { CONTEXTS = 2, MODELS = 3, ROOM = 8192, MOST_CALLS = 64 };

typedef struct input {
    const uint8_t *at, *end;
} input;

static struct {
    octet *o[CONTEXTS];
    octet_model *m[MODELS];
    const octet_array *out; /* of the run before, of model `of`; outputs live until its next run */
    size_t n_out;
    octet_model *of;
    int depth, commands, call;
    input in;
} w;

/* What the models of each call borrow: models that share may need it until the end. */
static struct {
    proto p;
    uint8_t room[2][ROOM];
} kept[MOST_CALLS];

static unsigned next(unsigned below)
{
    return w.in.at < w.in.end ? *w.in.at++ % below : 0;
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

/* ---- commands ---- */

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

static void run_command(void)
{
    static const char *const words[] = { "m.onnx",
                                         "--data=x.csv",
                                         "--output=o.onnx",
                                         "-o-",
                                         "--",
                                         "--json=r.json",
                                         "lint",
                                         "--scheme=dynamic",
                                         "--help",
                                         "--threads=2",
                                         "-",
                                         "--json.onnx",
                                         "--scheme=bf16",
                                         "o.onnx",
                                         "--observer=minmax",
                                         "-qv",
                                         "--output=/dev/stdout",
                                         "--synthetic",
                                         "show",
                                         "--dry-run",
                                         "--version",
                                         "--print-policy",
                                         "",
                                         "--data=-" };
    octet *o = some_octet();
    const char *line[8] = { NULL };
    const unsigned which = next(3), n = next(7);
    for (unsigned i = 0; i < n; i++)
        line[i] = words[next(sizeof words / sizeof *words)];
    const char *const *arguments = next(17) == 16 ? NULL : line;
    if (w.commands++ > 6) /* they take milliseconds */
        return;
    const octet_status s = which == 0   ? octet_calibrate(o, arguments)
                           : which == 1 ? octet_convert(o, arguments)
                                        : octet_evaluate(o, arguments);
    check(s, o);
    if (w.depth && s != OCTET_USAGE) /* in a callback, none runs */
        abort();
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
    if (!w.depth) /* the call around is writing them */
        n += strlen(octet_report(o)) + strlen(octet_text(o));
    n += (p ? strlen(p->name) : 0) + (q ? strlen(q->name) : 0) + sum_outputs();
    if (n == SIZE_MAX)
        abort();
}

static void make_call(void)
{
    static void (*const calls[])(void) = { open_octet, load,       run_model,  run_model,   run_command, stop,
                                           listen,     read_texts, free_model, close_octet, load_graph,  share_model };
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
    return 0;
}
